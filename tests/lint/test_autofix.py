"""Fixing replaces single places, keeps every other byte, and leaves alone what it would make worse."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import pytest
from tests.conftest import Repository
from tests.lint.conftest import lint

from finding_tickets.documents.reading import Document
from finding_tickets.documents.source import Splice
from finding_tickets.lint.autofix import FixedFile, fix
from finding_tickets.lint.rules import RULES, Context, Remark

PATH = "tickets/B1-PT-01.md"


def test_bytes_around_a_fix_stay(repository: Repository) -> None:
    """A byte order mark, CRLF line ends, trailing spaces and a last line without an end stay as they are."""
    file = repository.ticket(severity="p2", more="It waits.  \t\n\nünïcode   ")
    before = b"\xef\xbb\xbf" + file.read_bytes().rstrip(b"\n").replace(b"\n", b"\r\n")
    file.write_bytes(before)
    assert [FixedFile(PATH, 1)] == fix(repository.load(), None)
    assert before.replace(b"`p2`", b"`P2`") == file.read_bytes()


def test_several_places_of_a_file_are_fixed_at_once(repository: Repository) -> None:
    """Each place counts as one; afterwards there is nothing left to fix."""
    repository.ticket(severity="p2", status="Wont Fix")
    assert [FixedFile(PATH, 2)] == fix(repository.load(), None)
    assert [] == fix(repository.load(), None)
    assert () == lint(repository.load())


def test_only_chosen_rules_and_documents_are_fixed(repository: Repository) -> None:
    """What was not selected, and tickets that were not chosen, stay as they are."""
    one, two = (
        repository.ticket(name, severity="p2", status="Wont Fix") for name in ("B1-PT-01", "B1-PT-02")
    )
    register, texts = repository.load(), (one.read_bytes(), two.read_bytes())
    assert [] == fix(register, None, frozenset({"table-text"}).__contains__)
    assert [FixedFile(PATH, 2)] == fix(register, register.documents[:1])
    assert (texts[0].replace(b"p2", b"P2").replace(b"Wont Fix", b"wont-fix"), texts[1]) == (
        one.read_bytes(),
        two.read_bytes(),
    )


@pytest.mark.parametrize(
    "worse",
    [(b"B1-PT-01", b"B1-PT-10"), (b"# Finding", b"<<<<<<< HEAD\n# Finding")],
    ids=["another ID", "an error"],
)
def test_a_fix_that_does_harm_is_not_made(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, worse: tuple[bytes, bytes]
) -> None:
    """An edit that fixes its breach and changes the ID, or brings an error into the file, is left alone."""
    data = repository.ticket(severity="p2").read_bytes()
    start = data.index(worse[0])
    harm = Splice(start, start + len(worse[0]), worse[1])

    right = RULES["spelling"].check
    assert right

    def check(document: Document, context: Context) -> Iterator[Remark]:
        for remark in right(document, context):
            yield remark._replace(fix=[*remark.fix, harm])

    monkeypatch.setitem(RULES, "spelling", dataclasses.replace(RULES["spelling"], check=check))
    assert [] == fix(repository.load(), None)
    assert data == (repository.root / PATH).read_bytes()


def test_a_suppressed_breach_is_not_fixed(repository: Repository) -> None:
    """What a ticket has lint ignore is meant to stay."""
    file = repository.ticket(severity="p2", more="<!-- lint-ignore spelling: as in the other tool -->\n")
    before = file.read_bytes()
    assert [] == fix(repository.load(), None)
    assert before == file.read_bytes()


@pytest.mark.parametrize(
    "row",
    [
        "| drl | ENDORSE | a | b |",  # the pipe is in no code
        "| drl | ENDORSE | `a | b` and c | d |",  # two too many, one of them in code
        "| drl | ENDORSE | `a | b | c |",  # the code is not closed
        "| `drl | x` | `c | d` |",  # one too many, and two of them in code
    ],
)
def test_a_pipe_that_may_be_meant_is_left_alone(repository: Repository, row: str) -> None:
    """Pipes are escaped only where those within code are exactly what is too much."""
    table = f"## Cross-Review\n\n| Reviewer | Verdict | Evaluation |\n|---|---|---|\n{row}\n"
    before = repository.ticket(more=table).read_bytes()
    assert "table-cells" in [problem.rule for problem in lint(repository.load())]
    assert [] == fix(repository.load(), None)
    assert before == (repository.root / PATH).read_bytes()


def test_a_path_that_is_not_here_is_left_alone(repository: Repository) -> None:
    """An absolute path is shortened only to the path of a file that exists, in a folder."""
    repository.ticket(file="/home/ada/model/code.py")
    assert [] == fix(repository.load(), None)
    # Of two files that it may mean, it means the one that more of it names.
    for path in ("ada/model/code.py", "model/code.py"):
        repository.write(path, "")
    assert [FixedFile(PATH, 1)] == fix(repository.load(), None)
    assert "`ada/model/code.py`" in (repository.root / PATH).read_text()


def test_a_file_that_cannot_be_written_holds_up_no_other(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be written keeps its bytes and says why; the next one is fixed."""
    one, two = (repository.ticket(name, severity="p2") for name in ("B1-PT-01", "B1-PT-02"))
    before = one.read_bytes()
    monkeypatch.setattr(os, "access", lambda path, *_, **__: "PT-01" not in str(path))
    failed, fixed = fix(repository.load(), None)
    assert (PATH, 0, before) == (failed.path, failed.count, one.read_bytes())
    assert "read-only" in str(failed.error)
    assert FixedFile("tickets/B1-PT-02.md", 1) == fixed
    assert "`P2`" in two.read_text()
