"""Files of the register are replaced wholly or not at all, whatever happens meanwhile."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from finding_tickets.errors import BadDataError
from finding_tickets.ground import files as files_module
from finding_tickets.ground.files import FileChange, FileEdit, rewrite

HERE = Path(__file__).parent
NOBODY = 65534
OLD, NEW = b"old\r\ntext  \n", b"new\r\ntext  \n"


def make(old: bytes) -> bytes:
    """Replace ``old``."""
    return b"new" + old[3:]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file to edit."""
    path = tmp_path / "a.md"
    path.write_bytes(OLD)
    return path


def edit(file: Path) -> bool:
    """Edit a file of a folder."""
    (change,) = rewrite(file.parent, [FileEdit(file.name, make)])
    return change.old != change.new


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too, with its bytes."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_edit_replaces_the_file(file: Path) -> None:
    """The new bytes are there, nothing else is, and the edit says that something changed."""
    assert edit(file)
    assert {"a.md": NEW} == files(file.parent)


def test_an_edit_that_changes_nothing_leaves_the_file_alone(file: Path) -> None:
    """Not even its time of change is touched. Reading it may note the time of access."""
    before = file.stat()
    assert (FileChange("a.md", OLD, OLD),) == rewrite(file.parent, [FileEdit("a.md", lambda old: old)])
    assert (before.st_ino, before.st_ctime_ns) == (file.stat().st_ino, file.stat().st_ctime_ns)


def test_a_dry_run_changes_nothing(file: Path) -> None:
    """It says what would change."""
    changes = rewrite(file.parent, [FileEdit("a.md", make)], dry_run=True)
    assert (FileChange("a.md", OLD, NEW),) == changes
    assert {"a.md": OLD} == files(file.parent)


def test_an_edit_that_raises_writes_nothing(file: Path) -> None:
    """Whoever makes the new bytes may refuse to, and is heard."""

    def refuse(_: bytes) -> bytes:
        raise BadDataError("not so")

    (file.parent / "b.md").write_bytes(OLD)
    with pytest.raises(BadDataError, match="not so"):
        rewrite(file.parent, [FileEdit("b.md", make), FileEdit("a.md", refuse)])
    assert {"a.md": OLD, "b.md": OLD} == files(file.parent)


def test_mode_and_owner_are_kept(file: Path) -> None:
    """Also a mode that the umask would not give; owner and group where the test may choose them."""
    file.chmod(0o666)
    if os.geteuid() == 0:
        os.chown(file, 1234, 5678)
    before = file.stat()
    edit(file)
    after = file.stat()
    assert 0o666 == stat.S_IMODE(after.st_mode)
    assert (before.st_uid, before.st_gid) == (after.st_uid, after.st_gid)


def test_extended_attributes_are_kept(file: Path) -> None:
    """They hold access control lists, among other things."""
    try:
        os.setxattr(file, "user.origin", b"audit")
    except OSError as error:
        pytest.skip(f"the file system of the test has no extended attributes: {error}")
    edit(file)
    assert b"audit" == os.getxattr(file, "user.origin")


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    """The file that it leads to is edited, where that is."""
    real = tmp_path / "elsewhere" / "real.md"
    real.parent.mkdir()
    real.write_bytes(OLD)
    link = tmp_path / "link.md"
    link.symlink_to("elsewhere/real.md")
    assert edit(link)
    assert link.is_symlink()
    assert {"real.md": NEW} == files(real.parent)


def test_a_link_out_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    """What lies outside is not ours to edit."""
    outside = tmp_path / "outside.md"
    outside.write_bytes(OLD)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.md").symlink_to(outside)
    with pytest.raises(BadDataError, match=r"a\.md: the link leaves the repository"):
        edit(root / "a.md")
    assert OLD == outside.read_bytes()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _: None, "cannot be read: No such file"),
        (os.mkdir, "not a regular file"),
        (os.mkfifo, "not a regular file"),
    ],
    ids=["missing", "folder", "pipe"],
)
def test_what_is_no_file_is_refused(file: Path, prepare: Callable[[Path], object], message: str) -> None:
    """The message names the path and the reason; a pipe is not waited for."""
    file.unlink()
    prepare(file)
    with pytest.raises(BadDataError, match=rf"a\.md: {message}"):
        edit(file)


def as_nobody(action: Callable[[], object]) -> str:
    """What an action says that is refused to somebody without privileges; empty if it is not refused."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.seteuid(NOBODY)
            action()
        except BadDataError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    said = os.read(reader, 1000).decode()
    os.close(reader)
    return said


def test_protected_files_and_folders_are_not_written() -> None:
    """A file without permission to write, in a folder with it, and the other way round."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.md").write_bytes(OLD)
        (folder / "a.md").chmod(0o444)
        folder.chmod(0o777)
        assert "a.md: cannot be written: the file is read-only" == as_nobody(lambda: edit(folder / "a.md"))
        (folder / "a.md").chmod(0o666)
        folder.chmod(0o555)
        assert "a.md: cannot be written: Permission denied" == as_nobody(lambda: edit(folder / "a.md"))
        folder.chmod(0o755)
        assert {"a.md": OLD} == files(folder)


def test_a_file_whose_owner_cannot_be_kept_is_not_written() -> None:
    """Replacing it would make it ours."""
    if os.geteuid() != 0:
        pytest.skip("giving a file to somebody else takes privileges")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.md").write_bytes(OLD)
        (folder / "a.md").chmod(0o666)
        folder.chmod(0o777)
        said = as_nobody(lambda: edit(folder / "a.md"))
        assert "a.md: cannot be written: Operation not permitted" == said
        assert {"a.md": OLD} == files(folder)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """Where the new text does not fit, the message says so, and nothing is left of it."""
    (tmp_path / "a.md").write_bytes(OLD * 1000)
    code = (
        "import sys; from pathlib import Path; from finding_tickets.ground.files import FileEdit, rewrite;"
        "rewrite(Path(sys.argv[1]), [FileEdit('a.md', lambda data: b'new' + data[3:])])"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert done.stderr.rstrip().endswith("a.md: cannot be written: File too large")
    assert {"a.md": OLD * 1000} == files(tmp_path)


@pytest.mark.parametrize("replaced", [False, True])
def test_what_somebody_else_saved_meanwhile_is_kept(file: Path, replaced: bool) -> None:
    """Whether an editor writes into the file or puts another one in its place."""

    def meanwhile(old: bytes) -> bytes:
        if replaced:
            (file.parent / "other").write_bytes(b"mine")
            (file.parent / "other").replace(file)
        else:
            file.write_bytes(b"mine")
        return make(old)

    with pytest.raises(BadDataError, match="changed by somebody else"):
        rewrite(file.parent, [FileEdit("a.md", meanwhile)])
    assert {"a.md": b"mine"} == files(file.parent)


def test_a_lock_that_is_never_given_back(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the edit gives up and says why; once the lock is free it succeeds."""
    monkeypatch.setattr(files_module, "PATIENCE", 0.05)
    held = os.open(file.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(BadDataError, match=r"a\.md: another process keeps its folder locked"):
        edit(file)
    os.close(held)
    assert edit(file)


def test_of_two_files_both_are_written_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the second one cannot be put in place, the first one is put back, with its attributes."""
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_bytes(OLD)
    (tmp_path / "a.md").chmod(0o640)
    move = Path.replace

    def fail_for_b(self: Path, target: Path) -> Path:
        if target.name == "b.md":
            raise OSError(5, "Input/output error")
        return move(self, target)

    monkeypatch.setattr(Path, "replace", fail_for_b)
    with pytest.raises(BadDataError, match=r"b\.md: cannot be written: Input/output error"):
        rewrite(tmp_path, [FileEdit("a.md", make), FileEdit("b.md", make)])
    assert {"a.md": OLD, "b.md": OLD} == files(tmp_path)
    assert 0o640 == stat.S_IMODE((tmp_path / "a.md").stat().st_mode)


@pytest.mark.slow
def test_a_killed_edit_leaves_old_files_or_new_ones(tmp_path: Path) -> None:
    """At whatever line the process is killed; and no file beside them that is read as a ticket."""
    line = [sys.executable, str(HERE / "kill_at_every_line.py"), str(tmp_path)]
    done = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    # Both are old until the first is replaced, and at the last line both are new.
    assert ["oo", "no", "nn"] == [state for state, _ in groupby(done["states"])]
    assert ["a.md", "b.md"] == done["found"]
