"""A register is found, read completely, and says what it could not read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from finding_tickets.errors import UsageError
from finding_tickets.register.entries import natural
from finding_tickets.register.load import Register, load

if TYPE_CHECKING:
    from tests.conftest import Repository

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"


def ids(register: Register) -> list[str]:
    """The IDs of a register in its order."""
    return [document.id.value for document in register.documents]


def problems(register: Register) -> list[tuple[str, str]]:
    """Rule and file of every problem."""
    return [(problem.rule, problem.file) for problem in register.problems]


def test_sorted_as_people_count(repository: Repository) -> None:
    """B2 comes before B10, whatever the names of the files."""
    for name in ("B10-PT-01", "B2-PT-10", "B2-PT-9", "A1-PT-01"):
        repository.ticket(name)
    assert ["A1-PT-01", "B2-PT-9", "B2-PT-10", "B10-PT-01"] == ids(repository.load())


def test_natural() -> None:
    """Numbers are compared by value, text without its case, and both kinds with each other."""
    assert ["1", "a2", "A10", "b"] == sorted(["b", "A10", "a2", "1"], key=natural)
    # Python turns no more than 4300 digits into a number, and a superscript into none.
    longer, shorter = "A-1" + "0" * 5000, "A-9" + "0" * 4999
    assert ["A-007", shorter, longer, "\u00b2"] == sorted(["\u00b2", longer, shorter, "A-007"], key=natural)
    assert ["0", "a2", "a007", "a10"] == sorted(["a10", "a007", "a2", "0"], key=natural)


def test_natural_takes_any_text() -> None:
    """Numbers too long for Python to convert, and digits that are not 0 to 9, are sorted like others."""
    assert ["a9", f"a{'9' * 5000}", "\u00b2"] == sorted(["\u00b2", f"a{'9' * 5000}", "a9"], key=natural)


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


def test_a_bare_folder(tmp_path: Path, repository: Repository) -> None:
    """A folder without a configuration or a folder of tickets is a register of all that is below it."""
    repository.ticket("A-1", path="mine/1.md")
    repository.ticket("A-2", path="mine/deep/2.md")
    register = load(tmp_path / "mine")
    assert ["A-1", "A-2"] == ids(register)
    assert ["1.md", "deep/2.md"] == [document.path for document in register.documents]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="there are no documents in ../shared/corpus")
def test_the_corpus() -> None:
    """All 23 documents of the corpus are read; no file is left out."""
    register = load(CORPUS)
    assert 23 == len(register.documents)
    files = {path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*.md")}
    assert files == {document.path for document in register.documents}


def test_what_cannot_be_read_is_reported(repository: Repository) -> None:
    """Each unreadable file is one problem, and the others are read all the same."""
    repository.ticket("A-1")
    repository.write("tickets/empty.md", b"")
    repository.write("tickets/binary.md", b"\x7fELF\0\0")
    repository.write("tickets/latin.md", "# Größe".encode("latin-1"))
    repository.write("tickets/README.md", "# How we work\n")
    os.mkfifo(repository.root / "tickets" / "pipe.md")
    (repository.root / "tickets" / "gone.md").symlink_to("nowhere.md")
    register = repository.load()
    assert ["A-1"] == ids(register)
    assert [
        ("not-a-document", "tickets/README.md"),
        ("binary-file", "tickets/binary.md"),
        ("empty-file", "tickets/empty.md"),
        ("unreadable", "tickets/gone.md"),
        ("invalid-utf8", "tickets/latin.md"),
        ("unreadable", "tickets/pipe.md"),
    ] == problems(register)


def test_links_out_of_the_repository(tmp_path: Path) -> None:
    """A link to a file elsewhere is refused, one to a file inside is read, a linked folder is noted."""
    root, outside = tmp_path / "repository", tmp_path / "outside"
    (root / "tickets").mkdir(parents=True)
    outside.mkdir()
    text = "# Finding Ticket: t\n\n**Ticket ID:** {}\n"
    (outside / "a.md").write_text(text.format("A-1"))
    (root / "b.md").write_text(text.format("A-2"))
    (root / "tickets" / "a.md").symlink_to(outside / "a.md")
    (root / "tickets" / "b.md").symlink_to(root / "b.md")
    (root / "tickets" / "c").symlink_to(outside)
    register = load(root)
    assert ["A-2"] == ids(register)
    assert [("linked-folder", "tickets/c"), ("outside-repository", "tickets/a.md")] == problems(register)


def test_a_linked_folder_of_tickets(tmp_path: Path) -> None:
    """A folder of tickets that is a link to somewhere else is refused file by file."""
    root, outside = tmp_path / "repository", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "a.md").write_text("# Finding Ticket: t\n\n**Ticket ID:** A-1\n")
    (root / "tickets").symlink_to(outside)
    register = load(root)
    assert ([], [("outside-repository", "tickets/a.md")]) == (ids(register), problems(register))


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


def test_no_register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none up to the top, the message says how to make or name one."""
    monkeypatch.chdir(tmp_path)
    says = r"no register in .* or above it \(tickets init makes one, --root names one\)"
    with pytest.raises(UsageError, match=says):
        load()


@pytest.mark.parametrize(("name", "message"), [("gone", "no such folder"), ("file", "not a folder")])
def test_a_wrong_root(tmp_path: Path, name: str, message: str) -> None:
    """A root that is not a folder is a mistake of the caller."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=message):
        load(tmp_path / name)


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
