"""The page of HTML, as text."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.conftest import Repository

from finding_tickets.cli.main import run

ROOT = Path(__file__).parents[2]
ADDRESSES = {"action", "background", "data", "formaction", "href", "poster", "src", "srcset", "xlink:href"}


class Page(HTMLParser):
    """Elements of a page: their attributes, and the text of styles and scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"style": [], "script": []}
        self._within = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element, and begin the text of a style or a script."""
        self.elements.append((tag, dict(attrs)))
        if tag in self.raw:
            self._within = tag
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        """End that text."""
        self._within = "" if tag == self._within else self._within

    def handle_data(self, data: str) -> None:
        """Text belongs to the style or script that it stands in."""
        if self._within:
            self.raw[self._within][-1] += data

    def those(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of that name."""
        return [attributes for name, attributes in self.elements if name == tag]


def made(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The page of the register at ``root``."""
    assert run(["report", "--format", "html", "--root", str(root), *arguments]) in {0, 4}
    return capsys.readouterr().out


def test_the_page_runs_and_asks_for_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """The policy forbids everything but the page's own style and script, whose hashes it states."""
    page = Page(made(ROOT, capsys))
    (meta,) = [each for each in page.those("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    (style,), (script,) = page.raw["style"], page.raw["script"]
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    assert (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "base-uri 'none'; form-action 'none'"
    ) == meta["content"]


def test_the_page_is_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    """No element loads anything: addresses are places of the page, or links of tickets to follow."""
    page = Page(made(ROOT, capsys))
    loaded = {
        (tag, name, value)
        for tag, attributes in page.elements
        for name, value in attributes.items()
        if name in ADDRESSES and not (value or "").startswith("#") and tag != "a"
    }
    assert set() == loaded
    assert [] == [
        tag for tag, _ in page.elements if tag in {"link", "img", "iframe", "object", "embed", "base"}
    ]
    assert "url(" not in page.raw["style"][0]
    assert "@import" not in page.raw["style"][0]


def test_no_style_and_no_handler_is_an_attribute(capsys: pytest.CaptureFixture[str]) -> None:
    """The policy would refuse them."""
    names = {name for _, attributes in Page(made(ROOT, capsys)).elements for name in attributes}
    assert set() == {name for name in names if name == "style" or name.startswith("on")}


def test_the_same_register_gives_the_same_bytes(tmp_path: Path) -> None:
    """Neither the order of hashes nor the time of day takes part."""
    pages = []
    for seed in ("1", "2"):
        file = tmp_path / f"{seed}.html"
        command = [sys.executable, "-m", "finding_tickets", "report", "--format", "html", "-o", str(file)]
        subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        pages.append(file.read_bytes())
    assert pages[0] == pages[1]
    assert str(ROOT).encode() not in pages[0]


def test_every_document_has_a_row_and_a_section(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The row's link leads to the section."""
    for number in range(3):
        repository.ticket(f"A-{number}")
    page = Page(made(repository.root, capsys))
    sections = [each["id"] for each in page.those("details") if each.get("id")]
    assert ["A-0", "A-1", "A-2"] == sections
    links = {each.get("href") for each in page.those("a")}
    assert {"#A-0", "#A-1", "#A-2"} <= links


def test_documents_that_share_an_id_have_places_of_their_own(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each can be opened, which is how one finds out."""
    repository.ticket("A-1", path="tickets/one.md")
    repository.ticket("A-1", path="tickets/other.md")
    page = Page(made(repository.root, capsys))
    assert ["A-1", "A-1~2"] == [each["id"] for each in page.those("details") if each.get("id")]


def test_many_sections_are_packed(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """The packs hold every section in order; nothing of them is in the page itself."""
    for number in range(101):
        repository.ticket(f"A-{number}", title=f"Number {number}", more=f"Text of {number}.")
    html = made(repository.root, capsys)
    packs = re.findall('<script type="text/plain" class="pack">(.*?)</script>', html)
    texts = [zlib.decompress(base64.b64decode(pack)).decode() for pack in packs]
    assert [50, 50, 1] == [text.count('<details class="document') for text in texts]
    assert [f"A-{number}" for number in range(101)] == re.findall(r'id="(A-\d+)"', "".join(texts))
    assert "Text of 7." in texts[0]
    assert "Text of 7." not in html


def test_links_between_documents_lead_to_their_sections(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A relation, and a link to the file of a document, stay within the page."""
    repository.ticket(
        "A-1",
        more="See [the other](deep/A%202.md#x), [code](../code.py).\n\n## Related Findings\n\n- A-2\n- A-3\n",
    )
    repository.ticket("A-2", path="tickets/deep/A 2.md")
    page = made(repository.root, capsys)
    assert '<a href="#A-2" rel="noopener noreferrer">the other</a>' in page
    assert '<a rel="noopener noreferrer">code</a>' in page
    assert '<li><a href="#A-2">A-2</a> <span class="quiet">related</span></li>' in page
    assert '<li>A-3 <span class="quiet">related</span></li>' in page


def test_no_documents(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty register is a page that says so, and one whose query chooses nothing says that."""
    assert "There are no documents." in made(repository.root, capsys)
    assert "There are no documents that the query chooses." in made(repository.root, capsys, "status:open")


def test_any_unicode(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Titles, files and text may be in any script, and in none that there is."""
    title = "Größe \u202eevil\u202c \u0007 中文 🙂 e\u0301"
    repository.ticket("A-1", title=title, path="tickets/naïve 中.md", more="Text \u2028 🙂")
    page = made(repository.root, capsys)
    assert title in page
    assert "tickets/naïve 中.md" in page


def test_a_file_name_that_is_no_text(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it stands for the ID too, there is a place on the page all the same."""
    file = os.fsdecode(b'tickets/we\xff"ird <b>.md')
    repository.write(file, "# Finding Ticket: It waits\n\n## Summary\n\nIt does.\n")
    page = Page(made(repository.root, capsys))
    assert ['WE?"IRD-<B>'] == [each["id"] for each in page.those("details") if each.get("id")]
    assert "#WE%3F%22IRD-%3CB%3E" in {each.get("href") for each in page.those("a")}


def test_a_template_of_the_register(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A block, the style or a whole page can be the register's own; what is not marked as HTML is escaped."""
    repository.ticket("A-1", title="<b>")
    repository.write("templates/mine.html.j2", "{% for row in status.rows %}{{ row.title }}{% endfor %}")
    repository.write(
        "templates/named.html.j2", "{% extends 'report.html.j2' %}{% block title %}Ours{% endblock %}"
    )
    repository.write("templates/report.css", "body { color: red }\r\n")
    assert "&lt;b&gt;" == made(repository.root, capsys, "--template", "mine.html.j2")
    page = made(repository.root, capsys, "--template", "named.html.j2")
    assert "<h1>Ours</h1>" in page
    assert "<style>body { color: red }\n</style>" in page


def test_a_script_that_would_end_early_is_refused(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """An own script cannot contain what ends a script."""
    repository.write("templates/report.js", "const text = '</script>';")
    assert 4 == run(["report", "--format", "html", "--root", str(repository.root)])
    assert "report.js" in capsys.readouterr().err
