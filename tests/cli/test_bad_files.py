"""Whatever a file system does, each command says where, and lists the other tickets without a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

COMMANDS = ["list", "lint", "report"]
TICKET = "# Finding Ticket: It waits\n\n**Ticket ID:** B1-PT-02\n"
GIGABYTE = 10**9

needs_permissions = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None,
    reason="root may read everything, and there is no setpriv to take that from it",
)


def check(tickets: Tickets, command: str, said: str, *, code: int = 4) -> None:
    """A command ends with the code and has the sound ticket, B1-PT-01; it or lint names the place.

    What lint prints is counted by the others, which say so.
    """
    ran = tickets(command)
    assert ("prints" in ran.err) is (command != "lint")
    assert said in (ran if command == "lint" else tickets("lint")).out
    assert code == ran.code
    # Of the sound ticket lint has nothing to say, but it counts it.
    assert ("1 document:" in ran.err) if command == "lint" else ("B1-PT-01" in ran.out)


def test_how_large_a_file_may_be_is_configured(tickets: Tickets, repository: Repository) -> None:
    """One byte more than the limit is too much."""
    path = repository.ticket()
    repository.write("tickets.toml", f"largest_file = {path.stat().st_size}\n")
    assert 0 == tickets("list").code
    repository.write("tickets.toml", f"largest_file = {path.stat().st_size - 1}\n")
    ran = tickets("list")
    assert (4, True, False) == (ran.code, "1 problem (1 error)" in ran.err, "B1-PT-01" in ran.out)


@pytest.mark.parametrize("command", COMMANDS)
def test_links(tickets: Tickets, repository: Repository, tmp_path_factory: Any, command: str) -> None:
    """Links that leave the repository, that lead nowhere and that lead in a circle are three errors."""
    repository.ticket()
    outside = tmp_path_factory.mktemp("outside") / "a.md"
    outside.write_text(TICKET)
    folder = repository.root / "tickets"
    (folder / "out.md").symlink_to(outside)
    (folder / "gone.md").symlink_to("nowhere.md")
    (folder / "circle.md").symlink_to("circle.md")
    (folder / "deeper").mkdir()
    (folder / "deeper" / "again").symlink_to("..")
    check(tickets, command, "tickets/out.md:1:1: error [outside-repository]")
    check(tickets, command, "tickets/gone.md:1:1: error [unreadable] cannot be read: No such file")
    check(tickets, command, "tickets/circle.md:1:1: error [unreadable] cannot be read: Too many levels")
    check(tickets, command, "tickets/deeper/again:1:1: note [linked-folder]")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file(tickets: Tickets, repository: Repository, command: str) -> None:
    """Nobody waits for a pipe to which nobody writes; a folder of that name is searched."""
    repository.ticket()
    os.mkfifo(repository.root / "tickets" / "pipe.md")
    (repository.root / "tickets" / "folder.md").mkdir()
    check(tickets, command, "tickets/pipe.md:1:1: error [unreadable] not a regular file")


@pytest.mark.parametrize(
    "file",
    [
        "pipe.py",
        "large.py",
        "folder.py",
        "circle.py",
        "circle.py/a.py",
        "/dev/zero",
        "n" * 5000 + ".py",
        "a\x01",
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_ticket_speaks_of(tickets: Tickets, repository: Repository, command: str, file: str) -> None:
    """Code that cannot be read, or not to an end, keeps nobody waiting: it is code that is not there."""
    repository.ticket()
    os.mkfifo(repository.root / "pipe.py")
    os.truncate(repository.write("large.py", "x = 1\n"), 100 * GIGABYTE)
    (repository.root / "folder.py").mkdir()
    (repository.root / "circle.py").symlink_to("circle.py")
    code = f"## Detailed Description\n\n```python\n# {file}:1-2\nx = 1\n```\n"
    lines = (
        f"## Location\n\n| Field | Value |\n|---|---|\n| **File(s)** | `{file}` |\n| **Line(s)** | 1-2 |\n"
    )
    repository.write("tickets/B1-PT-02.md", f"{TICKET}\n{lines}\n{code}")
    ran = tickets(command)
    assert 0 == ran.code
    assert command == "lint" or "B1-PT-01" in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_vanishes(
    tickets: Tickets, repository: Repository, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A file that is there when its folder is read and gone when it is opened itself."""
    repository.ticket()
    walk = os.walk

    def walking(folder: Path, **options: Any) -> Iterator[tuple[str, list[str], list[str]]]:
        for place, folders, names in walk(folder, **options):
            yield place, folders, [*names, "gone.md"]

    monkeypatch.setattr(os, "walk", walking)
    check(tickets, command, "tickets/gone.md:1:1: error [unreadable] cannot be read: No such file")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_changes(
    tickets: Tickets, repository: Repository, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A file that is another one after each attempt to read it is not taken for either."""
    repository.ticket()
    restless = repository.write("tickets/restless.md", TICKET)
    number, stat = restless.stat().st_ino, os.stat

    def changing(place: int | str, **options: Any) -> os.stat_result:
        if isinstance(place, int) and stat(place).st_ino == number:
            with restless.open("a") as file:
                file.write("more\n")
        return stat(place, **options)

    monkeypatch.setattr(os, "stat", changing)
    check(tickets, command, "tickets/restless.md:1:1: error [unreadable] it changes while it is read")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_cannot_be_read(
    tickets: Tickets, repository: Repository, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The error of a folder is its own; the same as below, for whoever has every permission."""
    repository.ticket()
    repository.ticket("B1-PT-02", path="tickets/closed/B1-PT-02.md")
    scan = os.scandir

    def scandir(place: str) -> Any:
        if os.fspath(place).endswith("closed"):
            raise PermissionError(13, "Permission denied", place)
        return scan(place)

    monkeypatch.setattr(os, "scandir", scandir)
    check(tickets, command, "tickets/closed:1:1: error [unreadable] cannot be read: Permission denied")


@pytest.mark.slow
@needs_permissions
@pytest.mark.parametrize(
    ("closed", "command", "expected", "said"),
    [
        ("tickets/B1-PT-02.md", "lint", 4, "tickets/B1-PT-02.md:1:1: error [unreadable] cannot be read:"),
        ("tickets/deep", "lint", 4, "tickets/deep:1:1: error [unreadable] cannot be read:"),
        ("tickets.toml", "list", 4, "tickets.toml: cannot be read"),
        ("evidence", "list", 0, "unverified"),
        ("evidence/B1-PT-01/a.json", "list", 0, "stale"),
        (".", "list", 2, "no register in"),
    ],
)
def test_permissions(repository: Repository, closed: str, command: str, expected: int, said: str) -> None:
    """What may not be read is named, by a process that is bound by permissions, as root is not."""
    repository.ticket()
    repository.ticket("B1-PT-02")
    repository.ticket("B1-PT-03", path="tickets/deep/B1-PT-03.md")
    repository.write("tickets.toml", "")
    repository.write("evidence/B1-PT-01/a.json", "{}")
    place = repository.root / closed
    before = place.stat().st_mode
    ran = _bound(command, repository.root, place)
    place.chmod(before)
    assert expected == ran.returncode
    assert said in ran.stdout + ran.stderr
    assert "bug" not in ran.stderr
    if (closed, command) == ("tickets/B1-PT-02.md", "list"):
        assert "B1-PT-01" in ran.stdout


def _bound(command: str, root: Path, closed: Path) -> subprocess.CompletedProcess[str]:
    """A command in the folder ``root``, after ``closed`` has lost all permissions."""
    capabilities = ["--bounding-set", "-dac_override,-dac_read_search"]
    unprivileged = ["setpriv", *capabilities] if os.geteuid() == 0 else []
    script = 'chmod 0 "$1" && shift && exec "$@"'
    line = [*unprivileged, sys.executable, "-m", "finding_tickets", command]
    return subprocess.run(
        ["sh", "-c", script, "sh", closed, *line], cwd=root, capture_output=True, text=True, check=False
    )
