"""``tickets list`` on generated registers, cold and warm, against Backlog.md on tasks of the same texts.

Cold, there is no index and each file is read. Warm, nothing has changed since the list before. The claims, of
a warm list of 10 000 tickets: at most a fifth of Backlog.md's time, and below 150 MB at the peak. Backlog.md
is taken from npm, not looking at git; where it cannot be had, its times are those that were measured once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from generated import tickets, write_register

COUNTS = (1_000, 10_000)
BOUND = 0.2
MEGABYTES = 150
PEER = "backlog.md@1.52.0"
STATED = {1_000: 0.56, 10_000: 3.4}
"""Seconds that Backlog.md was seen to take, on another machine."""
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


class Run(NamedTuple):
    """What one process took: wall time in seconds, and memory at its peak in MB."""

    seconds: float
    megabytes: float


def run(command: list[str], folder: Path, env: dict[str, str]) -> Run:
    """Run a command, which must succeed, with its output thrown away."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Run(taken, usage.ru_maxrss / 1024)


def peer_in(folder: Path) -> list[str] | None:
    """The command of Backlog.md, installed into ``folder``; None where npm or the package cannot be had."""
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), PEER]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return None
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


def environment(folder: Path) -> dict[str, str]:
    """This process's environment, with compiled modules and indexes kept in ``folder``."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "XDG_CACHE_HOME": str(folder / "cache")}


def measure(count: int, rounds: int, folder: Path, peer: list[str] | None) -> bool:
    """Print what lists of ``count`` documents take; whether the bounds hold."""
    register, project, env = folder / f"register-{count}", folder / f"project-{count}", environment(folder)
    write_register(register, count)
    listing = [*TICKETS, str(register)]
    if peer:
        write_tasks(peer, project, count)
    cold = run(listing, folder, env)
    warm, theirs = [], []
    for _ in range(rounds):
        warm.append(run(listing, folder, env))
        if peer:
            theirs.append(run([*peer, "task", "list", "--plain"], project, env))
    ours, peak = median(each.seconds for each in warm), max(each.megabytes for each in warm)
    other = median(each.seconds for each in theirs) if theirs else STATED[count]
    source = f"{median(each.megabytes for each in theirs):.0f} MB" if theirs else "measured elsewhere, once"
    print(f"{count} tickets")
    print(f"  tickets list, cold  {cold.seconds:7.2f} s  {cold.megabytes:4.0f} MB")
    print(f"  tickets list, warm  {ours:7.2f} s  {peak:4.0f} MB (at most {MEGABYTES})")
    print(f"  Backlog.md          {other:7.2f} s  {source}")
    print(f"  warm / Backlog.md   {ours / other:7.2f} (at most {BOUND} for {COUNTS[-1]})", flush=True)
    return count < COUNTS[-1] or (ours <= BOUND * other and peak <= MEGABYTES)


def main() -> int:
    """Measure registers of each size; 1 where a bound is exceeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        peer = peer_in(Path(folder) / "peer")
        if peer is None:
            print(f"{PEER} cannot be had from npm: compared with what it took elsewhere")
        held = [measure(count, rounds, Path(folder), peer) for count in COUNTS]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
