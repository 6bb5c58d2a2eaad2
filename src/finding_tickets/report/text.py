"""What people read of a verification and of a document, as lines of plain text.

The content is a list of sections, each a small table. A terminal gets the same lines as a pipe, but coloured,
with signs, and wrapped to its ``width``, which is 0 for a pipe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category, east_asian_width

from finding_tickets.model.vocabulary import Verdict

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.verification import ClaimResult, SiteLaw, VariantResult, Verification
    from finding_tickets.register.index import Row
    from finding_tickets.register.query import Facts
    from finding_tickets.register.staleness import CurrentVerdict

INDENT = "  "
MARKS = {True: "holds", False: "false", None: "open"}
BEFORE = "found"
AFTER = "fix"
NO_LAW = "no law"
WAITING = frozenset(
    ("stream_syncs", "event_syncs", "device_syncs", "implicit_syncs", "h2d", "d2h", "d2d", "p2p", "hazards")
)
"""The metrics whose source lines are shown; lines that allocate are in the JSON."""
COLOURS = {
    Verdict.VERIFIED: "green",
    Verdict.REPRODUCED: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.UNVERIFIED: "dim",
}
"""The colours of verdicts; those that are not here are red."""
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
"""Letters that a column of a table is wrapped to at least; with less room each row is one text."""
SHOWN_POINTS = 3
"""Points of the sweep that are listed for a claim that fails there; the JSON has all."""
LARGEST_SOURCE = 4 << 20
"""Bytes of the largest file whose lines are looked up: source is smaller."""

# Control and format characters, surrogates and line separators steer a terminal or reorder its text.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_KEPT = frozenset("\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}")

Styler = Callable[[str, str], str]
"""Colours a text in the style of a name, such as ``bold`` or ``red``."""
CodeAt = Callable[[str, int], str]
"""The text of a line of a file, without blanks around it; empty where it is not known."""


class Styled(NamedTuple):
    """The text of a table cell and the style that it is shown in; empty for none."""

    text: str
    style: str = ""


TableCell = str | Styled


class TextSection(NamedTuple):
    """A titled table, or a titled list of lines where each row has one cell."""

    title: str
    rows: Sequence[Sequence[TableCell]]
    header: Sequence[str] = ()


def fields_of(record: object, *names: str) -> dict[str, object]:
    """Some fields of a record for JSON, whose keys have the same names."""
    return {name: getattr(record, name) for name in names}


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 document``, ``2 documents``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str) -> str:
    """``text`` with a ``?`` for each character that steers a terminal; tabs and line ends stay."""
    if text.isprintable():
        return text
    # A carriage return alone would write over the line.
    shown = text.replace("\r\n", "\n")
    return "".join("?" if category(char) in _UNSEEN and char not in _KEPT else char for char in shown)


def single_line(text: str) -> str:
    """One line that cannot steer the terminal: white space collapsed, control characters shown as ``?``."""
    return printable(" ".join(text.split()))


def cell_width(text: str) -> int:
    """The columns of a terminal that a text takes: two for a wide letter, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(
        2 if east_asian_width(char) in "WF" else category(char) not in {"Mn", "Me", "Cf"} for char in text
    )


def fitted(text: str, width: int) -> str:
    """A text in exactly this many columns of a terminal: filled up with blanks, or cut, which shows."""
    left = width - cell_width(text)
    if left >= 0:
        return text + " " * left
    while text and cell_width(text) >= width:
        text = text[:-1]
    return text + "…" + " " * (width - 1 - cell_width(text))


def plainly(text: str, style: str) -> str:  # noqa: ARG001 - a styler's signature
    """A styler that colours nothing."""
    return text


def aligned(rows: Iterable[Sequence[TableCell]], style: Styler = plainly, width: int = 0) -> list[str]:
    """Rows of cells as lines with aligned columns, in which nothing can steer a terminal.

    Where a terminal is too narrow, wide columns are wrapped, or else whole rows; nothing is lost.
    """
    table: list[list[Styled]] = []
    for row in rows:
        table.append([])
        for cell in row:
            text, look = cell if isinstance(cell, Styled) else (cell, "")
            sign = f"{SIGNS[text]} " if width and look and text in SIGNS else ""
            table[-1].append(Styled(f"{sign}{printable(text)}", look))
    # Widths count columns before they are styled: escape sequences take none.
    widths = [max(cell_width(cell.text) for cell in column) for column in zip(*table, strict=True)]
    room = width - len(INDENT) * (len(widths) - 1)
    # The widest columns give way first: names and laws stay whole as long as they can.
    while width and sum(widths) > room and max(widths) > LEAST_ROOM:
        widths[widths.index(max(widths))] -= 1
    if width and sum(widths) > room:
        joined = (INDENT.join(cell.text for cell in styled if cell.text) for styled in table)
        return [line for text in joined for line in wrap(text, width, subsequent_indent=INDENT)]
    lines = []
    for styled in table:
        wrapped = (
            wrap(cell.text, columns) if cell_width(cell.text) > columns else [cell.text]
            for cell, columns in zip(styled, widths, strict=True)
        )
        for pieces in zip_longest(*wrapped, fillvalue=""):
            # The style ends with the text: blanks between columns have no colour.
            cells = (
                (style(piece, cell.style) if piece else "") + " " * (columns - cell_width(piece))
                for piece, cell, columns in zip(pieces, styled, widths, strict=True)
            )
            lines.append(INDENT.join(cells).rstrip())
    return lines


def section_lines(section: TextSection, style: Styler, width: int = 0) -> Iterator[str]:
    """The title of a section, and below it, indented, its header and its rows."""
    yield style(section.title, "bold")
    header = [[Styled(title, "dim") for title in section.header]] if section.header else []
    lines = aligned([*header, *section.rows], style, width and width - len(INDENT))
    yield from (INDENT + line for line in lines)


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
    return variant.laws.get(metric) or variant.growth.get(metric) or NO_LAW


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
    """The meter, the device, the version of torch, the revision if any, and how many points were measured."""
    # A point that the meter could not run was not measured, although the sweep has it.
    number = len(verification.sweep) - len(verification.not_measured)
    points = f", {number} points" if number else ""
    at = f", at {verification.revision}" if verification.revision else ""
    return f"{verification.meter} {verification.device}, torch {verification.torch}{at}{points}"


def outcomes(claims: Iterable[ClaimResult]) -> str:
    """How many claims came out how: ``3 hold, 1 false as expected``."""
    words = {True: "hold", False: "false as expected", None: "open"}
    counts = Counter("NOT AS EXPECTED" if claim.is_surprise else words[claim.holds] for claim in claims)
    order = ("hold", "false as expected", "NOT AS EXPECTED", "open")
    return ", ".join(f"{counts[word]} {word}" for word in order if counts[word])


def verification_sections(verification: Verification, code_at: CodeAt | None = None) -> Iterator[TextSection]:
    """Laws, claims, the points at which claims fail, times, lines that wait, and points left out."""
    # Lists print no verification, and start faster without this.
    from finding_tickets.claims.check import at_text

    failures: list[tuple[str, str]] = []
    for claim in verification.claims:
        if claim.holds is False:
            # A sweep of many points would push everything else off the screen.
            points = list(claim.counterexamples[:SHOWN_POINTS])
            left = len(claim.counterexamples) - len(points)
            points += [f"and {left} more points"] if left else []
            failures += [("" if number else claim.id, point) for number, point in enumerate(points)]
    times = [
        (f"{each.variant}/{each.reference}", at_text(each.at), each.text) for each in verification.timings
    ]
    device = next((each.device for each in verification.timings), "")
    laws = [(each.metric, each.before or "", each.after or "") for each in law_changes(verification)]
    claims = [_claim_cells(claim) for claim in verification.claims]
    left_out = [(f"{at_text(each.at)}: {each.why}",) for each in verification.not_measured]
    lines = {
        name: _site_section(name, [site for site in variant.sites if site.what in WAITING], code_at)
        for name, variant in verification.variants.items()
    }
    sections = (
        TextSection("laws", laws, ("metric", BEFORE, AFTER)),
        # The lines of the finding stand next to the laws that they explain.
        *([lines.pop(BEFORE)] if BEFORE in lines else []),
        TextSection("claims", claims, ("", "claim", "claimed", "measured")),
        TextSection(f"times on {device}", times, ("ratio", "at", "median (interval)")),
        TextSection("where claims fail", failures),
        *lines.values(),
        TextSection("not measured", left_out),
    )
    return (section for section in sections if section.rows)


def _claim_cells(claim: ClaimResult) -> tuple[TableCell, ...]:
    """How a claim came out, and whether the ticket expects that where it is not simply that it holds."""
    why = f": {claim.why}" if claim.why else ""
    mark = MARKS[claim.holds]
    # Only what contradicts the ticket is loud: a false claim may be expected to be false.
    if claim.is_surprise:
        loud, measured = "bold red", f"{claim.measured} (NOT AS EXPECTED{why})"
        return Styled(mark, loud), claim.id, claim.claimed, Styled(measured, loud)
    colour = {True: "green", False: "yellow", None: "magenta"}[claim.holds]
    expected = f" (as expected{why})" if claim.holds is False else ""
    return Styled(mark, colour), claim.id, claim.claimed, f"{claim.measured}{expected}"


def laws_by_line(sites: Iterable[SiteLaw]) -> dict[tuple[str, int, str], list[tuple[str, str]]]:
    """Each source line once, by file, number and function, with what it costs by which law."""
    lines: dict[tuple[str, int, str], list[tuple[str, str]]] = {}
    for site in sites:
        place = (site.file, site.line, site.function)
        lines.setdefault(place, []).append((site.what, site.law or site.growth or NO_LAW))
    return lines


def _site_section(variant: str, sites: Sequence[SiteLaw], code_at: CodeAt | None) -> TextSection:
    """Each source line once, with what it costs by which law, and its code where that is known."""
    rows = []
    for (file, line, function), laws in laws_by_line(sites).items():
        # One read waits and copies: what follows the same law is told once.
        by_law: dict[str, list[str]] = {}
        for metric, law in laws:
            by_law.setdefault(law, []).append(metric)
        costs = "; ".join(f"{', '.join(metrics)}: {law}" for law, metrics in by_law.items())
        code = (code_at(file, line),) if code_at else ()
        rows.append((Styled(f"{file}:{line}", "cyan"), function, costs, *code))
    header = ("line", "function", "costs", *(["code"] if code_at else []))
    return TextSection(f"lines of {variant} that wait or copy", rows, header)


def verdict_text(verdict: Verdict, style: Styler, width: int = 0, text: str = "") -> str:
    """A verdict in its colour, on a terminal with its sign; ``text`` says more than its name."""
    sign = f"{SIGNS.get(verdict, '?')} " if width else ""
    return style(f"{sign}{printable(text or verdict)}", COLOURS.get(verdict, "red"))


def verification_lines(
    verification: Verification, style: Styler, width: int = 0, code_at: CodeAt | None = None
) -> Iterator[str]:
    """A verification for a reader; ``style`` colours a text, ``code_at`` looks up the lines that cost."""
    name, reason = style(printable(verification.ticket), "bold"), printable(verification.reason)
    title = f"{name}  {verdict_text(verification.verdict, style, width)}"
    facts = [printable(circumstances(verification))] if verification.verdict is not Verdict.UNVERIFIED else []
    if width:
        yield title
        facts = [line for text in (reason, *facts) for line in wrap(text, width - len(INDENT))]
    else:
        yield f"{title}: {reason}"
    yield from (INDENT + line for line in facts)
    for section in verification_sections(verification, code_at):
        if width:
            yield from ("", *section_lines(section, style, width))
        else:
            yield from (INDENT + line for line in section_lines(section, style))


def summary_lines(verifications: Iterable[Verification], style: Styler, width: int = 0) -> list[str]:
    """One line for each verification: its verdict and how many of its claims came out how."""
    header = tuple(Styled(title, "dim") for title in ("ticket", "verdict", "claims"))
    rows = (
        (
            Styled(each.ticket, "bold"),
            Styled(each.verdict, COLOURS.get(each.verdict, "red")),
            outcomes(each.claims),
        )
        for each in verifications
    )
    return aligned([header, *rows], style, width)


class Sources:
    """Lines of files below ``root``, each file read once."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        # Sites come file by file, so few files have to be kept.
        self._lines = lru_cache(maxsize=64)(self._read)

    def line(self, file: str, number: int) -> str:
        """The line ``number`` (from 1) of a file without the blanks around it; empty where there is none."""
        lines = self._lines(file)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def _read(self, file: str) -> tuple[str, ...]:
        try:
            path = (self._root / file).resolve()
            # A site may name anything: a file of a library, or `<string>`.
            if not path.is_relative_to(self._root) or path.stat().st_size > LARGEST_SOURCE:
                return ()
            return tuple(path.read_text(encoding="utf-8", errors="replace").split("\n"))
        except (OSError, ValueError):
            return ()


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


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """All that ``show`` says of a document.

    ``text`` is that of its file and ``sections`` what is known beside it. ``history`` is what git says, in
    lines. ``code_at`` looks up lines that cost, where they are still those that were measured.
    """

    entry: MeasuredDocument
    decided: Sequence[str]
    text: str
    sections: Sequence[TextSection]
    history: Sequence[str]
    code_at: CodeAt | None

    @property
    def title(self) -> str:
        """The ID and the title."""
        return f"{self.entry.id}: {self.entry.document.title.value}"


def document_page(facts: Facts, entry: MeasuredDocument, history: Sequence[str] = ()) -> DocumentPage:
    """The page of one document, whose file may be gone since it was read."""
    from finding_tickets.register.index import row_of

    row, text = row_of(entry.document), ""
    with suppress(OSError):
        text = (facts.root / row.path).read_text(encoding="utf-8-sig", errors="replace")
    is_stale = entry.measured.verdict is Verdict.STALE
    return DocumentPage(
        entry=entry,
        # A ticket may be resolved by the word that is its status.
        decided=[word for word in dict.fromkeys((row.severity, row.status, row.outcome)) if word],
        text=text,
        sections=[_related_section(row, entry.document, facts), *_remediation_sections(entry)],
        history=history,
        # The lines that were measured are no longer there.
        code_at=None if is_stale else Sources(facts.root).line,
    )


def document_head(page: DocumentPage, style: Styler, width: int = 0) -> str:
    """Two lines: what the document is called, and what was decided and measured."""
    entry = page.entry
    verdict = verdict_text(entry.measured.verdict, style, width, entry.verdict_text)
    facts = [*page.decided, verdict, style(printable(entry.document.path), "dim")]
    return f"{style(printable(page.title), 'bold')}\n{' · '.join(facts)}"


def document_rest(page: DocumentPage, style: Styler, width: int = 0) -> str:
    """What is known beside the text of a document: sections, what was measured, and its history."""
    done = page.entry.measured.verification
    blocks = [list(section_lines(section, style, width)) for section in page.sections if section.rows]
    if done:
        blocks.append(list(verification_lines(done, style, width, page.code_at if width else None)))
    blocks += [list(page.history)] if page.history else []
    return "\n\n".join("\n".join(lines) for lines in blocks)


def document_text(page: DocumentPage, style: Styler) -> str:
    """A document for a reader of plain text: its Markdown as it is written, and what is known beside it."""
    blocks = (document_head(page, style), printable(page.text).strip("\n"), document_rest(page, style))
    return "\n\n".join(filter(None, blocks))


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
    # A verification shows the same claims with their outcome.
    if not (done and done.claims):
        from finding_tickets.register.index import stated_claim

        claims = []
        for claim in remediation.claims:
            expected = f" (expected to be refuted: {claim.why})" if claim.expect == "refuted" else ""
            claims.append((claim.id, f"{stated_claim(claim).text}{expected}"))
        yield TextSection("Claims", claims)
    yield TextSection("Not measured", [(f"{item.claim}: {item.why}",) for item in remediation.unmeasured])
