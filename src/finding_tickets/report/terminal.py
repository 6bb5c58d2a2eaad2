"""Documents as rich shows them on a terminal, with their Markdown rendered; loaded for terminals alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.rule import Rule
from rich.segment import Segment
from rich.text import Text

from finding_tickets.report.text import DocumentPage, Styler, document_head, document_rest, printable

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
class DocumentView:
    """All of a document; the verdict comes last, above the prompt. ``style`` colours a text."""

    page: DocumentPage
    style: Styler

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The document between two lines, what belongs to it, and what was measured."""
        width = options.max_width
        # The file's own first heading is left out below.
        yield Text.from_ansi(document_head(self.page, self.style, width))
        yield Rule(style="dim")
        yield MarkdownText(self.page.text, without=SHOWN_ELSEWHERE)
        yield Rule(style="dim")
        yield Text.from_ansi(document_rest(self.page, self.style, width))


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
