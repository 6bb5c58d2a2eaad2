"""What people read of a verification and of a document, as lines of plain text.

What decides fits on half a screen; the rest is a list of sections, each a small table. A terminal gets the
same lines as a pipe, but coloured, with signs, and wrapped to its ``width``, which is 0 for a pipe.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category, east_asian_width

from finding_tickets.claims.metrics import SYNCS as KINDS
from finding_tickets.model.vocabulary import Level, Verdict

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.ticket import Remediation
    from finding_tickets.model.verification import (
        ClaimResult,
        OperationCost,
        SiteLaw,
        VariantResult,
        Verification,
    )
    from finding_tickets.register.index import Row
    from finding_tickets.register.query import Facts
    from finding_tickets.register.staleness import CurrentVerdict

INDENT = "  "
MARKS = {True: "holds", False: "false", None: "open"}
BEFORE = "found"
AFTER = "fix"
NO_LAW = "no law"
MODELLED = "~"
WAITING = frozenset(
    (
        *("drains", "stream_syncs", "event_syncs", "device_syncs", "implicit_syncs"),
        *("h2d", "d2h", "d2d", "p2p", "hazards"),
    )
)
"""The metrics whose source lines are shown whole; those that allocate only where the memory decides."""
MEMORY = frozenset(
    ("peak_bytes", "peak_allocated_bytes", "largest_allocation", "allocations", "retained_bytes", "ooms")
)
SYNCS = frozenset(KINDS)
COLOURS = {
    Verdict.VERIFIED: "green",
    Verdict.REPRODUCED: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.UNVERIFIED: "dim",
}
"""The colours of verdicts; those that are not here are red."""
LEVELS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}
SIGNS = {
    "holds": "✓",
    "false": "✗",
    "open": "?",
    Verdict.VERIFIED: "✓",
    Verdict.REPRODUCED: "!",
    Verdict.REFUTED: "✗",
    Verdict.FAILED: "✗",
}
"""Signs on a terminal in front of the words for how a claim or a ticket came out; other verdicts have a ?."""
LEAST_ROOM = 20
"""Cells that a column of a table is wrapped to at least; with less room each row is one text."""
LEAST_CUT = 12
"""Cells that a column is cut to at least; with less room it is left out."""
SHOWN_POINTS = 3
MOST_OPERATIONS = 12
"""Points of the sweep that are listed for a claim that fails there; the JSON has all."""
MOST_METRICS, MOST_LINES, MOST_CLAIMS, LONGEST_REASON = 5, {BEFORE: 4, AFTER: 3}, 3, 400
"""What half a screen has at most: metrics, lines of a variant, claims, and letters of the reason."""
LARGEST_SOURCE = 4 << 20
"""Bytes of the largest file whose lines are looked up: source is smaller."""

STEERING = re.compile(
    "\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
"""Control and format characters, surrogates and line separators: they steer a terminal or reorder its text.

Line ends, tabs and the two joiners are none of them; a carriage return alone would write over the line.
"""
_STEERING_OR_STYLE = re.compile(rf"(\x1b\[[0-9;]*m)|{STEERING.pattern}")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---(?:\n|\Z)", re.DOTALL)
_COMMENT_OR_RULE = re.compile(r"<!--.*?-->|^---$", re.DOTALL | re.MULTILINE)

Styler = Callable[[str, str], str]
"""Colours a text in the style of a name, such as ``bold`` or ``red``."""
# The code of a variant at a line of a file.
CodeAt = Callable[[str, str, int], str]
"""The text of a line of a file, without blanks around it; empty where it is not known."""


class Styled(NamedTuple):
    """The text of a table cell and the style that it is shown in; empty for none."""

    text: str
    style: str = ""


TableCell = str | Styled


class TextSection(NamedTuple):
    """A table with a title, unless that is empty, or a list of lines where each row has one cell."""

    title: str
    rows: Sequence[Sequence[TableCell]]
    header: Sequence[str] = ()
    is_cut: bool = False  # whether the last column gives way where a terminal is too narrow


def fields_of(record: object, *names: str) -> dict[str, object]:
    """Some fields of a record for JSON, whose keys have the same names."""
    return {name: getattr(record, name) for name in names}


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 document``, ``2 documents``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str, *, styled: bool = False) -> str:
    """``text`` with a ``?`` for each character that steers a terminal; tabs and line ends stay.

    Where a text is ``styled``, so do colours: its foreign parts went through here before they got one.
    """
    if text.isprintable():
        return text
    return _STEERING_OR_STYLE.sub(lambda at: at[1] or "?", text) if styled else STEERING.sub("?", text)


def single_line(text: str) -> str:
    """One line that cannot steer the terminal: white space collapsed, control characters shown as ``?``."""
    return printable(" ".join(text.split()))


def cells(text: str) -> int:
    """The columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        2 if east_asian_width(char) in "WF" else category(char) not in {"Mn", "Me", "Cf"} for char in text
    )


def fitted(text: str, width: int) -> str:
    """A text in exactly this many columns of a terminal: filled up with blanks, or cut, which shows."""
    left = width - cells(text)
    if left >= 0:
        return text + " " * left
    while text and cells(text) >= width:
        text = text[:-1]
    return text + "…" + " " * (width - 1 - cells(text))


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A text in lines of at most ``width`` columns, the later ones with an indent; one line for no width."""
    if text.isascii() or not width:
        return wrap(text, width, subsequent_indent=indent) if width else [text]
    # wrap() counts letters: one that takes two columns counts as two, and may end a line all the same.
    filled = "".join(f"{char}\0" if cells(char) > 1 else char for char in text)
    return [line.replace("\0", "") for line in wrap(filled, max(width - 1, 1), subsequent_indent=indent)]


def plainly(text: str, style: str) -> str:  # noqa: ARG001 - a styler's signature
    """A styler that colours nothing."""
    return text


def aligned(
    rows: Iterable[Sequence[TableCell]], style: Styler = plainly, width: int = 0, *, cut: bool = False
) -> list[str]:
    """Rows of cells as lines with aligned columns, in which nothing can steer a terminal.

    Where a terminal is too narrow, wide columns are wrapped, or else whole rows; nothing is lost, unless the
    last column is to be ``cut``.
    """
    table: list[list[Styled]] = []
    for row in rows:
        table.append([])
        for cell in row:
            text, look = cell if isinstance(cell, Styled) else (cell, "")
            sign = f"{SIGNS[text]} " if width and look and text in SIGNS else ""
            table[-1].append(Styled(f"{sign}{printable(text)}", look))
    # Widths are those of the text before it is styled: escape sequences take no column.
    widths = [max(cells(cell.text) for cell in column) for column in zip(*table, strict=True)]
    room = width - len(INDENT) * (len(widths) - 1)
    if cut and width and sum(widths) > room:
        left = room - sum(widths[:-1])
        widths[-1] = left if left >= LEAST_CUT else 0
        for row in table:
            row[-1] = row[-1]._replace(text=fitted(row[-1].text, widths[-1]).rstrip() if widths[-1] else "")
    # The widest columns give way first: names and laws stay whole as long as they can.
    while width and sum(widths) > room and max(widths) > LEAST_ROOM:
        widths[widths.index(max(widths))] -= 1
    if width and sum(widths) > room:
        joined = (INDENT.join(cell.text for cell in styled if cell.text) for styled in table)
        return [line for text in joined for line in wrapped(text, width, INDENT)]
    lines = []
    for styled in table:
        wrapped_cells = (
            wrapped(cell.text, columns) if cells(cell.text) > columns else [cell.text]
            for cell, columns in zip(styled, widths, strict=True)
        )
        for pieces in zip_longest(*wrapped_cells, fillvalue=""):
            # The style ends with the text: blanks between columns have no colour.
            texts = (
                (style(piece, cell.style) if piece else "") + " " * (columns - cells(piece))
                for piece, cell, columns in zip(pieces, styled, widths, strict=True)
            )
            lines.append(INDENT.join(texts).rstrip())
    return lines


def table_lines(
    rows: Sequence[Sequence[TableCell]],
    style: Styler = plainly,
    width: int = 0,
    *,
    cut: bool = False,
    most: int | None = None,
) -> Iterator[str]:
    """Rows as indented lines with aligned columns; beyond ``most`` of them, how many more there are."""
    shown = rows[:most]
    yield from (INDENT + line for line in aligned(shown, style, max(width - len(INDENT), 0), cut=cut))
    if len(rows) > len(shown):
        yield f"{INDENT}and {len(rows) - len(shown)} more (-v lists them)"


def section_lines(section: TextSection, style: Styler, width: int = 0) -> Iterator[str]:
    """The title of a section, and below it, indented, its header and its rows."""
    yield from (style(line, "bold") for line in wrapped(section.title, width) if line)
    header = [[Styled(title, "dim") for title in section.header]] if section.header else []
    yield from table_lines([*header, *section.rows], style, width, cut=section.is_cut)


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
    """The law of a metric, else what is known instead; None where the variant was not measured by it."""
    if variant is None or not any(metric in sample.metrics for sample in variant.samples):
        return None
    law = variant.laws.get(metric) or variant.growth.get(metric) or NO_LAW
    # What libraries choose is in these numbers, or estimates of other kinds.
    return f"{MODELLED}{law}" if any(metric in sample.ranges for sample in variant.samples) else law


def law_changes(verification: Verification) -> Iterator[LawChange]:
    """The metrics that claims about ``found`` and ``fix`` are about, each with its laws."""
    # Other variants have claims as well; what people ask first is what the fix changed.
    claimed = [claim.metric for claim in verification.claims if claim.variant in {BEFORE, AFTER}]
    # Evidence may lack a variant that was not measured.
    before, after = (verification.variants.get(name) for name in (BEFORE, AFTER))
    for metric in dict.fromkeys(claimed):
        change = LawChange(metric, law_of(before, metric), law_of(after, metric))
        if change.text:
            yield change


def circumstances(verification: Verification) -> str:
    """The meter, the device, the version of torch, and how many points were measured."""
    # A point that the meter could not run was not measured, although the sweep has it.
    number = len(verification.sweep) - len(verification.not_measured)
    points = f", {counted(number, 'point')}" if number else ""
    points += f", {len(verification.not_measured)} not measured" if verification.not_measured else ""
    return f"{verification.meter} {verification.device}, torch {verification.torch}{points}"


def deciding_changes(verification: Verification) -> list[LawChange]:
    """What tells the finding: the laws that the fix changed and that are not 0; else all."""
    changes = list(law_changes(verification))
    deciding = [each for each in changes if each.before != each.after and each.text != "0"] or changes
    held = [claim for claim in verification.claims if claim.variant == AFTER and claim.holds]
    told = []
    for each in deciding:
        # Without a law its range alone, or of the fix a bound that is claimed of all points and holds.
        before, after = (law and law.replace(f"{NO_LAW}, ", "") for law in (each.before, each.after))
        claimed = (claim.claimed for claim in held if claim.metric == each.metric)
        bounds = (bound for bound in claimed if bound[:1] == "<" and " where " not in bound)
        told.append(LawChange(each.metric, before, after if after == each.after else next(bounds, after)))
    return told


def brief_reason(verification: Verification) -> str:
    """The reason of the verdict; where claims are false, how many are, since each of them is listed."""
    deciding = [claim for claim in verification.claims if claim.variant in {BEFORE, AFTER}]
    false = [claim.variant for claim in deciding if claim.holds is False]
    if false and verification.verdict in {Verdict.REFUTED, Verdict.FAILED}:
        total = counted(sum(claim.variant in false for claim in deciding), "claim")
        about = f"{total} about {' and '.join(dict.fromkeys(false))}"
        return f"{len(false)} of {about} {'is' if len(false) == 1 else 'are'} false"
    reason = single_line(verification.reason)
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"


def _change_section(verification: Verification) -> TextSection:
    """Return before and after of the metrics that tell the finding; a bound is cut, laws stay whole."""
    rows = [(each.metric, each.text) for each in deciding_changes(verification)]
    is_cut = any("-> <" in text for _, text in rows)
    return TextSection("", _at_most(MOST_METRICS, rows), is_cut=is_cut)


def _at_most(most: int, rows: Sequence[Sequence[TableCell]]) -> list[Sequence[TableCell]]:
    """The first rows; where there are more than ``most``, the last line has their number."""
    if len(rows) <= most:
        return list(rows)
    return [*rows[: most - 1], ("", f"and {len(rows) - most + 1} more", *[""] * (len(rows[0]) - 2))]


def brief_sections(verification: Verification, code_at: CodeAt | None = None) -> Iterator[TextSection]:
    """Half a screen: what changed, the lines that cost it, how many claims hold, and those to look at."""
    yield _change_section(verification)
    yield TextSection("", [*_lines_that_matter(verification, code_at)], is_cut=True)
    if verification.unseen:
        yield TextSection(f"rests on what nobody can check later: {'; '.join(verification.unseen)}", ())
    is_false = verification.verdict in {Verdict.REFUTED, Verdict.FAILED}
    noted = [
        claim
        for claim in verification.claims
        if claim.is_surprise
        or (is_false and claim.holds is False and claim.variant in {BEFORE, AFTER})
        # What the reason says is not said again for each claim.
        or (verification.variants and claim.holds is None and claim.measured not in verification.reason)
    ]
    noted.sort(key=lambda claim: not claim.is_surprise)
    rows = []
    for claim in noted:
        mark, name, claimed, measured = _claim_cells(claim, at_point=True)
        how = "not checked:" if claim.holds is None else "measured"
        rows.append((mark, f"{name}: claimed {claimed}; {how} {measured.text}"))
    words = {True: "hold", False: "are false as expected", None: "are not checked"}
    wrong = "are NOT AS EXPECTED"
    counts = Counter(wrong if each.is_surprise else words[each.holds] for each in verification.claims)
    order = (words[True], words[False], wrong, words[None])
    said = ", ".join(f"{counts[word]} {word}" for word in order if counts[word])
    # Of one thing one says is.
    said = re.sub(r"\b1 (are|hold)\b", lambda one: {"are": "1 is", "hold": "1 holds"}[one[1]], said)
    if said:
        title = f"{counted(len(verification.claims), 'claim')}: {said} (-v lists them)"
        yield TextSection(title, _at_most(MOST_CLAIMS, rows))


def _lines_that_matter(verification: Verification, code_at: CodeAt | None) -> Iterator[Sequence[TableCell]]:
    """The lines of ``found`` and ``fix`` at which what decides grows, or else that wait or copy."""
    metrics = [each.metric for each in deciding_changes(verification)]
    what = WAITING.intersection(metric.removesuffix("_bytes") for metric in metrics)
    what |= SYNCS if "syncs" in metrics else set()
    what |= {"allocations"} if MEMORY.intersection(metrics[:1]) else set()
    variants = {
        name: verification.variants[name] for name in (BEFORE, AFTER) if name in verification.variants
    }
    is_known = any(site.what in what for variant in variants.values() for site in variant.sites)
    for name, variant in variants.items():
        rows = _site_rows(name, variant.sites, what if is_known else WAITING, code_at)
        cells_of = [("" if place else name, line, *rest) for place, (line, _, *rest) in enumerate(rows)]
        yield from _at_most(MOST_LINES[name], cells_of)


def verification_sections(verification: Verification, code_at: CodeAt | None = None) -> Iterator[TextSection]:
    """Laws, claims, the points at which claims fail, lines that wait, and points left out."""
    # Lists print no verification, and start faster without this.
    from finding_tickets.claims.check import at_text

    # A sweep of many points would push everything else off the screen.
    failures = [
        row
        for claim in verification.claims
        for row in _at_most(
            SHOWN_POINTS + 1,
            [("" if place else claim.id, point) for place, point in enumerate(claim.counterexamples)],
        )
    ]
    laws = [(each.metric, each.before or "", each.after or "") for each in law_changes(verification)]
    claims = [_claim_cells(claim) for claim in verification.claims]
    left_out = [(f"{at_text(each.at)}: {each.why}",) for each in verification.not_measured]
    header = ("line", "function", "costs", *(["code"] if code_at else []))
    lines = {
        name: TextSection(
            f"lines of {name} that wait or copy", _site_rows(name, variant.sites, WAITING, code_at), header
        )
        for name, variant in verification.variants.items()
    }
    sections = (
        TextSection("laws", laws, ("metric", BEFORE, AFTER)),
        # The lines of the finding stand next to the laws that they explain.
        *([lines.pop(BEFORE)] if BEFORE in lines else []),
        TextSection("claims", claims, ("", "claim", "claimed", "measured")),
        TextSection("where claims fail", failures),
        *lines.values(),
        *(
            operation_section(f"operations of {name} at the last point", variant.operations)
            for name, variant in verification.variants.items()
        ),
        TextSection("not measured", left_out),
        TextSection("rests on what nobody can check later", [(what,) for what in verification.unseen]),
        TextSection("reads the clock", [(name,) for name in verification.clock]),
    )
    return (section for section in sections if section.rows)


def operation_section(title: str, operations: Sequence[OperationCost]) -> TextSection:
    """The operations that waited, copied or launched, and what their costs rest on."""
    rows = [
        (each.operation, ", ".join(f"{name} {count}" for name, count in each.costs.items()), each.rests_on)
        for each in operations
    ]
    return TextSection(title, _at_most(MOST_OPERATIONS, rows), ("operation", "costs", "rests on"))


def _claim_cells(claim: ClaimResult, *, at_point: bool = False) -> tuple[Styled, str, str, Styled]:
    """How a claim came out, and whether the ticket expects that where it is not simply that it holds.

    What was measured is that of the whole sweep, or of the first point at which the claim fails.
    """
    why, measured = f": {claim.why}" if claim.why else "", claim.measured
    if at_point and claim.counterexamples:
        point, _, value = claim.counterexamples[0].partition(": ")
        more = len(claim.counterexamples) - 1
        measured = f"{value} at {point}" + (f" and at {counted(more, 'more point')}" if more else "")
    # Only what contradicts the ticket is loud: a false claim may be expected to be false.
    loud = "bold red" if claim.is_surprise else ""
    note = f" (NOT AS EXPECTED{why})" if loud else f" (as expected{why})" if claim.holds is False else ""
    mark = Styled(MARKS[claim.holds], loud or {True: "green", False: "yellow", None: "magenta"}[claim.holds])
    return mark, claim.id, claim.claimed, Styled(f"{measured}{note}", loud)


def laws_by_line(sites: Iterable[SiteLaw]) -> dict[tuple[str, int, str], list[tuple[str, str]]]:
    """Each source line once, by file, number and function, with what it costs by which law."""
    lines: dict[tuple[str, int, str], list[tuple[str, str]]] = {}
    for site in sites:
        place = (site.file, site.line, site.function)
        lines.setdefault(place, []).append((site.what, site.law or site.growth or NO_LAW))
    return lines


def _site_rows(
    variant: str, sites: Iterable[SiteLaw], what: Collection[str], code_at: CodeAt | None
) -> list[tuple[TableCell, ...]]:
    """Each source line with one of the costs ``what``: place, function, laws, and its code if looked up."""
    rows: list[tuple[TableCell, ...]] = []
    for (file, line, function), laws in laws_by_line(site for site in sites if site.what in what).items():
        # One read waits and copies: what follows the same law is told once.
        by_law: dict[str, list[str]] = {}
        for metric, law in laws:
            by_law.setdefault(law, []).append(metric)
        costs = "; ".join(f"{', '.join(metrics)}: {law}" for law, metrics in by_law.items())
        code = (code_at(variant, file, line),) if code_at else ()
        rows.append((Styled(f"{file}:{line}", "cyan"), function, costs, *code))
    return rows


def verdict_text(verdict: Verdict, style: Styler, width: int = 0, text: str = "") -> str:
    """A verdict in its colour, on a terminal with its sign; ``text`` says more than its name."""
    sign = f"{SIGNS.get(verdict, '?')} " if width else ""
    return style(f"{sign}{printable(text or verdict)}", COLOURS.get(verdict, "red"))


def verification_lines(
    verification: Verification,
    style: Styler,
    width: int = 0,
    code_at: CodeAt | None = None,
    *,
    is_brief: bool = False,
) -> Iterator[str]:
    """A verification for a reader; ``style`` colours a text, ``code_at`` looks up the lines that cost."""
    name = printable(verification.ticket)
    reason = printable(brief_reason(verification) if is_brief else verification.reason)
    verdict = verification.verdict
    signed = f"{SIGNS.get(verdict, '?')} {verdict}" if width else str(verdict)
    title, *lines = wrapped(f"{name}  {signed}: {reason}", width, INDENT)
    # The head is coloured where it is not broken.
    looks = f"{style(name, 'bold')}  {style(signed, COLOURS.get(verdict, 'red'))}"
    yield title.replace(f"{name}  {signed}", looks, 1)
    if verification.verdict is not Verdict.UNVERIFIED:
        facts = wrapped(printable(circumstances(verification)), width and width - len(INDENT))
        lines += [INDENT + line for line in facts]
    yield from lines
    for section in (brief_sections if is_brief else verification_sections)(verification, code_at):
        if width:
            yield from (*([] if is_brief else [""]), *section_lines(section, style, width))
        else:
            yield from (INDENT + line for line in section_lines(section, style))


def summary_lines(verifications: Iterable[Verification], style: Styler, width: int = 0) -> list[str]:
    """A line for each verification: its verdict, how many claims are as expected, and what changed."""
    rows: list[Sequence[TableCell]] = [
        tuple(Styled(title, "dim") for title in ("ticket", "verdict", "as expected", "before -> after"))
    ]
    for each in verifications:
        verdict = Styled(each.verdict, COLOURS.get(each.verdict, "red"))
        expected = sum(claim.as_expected for claim in each.claims)
        look = "" if expected == len(each.claims) else "bold red"
        changes = deciding_changes(each) if each.verdict is not Verdict.INCONCLUSIVE else []
        change = next((f"{one.metric}: {one.text}" for one in changes), brief_reason(each))
        counts = Styled(f"{expected} of {len(each.claims)}", look)
        rows.append((Styled(each.ticket, "bold"), verdict, counts, change))
    return aligned(rows, style, width, cut=True)


class Sources:
    """Lines of files below ``root``, each file read once; ``lines`` takes a file and its revision, if any."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        # Sites come file by file, so few files have to be kept.
        self.lines = lru_cache(maxsize=64)(self._read)

    def line(self, file: str, number: int, revision: str = "") -> str:
        """The line ``number`` (from 1) of a file without the blanks around it; empty where there is none.

        At a revision it is that of the file as it is there.
        """
        lines = self.lines(file, revision)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def of(self, remediation: Remediation | None) -> CodeAt:
        """Looks up lines of the variants, each at the revision that it is pinned to."""
        refs = remediation.variants if remediation else {}
        at = {name: ref.revision or "" for name, ref in refs.items()}
        return lambda variant, file, number: self.line(file, number, at.get(variant, ""))

    def _read(self, file: str, revision: str) -> tuple[str, ...]:
        """The lines of a file, at a revision or as it is; none where it cannot be read or is elsewhere."""
        data = b""
        if revision:
            from finding_tickets.ground.git import GitError, ask_bytes

            # What begins like an option is no revision.
            name = f"{revision.lstrip('-')}:./{file}"
            with suppress(GitError, ValueError):
                data = ask_bytes(self._root, "cat-file", "blob", name)
        else:
            with suppress(OSError, ValueError):
                path = (self._root / file).resolve()
                # A site may name anything: a file of a library, or `<string>`.
                if path.is_relative_to(self._root) and path.stat().st_size <= LARGEST_SOURCE:
                    data = path.read_bytes()
        text = data.decode(errors="replace").replace("\r\n", "\n")
        return tuple(text.removesuffix("\n").split("\n")) if text else ()


@dataclass(frozen=True, slots=True)
class MeasuredDocument:
    """One document whole, and what was measured of it."""

    document: Document
    measured: CurrentVerdict

    @property
    def id(self) -> str:
        """The document's ID, as it is written there."""
        return self.document.id.value

    @property
    def verdict_text(self) -> str:
        """The verdict, why it is stale, and what other meters say where they disagree."""
        measured = self.measured
        others = f" (meters disagree: {measured.disagreement})" if measured.disagreement else ""
        why = f" (changed since it was measured: {', '.join(measured.changed)})" if measured.changed else ""
        return f"{measured.verdict}{why}{others}"


def measured_documents(facts: Facts, rows: Iterable[Row]) -> Iterator[MeasuredDocument]:
    """The documents of rows, each read when it is asked for; those that are gone by now are left out."""
    for row in rows:
        document = facts.document(row)
        if document:
            yield MeasuredDocument(document, facts.measured(row))


def document_text(
    facts: Facts,
    entry: MeasuredDocument,
    style: Styler,
    width: int = 0,
    history: Sequence[str] = (),
    render: Callable[[str], str] = printable,
) -> str:
    """All that ``show`` says of a document, whose file may be gone since it was read.

    First what was decided and measured, then its Markdown as ``render`` shows it, then what is known beside
    it and, in lines, what git says.
    """
    from finding_tickets.register.disposition import disposition_text
    from finding_tickets.register.index import row_of

    row, done = row_of(entry.document), entry.measured.verification
    is_stale = entry.measured.verdict is Verdict.STALE
    decided = [word for word in (row.severity, disposition_text(row)) if word]
    said = f"{entry.verdict_text}: {brief_reason(done)}" if done and not is_stale else entry.verdict_text
    head = [style(line, "bold") for line in wrapped(printable(f"{entry.id}: {row.title}"), width)]
    head += wrapped(printable(" · ".join((*decided, row.path))), width)
    verdict = wrapped(verdict_text(entry.measured.verdict, plainly, width, said), width)
    head += [style(line, COLOURS.get(entry.measured.verdict, "red")) for line in verdict]
    head += section_lines(_change_section(done), style, width) if done else []
    text = ""
    with suppress(OSError):
        text = render(_to_read(entry.document, (facts.root / row.path).read_bytes()))
    sections = [_related_section(row, entry.document, facts)]
    sections += _remediation_sections(entry)
    known = [list(section_lines(section, style, width)) for section in sections if section.rows]
    if done:
        # The lines that were measured are no longer there.
        code_at = None if is_stale or not width else Sources(facts.root).of(entry.document.remediation)
        known.append(list(verification_lines(done, style, width, code_at)))
    if history:
        known.append(list(section_lines(TextSection("History", [(line,) for line in history]), style, width)))
    rest = "\n\n".join("\n".join(lines) for lines in known if lines)
    between = f"\n{style('─' * width, 'dim')}\n" if width else "\n\n"
    return between.join(filter(None, ("\n".join(head), text, rest)))


def _to_read(document: Document, data: bytes) -> str:
    """The Markdown of a document but for its title: what describes it first, metadata and places last.

    A Remediation that was read is left out, because its claims and variants are shown beside the text.
    """
    from finding_tickets.documents.sections import SectionKind, kind_of_title

    order: dict[SectionKind | None, int] = dict.fromkeys((SectionKind.SUMMARY, SectionKind.PROBLEM), 0)
    order |= dict.fromkeys((SectionKind.METADATA, SectionKind.LOCATION, SectionKind.RELATED), 2)
    order |= dict.fromkeys((SectionKind.REFERENCES, SectionKind.APPENDIX), 2)
    kinds = [kind_of_title(each.title) if each.level > 1 else None for each in document.sections]
    pieces: tuple[list[str], ...] = ([], [], [])
    for section, kind in zip(document.sections, kinds, strict=True):
        heading, body, place = section.heading, section.body.span, order.get(kind, 1)
        text = data[heading.start : body.end].decode(errors="replace").replace("\r\n", "\n")
        if section.level <= 1 and not any(pieces):
            text = data[body.start : body.end].decode(errors="replace").replace("\r\n", "\n").lstrip("\ufeff")
            text = _COMMENT_OR_RULE.sub("", _FRONT_MATTER.sub(r"```yaml\n\1\n```\n", text))
            # Where a section describes the finding, what stands below the title may be metadata.
            stated = any(body.start <= each.span.start < body.end for each in document.metadata.values())
            place = 2 if stated and any(order.get(each) == 0 for each in kinds) else 0
        if kind is not SectionKind.REMEDIATION or not document.remediation:
            pieces[place].append(text.strip().removesuffix("\n---").rstrip())
    return "\n\n".join(text for each in pieces for text in each if text)


def _related_section(stated: Row, document: Document, facts: Facts) -> TextSection:
    """The documents that this one names or that name it, each with what is known of it."""
    relations = document.related if document.kind == "finding" else ()
    notes = {relation.id.casefold(): relation.note for relation in relations}
    rows = []
    # Relations are known from both ends; notes only from this one.
    for other, relationship in facts.relations.by_id.get(stated.id.casefold(), ()):
        row, note = facts.relations.rows.get(other), notes.get(other)
        title = row.title if row else "not in the register"
        said = f"{title} ({note})" if note else title
        name, verdict = (row.id, facts.measured(row).verdict) if row else (other.upper(), "")
        rows.append((name, relationship, (row.status if row else None) or "", verdict, said))
    return TextSection("Related", rows, ("ticket", "relation", "status", "verdict", "title"))


def _remediation_sections(entry: MeasuredDocument) -> Iterator[TextSection]:
    """The answers to the checklist, the claims unless they were measured, and what is not measured."""
    remediation, done = entry.document.remediation, entry.measured.verification
    if remediation is None:
        return
    answers = []
    for item in entry.document.checklist:
        if answer := remediation.answer_to(item.text):
            box = "[x]" if item.done else "[ ]"
            answers.append((box, item.text, ", ".join(answer.claims) or answer.why or ""))
    yield TextSection("Checklist", answers, ("", "item", "answered by"))
    code = {"verifier": remediation.verifier} | {
        name: each.raw for name, each in remediation.variants.items()
    }
    yield TextSection("Code", [(name, place) for name, place in code.items() if place])
    # A verification shows the same claims with their outcome.
    if not (done and done.claims):
        claims = []
        for claim in remediation.claims:
            expected = f" (expected to be refuted: {claim.why})" if claim.expect == "refuted" else ""
            claims.append((claim.id, f"{claim.text}{expected}"))
        yield TextSection("Claims", claims)
    yield TextSection("Not measured", [(f"{item.claim}: {item.why}",) for item in remediation.unmeasured])
