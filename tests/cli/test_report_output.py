"""Where a report goes: whole, or nowhere and with a message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

NO_ROOM = """
import resource, sys
from finding_tickets.cli.main import run
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
sys.exit(run(sys.argv[1:]))
"""
"""Files have at most 500 bytes, which is less than any report has."""
WRONG = "{{ status.total }} documents{{ status.totl }}"


def left(folder: Path) -> list[str]:
    """The names of everything in a folder."""
    return sorted(file.name for file in folder.iterdir())


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder for reports, with nothing in it."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_a_file_that_exists_is_replaced(tickets: Tickets, out: Path) -> None:
    """It keeps its mode, and whoever has the old one open keeps that; nothing else is left."""
    file = out / "status.md"
    file.write_text("old")
    file.chmod(0o640)
    with file.open() as before:
        assert 0 == tickets("report", "-o", str(file)).code
        assert "old" == before.read()
    assert file.read_text().startswith("# Status of ")
    assert (0o640, ["status.md"]) == (file.stat().st_mode & 0o777, left(out))


def test_a_link_stays_a_link(tickets: Tickets, out: Path) -> None:
    """What it leads to is replaced."""
    (out / "real.md").write_text("old")
    (out / "link.md").symlink_to("real.md")
    assert 0 == tickets("report", "-o", str(out / "link.md")).code
    assert (out / "link.md").is_symlink()
    assert (out / "real.md").read_text().startswith("# Status")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "Is a directory"),
        ("absent/status.md", "No such file or directory"),
        ("file/status.md", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("loop", "Too many levels of symbolic links"),
    ],
)
def test_a_path_that_cannot_be_written(tickets: Tickets, out: Path, name: str, why: str) -> None:
    """Wrong usage, with the path and the reason, and nothing is left."""
    (out / "file").write_text("")
    (out / "loop").symlink_to("loop")
    path = str(out / name)
    ran = tickets("report", "-o", path)
    assert (2, "", f"error: {path}: cannot write the report: {why}\n") == (ran.code, ran.out, ran.err)
    assert ["file", "loop"] == left(out)
    assert (out / "loop").is_symlink()


def test_stdout_by_a_name_for_it(repository: Repository, out: Path) -> None:
    """A dash is stdout, and so is the name that it has among the devices, also where it is a pipe."""
    line = [sys.executable, "-m", "finding_tickets", "report", "--root", str(repository.root), "-o"]
    for name, said in (("-", ""), ("/dev/stdout", "wrote /dev/stdout\n")):
        ran = subprocess.run([*line, name], capture_output=True, text=True, check=False, cwd=out)
        assert (0, said, "# Status of ") == (ran.returncode, ran.stderr, ran.stdout[:12])
    assert [] == left(out)


def test_a_file_that_there_is_no_room_for(repository: Repository, out: Path) -> None:
    """What fits of it is not left, and the file that was there is."""
    file = out / "status.md"
    file.write_text("old")
    line = [sys.executable, "-B", "-c", NO_ROOM, "report", "--root", str(repository.root), "-o", str(file)]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (2, f"error: {file}: cannot write the report: File too large\n") == (ran.returncode, ran.stderr)
    assert ("old", ["status.md"]) == (file.read_text(), left(out))


def test_no_report_replaces_a_ticket(tickets: Tickets, repository: Repository) -> None:
    """Neither by its path nor by a link to it."""
    file = repository.ticket("A-1")
    link = repository.root / "link.md"
    link.symlink_to(file)
    before = file.read_bytes()
    for path in (file, link):
        ran = tickets("report", "-o", str(path))
        assert (2, f"error: {path}: is a file of the register, which no report may replace\n") == (
            ran.code,
            ran.err,
        )
    assert before == file.read_bytes()


@pytest.mark.parametrize("name", ["evidence/A-1/new.json", "templates/note.j2", "tickets/broken.md"])
def test_no_report_replaces_what_the_register_is_made_of(
    tickets: Tickets, repository: Repository, name: str
) -> None:
    """Evidence, a template and a ticket that cannot be read stay as they are."""
    repository.ticket("A-1")
    file = repository.write(name, "")
    file.write_bytes(b"\xff not UTF-8")
    ran = tickets("report", "-o", str(file))
    assert (2, b"\xff not UTF-8") == (ran.code, file.read_bytes())
    assert f"{file}: is a file of the register" in ran.err


def test_a_report_among_the_tickets_is_replaced_by_the_next(tickets: Tickets, repository: Repository) -> None:
    """It is no ticket, wherever it lies."""
    repository.ticket("A-1")
    file = repository.root / "tickets/STATUS.md"
    assert [0, 0] == [tickets("report", "-o", str(file)).code for _ in range(2)]


def test_no_summary_is_added_to_a_ticket(tickets: Tickets, repository: Repository, out: Path) -> None:
    """Nor is the report itself written then."""
    file = repository.ticket("A-1")
    before = file.read_bytes()
    ran = tickets("report", "-o", str(out / "status.md"), "--summary", str(file))
    assert (2, before, []) == (ran.code, file.read_bytes(), left(out))
    assert f"{file}: is a file of the register" in ran.err


def test_a_report_that_cannot_be_made_leaves_the_old_one(
    tickets: Tickets, repository: Repository, out: Path
) -> None:
    """An error in the last line of a template loses nothing that was there before it."""
    repository.write("templates/odd.j2", WRONG)
    file = out / "status.md"
    file.write_text("old")
    ran = tickets("report", "--template", "odd.j2", "-o", str(file))
    assert (4, "old", ["status.md"]) == (ran.code, file.read_text(), left(out))


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_ticket(tickets: Tickets, repository: Repository, count: int) -> None:
    """No ticket and one ticket are registers, too: all sections are there."""
    for number in range(count):
        repository.ticket(f"A-{number}", status="open")
    ran = tickets("report")
    assert 0 == ran.code
    assert f"\n{count} document{'s' * (count != 1)}.\n" in ran.out
    headings = [line for line in ran.out.splitlines() if line.startswith("## ")]
    # What nobody has measured has won nothing and is not refuted.
    assert [
        "## What to do next",
        "## Severity and disposition",
        "## Severity and verdict",
        "## Documents",
        "## Closed without evidence",
        "## Contradictions",
        "## Refuted claims",
        "## Duplicates that disagree",
        "## Reviews",
    ] == headings
