"""Markdown that people wrote as HTML that can be trusted: it runs nothing and asks for nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

import nh3
import pyromark

Resolve = Callable[[str], str | None]
"""Where a link that names no host leads: an address within the page, or None for nowhere."""

_OPTIONS = (
    pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_TASKLISTS | pyromark.Options.ENABLE_STRIKETHROUGH
)
_PARSER = pyromark.Markdown(options=_OPTIONS)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_MAYBE_HTML = re.compile(r"<[a-z/!?]", re.IGNORECASE)
# What cannot do anything but set text; comments are left to the sanitizer, which drops them.
_PLAIN_HTML = re.compile(r"</?(?:br|kbd|sub|sup)\s*/?>|<!--.*-->\s*", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<h1>.*?</h1>\n?", re.DOTALL)
_IMAGE = re.compile(r'<img src="([^"]*)" alt="([^"]*)"[^>]*>')
_ALIGNED = re.compile(r'(<t[dh]) style="text-align: (left|center|right)"')
_BOX = re.compile(r'<input disabled="" type="checkbox"( checked="")?/>\n?')
_LANGUAGE = re.compile(r'<code class="[^"]*">')
# Text and tags of the parser's without attributes, of which the sanitizer, which is slow, leaves everything.
_HARMLESS = re.compile(
    r"(?:[^<]++|</?(?:blockquote|code|del|em|h[1-6]|li|ol|p|pre|strong|table|tbody|td|th|thead|tr|ul)>"
    r'|<t[dh] class="(?:left|center|right)">)*+'
)
_DEEPEST = 6
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "kbd", "li", "ol", "p",
    "pre", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_SCHEMES = {"http", "https", "mailto"}
_ALIGNMENTS = {"left", "center", "right"}


def nowhere(_: str) -> None:
    """Leads no relative link anywhere: only its text remains."""


def prose(text: str, *, below: int = 0, resolve: Resolve = nowhere) -> str:
    """The HTML of a Markdown text, of tags that set text and of links alone.

    HTML within the text is shown as it is written. Images become links. The first heading of level 1, which
    is the document's title, is left out, and all others are ``below`` levels deeper.
    """
    html = _TITLE.sub("", _PARSER.html(_inert(_fenced(text))), count=1).replace("<hr />\n", "")
    # Most documents have none of these, and looking for a word takes no time.
    if "<img" in html:
        html = _IMAGE.sub(lambda image: f'<a href="{image[1]}">{image[2] or image[1]}</a>', html)
    if "<input" in html:
        html = _BOX.sub(lambda box: "\u2611 " if box[1] else "\u2610 ", html)
    if "<code class" in html:
        html = _LANGUAGE.sub("<code>", html)
    if " style=" in html:
        html = _ALIGNED.sub(r'\1 class="\2"', html)
    if not _HARMLESS.fullmatch(html):
        html = _cleaner(resolve).clean(html)
    for level in range(_DEEPEST, 0, -1) if below else ():
        lower = min(level + below, _DEEPEST)
        html = html.replace(f"<h{level}>", f"<h{lower}>").replace(f"</h{level}>", f"</h{lower}>")
    return html.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


@lru_cache(maxsize=64)
def _cleaner(resolve: Resolve) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        allowed_classes={"td": _ALIGNMENTS, "th": _ALIGNMENTS},
        url_schemes=_SCHEMES,
        url_relative=resolve,
    )


def _fenced(text: str) -> str:
    """The text with its front matter, if it has one, as a block of code."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return _FRONT_MATTER.sub(lambda found: f"{'`' * 9}yaml\n{found[1]}{'`' * 9}\n", text, count=1)


def _inert(text: str) -> str:
    """The text with every ``<`` that begins HTML escaped, but for tags that can do no harm."""
    if not _MAYBE_HTML.search(text):
        return text
    data = text.encode(errors="replace")
    pieces, at = [], 0
    for start, end in _html(data.decode()):
        if start >= at and not _PLAIN_HTML.fullmatch(data[start:end].decode()):
            pieces += [data[at:start], data[start:end].replace(b"<", b"&lt;")]
            at = end
    return b"".join([*pieces, data[at:]]).decode()


def _html(text: str) -> Iterator[tuple[int, int]]:
    """The byte range of each piece of HTML in a Markdown text, in order."""
    for event, span in _PARSER.events_with_range(text):
        is_block = isinstance(event, dict) and event.get("Start") == "HtmlBlock"
        if is_block or (isinstance(event, dict) and "InlineHtml" in event):
            yield span["start"], span["end"]
