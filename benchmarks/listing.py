"""``tickets list`` on generated registers, cold and warm, against Backlog.md on tasks of the same texts.

Cold, there is no index and each file is read. Warm, nothing has changed since the list before. The claims, of
a warm list of 10 000 tickets: at most 0.06 of Backlog.md's time, and below 150 MB at the peak. Backlog.md
is taken from npm, not looking at git; a list of 1 000 stands beside it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.command import main
from benchmarks.generated import tickets, write_register
from benchmarks.processes import Run, environment, run
from benchmarks.result import Bound, Number, Result, Size

COUNTS = {Size.FULL: (1_000, 10_000), Size.QUICK: (200, 1_000), Size.LEAST: (2, 10)}
ROUNDS = {Size.FULL: 5, Size.QUICK: 3, Size.LEAST: 1}
TIME, MEMORY = Bound(0.06), Bound(150)
PEER = "backlog.md@1.52.0"
INSTALL_SECONDS = 120
TICKETS = [sys.executable, "-m", "finding_tickets", "list", "--root"]
TASK = """\
---
id: TASK-{number}
title: {title}
status: To Do
assignee: []
created_date: '2025-01-01 00:00'
labels: []
dependencies: []
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
{text}
<!-- SECTION:DESCRIPTION:END -->
"""


@dataclass(frozen=True)
class Lists:
    """What lists of ``count`` documents took: one without an index, those with one, and Backlog.md's."""

    count: int
    cold: Run
    warm: Sequence[Run]
    theirs: Sequence[Run]

    @property
    def seconds(self) -> float:
        """Of a warm list."""
        return median(each.wall for each in self.warm)

    @property
    def ratio(self) -> float | None:
        """Of a warm list to Backlog.md's."""
        return self.seconds / median(each.wall for each in self.theirs) if self.theirs else None

    def beside(self) -> Iterator[Number]:
        """The times."""
        yield Number(f"warm, {self.count:,} tickets", self.seconds, "s")
        yield Number("cold", self.cold.wall, "s")
        if self.theirs:
            yield Number("Backlog.md", median(each.wall for each in self.theirs), "s")

    def memory(self) -> Iterator[Number]:
        """Memory at the peak, of what is not warm."""
        yield Number(f"cold, {self.count:,} tickets", self.cold.megabytes, "MB")
        if self.theirs:
            yield Number("Backlog.md", max(each.megabytes for each in self.theirs), "MB")


def peer_in(folder: Path) -> list[str] | str:
    """The command of Backlog.md, installed into ``folder``; or why it cannot be had."""
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), PEER]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=INSTALL_SECONDS)
    except FileNotFoundError:
        return f"{PEER} comes from npm, which is not installed"
    except (OSError, subprocess.SubprocessError):
        return f"npm cannot install {PEER} here"
    return [str(folder / "node_modules" / ".bin" / "backlog")]


def write_tasks(peer: list[str], folder: Path, count: int) -> None:
    """A project of Backlog.md with ``count`` tasks."""
    folder.mkdir()
    settings = ["--defaults", "--no-git", "--check-branches", "false", "--include-remote", "false"]
    subprocess.run([*peer, "init", "bench", *settings], cwd=folder, check=True, capture_output=True)
    for number, (_, text) in enumerate(tickets(count), 1):
        title = text.partition("\n")[0].rpartition(": ")[2]
        file = folder / "backlog" / "tasks" / f"task-{number} - {title.replace(' ', '-')}.md"
        file.write_text(TASK.format(number=number, title=title, text=text), encoding="utf-8")


def lists(count: int, rounds: int, folder: Path, peer: list[str]) -> Lists:
    """Lists of ``count`` documents: a cold one, then a warm one and one of the peer's in turn."""
    register, project, env = folder / f"register-{count}", folder / f"project-{count}", environment(folder)
    write_register(register, count)
    listing = [*TICKETS, str(register)]
    if peer:
        write_tasks(peer, project, count)
    cold = run(listing, env)
    warm, theirs = [], []
    for _ in range(rounds):
        warm.append(run(listing, env))
        if peer:
            theirs.append(run([*peer, "task", "list", "--plain"], env, project))
    return Lists(count, cold, warm, theirs)


def measure(size: Size) -> Iterator[Result]:
    """Registers of both sizes; the claims are about the larger one."""
    with tempfile.TemporaryDirectory() as folder:
        had = peer_in(Path(folder) / "peer") if size is not Size.LEAST else "nothing is installed to try it"
        peer, missing = ([], had) if isinstance(had, str) else (had, "")
        done = [lists(count, ROUNDS[size], Path(folder), peer) for count in COUNTS[size]]
    largest = done[-1]
    yield Result(
        name="listing",
        what="a warm tickets list / Backlog.md's list",
        value=largest.ratio,
        bound=TIME,
        beside=tuple(number for each in reversed(done) for number in each.beside()),
        missing=missing,
    )
    yield Result(
        name="listing-memory",
        what="a warm tickets list, memory at the peak",
        value=max(each.megabytes for each in largest.warm),
        unit="MB",
        bound=MEMORY,
        beside=tuple(largest.memory()),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
