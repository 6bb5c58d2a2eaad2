"""What travels to another machine: the work tree and commits, byte for byte; the user's repository stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Git, Repository
from tests.executors.processes import wait_for, with_git_that_stalls

from finding_tickets.executors.pack import pack_work_tree, unpack_work_tree
from finding_tickets.ground.git import GitError, ask

pytestmark = pytest.mark.slow


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but git's own."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and ".git" not in file.relative_to(folder).parts
    }


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file of a folder."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def there(root: Path, *commits: str) -> Path:
    """The folder ``root`` as another machine has it."""
    return unpack_work_tree(*pack_work_tree(root, commits, pytest.fail))


def test_the_work_tree_arrives_byte_for_byte(repository: Repository, git: Git) -> None:
    """Changed, new and executable files, links and any line ends arrive; deleted and ignored ones do not."""
    repository.write(".gitattributes", "*.txt text eol=lf ident\n")
    repository.write(".gitignore", "ignored*\n")
    repository.write("gone.py", "")
    repository.write("ignored-but-tracked", "tracked")
    git("add", "--force", ".")
    git("commit", "-m", "first")
    (repository.root / "gone.py").unlink()
    lines = repository.write("lines.txt", b"one\r\ntwo $Id$\n")
    lines.chmod(0o755)
    repository.write("a name\nwith a line break", "new")
    repository.write("ignored", "not for others")
    (repository.root / "link").symlink_to("lines.txt")
    found = there(repository.root)
    assert files(repository.root).keys() - {"ignored"} == files(found).keys()
    assert b"one\r\ntwo $Id$\n" == (found / "lines.txt").read_bytes()
    assert "lines.txt" == (found / "link").readlink().name
    # Who may execute may do so there; nobody writes what others measure later.
    assert 0o555 == (found / "lines.txt").stat().st_mode & 0o777


def test_packing_changes_nothing(repository: Repository, git: Git) -> None:
    """Neither the index nor the objects of the user's repository are touched."""
    git("add", ".")
    git("commit", "-m", "first")
    repository.write("new.py", "new = 1\n")
    before = contents(repository.root / ".git")
    pack_work_tree(repository.root, [], pytest.fail)
    assert before == contents(repository.root / ".git")


def test_the_same_tree_has_the_same_name(repository: Repository, git: Git) -> None:
    """A machine that has a work tree already unpacks it once, whoever sends it and when."""
    first, _ = pack_work_tree(repository.root, [], pytest.fail)
    git("add", ".")
    git("commit", "-m", "first", who="Bob", when="2026-02-03")
    again, _ = pack_work_tree(repository.root, [], pytest.fail)
    repository.write("code.py", "def fast(): ...\n")
    other, _ = pack_work_tree(repository.root, [], pytest.fail)
    assert first.commits == again.commits
    assert again.commits != other.commits


def test_commits_arrive_without_their_history(repository: Repository, git: Git) -> None:
    """The trees of those that are named are there; what came before them is not, and is not missed."""
    for number in range(3):
        repository.write("code.py", f"number = {number}\n")
        git("add", ".")
        git("commit", "-m", str(number))
    oldest, middle = (git("rev-parse", f"HEAD~{back}").strip() for back in (2, 1))
    found = there(repository.root, middle)
    assert "number = 1\n" == ask(found, "show", f"{middle}:code.py")
    assert [middle] == ask(found, "log", "--format=%H", middle).split()
    with pytest.raises(GitError):
        ask(found, "cat-file", "-e", oldest)


def test_a_folder_in_a_repository_keeps_its_place(repository: Repository, git: Git) -> None:
    """A register below the top arrives with what is around it."""
    repository.write("below/tickets/README.md", "")
    git("add", ".")
    found = there(repository.root / "below")
    assert (found / "tickets/README.md").is_file()
    assert (found.parent / "code.py").is_file()


def test_another_repository_inside_stays_behind(repository: Repository, git: Git) -> None:
    """Its files belong to it."""
    repository.write("inner/code.py", "")
    git("init", "--quiet", "inner")
    assert ["code.py"] == list(files(there(repository.root)))


def test_a_folder_without_a_repository_travels_too(repository: Repository) -> None:
    """Whatever is in it, but for what it says to ignore; no repository is made there."""
    repository.write(".gitignore", "*.log\n")
    repository.write("run.log", "")
    assert {".gitignore", "code.py"} == files(there(repository.root)).keys()
    assert not (repository.root / ".git").exists()


def test_a_file_that_vanishes_while_it_is_packed_stays_behind(
    repository: Repository, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as one that was gone before."""
    gone = repository.write("gone.py", "")
    git("add", ".")
    access = os.access

    def removed_once_seen(path: Path, mode: int) -> bool:
        found = access(path, mode)
        if path == gone:
            gone.unlink()
        return found

    monkeypatch.setattr(os, "access", removed_once_seen)
    assert ["code.py"] == list(files(there(repository.root)))


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None,
    reason="root may read everything, and there is no setpriv to take that from it",
)
def test_a_file_that_cannot_be_read_is_named_and_stays_behind(repository: Repository) -> None:
    """All else travels."""
    repository.write("closed.py", "").chmod(0)
    capabilities = ["--bounding-set", "-dac_override,-dac_read_search"]
    unprivileged = ["setpriv", *capabilities] if os.geteuid() == 0 else []
    command = [*unprivileged, sys.executable, "-c", PACKS, str(repository.root)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (0, "stays behind, as it cannot be read: closed.py\n") == (ran.returncode, ran.stdout)


PACKS = """
import sys
from pathlib import Path
from finding_tickets.executors.pack import pack_work_tree
pack_work_tree(Path(sys.argv[1]), [], print)
"""


def test_who_is_killed_while_packing_leaves_no_file(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Temporary index and objects are gone within seconds."""
    folder = tmp_path_factory.mktemp("around")
    note, temporary = folder / "note", folder / "temporary"
    temporary.mkdir()
    environment = {**with_git_that_stalls(folder, "pack-objects", note), "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", PACKS, str(repository.root)]
    with subprocess.Popen(command, env=environment) as killed:
        wait_for(lambda: note.exists() and note.read_text())
        assert ["index", "objects"] == sorted(
            each.name for each in temporary.glob("tickets-pack-*/git/*") if each.name in {"index", "objects"}
        )
        killed.kill()
    os.kill(int(note.read_text()), signal.SIGKILL)
    wait_for(lambda: not any(temporary.iterdir()), 5.0)
    assert [] == list(temporary.iterdir())
