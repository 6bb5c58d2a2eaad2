"""One verification as plain text: its verdict, laws before and after, claims, and the lines that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.report.measured import changes
from finding_tickets.report.printable import printable
from finding_tickets.report.times import times

INDENT = "  "
MARKS = {True: "holds", False: "false", None: "open"}
WAITING = {
    "stream_syncs",
    "event_syncs",
    "device_syncs",
    "implicit_syncs",
    "h2d",
    "d2h",
    "d2d",
    "p2p",
    "hazards",
}
"""Sites that are shown; those that allocate are in the JSON."""

Styler = Callable[[str, str], str]


def plainly(text: str, style: str) -> str:  # noqa: ARG001 - a styler's signature
    """A styler that colours nothing."""
    return text


COLOURS = {
    Verdict.VERIFIED: "green",
    Verdict.REPRODUCED: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.UNVERIFIED: "dim",
}


def lines(verification: Verification, style: Styler) -> Iterator[str]:
    """The verification for a reader at a terminal; ``style`` colours a text."""
    verdict = style(verification.verdict, COLOURS.get(verification.verdict, "red"))
    yield f"{style(printable(verification.ticket), 'bold')}  {verdict}: {printable(verification.reason)}"
    if verification.verdict is not Verdict.UNVERIFIED:
        yield f"{INDENT}{circumstances(verification)}"
    for title, rows in _sections(verification) if verification.variants else ():
        if rows:
            yield f"{INDENT}{style(title, 'bold')}"
            yield from (INDENT * 2 + printable(row) for row in rows)


def circumstances(verification: Verification) -> str:
    """The meter, the device, the version of torch and the number of points at which was measured, if any.

    And the revision, where code of the work tree was not what was measured.
    """
    number = len(verification.sweep) - len(verification.not_measured)
    points = f", {number} points" if number else ""
    at = f", at {verification.revision}" if verification.revision else ""
    return f"{verification.meter} {verification.device}, torch {verification.torch}{at}{points}"


def _sections(verification: Verification) -> Iterator[tuple[str, list[str]]]:
    yield "laws, found -> fix", aligned((change.metric, change.text) for change in changes(verification))
    yield "claims", list(_claims(verification.claims))
    yield from ((title, aligned(rows)) for title, rows in times(verification.timings))
    for name, variant in verification.variants.items():
        rows = (
            (f"{site.file}:{site.line}", site.function, site.what, site.law or site.growth or "no law")
            for site in variant.sites
            if site.what in WAITING
        )
        yield f"lines of {name} that wait or copy", aligned(rows)
    yield "not measured", [f"{point_text(point.at)}: {point.why}" for point in verification.not_measured]


def _claims(claims: Sequence[ClaimResult]) -> Iterator[str]:
    names = aligned([(MARKS[claim.holds], claim.id) for claim in claims], trim=False)
    for claim, name in zip(claims, names, strict=True):
        yield f"{name}{INDENT}{claim.claimed}{_measured(claim)}{_surprise(claim)}"
        if claim.holds is False and claim.counterexamples:
            more = len(claim.counterexamples) - 1
            yield f"{INDENT}at {claim.counterexamples[0]}{f' and {more} more points' if more else ''}"


def _measured(claim: ClaimResult) -> str:
    return "" if claim.measured == claim.claimed else f" | measured {claim.measured}"


def _surprise(claim: ClaimResult) -> str:
    if claim.as_expected:
        return " (as expected)" if claim.expect == "refuted" else ""
    return " (NOT AS EXPECTED)" if claim.holds is not None else ""


def aligned(rows: Iterable[tuple[str, ...]], *, trim: bool = True) -> list[str]:
    """Rows of cells as lines with aligned columns; ``trim`` drops the blanks at their ends."""
    table = list(rows)
    if not table:
        return []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [INDENT.join(map(str.ljust, row, widths)) for row in table]
    return [line.rstrip() for line in lines] if trim else lines


def point_text(point: Mapping[str, int]) -> str:
    """A point of the sweep, as counterexamples begin with it: ``params=4, largest=9``."""
    return ", ".join(f"{name}={value}" for name, value in point.items())
