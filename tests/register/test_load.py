"""A register is found, read completely, and says what it could not read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Repository

from finding_tickets.register.entries import natural
from finding_tickets.register.load import Register, load


def ids(register: Register) -> list[str]:
    """The IDs of a register in its order."""
    return [document.id.value for document in register.documents]


def problems(register: Register) -> list[tuple[str, str]]:
    """Rule and file of every problem."""
    return [(problem.rule, problem.file) for problem in register.problems]


def test_natural() -> None:
    """Numbers are compared by value, text without its case, and both kinds with each other."""
    # Python turns no more than 4300 digits into a number, and a superscript into none.
    longer, shorter = "A-1" + "0" * 5000, "A-9" + "0" * 4999
    assert ["A-007", shorter, longer, "\u00b2"] == sorted(["\u00b2", longer, shorter, "A-007"], key=natural)
    assert ["0", "a2", "a007", "a10"] == sorted(["a10", "a007", "a2", "0"], key=natural)


def test_folders_within_folders(repository: Repository) -> None:
    """Documents are found at any depth, by their suffix in any case; hidden folders are left out."""
    repository.ticket("A-1", path="tickets/a.md")
    repository.ticket("A-2", path="tickets/old/deep/b.MD")
    repository.ticket("A-3", path="tickets/.git/c.md")
    repository.ticket("A-4", path="tickets/d.txt")
    repository.ticket("A-5", path="elsewhere/e.md")
    register = repository.load()
    assert ["A-1", "A-2"] == ids(register)
    assert ["tickets/a.md", "tickets/old/deep/b.MD"] == [document.path for document in register.documents]


def test_configured_folders(repository: Repository) -> None:
    """The configuration names the folders; one that is not there is reported, one named twice read once."""
    repository.write("tickets.toml", 'tickets = ["a", "b", "a/in", "gone"]\n')
    repository.ticket("A-1", path="a/1.md")
    repository.ticket("A-2", path="b/2.md")
    repository.ticket("A-3", path="a/in/3.md")
    repository.ticket("A-4", path="tickets/4.md")
    register = repository.load()
    assert ["A-1", "A-2", "A-3"] == ids(register)
    assert [("no-folder", "gone")] == problems(register)


@pytest.mark.parametrize("marker", ["tickets.toml", "pyproject.toml", "tickets"])
def test_the_nearest_register(tmp_path: Path, marker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a root, the nearest folder upwards that is configured or has tickets is the register."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    if marker == "tickets":
        (tmp_path / marker).mkdir()
    else:
        (tmp_path / marker).write_text("[tool.tickets]\n" if marker == "pyproject.toml" else "")
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\n")
    monkeypatch.chdir(deep)
    assert tmp_path == load().root
    assert tmp_path == load(Path()).root


def test_problems_of_a_document(repository: Repository) -> None:
    """The problems of one document are those of its file."""
    repository.ticket("A-1", severity="dire")
    repository.ticket("A-2", severity="grave")
    register = repository.load()
    assert ["Severity is 'grave'"] == [
        problem.message for problem in register.problems_of(register.find("A-2"))
    ]


def test_the_vocabulary_of_the_register(repository: Repository) -> None:
    """Documents are read with the words of their register."""
    repository.write("tickets.toml", 'severities = {P0 = ["dire"]}\n')
    repository.ticket("A-1", severity="dire")
    assert [] == problems(repository.load())
