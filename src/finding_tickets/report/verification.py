"""Verifications as lines of text: what decides fits on half a screen, the rest is a list of small tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finding_tickets.claims.metrics import MEMORY, WAITING
from finding_tickets.claims.metrics import SYNCS as KINDS
from finding_tickets.model.vocabulary import WITHOUT, Verdict
from finding_tickets.report.text import (
    COLOURS,
    INDENT,
    Styled,
    Styler,
    TableCell,
    TextSection,
    aligned,
    counted,
    printable,
    section_lines,
    single_line,
)

if TYPE_CHECKING:
    from finding_tickets.model.verification import (
        ClaimResult,
        OperationCost,
        SiteLaw,
        VariantResult,
        Verification,
    )

MARKS = {True: "holds", False: "false", None: "open"}
BEFORE = "found"
AFTER = "fix"
NO_LAW = "no law"
MODELLED = "~"
SYNCS = frozenset(KINDS)
# Points of the sweep that are listed for a claim that fails there; the JSON has all.
SHOWN_POINTS = 3
MOST_OPERATIONS = 12
# What half a screen has at most: metrics, lines of a variant, claims, and letters of the reason.
MOST_METRICS, MOST_LINES, MOST_CLAIMS, LONGEST_REASON = 5, {BEFORE: 4, AFTER: 3}, 3, 400


@dataclass(frozen=True, slots=True)
class LawChange:
    """A metric by which variants differ: its laws before and after, None where that variant was not run."""

    metric: str
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """Before and after with an arrow between them, as far as each was measured."""
        return " -> ".join(law for law in (self.before, self.after) if law is not None)


def law_of(variant: VariantResult | None, metric: str) -> str | None:
    """Return the law of a metric, else what is known instead; None where nothing was measured by it."""
    if variant is None:
        return None
    law = variant.laws.get(metric) or variant.growth.get(metric)
    # What libraries choose is in these numbers, or estimates of other kinds.
    return f"{MODELLED}{law}" if law and metric in variant.modelled else law


def law_changes(verification: Verification) -> list[LawChange]:
    """Return the metrics that claims about ``found`` and ``fix`` are about, each with its laws."""
    # Evidence may lack a variant that was not measured.
    before = verification.variants.get(BEFORE)
    after = verification.variants.get(AFTER)
    changes: dict[str, LawChange] = {}
    for claim in verification.claims:
        # Other variants have claims as well; what people ask first is what the fix changed.
        if claim.variant in {BEFORE, AFTER} and claim.metric not in changes:
            change = LawChange(
                claim.metric, law_of(before, claim.metric), law_of(after, claim.metric)
            )
            changes[claim.metric] = change
    return [change for change in changes.values() if change.text]


def circumstances(verification: Verification) -> str:
    """Return the meter, the device, the version of torch, and how many points were measured."""
    text = f"{verification.meter} {verification.device}, torch {verification.torch}"
    # A point that the meter could not run was not measured, although the sweep has it.
    left_out = len(verification.not_measured)
    measured = len(verification.sweep) - left_out
    if measured:
        text += f", {counted(measured, 'point')}"
    if left_out:
        text += f", {left_out} not measured"
    return text


def deciding_changes(verification: Verification) -> list[LawChange]:
    """Return what tells the finding: the laws that the fix changed and that are not 0; else all."""
    changes = law_changes(verification)
    deciding = [
        each for each in changes if each.before != each.after and each.text != "0"
    ]
    return [_shortened(each, verification) for each in deciding or changes]


def _shortened(change: LawChange, verification: Verification) -> LawChange:
    """Without a law, name the range alone, or for the fix a bound that holds at every point."""
    before = change.before and change.before.replace(f"{NO_LAW}, ", "")
    after = change.after and change.after.replace(f"{NO_LAW}, ", "")
    if after == "0" and change.metric == "syncs":
        after += moved_text(verification)
    if after != change.after:
        for claim in verification.claims:
            is_bound = claim.claimed.startswith("<") and " where " not in claim.claimed
            if (
                claim.variant == AFTER
                and claim.metric == change.metric
                and claim.holds
                and is_bound
            ):
                after = claim.claimed
                break
    return LawChange(change.metric, before, after)


def moved_text(verification: Verification) -> str:
    """Say how often the fix waits at other statements than its ticket's, which the ticket accepts."""
    return "".join(
        f", {site.law or site.growth} moved to {site.file}:{site.line}"
        for site in verification.variants[AFTER].sites
        if site.what in SYNCS
    )


def brief_reason(verification: Verification) -> str:
    """Return the reason of the verdict; where claims are false, how many are, since each is listed."""
    deciding = [
        claim for claim in verification.claims if claim.variant in {BEFORE, AFTER}
    ]
    false = [claim.variant for claim in deciding if claim.holds is False]
    if false and verification.verdict in {Verdict.REFUTED, Verdict.FAILED}:
        total = counted(sum(claim.variant in false for claim in deciding), "claim")
        about = f"{total} about {' and '.join(dict.fromkeys(false))}"
        return f"{len(false)} of {about} {'is' if len(false) == 1 else 'are'} false"
    reason = single_line(verification.reason)
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"


def change_section(verification: Verification) -> TextSection:
    """Show before and after of the metrics that tell the finding."""
    rows = [(each.metric, each.text) for each in deciding_changes(verification)]
    # A bound may be cut, laws stay whole.
    return TextSection(
        "", _at_most(MOST_METRICS, rows), is_cut=any("-> <" in text for _, text in rows)
    )


def _at_most(
    most: int, rows: Sequence[Sequence[TableCell]]
) -> list[Sequence[TableCell]]:
    """Return the first rows; where there are more than ``most``, the last line has their number."""
    if len(rows) <= most:
        return list(rows)
    return [
        *rows[: most - 1],
        ("", f"and {len(rows) - most + 1} more", *[""] * (len(rows[0]) - 2)),
    ]


def brief_sections(verification: Verification) -> list[TextSection]:
    """Return half a screen: what changed, the lines that cost it, and the claims to look at."""
    sections = [change_section(verification)]
    sections.append(TextSection("", _lines_that_matter(verification), is_cut=True))
    rows = []
    for claim in _noted_claims(verification):
        mark, name, claimed, measured = _claim_cells(claim, at_point=True)
        how = "not checked:" if claim.holds is None else "measured"
        rows.append((mark, f"{name}: claimed {claimed}; {how} {measured.text}"))
    if verification.claims:
        total = counted(len(verification.claims), "claim")
        title = f"{total}: {_outcomes(verification.claims)} (-v lists them)"
        sections.append(TextSection(title, _at_most(MOST_CLAIMS, rows)))
    return sections


def _noted_claims(verification: Verification) -> list[ClaimResult]:
    """Return the claims that a reader has to look at, surprises first."""
    surprises = [claim for claim in verification.claims if claim.is_surprise]
    others = [claim for claim in verification.claims if _is_noted(claim, verification)]
    return surprises + others


def _is_noted(claim: ClaimResult, verification: Verification) -> bool:
    """Return True if a claim that came out as expected explains the verdict, or was not checked."""
    if claim.is_surprise:
        return False
    if claim.holds is None:
        # What the reason says is not said again for each claim.
        return bool(verification.variants) and claim.measured not in verification.reason
    if claim.holds:
        return WITHOUT in claim.measured
    is_refuting = verification.verdict in {Verdict.REFUTED, Verdict.FAILED}
    return is_refuting and claim.variant in {BEFORE, AFTER}


def _outcomes(claims: Iterable[ClaimResult]) -> str:
    """Count how claims came out: ``30 hold, 5 are false as expected``."""
    counts = Counter(
        "surprise" if claim.is_surprise else MARKS[claim.holds] for claim in claims
    )
    words = {
        "holds": ("holds", "hold"),
        "false": ("is false as expected", "are false as expected"),
        "surprise": ("is NOT AS EXPECTED", "are NOT AS EXPECTED"),
        "open": ("is not checked", "are not checked"),
    }
    said = []
    for outcome, (one, several) in words.items():
        if counts[outcome]:
            said.append(f"{counts[outcome]} {one if counts[outcome] == 1 else several}")
    return ", ".join(said)


def _lines_that_matter(verification: Verification) -> list[Sequence[TableCell]]:
    """Return the lines of ``found`` and ``fix`` at which what decides grows, or else that wait or copy."""
    metrics = [each.metric for each in deciding_changes(verification)]
    wanted = {
        *WAITING.intersection(metric.removesuffix("_bytes") for metric in metrics)
    }
    if "syncs" in metrics:
        wanted |= SYNCS
    if MEMORY.intersection(metrics[:1]):
        wanted.add("allocations")
    variants = {
        name: each for name, each in verification.variants.items() if name in MOST_LINES
    }
    if not any(
        site.what in wanted for variant in variants.values() for site in variant.sites
    ):
        wanted = {*WAITING}
    rows: list[Sequence[TableCell]] = []
    for name, most in MOST_LINES.items():
        if name in variants:
            lines: list[Sequence[TableCell]] = []
            for place, _, *rest in _site_rows(variants[name].sites, wanted):
                lines.append(("" if lines else name, place, *rest))
            rows += _at_most(most, lines)
    return rows


def verification_sections(verification: Verification) -> list[TextSection]:
    """Return laws, claims, the points at which claims fail, lines that wait, and points left out."""
    # Lists print no verification, and start faster without this.
    from finding_tickets.claims.check import at_text

    failures: list[Sequence[TableCell]] = []
    for claim in verification.claims:
        points: list[Sequence[TableCell]] = []
        for point in claim.counterexamples:
            points.append(("" if points else claim.id, point))
        # A sweep of many points would push everything else off the screen.
        failures += _at_most(SHOWN_POINTS + 1, points)
    laws = [
        (each.metric, each.before or "", each.after or "")
        for each in law_changes(verification)
    ]
    header = ("line", "function", "costs", "code")
    lines: dict[str, TextSection] = {}
    for name, variant in verification.variants.items():
        rows = _site_rows(variant.sites, WAITING)
        lines[name] = TextSection(
            f"lines of {name} that wait or copy", rows, header, is_cut=True
        )
    claims = [_claim_cells(claim) for claim in verification.claims]
    left_out = [
        (f"{at_text(point.at)}: {point.why}",) for point in verification.not_measured
    ]
    sections = [TextSection("laws", laws, ("metric", BEFORE, AFTER))]
    # The lines of the finding stand next to the laws that they explain.
    if BEFORE in lines:
        sections.append(lines.pop(BEFORE))
    sections += [
        TextSection("claims", claims, ("", "claim", "claimed", "measured")),
        TextSection("where claims fail", failures),
        *lines.values(),
    ]
    for name, variant in verification.variants.items():
        sections.append(
            operation_section(
                f"operations of {name} at the last point", variant.operations
            )
        )
    sections += [
        TextSection("not measured", left_out),
    ]
    return [section for section in sections if section.rows]


def operation_section(title: str, operations: Sequence[OperationCost]) -> TextSection:
    """Show the operations that waited, copied or launched, and what their costs rest on."""
    rows = []
    for each in operations:
        costs = ", ".join(f"{name} {count}" for name, count in each.costs.items())
        rows.append((each.operation, costs, each.rests_on))
    return TextSection(
        title, _at_most(MOST_OPERATIONS, rows), ("operation", "costs", "rests on")
    )


def _claim_cells(
    claim: ClaimResult, *, at_point: bool = False
) -> tuple[Styled, str, str, Styled]:
    """Show the outcome of a claim, and the expectation of the ticket unless the claim just holds.

    The measurement shown is the whole sweep's, or the one of the first point at which the claim fails.
    """
    measured = claim.measured
    if at_point and claim.counterexamples:
        point, _, value = claim.counterexamples[0].partition(": ")
        measured = f"{value} at {point}"
        more = len(claim.counterexamples) - 1
        if more:
            measured += f" and at {counted(more, 'more point')}"
    why = f": {claim.why}" if claim.why else ""
    look = {True: "green", False: "yellow", None: "magenta"}[claim.holds]
    # Only what contradicts the ticket is loud: a false claim may be expected to be false.
    loud = ""
    if claim.is_surprise:
        look = loud = "bold red"
        measured += f" (NOT AS EXPECTED{why})"
    elif claim.holds is False:
        measured += f" (as expected{why})"
    return (
        Styled(MARKS[claim.holds], look),
        claim.id,
        claim.claimed,
        Styled(measured, loud),
    )


def laws_by_line(
    sites: Iterable[SiteLaw],
) -> dict[tuple[str, int, str, str], list[tuple[str, str]]]:
    """Return each source line once, by file, number, function and code, with what it costs by which law."""
    lines: dict[tuple[str, int, str, str], list[tuple[str, str]]] = {}
    for site in sites:
        place = (site.file, site.line, site.function, site.code)
        lines.setdefault(place, []).append(
            (site.what, site.law or site.growth or NO_LAW)
        )
    return lines


def _site_rows(
    sites: Iterable[SiteLaw], wanted: Collection[str]
) -> list[tuple[TableCell, ...]]:
    """Return each source line with one of the wanted costs: place, function, laws, and its code.

    All waits have one word.
    """
    rows: list[tuple[TableCell, ...]] = []
    shown = laws_by_line(site for site in sites if site.what in wanted)
    for (file, line, function, code), laws in shown.items():
        # One read waits and copies: what follows the same law is told once.
        by_law: dict[str, dict[str, None]] = {}
        for metric, law in laws:
            word = "syncs" if metric in SYNCS or metric == "drains" else metric
            by_law.setdefault(law, {})[word] = None
        costs = "; ".join(
            f"{', '.join(metrics)}: {law}" for law, metrics in by_law.items()
        )
        rows.append((Styled(f"{file}:{line}", "cyan"), function, costs, code))
    return rows


def verification_lines(
    verification: Verification,
    style: Styler,
    width: int = 0,
    *,
    is_brief: bool = False,
) -> Iterator[str]:
    """Yield a verification for a reader, with the code of the lines that cost."""
    verdict = verification.verdict
    name = style(printable(verification.ticket), "bold")
    reason = (
        brief_reason(verification) if is_brief else single_line(verification.reason)
    )
    yield f"{name}  {style(verdict, COLOURS.get(verdict, 'red'))}: {reason}"
    if verdict is not Verdict.UNVERIFIED:
        yield INDENT + printable(circumstances(verification))
    sections = brief_sections if is_brief else verification_sections
    for section in sections(verification):
        for line in section_lines(section, style, max(width - len(INDENT), 0)):
            yield INDENT + line


def summary_lines(
    verifications: Iterable[Verification], style: Styler, width: int = 0
) -> list[str]:
    """Return a line for each verification: its verdict, how many claims are as expected, what changed."""
    header = [
        Styled(title, "dim")
        for title in ("ticket", "verdict", "as expected", "before -> after")
    ]
    rows: list[Sequence[TableCell]] = [header]
    for each in verifications:
        expected = sum(claim.as_expected for claim in each.claims)
        look = "" if expected == len(each.claims) else "bold red"
        change = brief_reason(each)
        if each.verdict is not Verdict.INCONCLUSIVE:
            for first in deciding_changes(each)[:1]:
                change = f"{first.metric}: {first.text}"
        ticket = Styled(each.ticket, "bold")
        verdict = Styled(each.verdict, COLOURS.get(each.verdict, "red"))
        rows.append(
            (ticket, verdict, Styled(f"{expected} of {len(each.claims)}", look), change)
        )
    return aligned(rows, style, width)
