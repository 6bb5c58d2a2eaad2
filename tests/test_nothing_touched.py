"""What a command is not documented to write it leaves as it was, to the byte, in a repository in disorder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import pytest
from tests.conftest import TICKET, run_here
from tests.verify.conftest import CLAIMS, FEW_POINTS, FIX, FOUND

from finding_tickets.cli.main import COMMANDS

SECTION = f"## Remediation\n\n```yaml\n{CLAIMS}\n```\n"
STEP = """\
import torch


def step(n):
    return sum(torch.ones(8, device="cuda").sum().item() for _ in range(n))
"""
PROBE = ("probe", "pkg.step:step", "--sweep", "n=1,2,3,5")
EVIDENCE = f"evidence/A-1/simulated-torch{version('torch').partition('+')[0]}-h200-cuda13.json"
MARK = "STARTED_BY"

LOG = str(Path(__file__).parent / "importers/logs/semgrep.sarif")
TRACE = str(Path(__file__).parent / "cli/trace.json")
WRITTEN: dict[tuple[str, ...], list[str]] = {
    ("init", "--yes"): ["tickets.toml"],
    ("init", "--dry-run"): [],
    ("list", "severity:P2"): [],
    ("graph",): [],
    ("list", "--by", "disposition"): [],
    ("show", "A-1", "--history"): [],
    ("new", "--title", "It waits", "--severity", "P2", "--with-verifier"): [
        "tickets/A-4.md",
        "verifiers/a_4.py",
        "fixes/a_4/found.py",
        "fixes/a_4/fix.py",
    ],
    ("budget", "--root", "budgeted"): [],
    ("budget", "init", "src/pkg/step.py:step", "--sweep", "n=1,2,3,5"): ["tickets.toml"],
    ("import", LOG): ["tickets/A-4.md", "tickets/A-5.md"],
    ("import", LOG, "--dry-run"): [],
    ("set", "A-1", "severity=P1"): ["tickets/A-1.md"],
    ("set", "A-1", "severity=P1", "--dry-run"): [],
    ("close", "A-1", "--as", "fixed"): ["tickets/A-1.md", EVIDENCE],
    ("close", "A-1", "--as", "wont-fix", "--reason", "rare"): ["tickets/A-1.md"],
    ("close", "A-2", "--as", "duplicate", "--of", "A-1"): ["tickets/A-1.md", "tickets/A-2.md"],
    ("set", "A-3", "status=open"): ["tickets/A-3.md"],
    ("tick", "A-1", "1"): ["tickets/A-1.md"],
    (*PROBE, "--draft", "1"): ["tickets/A-4.md"],
    ("claim", "syncs is n", "--function", *PROBE[1:]): [],
    ("trace", TRACE, "--lines"): [],
    ("lint",): [],
    ("lint", "--fix"): ["tickets/A-2.md"],
    ("fix", "A-1", "--dry-run"): [],
    ("verify", "A-1"): [EVIDENCE],
    ("verify", "--stale"): [EVIDENCE],
    ("verify", "A-1", "--base", "HEAD~1", "--head", "HEAD"): [],
    ("check", "--base", "HEAD", "--summary", "summary.md"): ["summary.md"],
    ("audit", "A-1", "--cheat", "unfixed"): [],
    ("report",): [],
    ("report", "--output", "status.md"): ["status.md"],
    ("report", "--summary", "summary.md"): ["summary.md"],
}
"""Command lines, with all the files that each is documented to write."""
ALONE = {
    (*PROBE, "--draft", "1"),
    ("report",),
}
"""Those that run in a process of their own, which might leave temporary files and processes behind.

Others that measure do it in the same way; here they share a server that has loaded torch."""


@dataclass(frozen=True)
class Place:
    """A user's repository, and around it the folders in which something might be left behind."""

    around: Path

    @property
    def root(self) -> Path:
        """The repository."""
        return self.around / "repository"

    @property
    def environment(self) -> dict[str, str]:
        """That of a user who has never run anything here."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON"))}
        person = {
            f"GIT_{role}_{what}": "ada@home" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        folders = {"HOME": "home", "TMPDIR": "temporary", "XDG_CACHE_HOME": "cache"}
        return {
            **kept,
            **person,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            **{name: str(self.around / folder) for name, folder in folders.items()},
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }

    def write(self, path: str, text: str) -> None:
        """Write a file of the repository."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, *command: str, mark: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command in the repository; what it starts carries the mark."""
        environment = self.environment | {MARK: mark}
        return subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    def git(self, *arguments: str) -> str:
        """Run git, which has to succeed."""
        done = self.run("git", *arguments)
        assert 0 == done.returncode, done.stderr
        return done.stdout

    def everything(self) -> dict[str, tuple[int, bytes]]:
        """Mode and content of all files, those of git, of the home and of temporary folders among them."""
        return {str(path.relative_to(self.around)): _content(path) for path in _below(self.around)}


def _below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if not path.is_relative_to(folder / "cache"))


def _content(path: Path) -> tuple[int, bytes]:
    mode = path.lstat().st_mode
    if path.is_symlink():
        return mode, os.fsencode(path.readlink())
    return mode, b"" if path.is_dir() else path.read_bytes()


def processes(mark: str) -> list[str]:
    """The command lines of all processes that carry a mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def ticket(name: str, status: str, more: str = "") -> str:
    """A ticket that lint has nothing against."""
    return TICKET.format(
        title="It waits",
        ticket_id=name,
        severity="P2",
        status=status,
        rows="",
        file="src/pkg/step.py",
        more=more,
    )


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A ticket that was measured and two others; files in all states but conflict, a branch, and a stash."""
    place = Place(tmp_path_factory.mktemp("template"))
    for folder in ("repository", "home", "temporary", "cache"):
        (place.around / folder).mkdir()
    place.git("init", "--quiet", "--initial-branch=main")
    place.write(".gitignore", "ignored/\n")
    place.write("src/pkg/__init__.py", "")
    place.write("src/pkg/step.py", STEP)
    place.write("budgeted/code.py", "")
    place.write("budgeted/tickets.toml", "budget = [{run = 'code.py', max = {launches = 9}}]\n")
    place.write("notes.txt", "one\n")
    place.write("moved.txt", "moved\n" * 9)
    place.write("gone.txt", "gone\n")
    place.write("verifiers/a_1.py", FEW_POINTS.format(ticket="A-1"))
    place.write("fixes/a_1/found.py", FOUND)
    place.write("fixes/a_1/fix.py", FIX)
    place.git("add", ".")
    place.git("commit", "--quiet", "--message", "code")
    place.write("tickets/A-1.md", ticket("A-1", "open", SECTION))
    place.write("tickets/A-2.md", ticket("A-2", "open").replace("`open`", "`Open`"))
    place.write("tickets/A-3.md", ticket("A-3", "fixed"))
    ended = run_here(place.root, "verify", "A-1", environment=place.environment)
    assert 0 == ended.code, ended.err
    place.git("add", ".")
    place.git("commit", "--quiet", "--message", "tickets")
    place.write("notes.txt", "put aside\n")
    place.git("stash")
    place.git("branch", "other", "HEAD~1")
    disorder(place)
    return place


def disorder(place: Place) -> None:
    """Leave the work tree and the index as people leave them."""
    place.write("notes.txt", "two\n")
    place.write("new.txt", "staged\n")
    place.git("mv", "moved.txt", "elsewhere.txt")
    place.git("add", "notes.txt", "new.txt")
    place.write("notes.txt", "three\n")
    place.write("src/pkg/step.py", f"{STEP}\n\nLIMIT = 3\n")
    place.write("fixes/a_1/fix.py", f"{FIX}\n")
    (place.root / "gone.txt").unlink()
    place.write("untracked/file.txt", "untracked\n")
    place.write("ignored/file.txt", "ignored\n")
    (place.root / "link").symlink_to("notes.txt")


def test_every_command_is_tried() -> None:
    """A command that is added is to be added here."""
    tried = {" ".join(line[:2]) if " ".join(line[:2]) in COMMANDS else line[0] for line in WRITTEN}
    assert set(COMMANDS) == tried


@pytest.mark.slow
@pytest.mark.parametrize(("line", "expected"), WRITTEN.items(), ids=map(" ".join, WRITTEN))
def test_a_command_writes_what_is_documented_and_nothing_else(
    template: Place, tmp_path: Path, line: tuple[str, ...], expected: list[str]
) -> None:
    """Work tree, index, stash, branches and all else of git; no temporary file and no process is left."""
    place = Place(tmp_path / "place")
    shutil.copytree(template.around, place.around, symlinks=True)
    before = place.everything()
    mark = uuid4().hex
    if line in ALONE:
        done = place.run(sys.executable, "-m", "finding_tickets", *line, mark=mark)
        code, err = done.returncode, done.stderr
    else:
        ended = run_here(place.root, *line, environment=place.environment)
        code, err = ended.code, ended.err
    # 1: a gate that is shut, which is no reason to write anything either.
    assert code in (0, 1), err
    after = place.everything()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    written = {Path("repository", path) for path in expected}
    folders = {folder for file in written for folder in file.parents}
    assert written == {Path(path) for path in changed} - folders
    assert [] == processes(mark)


@pytest.mark.slow
def test_the_disorder_is_one(template: Place) -> None:
    """Staged, staged and edited again, moved, edited, gone, untracked and ignored; a stash and a branch."""
    assert [
        " D gone.txt",
        " M fixes/a_1/fix.py",
        " M src/pkg/step.py",
        "!! ignored/",
        "?? link",
        "?? untracked/",
        "A  new.txt",
        "MM notes.txt",
        "R  moved.txt -> elsewhere.txt",
    ] == sorted(template.git("status", "--short", "--ignored").splitlines())
    assert 1 == len(template.git("stash", "list").splitlines())
