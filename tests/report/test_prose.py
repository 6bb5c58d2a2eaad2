"""Markdown of tickets as HTML that can be trusted."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import nh3
import pytest

from finding_tickets.report.html import trusted_html

ACTING = {"script", "style", "svg", "img", "iframe", "form", "input", "meta", "base", "math", "details"}
TABLE = '| a | b |\n|--:|:-:|\n| *1* | `x` "q" |\n'
HARMLESS = {"href", "title", "rel", "class", "start"}


class Tags(HTMLParser):
    """What a browser would make elements and attributes of."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element."""
        self.names.add(tag)
        self.attributes += attrs


ATTACKS = (
    "<script>alert(1)</script>",
    "x <script src=//e.example></script> y",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)><script>alert(2)</script></svg>",
    "<style>* { display: none }</style>",
    "<div style='position:fixed;inset:0'>over all</div>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>here</a>",
    "[here](javascript:alert(1))",
    "[here](JaVaScRiPt:alert(1) 'title')",
    "[here](data:text/html;base64,PHNjcmlwdD4=)",
    "[here][1]\n\n[1]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "![x](https://e.example/spy.png)",
    "![x](x 'y\" onerror=\"alert(1)')",
    "`<script>` <b onclick=alert(1)>bold</b>",
    "<!-- --><script>alert(1)</script>",
    "<!--\n--><img src=x onerror=alert(1)>\n",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "- <details open ontoggle=alert(1)>\n\n  <math><mi//xlink:href='data:x,<script>'>",
    "</div></details></main><h1>Another page</h1>",
    "<form action=//e.example><input name=x></form>",
    "<meta http-equiv=refresh content='0;url=//e.example'><base href=//e.example>",
    "# <svg onload=alert(1)>\n\n## </h4><script>alert(1)</script>",
    "---\na: <script>alert(1)</script>\n---\n",
    "<br onclick=alert(1)> <kbd style=color:red>x</kbd>",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_runs_and_nothing_is_asked_for(attack: str) -> None:
    """Whatever a ticket says becomes text: no element that acts, no attribute that does, no image."""
    tags = Tags(trusted_html(attack, below=3))
    # The one element that is added is the frame of a table.
    assert set() == tags.names & (ACTING | ({"div"} if "|--" not in attack else set()))
    assert set() == {name for name, _ in tags.attributes} - HARMLESS
    addresses = [value or "" for name, value in tags.attributes if name == "href"]
    assert [] == [each for each in addresses if not re.match(r"https?://|mailto:|#", each)]


def test_html_is_shown_as_it_is_written() -> None:
    """A tag is text like any other, so that nothing of a ticket is lost; a comment is not shown."""
    assert "<p>a dict&lt;str, T&gt; of &lt;module&gt;</p>\n" == trusted_html("a dict<str, T> of <module>")
    assert "&lt;div&gt;\n&lt;b&gt;é&lt;/b&gt;" in trusted_html("<div>\n<b>é</b>\n</div>")
    assert "<p>a  b</p>\n" == trusted_html("a <!-- secret --> b")


def test_what_only_sets_text_stays() -> None:
    """Line breaks, keys, raised and lowered text are what they were meant to be."""
    assert "<p>2<sup>n</sup><br><kbd>q</kbd></p>\n" == trusted_html("2<sup>n</sup><br><kbd>q</kbd>")


def test_the_title_is_left_out_and_headings_are_lowered() -> None:
    """Only the first heading of level 1 is the title; no heading is deeper than HTML has them."""
    assert "<h5>b</h5>\n<h4>c</h4>\n<h6>d</h6>\n" == trusted_html("# a\n\n## b\n\n# c\n\n#### d", below=3)


def test_links_lead_to_hosts_or_within_the_page() -> None:
    """A link without a host leads where the page says, or is no more than its text."""
    text = trusted_html("[a](../x.md#y) [b](z.md) [c](https://e.example)", resolve={"../x.md#y": "#X-1"}.get)
    assert ["#X-1", "https://e.example"] == re.findall('href="(.*?)"', text)


def test_an_image_becomes_a_link() -> None:
    """The page asks for nothing, so that an image is a link with its own words."""
    assert ">the words</a>" in trusted_html("![the words](https://e.example/i.png)")
    assert ">https://e.example/i.png</a>" in trusted_html("![](https://e.example/i.png)")


def test_boxes_are_characters() -> None:
    """A box to tick is not a control that nobody can use."""
    assert "<ul>\n<li>☑ a</li>\n<li>☐ b</li>\n</ul>\n" == trusted_html("- [x] a\n- [ ] b")


def test_columns_keep_their_alignment() -> None:
    """The alignment of a column is a class, as the page allows no style of its own."""
    assert '<td class="right">1</td>' in trusted_html("| a |\n|--:|\n| 1 |")


def test_front_matter_is_code() -> None:
    """Metadata in front of the document is shown as it is written, fences within it too."""
    assert "<pre><code>id: A-1\n```\n</code></pre>\n<p>b</p>\n" == trusted_html(
        "---\nid: A-1\n```\n---\n\n# t\n\nb"
    )


def test_a_byte_order_mark_and_line_ends_are_no_text() -> None:
    """A file as other systems write it gives the same HTML."""
    assert trusted_html("# a\n\nb\n") == trusted_html("\ufeff# a\r\n\r\nb\r\n")


@pytest.mark.parametrize("text", [*ATTACKS, TABLE, "- [ ] a\n\n1. b\n\n> c\n\n---\n\n```py\n<d>\n```\n"])
def test_what_is_not_sanitized_needs_not_be(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sanitizer is spared what it would leave as it is: with it, the same comes out."""
    spared = trusted_html(text, below=3)
    monkeypatch.setattr("finding_tickets.report.html._HARMLESS", re.compile(r"(?!)"))
    # Both are read and written once more, as there are two ways to write a quotation mark.
    read = nh3.Cleaner(
        tags=nh3.ALLOWED_TAGS, attributes={"*": {"class", "href", "rel", "title"}}, link_rel=None
    )
    assert read.clean(trusted_html(text, below=3)) == read.clean(spared)


def test_the_sanitizer_is_not_spared_what_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address, and a tag that an author wrote, always pass through it."""

    class Sanitizer:
        def clean(self, html: str) -> str:
            return f"clean {html}"

    monkeypatch.setattr("finding_tickets.report.html._cleaner", lambda _: Sanitizer())
    for text in ("[a](b)", "<https://e.example>", "![a](b)", "a<br>b", "a<sub>b", "</kbd>"):
        assert trusted_html(text).startswith("clean ")
    assert not trusted_html("plain `text` & **more**").startswith("clean ")
