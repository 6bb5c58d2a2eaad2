"""Documents as rich shows them on a terminal, with their Markdown rendered; loaded for terminals alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment

from finding_tickets.report.text import printable

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


class MarkdownText(Markdown):
    """Markdown as rich renders it, but that HTML and images stand there as text.

    Links show where they lead, so that no text can pass for another one's address.
    """

    def __init__(self, text: str) -> None:
        # The terminal's own colours, which its user can read on its background.
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        parser = MarkdownIt("commonmark").enable(["strikethrough", "table"])
        self.parsed = list(_visible(parser.parse(printable(text))))


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
