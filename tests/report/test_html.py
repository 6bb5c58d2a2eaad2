"""The page of a report: one file, no code of anybody's, Markdown that does nothing, and diffs."""

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
from tests.conftest import Git, Repository

from finding_tickets.cli.main import run
from finding_tickets.report.formats.html import CodeDiff, code_diff, trusted_html

ROOT = Path(__file__).parents[2]


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


@pytest.mark.slow
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


def test_the_page_opens_with_project_revision_and_what_to_do(
    repository: Repository, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    """The project is called like its folder; the date is the commit's."""
    file = repository.ticket("A-1", title="It waits", status="open")
    git("add", ".")
    git("commit", "-m", "all")
    commit = git("log", "-1", "--abbrev=12", "--format=%h of %cs").strip()
    page = made(repository.root, capsys)
    assert f"<h1>Status of {repository.root.name}</h1>" in page
    assert f'<span class="revision">Revision {commit}</span></p>' in page
    assert page.index('id="next"') < page.index("fix it, or decide") < page.index('id="summary"')
    file.write_text(file.read_text() + "More.\n")
    page = made(repository.root, capsys)
    assert f"Revision {commit}, with uncommitted changes<" in page


def test_a_ticket_shows_diff_and_lines_before_laws_and_claims(capsys: pytest.CaptureFixture[str]) -> None:
    """After the sentence that says what was won."""
    page = made(ROOT, capsys, "B7-PT-02")
    section = page[page.index('<details class="document') :]
    titles = ("From found to fix", "Lines that wait", "Costs", "Claims")
    places = [section.index("one for each device;"), *(section.index(f"<h4>{each}") for each in titles)]
    assert sorted(places) == places


def test_no_documents(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty register is a page that says so, and one whose query chooses nothing says that."""
    assert "There are no documents." in made(repository.root, capsys)
    assert "There are no documents that the query chooses." in made(repository.root, capsys, "status:open")


def test_any_unicode(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Titles, files and text may be in any script, and in none that there is; nothing reorders a line."""
    title = "Größe \u202eevil\u202c \u0007 中文 🙂 e\u0301"
    repository.ticket("A-1", title=title, path="tickets/naïve 中.md", more="Text \u2028 🙂")
    page = made(repository.root, capsys)
    # Each of the two marks and the bell is one question mark.
    assert "Größe ?evil? ? 中文 🙂 e\u0301" in page
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


ACTING = {"script", "style", "svg", "img", "iframe", "form", "input", "meta", "base", "math", "details"}
HARMLESS = {"href", "title", "rel", "class", "start"}


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
    elements = Page(trusted_html(attack, below=3)).elements
    # The one element that is added is the frame of a table.
    assert {tag for tag, _ in elements}.isdisjoint(ACTING | ({"div"} if "|--" not in attack else set()))
    assert set() == {name for _, attributes in elements for name in attributes} - HARMLESS
    addresses = [attributes["href"] or "" for _, attributes in elements if "href" in attributes]
    assert [] == [each for each in addresses if not re.match(r"https?://|mailto:|#", each)]


def test_html_is_shown_as_it_is_written() -> None:
    """A tag is text like any other, so that nothing of a ticket is lost; a comment is not shown."""
    assert "<p>a dict&lt;str, T&gt; of &lt;module&gt;</p>\n" == trusted_html("a dict<str, T> of <module>")
    assert "&lt;div&gt;\n&lt;b&gt;é&lt;/b&gt;" in trusted_html("<div>\n<b>é</b>\n</div>")
    assert "<p>a  b</p>\n" == trusted_html("a <!-- secret --> b")


def test_the_title_is_left_out_and_headings_are_lowered() -> None:
    """Only the first heading of level 1 is the title; no heading is deeper than HTML has them."""
    assert "<h5>b</h5>\n<h4>c</h4>\n<h6>d</h6>\n" == trusted_html("# a\n\n## b\n\n# c\n\n#### d", below=3)


def test_links_lead_to_hosts_or_within_the_page() -> None:
    """A link without a host leads where the page says, or is no more than its text."""
    text = trusted_html("[a](../x.md#y) [b](z.md) [c](https://e.example)", resolve={"../x.md#y": "#X-1"}.get)
    assert ["#X-1", "https://e.example"] == re.findall('href="(.*?)"', text)


def test_all_passes_the_sanitizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what the parser alone has made."""

    class Sanitizer:
        def clean(self, html: str) -> str:
            return f"clean {html}"

    monkeypatch.setattr("finding_tickets.report.formats.html._cleaner", lambda _: Sanitizer())
    for text in ("[a](b)", "<https://e.example>", "![a](b)", "a<br>b", "plain `text` & **more**"):
        assert trusted_html(text).startswith("clean ")


PLACES = {"found": "fixes/a/found.py:f", "fix": "fixes/a/fix.py:f"}


def diff_of(repository: Repository, places: dict[str, str] = PLACES) -> CodeDiff | None:
    """The difference of two files of the repository."""
    repository.write("fixes/a/found.py", "def f():\n    wait()\n")
    repository.write("fixes/a/fix.py", "def f():\n    return\n")
    return code_diff(places, repository.root)


def test_a_difference_is_that_of_git(repository: Repository) -> None:
    """Lines that both have around those that only one has, below their numbers."""
    found = diff_of(repository)
    assert found
    assert ("@@ -1,2 +1,2 @@", " def f():", "-    wait()", "+    return") == found.lines
    assert ("found", "fix") == (found.before, found.after)


def test_without_a_fix_the_next_best_is_compared(repository: Repository) -> None:
    """What was applied, or else what was recommended, or else any other variant."""
    repository.write("b.py", "b\n")
    others = {"mine": "b.py:f", "recommended": "b.py:f", "applied": "b.py:f"}
    for name in ("applied", "recommended", "mine"):
        found = diff_of(repository, {"found": PLACES["found"]} | others)
        assert found
        assert name == found.after
        del others[name]
    assert diff_of(repository, {"found": PLACES["found"]}) is None
    assert diff_of(repository, {"fix": PLACES["fix"]}) is None


def test_files_outside_and_files_that_are_gone_are_not_read(repository: Repository) -> None:
    """A ticket may name any path; only those of the repository are opened."""
    (repository.root.parent / "secret.py").write_text("secret")
    for place in ("../secret.py:f", "/etc/passwd:f", "gone.py:f", "package.module:f", "fixes:f", "a\0b:f"):
        assert diff_of(repository, {"found": place, "fix": PLACES["fix"]}) is None


def test_a_variant_at_a_revision_is_read_there(repository: Repository, git: Git) -> None:
    """The file as it was, not as it is."""
    repository.write("f.py", "old\n")
    git("add", "."), git("commit", "--quiet", "-m", "old")
    repository.write("f.py", "new\n")
    found = code_diff({"found": "f.py:f@HEAD", "fix": "f.py:f"}, repository.root)
    assert found
    assert ("-old", "+new") == found.lines[1:]
    assert code_diff({"found": "f.py:f@nowhere", "fix": "f.py:f"}, repository.root) is None
