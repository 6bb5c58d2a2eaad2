"""One verification as plain text: its verdict, laws before and after, claims, and the lines that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Verification
from finding_tickets.report.measured import changes

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
COLOURS = {
    Verdict.VERIFIED: "green",
    Verdict.REPRODUCED: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.UNVERIFIED: "dim",
}


def lines(verification: Verification, style: Styler) -> Iterator[str]:
    """The verification for a reader at a terminal; ``style`` colours a text."""
    verdict = style(verification.verdict, COLOURS.get(verification.verdict, "red"))
    yield f"{style(verification.ticket, 'bold')}  {verdict}: {verification.reason}"
    if not verification.variants:
        return
    points = len(verification.sweep) - len(verification.not_measured)
    yield f"{INDENT}{verification.meter} {verification.device}, torch {verification.torch}, {points} points"
    for title, rows in _sections(verification):
        if rows:
            yield f"{INDENT}{style(title, 'bold')}"
            yield from (INDENT * 2 + row for row in rows)


def _sections(verification: Verification) -> Iterator[tuple[str, list[str]]]:
    yield "laws, found -> fix", aligned((change.metric, change.text) for change in changes(verification))
    yield "claims", list(_claims(verification.claims))
    for name, variant in verification.variants.items():
        rows = (
            (f"{site.file}:{site.line}", site.function, site.what, site.law or site.growth or "no law")
            for site in variant.sites
            if site.what in WAITING
        )
        yield f"lines of {name} that wait or copy", aligned(rows)
    yield "not measured", [f"{_at(point.at)}: {point.why}" for point in verification.not_measured]


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


def _at(point: dict[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())
