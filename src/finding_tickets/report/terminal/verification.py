"""One verification on a terminal: verdict, metrics before and after, claims, where they fail, and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, SiteLaw, Verification
from finding_tickets.report.measured import AFTER, BEFORE, Change, changes
from finding_tickets.report.times import HEADER, times
from finding_tickets.report.verification import COLOURS, MARKS, WAITING, circumstances, point_text

INDENT = 2
NARROW = 96
"""Columns below which claims are listed one below the other, and not in a table."""
ROOM = 16
"""Columns that a value needs beside its point."""
ABOVE = "as above"
OUTCOMES = ("hold", "false as expected", "NOT AS EXPECTED", "open")
SIGNS = {True: "✓", False: "✗", None: "?"}
SIGNS_OF = {
    Verdict.VERIFIED: "✓",
    Verdict.REPRODUCED: "!",
    Verdict.REFUTED: "✗",
    Verdict.FAILED: "✗",
}

CodeAt = Callable[[str, int], str]
"""The text of a line of a file, without blanks around it; empty where it is not known."""


def verdict_text(verdict: Verdict, text: str = "") -> Text:
    """A verdict with its sign, coloured; ``text`` says more than its name."""
    style = f"bold {COLOURS.get(verdict, 'red')}"
    return Text(f"{SIGNS_OF.get(verdict, '?')} {text or verdict}", style=style)


class Measured:
    """A verification for a reader at a terminal of any width; ``code_at`` looks up source lines."""

    def __init__(self, verification: Verification, code_at: CodeAt) -> None:
        self._verification = verification
        self._code_at = code_at

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Verdict and reason, and below them each section that has something to say."""
        verification = self._verification
        yield Text.assemble((verification.ticket, "bold"), "  ", verdict_text(verification.verdict))
        yield _indented(Text(verification.reason))
        if verification.verdict is not Verdict.UNVERIFIED:
            yield _indented(Text(circumstances(verification), style="dim"))
        for title, content in self._sections(options.max_width):
            yield Text()
            yield Text(title, style="bold underline")
            yield _indented(content)

    def _sections(self, width: int) -> Iterator[tuple[str, RenderableType]]:
        verification = self._verification
        if rows := list(changes(verification)):
            yield "before → after", table(("metric", BEFORE, "", AFTER), map(_change, rows))
        yield from self._lines((BEFORE,), width)
        if verification.claims:
            yield "claims", _claims(verification.claims, narrow=width < NARROW)
        yield from ((title, table(HEADER, rows)) for title, rows in times(verification.timings))
        if wrong := [claim for claim in verification.claims if claim.holds is False]:
            yield "where claims fail", Group(*_failures(wrong, verification, width - INDENT))
        yield from self._lines((name for name in verification.variants if name != BEFORE), width)
        if verification.not_measured:
            points = (f"{point_text(point.at)}: {point.why}" for point in verification.not_measured)
            yield "not measured", Text("\n".join(points))

    def _lines(self, names: Iterable[str], width: int) -> Iterator[tuple[str, RenderableType]]:
        variants = self._verification.variants
        for name in filter(variants.__contains__, names):
            if sites := [site for site in variants[name].sites if site.what in WAITING]:
                shown = _sites(sites, self._code_at, narrow=width < NARROW)
                yield f"lines of {name} that wait or copy", shown


def summary(verifications: Iterable[Verification]) -> Table:
    """One line for each verification: its verdict and how many of its claims came out how."""
    return table(
        ("ticket", "verdict", "claims"),
        (
            (Text(each.ticket, style="bold"), verdict_text(each.verdict), _outcomes(each.claims))
            for each in verifications
        ),
    )


def _change(change: Change) -> tuple[str, ...]:
    arrow = "→" if change.before and change.after else ""
    return change.metric, change.before or "", arrow, change.after or ""


def _claims(claims: Iterable[ClaimResult], *, narrow: bool) -> RenderableType:
    if not narrow:
        rows = ((_mark(claim), claim.id, claim.claimed, _measured(claim)) for claim in claims)
        made = table(("", "claim", "claimed", "measured"), rows)
        made.columns[0].no_wrap = made.columns[1].no_wrap = True
        return made
    return Group(*(part for claim in claims for part in _claim(claim)))


def _claim(claim: ClaimResult) -> Iterator[RenderableType]:
    """One claim where there is no room for columns."""
    yield _mark(claim).append(f"  {claim.id}", style="none")
    yield _indented(_labelled([("claimed", Text(claim.claimed)), ("measured", _measured(claim))]))


def _mark(claim: ClaimResult) -> Text:
    """Sign and word for how a claim came out; colour only repeats it."""
    colours = {True: "green", False: "yellow", None: "magenta"}
    style = "bold red" if claim.is_surprise else colours[claim.holds]
    return Text(f"{SIGNS[claim.holds]} {MARKS[claim.holds]}", style=style)


def _measured(claim: ClaimResult) -> Text:
    """What was measured, and whether the ticket expects that where it is not simply that the claim holds."""
    if claim.is_surprise:
        return Text.assemble(claim.measured, (" (NOT AS EXPECTED)", "bold red"))
    return Text(f"{claim.measured} (as expected)" if claim.holds is False else claim.measured)


def _outcomes(claims: Iterable[ClaimResult]) -> str:
    """How many claims came out how; those that come out as the ticket expects are no surprise."""
    counts = Counter(map(_outcome, claims))
    return ", ".join(f"{counts[word]} {word}" for word in OUTCOMES if counts[word])


def _outcome(claim: ClaimResult) -> str:
    held, expected_false, surprise, still_open = OUTCOMES
    if claim.holds is None:
        return still_open
    if claim.is_surprise:
        return surprise
    return held if claim.holds else expected_false


def _failures(
    claims: Iterable[ClaimResult], verification: Verification, width: int
) -> Iterator[RenderableType]:
    """Each claim that does not hold, and the points of the sweep at which it does not."""
    points = {point_text(at): at for at in verification.sweep}
    for claim in claims:
        why = f" ({claim.why})" if claim.why else ""
        yield Text.assemble((f"✗ {claim.id}", "bold"), f": {claim.claimed}{why}")
        failures = claim.counterexamples
        parts = [failure.partition(": ") for failure in failures]
        rows = [(points.get(point, {}), value) for point, _, value in parts]
        yield _indented(_points(rows, width - INDENT) or _labelled(("-", Text(text)) for text in failures))


def _points(rows: Sequence[tuple[Mapping[str, int], str]], width: int) -> Table | None:
    """A row for each point, its variables and the value there; None where the terminal is too narrow."""
    names = list(dict.fromkeys(name for at, _ in rows for name in at))
    made = table(names, ())
    for column in made.columns:
        column.justify, column.no_wrap = "right", True
    made.add_column("measured", overflow="fold")
    before = ""
    for at, value in rows:
        shown = ABOVE if value == before and len(value) > len(ABOVE) else value
        made.add_row(*(str(at.get(name, "")) for name in names), Text(shown))
        before = value
    taken = sum(2 + max(len(name), *(len(str(at.get(name, ""))) for at, _ in rows)) for name in names)
    return made if width - taken >= ROOM else None


def _sites(sites: Sequence[SiteLaw], code_at: CodeAt, *, narrow: bool) -> RenderableType:
    """Each line once, with its source and what it does how often."""
    rows = []
    for (file, line, function), here in groupby(sites, lambda site: (site.file, site.line, site.function)):
        place = Text.assemble((f"{file}:{line}", "cyan"), f" {function}")
        code = Text(f"\n  {code}" if (code := code_at(file, line)) else "", style="dim")
        rows.append((place.append_text(code), _costs(list(here))))
    if narrow:
        return Group(*(part for place, costs in rows for part in (place, _indented(costs))))
    made = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        made.add_row(*row)
    return made


def _costs(sites: Sequence[SiteLaw]) -> Text:
    """What a line does by which law; what follows the same law shares a line."""
    by_law: dict[str, list[str]] = {}
    for site in sites:
        by_law.setdefault(site.law or site.growth or "no law", []).append(site.what)
    return Text("\n".join(f"{', '.join(names)}: {law}" for law, names in by_law.items()))


def table(header: Iterable[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table with columns that wrap where the terminal is narrow and lose nothing."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in header:
        made.add_column(title, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return made


def _labelled(rows: Iterable[tuple[str, Text]]) -> Table:
    """Texts behind their labels, which stay free where a text takes several lines."""
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for label, text in rows:
        made.add_row(label, text)
    return made


def _indented(content: RenderableType) -> Padding:
    return Padding(content, (0, 0, 0, INDENT))
