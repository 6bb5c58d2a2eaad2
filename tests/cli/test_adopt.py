"""What of a repository is adopted: tickets by their shape, with what their folders and their words say."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

import pytest
from tests.cli.adoptable import EVERY, SEVERITIES, Made, make
from tests.cli.conftest import Tickets
from tests.conftest import Repository

from finding_tickets.register.adopt import survey
from finding_tickets.register.load import load
from finding_tickets.report.templates import render

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"


def proposed(root: Path) -> str:
    """The configuration that is proposed for a repository."""
    return render("configuration.toml.j2", {"found": survey(root), "table": ""})


@pytest.fixture
def made(repository: Repository) -> Made:
    """A small one: two rounds of each severity, form and folder, and of each kind of other file."""
    (repository.root / "tickets").rmdir()
    return make(repository.root, tickets=2 * EVERY * 5, others=34)


def test_tickets_are_taken_by_their_shape(made: Made) -> None:
    """Each of them with its title and its severity, and nothing else."""
    found = survey(made.root)
    (made.root / "tickets.toml").write_text(proposed(made.root))
    read = {each.path: each for each in load(made.root).documents}
    assert set(made.tickets) == set(read)
    assert set(made.others) == set(found.left_out)
    as_read = {
        path: (each.title.value, each.severity.value if each.kind == "finding" and each.severity else None)
        for path, each in read.items()
    }
    assert made.tickets == as_read


def test_the_first_commands_in_an_adopted_repository(made: Made, tickets: Tickets) -> None:
    """They end with 0, and no problem stands above an answer; lint lists the planted contradictions."""
    tickets("init", "--yes")
    # 90 tickets below a heading.
    assert 91 == len(tickets("list").out.splitlines())
    # Thing number 2 of 7 in turn, the first time of which is at 2: 2 + 7 * 12 = 86.
    assert 13 == len(tickets("list", "hook").out.splitlines()) - 1
    listed = tickets("lint", "--select", "folder", "--format", "json").data
    assert made.contradictions == {problem["file"] for problem in listed}
    # One ticket of nine.
    assert len(made.tickets) // EVERY == len(made.contradictions)
    assert 0 == tickets("report").code


def test_exports_of_issues(repository: Repository) -> None:
    """Their front matter is that of a finding; a note on a ticket is none."""
    repository.write(
        "bugs/1.md", "# PERF-1: x\n\n**Importance:** Urgent\n**State:** WIP\n\n## Problem\n\nx\n"
    )
    repository.write("bugs/note.md", "# PERF-1: a note\n\n**Ticket:** PERF-1\n\nSeen.\n")
    repository.write("bugs/plan.md", "# PLAN-2: z\n\n**Ticket:** PLAN-2\n\nLater.\n")
    meta = "number: 7\ntitle: It breaks\nstate: OPEN\nlabels: [bug]"
    repository.write("issues/7.md", f"---\n{meta}\n---\n\n### Bug\n\nx\n\n### Versions\n\n1\n")
    found = survey(repository.root)
    assert found.folders == {"bugs": 1, "issues": 1}
    assert {path for path in found.left_out if path.startswith("bugs")} == {"bugs/note.md", "bugs/plan.md"}


def test_numbers_and_folders_name_tickets(repository: Repository, tickets: Tickets) -> None:
    """A number in a folder of debts makes one; a file that is called as all are is named after its folder."""
    labels = "- **Severity (CVSS 3.1):** High\n- **Status:** Solved\n\n## Evidence\n\n- File: a.py\n"
    labels += "- Lines: 3, 7\n"
    debt = labels.replace("Severity (CVSS 3.1)", "Priority")
    repository.write("docs/tech-debt/001-no-pool.md", f"# No pool\n\n{debt}\n## Problem\n\nIt waits.\n")
    repository.write("issues/a-race/problem.md", f"# A race\n\n{labels}")
    tickets("init", "--yes")
    listed = tickets("list", "--format", "json").data
    read = [(each["id"], each["severity"], each["status"], each["locations"][0]["lines"]) for each in listed]
    lines = [[3, 3], [7, 7]]
    assert [("001-NO-POOL", "P1", "closed", lines), ("A-RACE", "P1", "closed", lines)] == read


def test_what_is_fixed_was_not_rejected(repository: Repository, tickets: Tickets) -> None:
    """A folder that says "invalid" is contradicted by "fixed", as one that says "not a bug" is."""
    for folder in ("rejected", "invalid", "not-a-bug", "done"):
        for number, word in enumerate(["Fixed", "Invalid", "Won't fix", "Closed"], 1):
            text = f"# BUG-{number}: x\n\nSeverity: P2\nStatus: {word}\n\n## Description\n\nIn `a.py:1`.\n"
            repository.write(f"{folder}/BUG-{number}.md", text)
    tickets("init", "--yes")
    listed = [each["file"] for each in tickets("lint", "--select", "folder", "--format", "json").data]
    assert ["invalid/BUG-1.md", "not-a-bug/BUG-1.md", "rejected/BUG-1.md"] == listed


def test_folders_say_what_tickets_do_not(made: Made, tickets: Tickets) -> None:
    """A ticket without a status stands as its folder says, and is shown so."""
    tickets("init", "--yes")
    # The end of a line is the path, the begin the status.
    lines = tickets("list", "--columns", "status,path").out.splitlines()
    said = {line.split()[-1] for line in lines if " (folder)  " in line}
    # So is the outcome of what is merely closed, as in wontfix/.
    assert made.filed
    assert made.filed <= said
    names = {each.path: each.id.value for each in load(made.root).documents}
    assert " (by its folder) · " in tickets("show", names[min(made.filed)]).out


def test_words_are_proposed(made: Made) -> None:
    """Each word that the tool lacks once, with how many tickets have it, for the user to correct."""
    text = proposed(made.root)
    read = tomllib.loads(text)
    assert {"P0": ["Critical"], "P1": ["high"], "P2": ["Medium"], "P3": ["Low"], "P4": ["nit"]} == read[
        "severities"
    ]
    # 90 tickets and 9 severities in turn: 10 of each, and two of these are Critical.
    assert 10 == len(made.tickets) // len(SEVERITIES)
    assert 'P0 = ["Critical"]  # "Critical" in 20\n' in text
    assert ["⚪ Planned"] == read["statuses"]["open"]


def test_a_word_that_nobody_knows(repository: Repository) -> None:
    """It is a comment, until the user says what it means."""
    repository.ticket("B1-PT-01", severity="Zork")
    assert '# no word yet: "Zork" in 1\n' in proposed(repository.root)


def test_labels_that_mean_nothing_are_named(repository: Repository, tickets: Tickets) -> None:
    """Where a severity or a status is missing; the configuration says what they state; edits follow it."""
    status = "\u0421\u0442\u0430\u043d"
    text = f"# BUG-1: It waits\n\n**Prio:** \u0432\n**{status}:** open\n\nIn `a.py:1`.\n"
    file = repository.write("tickets/BUG-1.md", text)
    assert f"Prio (in 1), {status} (in 1)" in tickets("init", "--dry-run").err
    words = f"severity = ['Prio']\nstatus = ['{status}']\n[severities]\nP1 = ['\u0432']\n"
    repository.write("tickets.toml", f"[labels]\n{words}")
    assert "BUG-1  P1        open" in tickets("list").out
    assert 0 == tickets("set", "BUG-1", "severity=P2").code
    assert "**Prio:** P2\n" in file.read_text()
    repository.write("tickets.toml", "[labels]\nprio = ['Prio']\n")
    assert "labels: no such value as 'prio'" in tickets("list").err


@pytest.mark.parametrize(("others", "is_taken"), [(1, True), (2, False)])
def test_among_tickets_less_will_do(repository: Repository, others: int, is_taken: bool) -> None:
    """What says little is one where two thirds of its folder are tickets: 4 of 6, not 4 of 7."""
    for name in ("A-1", "A-2", "A-3", "A-4"):
        repository.ticket(name, path=f"bugs/{name}.md")
    repository.write("bugs/B-5.md", "# B-5: It waits\n\nIn the loader.\n")
    for number in range(others):
        repository.write(f"bugs/{number}.md", "# Notes\n")
    assert ("bugs/B-5.md" in survey(repository.root).left_out) is not is_taken


@pytest.mark.parametrize("options", [[], ["--pyproject"]])
def test_a_name_that_looks_like_a_pattern(
    repository: Repository, tickets: Tickets, options: list[str]
) -> None:
    """What is left out is written so that it means this file alone."""
    repository.write("pyproject.toml", "[project]\nname = 'x'\n")
    for name in ("[a]", "a"):
        repository.ticket(f"A-{len(name)}", path=f"docs/{name}.md")
    repository.write("docs/[b].md", "# B\n")
    # A name that is no text, and a word that has a control character.
    nameless = os.fsdecode(b"docs/\xff.md")
    (repository.root / nameless).write_text("# C\n")
    repository.ticket("A-8", path="docs/c.md", severity="Zo\x7frk")
    repository.ticket("A-9", path="docs/b.md")
    assert 0 == tickets("init", "--yes", *options).code
    assert {"A-1", "A-3", "A-8", "A-9"} == {each.id.value for each in load(repository.root).documents}
    notes = [each.file for each in load(repository.root).problems if each.rule == "not-a-document"]
    assert [nameless] == notes


def test_ids_that_collide_and_registers_below(repository: Repository, tickets: Tickets) -> None:
    """Both are said before anything is written; the other register keeps its tickets."""
    for folder in ("a", "b"):
        repository.ticket("B1-PT-01", path=f"{folder}/one.md")
    repository.write("other/tickets.toml", "")
    repository.ticket("B1-PT-01", path="other/tickets/one.md")
    ran = tickets("init")
    assert (2, False) == (ran.code, (repository.root / "tickets.toml").exists())
    for line in ("1 ID of more than one document: B1-PT-01 (a/one.md, b/one.md)", "of their own: other\n"):
        assert line in ran.err


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the public corpus of tickets is not at hand")
@pytest.mark.parametrize("place", [".", "docs/bugs"])
def test_the_corpus_beside_other_files(made: Made, tickets: Tickets, place: str) -> None:
    """Its tickets are taken too, wherever its folders are, and nothing else."""
    shutil.copytree(CORPUS, made.root / place, dirs_exist_ok=True)
    for path in made.others:
        (made.root / path).touch()
    of_corpus = {path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*.md")}
    wanted = {f"{place}/{path}".removeprefix("./") for path in of_corpus} | set(made.tickets)
    assert 0 == tickets("init", "--yes").code
    assert wanted == {row["path"] for row in tickets("list", "--format", "json").data}
