"""Documents and verifications as rich shows them on a terminal; loaded for terminals alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from finding_tickets.documents.reading import Document
from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.index import row_of
from finding_tickets.register.query import Facts
from finding_tickets.report.text import (
    COLOURS,
    CodeAt,
    MeasuredDocument,
    Styled,
    TableCell,
    TextSection,
    checklist_answers,
    circumstances,
    claim_sections,
    printable,
    verification_sections,
)

INDENT = 2
GAP = 2
WIDE = 96
"""Columns from which on a table is one even where its last columns wrap."""
SIGNS = {
    "holds": "✓",
    "false": "✗",
    "open": "?",
    Verdict.VERIFIED: "✓",
    Verdict.REPRODUCED: "!",
    Verdict.REFUTED: "✗",
    Verdict.FAILED: "✗",
}
"""Signs in front of the words for how a claim or a ticket came out; other verdicts have a question mark."""
SHOWN_ELSEWHERE = ("Remediation",)
"""Sections of a document whose content the verification shows, with what came of it."""

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_COMMENT = re.compile(r"\s*<!--.*-->\s*", re.DOTALL)
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


class Safe:
    """A renderable of which only text and style reach the terminal, whatever text it is made of."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Each piece of text as it may be printed; control segments are left out."""
        # Styles are ours, text is not: it is replaced after everything was laid out.
        for segment in console.render(self._renderable, options):
            if not segment.control:
                yield Segment(printable(segment.text), segment.style)


@dataclass(frozen=True, slots=True)
class SectionView:
    """A section as a table, or where the terminal is too narrow for its columns, row below row."""

    section: TextSection

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Below the title, indented."""
        section, room = self.section, options.max_width - INDENT
        rows = [[_text(cell) for cell in row] for row in section.rows]
        header = [Text(title, style="dim") for title in section.header]
        lines = [*([header] if header else []), *rows]
        # Without wrapping, each column is as wide as the longest line in it.
        widths = [
            max(len(part) for cell in column for part in cell.plain.split("\n"))
            for column in zip(*lines, strict=True)
        ]
        fits = sum(widths) + GAP * (len(widths) - 1) <= room
        yield Text(section.title, style="bold underline")
        if fits or len(widths) == 1 or options.max_width >= WIDE:
            table = _table(lines)
            for column in table.columns[:2] if len(widths) > 2 else ():
                column.no_wrap = True
            yield Padding(table, (0, 0, 0, INDENT))
            return
        # The first cells name the row; the last two, or of two the last one, may be long.
        named = max(1, len(widths) - 2)
        labels = section.header[named:] or [""] * (len(widths) - named)
        for row in rows:
            names = Text("  ").join(cell for cell in row[:named] if cell.plain)
            pairs = zip(labels, row[named:], strict=True)
            values = [[Text(label, style="dim"), cell] for label, cell in pairs if cell.plain]
            yield Padding(names, (0, 0, 0, INDENT))
            yield Padding(_table(values), (0, 0, 0, 2 * INDENT))


@dataclass(frozen=True, slots=True)
class VerificationView:
    """A verification for a reader at a terminal of any width; ``code_at`` looks up source lines."""

    verification: Verification
    code_at: CodeAt

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Verdict and reason, and below them each section that has something to say."""
        verification = self.verification
        yield Text.assemble((verification.ticket, "bold"), "  ", verdict_text(verification.verdict))
        yield Padding(Text(verification.reason), (0, 0, 0, INDENT))
        if verification.verdict is not Verdict.UNVERIFIED:
            yield Padding(Text(circumstances(verification), style="dim"), (0, 0, 0, INDENT))
        for section in verification_sections(verification, self.code_at):
            yield Text()
            yield SectionView(section)


@dataclass(frozen=True, slots=True)
class DocumentView:
    """All of a document, ``text`` being that of its file; the verdict comes last, above the prompt."""

    entry: MeasuredDocument
    text: str = field(kw_only=True)
    related: TextSection = field(kw_only=True)
    code_at: CodeAt = field(kw_only=True)
    history: Sequence[str] = field(kw_only=True, default=())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The document between two lines, what belongs to it, and what was measured."""
        entry, document = self.entry, self.entry.document
        row = row_of(document)
        # A ticket may be resolved by the word that is its status.
        decided = dict.fromkeys(word for word in (row.severity, row.status, row.outcome) if word)
        words = [*map(Text, decided), verdict_text(entry.measured.verdict, entry.verdict_text)]
        # The file's own first heading is left out below.
        yield Text(f"{entry.id}: {document.title.value}", style="bold")
        yield Text(" · ").join([*words, Text(document.path, style="dim")])
        yield Rule(style="dim")
        yield MarkdownText(self.text, without=SHOWN_ELSEWHERE)
        yield Rule(style="dim")
        items = document.checklist
        answers = [
            ("[x]" if items[place].done else "[ ]", items[place].text, answer)
            for place, answer in checklist_answers(document)
        ]
        sections = [self.related, TextSection("Checklist", answers, ("", "item", "answered by"))]
        if document.remediation:
            sections += claim_sections(document.remediation, entry)
        for section in sections:
            if section.rows:
                yield SectionView(section)
                yield Text()
        if self.history:
            yield Text("\n".join([*self.history, ""]))
        if entry.measured.verification:
            yield VerificationView(entry.measured.verification, self.code_at)


def verdict_text(verdict: Verdict, text: str = "") -> Text:
    """A verdict with its sign, coloured; ``text`` says more than its name."""
    return Text(f"{SIGNS.get(verdict, '?')} {text or verdict}", style=f"bold {COLOURS.get(verdict, 'red')}")


def summary(verifications: Iterable[Verification]) -> RenderableType:
    """One line for each verification: its verdict and how many of its claims came out how."""
    lines = [[Text(title, style="dim") for title in ("ticket", "verdict", "claims")]]
    for each in verifications:
        counts = Counter(
            "open"
            if claim.holds is None
            else "NOT AS EXPECTED"
            if claim.is_surprise
            else "hold"
            if claim.holds
            else "false as expected"
            for claim in each.claims
        )
        outcomes = ("hold", "false as expected", "NOT AS EXPECTED", "open")
        said = ", ".join(f"{counts[word]} {word}" for word in outcomes if counts[word])
        lines.append([Text(each.ticket, style="bold"), verdict_text(each.verdict), Text(said)])
    return _table(lines)


def related_section(document: Document, facts: Facts) -> TextSection:
    """The documents that this one names or that name it, each with what is known of it."""
    relations = document.related if document.kind == "finding" else ()
    notes = {relation.id.casefold(): relation.note for relation in relations}
    rows = []
    # Relations are known from both ends; notes only from this one.
    for other, relationship in facts.relations.by_id.get(document.id.value.casefold(), ()):
        row, note = facts.relations.rows.get(other), notes.get(other)
        title = row.title if row else "not in the register"
        said = f"{title} ({note})" if note else title
        name, verdict = (row.id, facts.verdict(row)) if row else (other.upper(), "")
        rows.append((name, relationship, (row.status if row else None) or "", verdict, said))
    return TextSection("Related", rows, ("ticket", "relation", "status", "verdict", "title"))


def _text(cell: TableCell) -> Text:
    text, style = cell if isinstance(cell, Styled) else (cell, "")
    return Text(f"{SIGNS[text]} {text}" if style and text in SIGNS else text, style=style)


def _table(lines: Iterable[Sequence[Text]]) -> Table:
    """Columns that wrap where the terminal is narrow, and lose nothing."""
    table = Table.grid(padding=(0, GAP, 0, 0))
    for line in lines:
        table.add_row(*line)
    for column in table.columns:
        column.overflow = "fold"
    return table


class MarkdownText(Markdown):
    """Markdown as rich renders it, but that HTML and images stand there as text.

    Links show where they lead, so that no text can pass for another one's address. ``without`` names sections
    of the second level that are left out.
    """

    def __init__(self, text: str, without: Iterable[str] = ()) -> None:
        # The terminal's own colours, which its user can read on its background.
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        source = _FRONT_MATTER.sub(r"```yaml\n\1\n```\n", printable(text))
        parser = MarkdownIt("commonmark").enable(["strikethrough", "table"])
        self.parsed = list(_visible(_sections(parser.parse(source), set(without))))


def _sections(tokens: list[Token], without: set[str]) -> Iterator[Token]:
    """The tokens but for the document's title, which is shown above them, and for sections by their title."""
    # Only the first heading of level 1 is the title.
    title = next((token for token in tokens if token.tag == "h1"), None)
    skipping = False
    for token, after in pairwise([*tokens, Token("end", "", 0)]):
        if token.type == "heading_open" and token.level == 0 and token.tag in {"h1", "h2"}:
            skipping = token is title or after.content.strip() in without
        if not skipping:
            yield token
        elif token.type == "heading_close" and token.tag == "h1":
            skipping = False


def _visible(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens with HTML as the text that it is; comments and rules between sections are left out."""
    for token in tokens:
        if token.type == "hr" or (token.type.startswith("html") and _COMMENT.fullmatch(token.content)):
            continue
        if token.type == "html_block":
            yield Token("code_block", "code", 0, content=token.content)
        elif token.type.startswith("html") and _LINE_BREAK.fullmatch(token.content):
            yield Token("hardbreak", "br", 0)
        elif token.type.startswith("html"):
            yield Token("text", "", 0, content=token.content)
        elif token.type == "image":
            # A terminal shows no pictures, and must not ask for any.
            yield Token("text", "", 0, content=f"[image: {token.content}] ({token.attrs.get('src', '')})")
        else:
            if token.children:
                token.children = list(_visible(token.children))
            yield token
