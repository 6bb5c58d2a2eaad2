"""Documents and verifications as rich shows them on a terminal; loaded for terminals alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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

from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.report.text import (
    COLOURS,
    CodeAt,
    DocumentPage,
    Styled,
    TableCell,
    TextSection,
    circumstances,
    outcomes,
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
    """A section as a table, or where the terminal is too narrow for its columns, cell behind cell."""

    section: TextSection

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Below the title, indented."""
        header = [Text(title, style="dim") for title in self.section.header]
        lines = [*([header] if header else []), *([_text(cell) for cell in row] for row in self.section.rows)]
        # Without wrapping, each column is as wide as the longest line in it.
        widths = [
            max(len(part) for cell in column for part in cell.plain.split("\n"))
            for column in zip(*lines, strict=True)
        ]
        fits = sum(widths) + GAP * (len(widths) - 1) <= options.max_width - INDENT
        yield Text(self.section.title, style="bold underline")
        if fits or options.max_width >= WIDE:
            table = _table(lines)
            for column in table.columns[:2] if len(widths) > 2 else ():
                column.no_wrap = True
            yield Padding(table, (0, 0, 0, INDENT))
            return
        for line in lines:
            cells = Text(" " * GAP).join(cell for cell in line if cell.plain)
            yield Padding(cells, (0, 0, 0, INDENT))


@dataclass(frozen=True, slots=True)
class VerificationView:
    """A verification for a reader at a terminal of any width; ``code_at`` looks up source lines."""

    verification: Verification
    code_at: CodeAt | None

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
    """All of a document; the verdict comes last, above the prompt."""

    page: DocumentPage

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The document between two lines, what belongs to it, and what was measured."""
        page, entry = self.page, self.page.entry
        words = [*map(Text, page.decided), verdict_text(entry.measured.verdict, entry.verdict_text)]
        # The file's own first heading is left out below.
        yield Text(page.title, style="bold")
        yield Text(" · ").join([*words, Text(entry.document.path, style="dim")])
        yield Rule(style="dim")
        yield MarkdownText(page.text, without=SHOWN_ELSEWHERE)
        yield Rule(style="dim")
        for section in page.sections:
            if section.rows:
                yield SectionView(section)
                yield Text()
        if page.history:
            yield Text("\n".join([*page.history, ""]))
        if entry.measured.verification:
            yield VerificationView(entry.measured.verification, page.code_at)


def verdict_text(verdict: Verdict, text: str = "") -> Text:
    """A verdict with its sign, coloured; ``text`` says more than its name."""
    return Text(f"{SIGNS.get(verdict, '?')} {text or verdict}", style=f"bold {COLOURS.get(verdict, 'red')}")


def summary(verifications: Iterable[Verification]) -> RenderableType:
    """One line for each verification: its verdict and how many of its claims came out how."""
    header = [Text(title, style="dim") for title in ("ticket", "verdict", "claims")]
    rows = (
        [Text(each.ticket, style="bold"), verdict_text(each.verdict), Text(outcomes(each.claims))]
        for each in verifications
    )
    return _table([header, *rows])


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
