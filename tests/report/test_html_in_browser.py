"""The page of HTML as Chromium shows it, in light and dark, by mouse, by keyboard and on a phone."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize
from tests.conftest import TICKET, Repository, run_here
from tests.report.conftest import claim, verification

from finding_tickets.model.verification import NotMeasured, Sample, SiteLaw, VariantResult
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.formats.html import write_report
from finding_tickets.report.rows import row_of
from finding_tickets.report.status import StatusReport, status_of_rows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--renderer-process-limit=1",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE: ViewportSize = {"width": 390, "height": 844}
STANDARD = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
"""What axe calls the rules of WCAG A and AA."""
MANY = 230
"""Documents of a register whose sections are packed, and whose rows are not all shown at first."""
OPEN_ALL = "() => document.querySelectorAll('details').forEach(each => each.open = true)"
OPEN_ONE = (
    "name => document.querySelectorAll(`.listed, [id='${name}'] details`).forEach(each => each.open = true)"
)
ROWS = "() => [...document.querySelectorAll('#table tbody tr')].map(row => row.cells[0].textContent)"


@dataclass
class Shown:
    """A page in a browser, what it has asked for, and what it has said on the console."""

    page: Page
    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def note_request(self, request: Request) -> None:
        """Note what the page asks for."""
        self.asked.append(request.url)

    def note_message(self, message: ConsoleMessage) -> None:
        """Note what the page says."""
        self.said.append(message.text)

    def note_error(self, error: Exception) -> None:
        """Note what goes wrong in the page."""
        self.said.append(str(error))

    def rows(self) -> list[str]:
        """The IDs of the rows that are shown."""
        ids: list[str] = self.page.evaluate(ROWS)
        return ids


Show = Callable[..., Shown]
Make = Callable[[Path, str], Path]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, where there is one."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is on the path")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Writes the page of a register into a file of that name, once."""
    folder = tmp_path_factory.mktemp("pages")
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}

    def write_html(root: Path, name: str) -> Path:
        file = folder / f"{name}.html"
        if not file.exists():
            done = run_here(root, "report", "--format", "html", "-o", str(file), environment=environment)
            assert 0 == done.code, done.err
        return file

    return write_html


@pytest.fixture(scope="module")
def ours(make: Make) -> Path:
    """The page of this repository."""
    return make(ROOT, "ours")


@pytest.fixture(scope="module")
def two(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two tickets of this repository: those that are closed are not judged, and take as long."""
    root = tmp_path_factory.mktemp("two")
    for folder in ("fixes", "verifiers", "evidence"):
        shutil.copytree(ROOT / folder, root / folder)
    for name in ("B3-CR-05", "B1-PT-02"):
        (root / "tickets").mkdir(exist_ok=True)
        shutil.copy(next((ROOT / "tickets").rglob(f"{name}.md")), root / "tickets")
    return make(root, "two")


@pytest.fixture(scope="module")
def corpus(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the corpus."""
    if not CORPUS.is_dir():
        pytest.skip("there are no documents in ../shared/corpus")
    root = tmp_path_factory.mktemp("corpus")
    shutil.copytree(CORPUS, root / "tickets")
    return make(root, "corpus")


@pytest.fixture(scope="module")
def many(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a register of many tickets."""
    root = tmp_path_factory.mktemp("many")
    (root / "tickets").mkdir()
    for number in range(MANY):
        text = ticket(f"A-{number}", title=f"Number {number}", severity=f"P{number % 3}")
        (root / "tickets" / f"A-{number}.md").write_text(text, encoding="utf-8")
    return make(root, "many")


@pytest.fixture(scope="module")
def usual(browser: Browser) -> Page:
    """The page of all tests that need no settings of their own: for each other one two processes start."""
    return browser.new_page()


@pytest.fixture
def show(browser: Browser, usual: Page) -> Iterator[Show]:
    """Opens a file; no page that a test opens may ask for anything else or complain of anything."""
    shown: list[Shown] = []

    def opened(file: Path, place: str = "", **settings: Any) -> Shown:
        close()
        page = browser.new_page(**settings) if settings else usual
        page.goto("about:blank")
        one = Shown(page)
        shown.append(one)
        page.on("request", one.note_request)
        page.on("console", one.note_message)
        page.on("pageerror", one.note_error)
        page.goto(file.as_uri() + place)
        return one

    def close() -> None:
        for one in shown:
            one.page.remove_listener("request", one.note_request)
            one.page.remove_listener("console", one.note_message)
            one.page.remove_listener("pageerror", one.note_error)
            if one.page is not usual:
                one.page.close()
            assert [] == one.said
            assert 1 == len(one.asked)
        shown.clear()

    yield opened
    close()


def ticket(ticket_id: str, **values: str) -> str:
    """A ticket that breaks no rule, but for those values."""
    usual = {
        "title": "It waits",
        "severity": "P2",
        "status": "open",
        "rows": "",
        "file": "code.py",
        "more": "",
    }
    return TICKET.format(ticket_id=ticket_id, **usual | values)


def violations(page: Page, rules: list[str]) -> list[str]:
    """What an independent engine finds against those of its rules."""
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped] # it has no types

    options = {"runOnly": rules, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def says(page: Page, text: str) -> None:
    """Wait until the page says how many documents were found, which it does for those who listen too."""
    from playwright.sync_api import expect

    expect(page.get_by_role("status")).to_have_text(text)


def test_the_page_is_accessible(two: Path, show: Show) -> None:
    """Axe finds no violation of WCAG A and AA in the summary, the table and an open section."""
    page = show(two, "#B1-PT-02").page
    page.wait_for_selector("#B1-PT-02[open]")
    page.evaluate(OPEN_ONE, "B1-PT-02")
    assert [] == violations(page, STANDARD)


def test_filters(ours: Path, show: Show) -> None:
    """Boxes of one group add up, groups narrow each other down, and everything can be had back."""
    shown = show(ours)
    page = shown.page
    everything = shown.rows()
    page.get_by_role("checkbox", name="refuted 2").check()
    assert ["B7-PT-03", "TASK-5"] == shown.rows()
    page.get_by_role("checkbox", name="open 2").check()
    assert ["B7-PT-03"] == shown.rows()
    page.get_by_role("checkbox", name="verified 3").check()
    assert ["B3-CR-05", "B7-PT-03"] == shown.rows()
    page.get_by_role("group", name="Severity").get_by_role("checkbox", name="review 1").check()
    assert [] == shown.rows()
    says(page, "0 of 5 documents")
    page.get_by_role("button", name="Show all").click()
    says(page, "5 documents")
    assert everything == shown.rows()
    assert page.get_by_role("button", name="Show all").is_hidden()


def test_search(ours: Path, show: Show) -> None:
    """Every word has to be found, in any case, in the ID, the title, a law or a file."""
    shown = show(ours)
    found = {}
    for words, count in (("gradient NORMS", 1), ("devices", 3), ("governor.py", 1), ("no such words", 0)):
        shown.page.get_by_role("searchbox").fill(words)
        says(shown.page, f"{count} of 5 documents")
        found[words] = shown.rows()
    assert {
        "gradient NORMS": ["B3-CR-05"],
        "devices": ["B3-CR-05", "B7-PT-02", "TASK-5"],
        "governor.py": ["B1-PT-02"],
        "no such words": [],
    } == found


def test_sorting(ours: Path, show: Show) -> None:
    """A column sorts up and then down, as people count; the heading says which."""
    shown = show(ours)
    heading = shown.page.get_by_role("columnheader", name="Title")
    assert "none" == heading.get_attribute("aria-sort")
    titles = "() => [...document.querySelectorAll('#table tbody .title bdi')].map(each => each.textContent)"
    for state, reverse in (("ascending", False), ("descending", True)):
        heading.get_by_role("button").click()
        assert state == heading.get_attribute("aria-sort")
        found = shown.page.evaluate(titles)
        assert sorted(found, key=str.casefold, reverse=reverse) == found
    shown.page.get_by_role("columnheader", name="ID").get_by_role("button").click()
    assert "none" == heading.get_attribute("aria-sort")
    assert ["B1-PT-02", "B3-CR-05", "B7-PT-02", "B7-PT-03", "TASK-5"] == shown.rows()


def test_numbers_are_sorted_as_people_count(many: Path, show: Show) -> None:
    """A-2 comes before A-10; more rows are shown as they are asked for."""
    shown = show(many)
    shown.page.get_by_role("columnheader", name="ID").get_by_role("button").click()
    assert [f"A-{number}" for number in range(200)] == shown.rows()
    shown.page.get_by_role("button", name="Show 200 more").click()
    assert [f"A-{number}" for number in range(MANY)] == shown.rows()
    assert shown.page.get_by_role("button", name="Show 200 more").is_hidden()


@pytest.mark.parametrize("name", ["ours", "many"])
def test_an_address_opens_its_document(name: str, show: Show, request: pytest.FixtureRequest) -> None:
    """Loading the page at #ID, and following a link, opens the document and goes there."""
    first, second = {"ours": ("B7-PT-02", "TASK-5"), "many": ("A-228", "A-3")}[name]
    page = show(request.getfixturevalue(name), f"#{first}").page
    page.wait_for_selector(f"#{first}[open] > summary:focus")
    assert "As written" in page.locator(f"#{first}").inner_text()
    page.get_by_role("row").get_by_role("link", name=second, exact=True).click()
    page.wait_for_selector(f"#{second}[open] > summary:focus")
    box = page.locator(f"#{second}").bounding_box()
    assert box
    assert 0 <= box["y"] < page.evaluate("innerHeight")


def test_everything_can_be_done_by_keyboard(ours: Path, show: Show) -> None:
    """Skip to the documents, search, tick a box, sort, follow a link and open a section within."""
    shown = show(ours)
    page, keyboard = shown.page, shown.page.keyboard
    keyboard.press("Tab")
    assert "#documents" == page.evaluate("document.activeElement.hash")
    keyboard.press("Enter")
    keyboard.press("Tab")
    keyboard.type("task")
    says(page, "1 of 5 documents")
    keyboard.press("Tab")
    keyboard.press("Tab")
    keyboard.press("Space")
    assert "review" == page.evaluate("document.activeElement.value")
    assert ["TASK-5"] == shown.rows()
    page.get_by_role("columnheader", name="Verdict").get_by_role("button").focus()
    keyboard.press("Enter")
    assert "ascending" == page.get_by_role("columnheader", name="Verdict").get_attribute("aria-sort")
    page.get_by_role("row").get_by_role("link", name="TASK-5").focus()
    keyboard.press("Enter")
    page.wait_for_selector("#TASK-5[open] > summary:focus")
    page.locator("#TASK-5 .sites > summary").last.focus()
    keyboard.press("Enter")
    assert page.locator("#TASK-5 .sites .lines").last.is_visible()


@pytest.mark.parametrize("name", ["ours", "corpus"])
def test_a_phone_shows_the_page_without_scrolling_sideways(
    name: str, show: Show, request: pytest.FixtureRequest
) -> None:
    """With every section open, the page is as wide as the screen."""
    page = show(request.getfixturevalue(name), "#A-3", viewport=PHONE).page
    page.evaluate(OPEN_ALL)
    assert PHONE["width"] == page.evaluate("document.documentElement.scrollWidth")


def test_print_shows_what_is_closed(ours: Path, show: Show) -> None:
    """On paper nobody can open a section, so that each is printed whole, and no control is."""
    page = show(ours, color_scheme="dark").page
    is_seen = "document.querySelector('#TASK-5 .prose').checkVisibility()"
    assert not page.evaluate(is_seen)
    page.emulate_media(media="print")
    assert page.evaluate(is_seen)
    assert page.locator("#filters").is_hidden()
    assert "rgb(0, 0, 0)" == page.evaluate("getComputedStyle(document.body).color")


def test_the_page_can_be_read_without_scripts(ours: Path, many: Path, browser: Browser) -> None:
    """Rows and sections are there, controls that would do nothing are not; a packed register says why."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(ours.as_uri())
    assert 5 == page.locator("#table tbody tr").count()
    assert page.locator("#filters").is_hidden()
    page.locator("#TASK-5 > summary").click()
    assert page.locator("#TASK-5 .prose").is_visible()
    page.goto(many.as_uri())
    assert page.get_by_text("the rest needs JavaScript").is_visible()
    context.close()


ATTACK = (
    """"'><script>hacked=1</script><img src=x onerror=hacked=1><svg onload=hacked=1><use href=data:x></svg>"""
    """</details></div></section></main></template><style>*{display:none!important}</style>"""
    """<div style="position:fixed;inset:0">over all</div><meta http-equiv=refresh content=0;url=//e.x>"""
    """<a href="javascript:hacked=1">a</a>[b](javascript:hacked=1)![c](//e.example/c.png)"""
    """{{ 7*7 }}{% include 'x' %}{# x #}${7*7}\u202e<!--"""
)
WIDE = "w" * 400


def test_a_hostile_ticket_does_nothing(repository: Repository, show: Show, tmp_path: Path) -> None:
    """With scripts, handlers, links, SVG, CSS and template syntax in every field, the page stays as it is."""
    structures = {}
    for name, text in (("harmless", "x"), ("wide", WIDE), ("hostile", ATTACK)):
        file = tmp_path / f"{name}.html"
        file.write_text("".join(write_report(report_of(repository, text))), encoding="utf-8")
        page = show(file, "#A-1").page
        page.wait_for_selector("#A-1[open]")
        page.evaluate(OPEN_ALL)
        structures[name] = structure(page)
        usual_size = page.viewport_size
        assert usual_size
        page.set_viewport_size(PHONE)
        assert PHONE["width"] == page.evaluate("document.documentElement.scrollWidth")
        page.set_viewport_size(usual_size)
    assert dict.fromkeys(structures, structures["harmless"]) == structures
    assert not page.evaluate("'hacked' in window")
    text = page.locator("body").inner_text()
    assert "{{ 7*7 }}{% include 'x' %}{# x #}${7*7}" in text
    # In the title in row and section, the path, the reason, a claim, a site, the code and the text at least.
    assert text.count("<script>hacked=1</script>") > 20


def structure(page: Page) -> Any:
    """The parts of the page and of a section, what acts or loads, how wide it is and where its parts are."""
    return page.evaluate(
        """() => ({
            parts: [...document.querySelectorAll('body > *, main > *, .body > *')].map(each => each.tagName),
            scripts: document.scripts.length,
            styles: document.querySelectorAll('style, link, [style]').length,
            loading: document.querySelectorAll('img, iframe, object, embed, form:not(#filters)').length,
            width: document.documentElement.scrollWidth - innerWidth,
            links: [...document.querySelectorAll('a[href]')].filter(each => !/^(#|https?:)/.test(
                each.getAttribute('href'))).length,
            handlers: [...document.querySelectorAll('*')].filter(each =>
                each.getAttributeNames().some(name => name.startsWith('on'))).length,
            places: ['h1', '.lead', '#next'].map(each => {
                const { x, y, height } = document.querySelector(each).getBoundingClientRect();
                return [x, y + scrollY, height];
            }),
        })"""
    )


def report_of(repository: Repository, text: str) -> StatusReport:
    """A report of one ticket with that text wherever there can be any, in what was measured too."""
    cell = text.replace("|", "\\|")
    more = f"""
## Cross-Review: {text}

| Field | Value |
|---|---|
| **Verdict** | {cell} |
| **Reviewer** | {cell} |

**Evaluation:** {text}

## Related Findings

| Ticket ID | Relationship | Notes |
|---|---|---|
| `A-2` | `{cell}` | {cell} |

```python {text}
{text}
```

    {text}

{text}

## Remediation

```yaml
verifier: verifiers/a.py
claims:
  found:
    syncs: [{{is: 1, expect: refuted, why: {json.dumps(text)}}}]
unmeasured:
  - {{claim: {json.dumps(text)}, why: {json.dumps(text)}}}
```
"""
    rows = f"| **Agent** | {cell} |\n| **Domain** | {cell} |\n"
    repository.write("tickets/A-1.md", ticket("A-1", title=text, rows=rows, file=cell, more=more))
    repository.write("code.py", f"{text}\n")
    point = {"n": 1, text: 2}
    result = VariantResult(
        laws={"syncs": text},
        growth={text: text},
        samples=(Sample(at=point, metrics={"syncs": 1, text: 3}, error=text),),
        sites=(SiteLaw(file="code.py", line=1, function=text, what=text, law=text),),
    )
    measured_too = {
        "sweep": (point, {"n": 2, text: 3}),
        "variants": {"found": result, text: result},
        "not_measured": (NotMeasured(at=point, why=text),),
    }
    done = verification(text, Verdict.REFUTED, [claim(text, holds=False, variant="found")])
    done = done.model_copy(update=measured_too)
    facts = repository.load()
    measured = CurrentVerdict(Verdict.REFUTED, done, disagreement=text, changed=(text,))
    made = status_of_rows([row_of(facts.entries[0], measured)], facts)
    return StatusReport(facts, made, template="report.html.j2")
