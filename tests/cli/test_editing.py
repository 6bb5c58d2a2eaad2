"""``tickets set``, ``close`` and ``tick``."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.load import Register
from finding_tickets.register.staleness import CurrentVerdict

PAGE = (Path(__file__).parents[2] / "docs/editing.md").read_text(encoding="utf-8")


def today() -> str:
    """The day that an edit writes."""
    return datetime.now().astimezone().date().isoformat()


@pytest.fixture
def first(repository: Repository) -> Path:
    """An open ticket, beside another one."""
    repository.ticket("B1-PT-02", status="open")
    return repository.ticket(
        "B1-PT-01", status="open", rows="| **Updated** | 2030-01-01 |\n| **Date** | 2030 |\n"
    )


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ticket was measured, and is verified."""
    monkeypatch.setattr(Register, "measured", lambda *_: CurrentVerdict(Verdict.VERIFIED))


def test_set(tickets: Tickets, first: Path) -> None:
    """Several keys at once, in any case; the file is named on stdout, what happened on stderr."""
    ran = tickets("set", "b1-pt-01", "Severity=p0", "domain=a", "domain=b,c", "assignee=")
    assert (0, "tickets/B1-PT-01.md\n") == (ran.code, ran.out)
    assert "B1-PT-01: Severity=p0, domain=a, domain=b,c, assignee=\n" == ran.err
    text = first.read_text()
    assert "| **Severity** | `P0` |\n" in text
    assert "| **Domain** | `a`, `b`, `c` |\n" in text
    assert f"| **Updated** | {today()} |\n" in text


def test_nothing_to_change(tickets: Tickets, first: Path) -> None:
    """What is so already is left alone, and is no failure."""
    before = first.read_bytes()
    ran = tickets("set", "B1-PT-01", "status=Open", "severity=P2")
    assert (0, "", "nothing to change: B1-PT-01: status=Open, severity=P2\n") == (ran.code, ran.out, ran.err)
    assert before == first.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["set", "B1-PT-01", "severity"],
            2,
            "'severity' sets nothing (write ID key=value, such as B7-PT-02 severity=P3)",
        ),
        (["set", "B1-PT-01", "severity=P1", "severity=P2"], 2, "severity is given 2 values, and has one"),
        (["set", "B1-PT-01", "updated=2030-02-02", "Updated =2030-03-03"], 2, "updated is given 2 values"),
        (["set", "B1-PT-01", "created=2030-02-02", "date=2030-02-02"], 2, "is set twice (make the changes"),
        (["set", "B9-PT-99", "severity=P1"], 2, "no document has the ID 'B9-PT-99'"),
        (
            ["set", "B1-PT-01", "status=closed"],
            2,
            "open cannot become closed by tickets set (tickets set status=investigating or fix-",
        ),
        (
            ["close", "B1-PT-01", "--as", "done"],
            2,
            "--as done: no such outcome (one of fixed, wont-fix, not-a-bug,",
        ),
        (["close", "B1-PT-01", "--as", "duplicate"], 2, "--of names the ticket that a duplicate repeats"),
        (["close", "B1-PT-01", "--as", "wont-fix", "--of", "B1-PT-02"], 2, "--of names the ticket that"),
        (["close", "B1-PT-01", "--as", "duplicate", "--of", "B1-PT-01"], 2, "a duplicate of itself"),
        (["close", "B1-PT-01", "--as", "fixed"], 1, "B1-PT-01 is unverified, not verified: it stays open"),
        (["close", "B1-PT-01", "--as", "fixed", "--force"], 2, "--force needs a --reason"),
        (
            ["close", "B1-PT-01", "--as", "wont-fix", "--force", "--reason", "x"],
            2,
            "--force is for --as fixed",
        ),
        (
            ["set", "B1-PT-01", "colour=red"],
            2,
            "domain, assignee, created, updated, code-repository, date)",
        ),
        (["tick", "B1-PT-01", "7"], 2, "B1-PT-01 has no item 7 (it has 1)"),
    ],
)
def test_what_is_refused(
    tickets: Tickets, repository: Repository, first: Path, arguments: list[str], code: int, message: str
) -> None:
    """The message says why; no file is touched."""
    before = {path: path.read_bytes() for path in repository.root.rglob("*.md")}
    ran = tickets(*arguments)
    assert code == ran.code
    assert message in ran.err
    assert "" == ran.out
    assert first in before
    assert before == {path: path.read_bytes() for path in repository.root.rglob("*.md")}


ANSWERED = """\
- [x] Ask the author
- [ ] It waits once: `fix`
- [ ] The advice waits less

## Remediation

```yaml
claims:
  found: {syncs: 4}
  recommended: {syncs: 1}
  fix: {syncs: 1}
checklist:
  - {item: Count the waits, why: there is no GPU to count them on}
  - {item: "It waits once: fix", claims: [found.syncs, fix.syncs]}
  - {item: The advice waits less, claims: [recommended.syncs]}
```
"""
"""More items of a checklist, and what answers each: nothing but claims that were shown answers the third."""


def boxes(file: Path) -> list[str]:
    """The boxes of a ticket's checklist, in order."""
    return re.findall(r"^- \[(.)\] ", file.read_text().partition("## Verification")[2], re.MULTILINE)


@pytest.mark.usefixtures("verified")
def test_closing_ticks_what_claims_answer(tickets: Tickets, repository: Repository) -> None:
    """What is verified ticks the items that its claims answer; others stay."""
    file = repository.ticket(status="open", more=ANSWERED)
    file.write_text(file.read_text().replace("waits\n\n- [x]", "waits\n- [x]"))
    assert 0 == tickets("close", "B1-PT-01", "--as", "fixed").code
    assert [" ", "x", "x", " "] == boxes(file)


@pytest.mark.parametrize(
    "ending", [["fixed", "--force", "--reason", "seen in use"], ["wont-fix", "--reason", "rare"]]
)
def test_what_was_not_measured_ticks_nothing(
    tickets: Tickets, repository: Repository, ending: list[str]
) -> None:
    """By force or as another outcome a ticket is closed with its checklist as it is."""
    file = repository.ticket(status="open", more=ANSWERED)
    assert 0 == tickets("close", "B1-PT-01", "--as", *ending).code
    assert [" ", "x", " ", " "] == boxes(file)


def test_close_as_a_duplicate(tickets: Tickets, repository: Repository, first: Path) -> None:
    """Both tickets name each other; one that is a duplicate itself is no original."""
    ran = tickets("close", "B1-PT-01", "--as", "duplicate", "--of", "b1-pt-02")
    assert "tickets/B1-PT-02.md\ntickets/B1-PT-01.md\n" == ran.out
    assert "B1-PT-01: closed as duplicate of B1-PT-02\n" == ran.err
    items = {item["id"]: item for item in tickets("list", "--format", "json").data}
    assert ("closed", "duplicate") == (items["B1-PT-01"]["status"], items["B1-PT-01"]["resolution"])
    assert "**Status:** Duplicate of `B1-PT-02`\n" in first.read_text()
    named = {
        name: (item["related"][0]["id"], item["related"][0]["relationship"]) for name, item in items.items()
    }
    assert {"B1-PT-01": ("B1-PT-02", "duplicate"), "B1-PT-02": ("B1-PT-01", "duplicate")} == named
    repository.ticket("B1-PT-03", status="open")
    again = tickets("close", "B1-PT-03", "--as", "duplicate", "--of", "B1-PT-01")
    assert (2, True) == (again.code, "B1-PT-01 is closed as a duplicate itself" in again.err)


def test_a_crash_between_two_files_is_mended_by_the_same_command(tickets: Tickets, first: Path) -> None:
    """The original is written first: the ticket is still open, and lint says what is missing."""
    before = first.read_bytes()
    arguments = ["close", "B1-PT-01", "--as", "duplicate", "--of", "B1-PT-02"]
    tickets(*arguments)
    complete = first.read_bytes()
    first.write_bytes(before)
    assert "one-way-relation" in tickets("lint").out
    assert "tickets/B1-PT-01.md\n" == tickets(*arguments).out
    assert complete == first.read_bytes()


@pytest.mark.parametrize("again", ["wontfix", "not-a-bug"])
def test_a_closed_ticket_is_opened_and_closed_again(tickets: Tickets, first: Path, again: str) -> None:
    """Its status alone is set; lint names what the ticket still says, and closing it again replaces that."""
    tickets("close", "B1-PT-01", "--as", "wontfix", "--reason", "rare")
    closed = first.read_text()
    assert 0 == tickets("set", "B1-PT-01", "status=open").code
    assert closed.replace("| `wont-fix` |", "| `open` |") == first.read_text()
    linted = tickets("lint", "B1-PT-01").out
    assert "[contradiction] the status is open, the resolution wont-fix" in linted
    assert 0 == tickets("close", "B1-PT-01", "--as", again, "--reason", "it is meant").code
    (item, _) = tickets("list", "--format", "json").data
    assert {"wontfix": "wont-fix"}.get(again, again) == item["resolution"]
    assert "**Reason:** it is meant\n" in first.read_text()
    assert "contradiction" not in tickets("lint", "B1-PT-01").out


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_a_dry_run_prints_a_diff_that_git_applies(
    tickets: Tickets, repository: Repository, first: Path, ending: str
) -> None:
    """With line ends of either kind, and without one at the end of the file."""
    text = first.read_text().rstrip().replace("\n", ending or "\n") + ending
    first.write_bytes(text.encode())
    arguments = ["close", "B1-PT-01", "--as", "duplicate", "--of", "B1-PT-02"]
    shown = tickets(*arguments, "--dry-run")
    assert text.encode() == first.read_bytes()
    assert "" == shown.err
    git = ["git", "-C", str(repository.root), "apply", "--whitespace=nowarn", "-"]
    subprocess.run(git, input=shown.out.encode(), check=True, env=os.environ | {"GIT_DIR": "/nowhere"})
    applied = {path: path.read_bytes() for path in repository.root.rglob("*.md")}
    first.write_bytes(text.encode())
    repository.ticket("B1-PT-02", status="open")
    tickets(*arguments)
    assert applied == {path: path.read_bytes() for path in repository.root.rglob("*.md")}


def test_the_page_names_every_key() -> None:
    """docs/editing.md says what each key takes."""
    from finding_tickets.register.actions import KEYS

    table = PAGE.partition("## Metadata")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert set(KEYS) == {key for cell in cells for key in re.findall(r"`([a-z-]+)`", cell)}


def test_several_tickets_are_set_together(tickets: Tickets, first: Path) -> None:
    """All of them, or none: here the second is closed, and cannot be looked into."""
    second = first.with_name("B1-PT-02.md")
    ran = tickets("set", "B1-PT-01", "b1-pt-02", "B1-PT-01", "severity=P0", "assignee=me")
    assert (0, "tickets/B1-PT-01.md\ntickets/B1-PT-02.md\n") == (ran.code, ran.out)
    assert "B1-PT-01, B1-PT-02: severity=P0, assignee=me\n" == ran.err
    assert all("| **Severity** | `P0` |" in file.read_text() for file in (first, second))
    assert 0 == tickets("close", "B1-PT-02", "--as", "wont-fix").code
    before = first.read_bytes(), second.read_bytes()
    ran = tickets("set", "B1-PT-01", "B1-PT-02", "status=investigating")
    assert (2, True) == (ran.code, ran.err.startswith("error: tickets/B1-PT-02.md: "))
    assert before == (first.read_bytes(), second.read_bytes())
    assert 2 == tickets("set", "B1-PT-01", "B9-PT-99", "severity=P1").code
    assert 2 == tickets("set", "severity=P1").code


def test_labels_are_added_and_removed(tickets: Tickets, repository: Repository) -> None:
    """A ticket's labels are its row of this name, or its domains; a sign changes those that are there."""
    repository.ticket("A-1", status="open", rows="| **Tags** | old, gpu |\n")
    repository.ticket("A-2", status="open", rows="| **Domain** | `old` / `loop` |\n")
    assert 0 == tickets("set", "A-1", "A-2", "labels=+train,new", "labels=-old").code
    tags, domains = repository.load().documents
    assert isinstance(domains, Ticket)
    assert "gpu, train, new" == tags.metadata["Tags"].raw
    assert ["loop", "train", "new"] == [each.value for each in domains.domains]
    ran = tickets("set", "A-2", "domain=-gone")
    assert (2, True) == (ran.code, "domain has no 'gone' (it has loop, train, new)" in ran.err)
    assert 0 == tickets("set", "A-2", "domain=one").code
    domains = repository.load().find("A-2")
    assert isinstance(domains, Ticket)
    assert ["one"] == [each.value for each in domains.domains]


@pytest.mark.parametrize("labels", [" [perf, cuda]", "\n  - perf\n  - cuda", " perf, cuda"])
def test_labels_of_front_matter_and_several_signs(
    tickets: Tickets, repository: Repository, labels: str
) -> None:
    """Each value has its own sign or that before it, and a list stays one."""
    text = f"---\nid: A-1\nseverity: P2\nstatus: open\nlabels:{labels}\n---\n\n# A-1: It waits\n"
    path = repository.write("tickets/A-1.md", text)
    assert 0 == tickets("set", "A-1", "labels=+new,old,-perf").code
    found = repository.load().find("A-1")
    assert found is not None
    assert "cuda, new, old" == found.metadata["labels"].raw.strip('[]"')
    assert ("[cuda, new, old]" in path.read_text()) is (labels != " perf, cuda")


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        ("# Finding Ticket: It waits\n\n| Field | Value |\n|---|---|\n", "# Finding Ticket: "),
        ("# A-1: It waits\n\n| Field | Value |\n|---|---|\n", "# A-1: "),
        ("# Bug Ticket: `It waits`\n\n| Field | Value |\n|---|---|\n", "# Bug Ticket: Why"),
        ("# [A-1] It `waits`\n\n| Field | Value |\n|---|---|\n", "# "),
        ("# A-1\n\n| Field | Value |\n|---|---|\n| Title | It waits |\n", "# A-1\n"),
    ],
)
@pytest.mark.parametrize("wanted", ["Why so slow?", "Why is C_1 * 2 slow"])
def test_set_a_title(tickets: Tickets, repository: Repository, head: str, kept: str, wanted: str) -> None:
    """The words in front of a title stay; what Markdown would take for markup is still read as text."""
    file = repository.write("tickets/A-1.md", f"{head}| **Ticket ID** | A-1 |\n\n## Summary\n\nIt waits.\n")
    assert 0 == tickets("set", "A-1", f"title={wanted}").code
    assert wanted == repository.load().find("A-1").title.value
    assert file.read_text().startswith(kept)
    assert file.read_text().endswith("It waits.\n")
    assert 2 == tickets("set", "A-1", "title=").code
