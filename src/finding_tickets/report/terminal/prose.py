"""The Markdown of a document on a terminal, with nothing of it left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.markdown import Markdown

from finding_tickets.report.printable import printable

FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
COMMENT = re.compile(r"\s*<!--.*-->\s*", re.DOTALL)
LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


class Prose(Markdown):
    """Markdown as rich renders it, but that HTML and images stand there as text.

    Links show where they lead, so that no text can pass for another one's address. ``without`` names sections
    of the second level that are left out.
    """

    def __init__(self, text: str, without: Iterable[str] = ()) -> None:
        # The terminal's own colours, which its user can read on its background.
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        source = FRONT_MATTER.sub(r"```yaml\n\1\n```\n", printable(text))
        parser = MarkdownIt("commonmark").enable(["strikethrough", "table"])
        self.parsed = list(_visible(_sections(parser.parse(source), set(without))))


def _sections(tokens: list[Token], without: set[str]) -> Iterator[Token]:
    """The tokens but for the document's title, which is shown above them, and for sections by their title."""
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
    for token in tokens:
        if token.type.startswith("html"):
            yield from _html(token)
        elif token.type == "hr":
            # Sections have their headings, in which a terminal shows them well enough.
            continue
        elif token.type == "image":
            yield _text(f"[image: {token.content}] ({token.attrs.get('src', '')})")
        else:
            if token.children:
                token.children = list(_visible(token.children))
            yield token


def _html(token: Token) -> Iterator[Token]:
    """HTML as the text that it is, without comments; ``<br>`` ends a line."""
    if COMMENT.fullmatch(token.content):
        return
    if token.type == "html_block":
        yield Token("code_block", "code", 0, content=token.content)
    elif LINE_BREAK.fullmatch(token.content):
        yield Token("hardbreak", "br", 0)
    else:
        yield _text(token.content)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
