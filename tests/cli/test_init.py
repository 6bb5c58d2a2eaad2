"""``tickets init``: finds what is there, writes a configuration, and changes no ticket."""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Git, Repository

from finding_tickets.cli.main import run
from finding_tickets.register.adopt import survey

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"


@pytest.fixture
def empty(repository: Repository) -> Repository:
    """A repository without a folder for tickets."""
    (repository.root / "tickets").rmdir()
    return repository


def digests(root: Path) -> dict[str, str]:
    """What every file below a folder holds, by its path."""
    files = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def test_a_repository_without_tickets(empty: Repository, tickets: Tickets) -> None:
    """It gets a configuration and nothing else; the first ticket makes its folder."""
    before = set(digests(empty.root))
    ran = tickets("init", "--yes")
    assert (0, "tickets.toml\n") == (ran.code, ran.out)
    assert {"tickets.toml"} == set(digests(empty.root)) - before
    assert {"tickets": ["tickets"]} == tomllib.loads((empty.root / "tickets.toml").read_text())
    assert "tickets/T-01.md\n" == tickets("new", "--title", "It waits", "--severity", "P2").out
    assert 0 == tickets("lint").code


def test_a_dry_run_writes_nothing(empty: Repository, tickets: Tickets) -> None:
    """It shows what would be written."""
    before = digests(empty.root)
    ran = tickets("init", "--dry-run", "--yes")
    assert (0, before) == (ran.code, digests(empty.root))
    assert ["--- tickets.toml", 'tickets = ["tickets"]'] == ran.out.splitlines()[0:3:2]
    (item,) = tickets("init", "--dry-run", "--format", "json").data
    assert (["tickets.toml"], False) == (item["files"], item["written"])


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the public corpus of tickets is not at hand")
def test_adopting_a_corpus_changes_no_byte_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every file is as it was, none has gone, and every document is found again by the configuration."""
    root = tmp_path / "corpus"
    shutil.copytree(CORPUS, root)
    before, documents = digests(root), sum(survey(root).documents.values())
    assert 0 == run(["init", "--yes", "--root", str(root)])
    after = digests(root)
    assert before == {name: after.get(name) for name in before}
    assert {"tickets.toml"} == set(after) - set(before)
    capsys.readouterr()
    assert 0 == run(["list", "--root", str(root), "--format", "ids"])
    assert documents == len(capsys.readouterr().out.split())


def test_folders_are_found(empty: Repository) -> None:
    """The topmost ones of mostly tickets, those called after an outcome last; notes elsewhere are none."""
    for path in ("docs/findings/a.md", "docs/findings/old/b.md", "fixed/c.md", "fixed/d.md", "fixed/e.md"):
        empty.ticket(f"A-{len(path)}{path[-4]}".upper().replace("A-", "A-1"), path=path)
    for path in ("docs/guide.md", "docs/api.md", "docs/more.md", "README.md"):
        empty.write(path, "# Words\n")
    empty.ticket("A-90", path="one/of/many.md")
    empty.write("one/of/notes.md", "# Notes\n")
    empty.write("one/of/more.md", "# Notes\n")
    assert {"docs/findings": 2, "one/of": 1, "fixed": 3} == survey(empty.root).folders
    assert ["docs/findings", "one/of", "fixed"] == list(survey(empty.root).folders)


def test_what_git_ignores_is_no_part_of_the_repository(empty: Repository, git: Git) -> None:
    """Tickets in an ignored folder belong to somebody else."""
    empty.ticket("A-1", path="docs/a.md")
    empty.ticket("A-2", path="build/b.md")
    empty.write(".gitignore", "build/\n")
    git("add", "-A")
    assert {"docs": 1} == survey(empty.root).folders


def test_ids_of_another_form(repository: Repository, tickets: Tickets) -> None:
    """A pattern is made of those that are there; with it they are IDs, and those of the usual form still."""
    repository.ticket("SEC#12", path="tickets/a.md")
    repository.ticket("SEC#3", path="tickets/b.md")
    repository.ticket("B1-PT-01")
    assert 0 == tickets("init", "--yes").code
    assert {"id-form"}.isdisjoint(problem["rule"] for problem in tickets("lint", "--format", "json").data)
    assert ["B1-PT-01", "SEC#3", "SEC#12"] == [each.id.value for each in repository.load().documents]


def test_ids_without_a_common_form(repository: Repository, tickets: Tickets) -> None:
    """Where every ID has a form of its own, the user is told to say what they look like."""
    for name in ("a#1", "b.2.c", "c!", "d+e", "f/g/h", "~"):
        repository.ticket(name, path=f"tickets/{ord(name[0])}{len(name)}.md")
    found = survey(repository.root)
    assert (None, True) == (found.id_pattern, "C!" in found.unfit)
    assert "no pattern could be found for these IDs: " in tickets("init", "--dry-run").err


def test_in_pyproject(empty: Repository, tickets: Tickets) -> None:
    """The table is added at its end, and every other byte stays."""
    old = '[project]\nname = "x"  # kept'
    file = empty.write("pyproject.toml", old)
    ran = tickets("init", "--pyproject", "--yes")
    assert "pyproject.toml\n" == ran.out
    assert file.read_text().startswith(f"{old}\n\n[tool.tickets]\n")
    assert {"tickets": ["tickets"]} == tomllib.loads(file.read_text())["tool"]["tickets"]
    assert not (empty.root / "tickets.toml").exists()
    assert tickets("init", "--pyproject", "--yes").err.endswith("nothing to do\n")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (None, 2, "there is no pyproject.toml"),
        ("tool = {x = 1}\n", 4, "pyproject.toml: a table [tool.tickets] cannot be added"),
        ("[tool", 4, "not TOML"),
        ("[tool.tickets]\ntikets = 'a'\n", 4, "unknown key 'tikets'"),
    ],
)
def test_a_pyproject_that_will_not_do(
    empty: Repository, tickets: Tickets, text: str | None, code: int, message: str
) -> None:
    """It is said what is wrong, and nothing is written or left behind."""
    if text is not None:
        empty.write("pyproject.toml", text)
    before = digests(empty.root)
    ran = tickets("init", "--pyproject", "--yes")
    assert (code, True, before) == (ran.code, message in ran.err, digests(empty.root))


def test_the_top_of_the_work_tree(
    empty: Repository, git: Git, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a folder below, the configuration goes where git's work tree begins."""
    git("status")
    (empty.root / "deep").mkdir()
    monkeypatch.chdir(empty.root / "deep")
    assert 0 == run(["init", "--yes"])
    capsys.readouterr()
    assert (empty.root / "tickets.toml").is_file()


def test_nobody_said_yes(empty: Repository, tickets: Tickets) -> None:
    """The plan and the configuration are shown, nothing is written, and that is wrong usage."""
    empty.ticket("A-1", path="docs/a.md")
    before = digests(empty.root)
    ran = tickets("init")
    assert (2, before) == (ran.code, digests(empty.root))
    assert ["--- tickets.toml", 'tickets = ["docs"]'] == ran.out.splitlines()[0:3:2]
    assert "  docs: 1 document\n" in ran.err


def test_agents_are_told_once(empty: Repository, tickets: Tickets) -> None:
    """A block at the end of AGENTS.md; what stands there stays, and a second time adds nothing."""
    file = empty.write("AGENTS.md", "# Ours")
    ran = tickets("init", "--agents", "--yes")
    text = file.read_text()
    assert (0, "tickets.toml\nAGENTS.md\n") == (ran.code, ran.out)
    assert text.startswith("# Ours\n\n## Waits, copies and memory of PyTorch code\n")
    assert "`tickets claim " in text
    assert (0, text) == (tickets("init", "--agents", "--yes").code, file.read_text())
    assert 2 == tickets("init", "--agents").code
    file.write_bytes(b"\xff")
    assert 0 == tickets("init", "--agents", "--yes").code
    assert file.read_bytes().startswith(b"\xff\n\n## Waits, ")
    file.unlink()
    assert 0 == tickets("init", "--agents", "--yes").code
    assert text == f"# Ours\n\n{file.read_text()}"
