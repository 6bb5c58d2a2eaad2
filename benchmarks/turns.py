"""Commands that verify by turns, each while the others are stopped: what else happens falls on all."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TURN_SECONDS = 10.0
TO_THE_END = float("inf")
LOOK_SECONDS = 0.05
"""How often to look whether the side whose turn it is has ended."""
DONE = re.compile(r"^\[\d+/\d+\] \S+: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Ended:
    """How a side ended: its exit code, the seconds of its turns, and those of processors that it used."""

    code: int
    wall: float
    processor: float


class Side:
    """A command that runs when it is its turn, in ``root``; what it says is kept in the file ``said``."""

    def __init__(self, command: list[str], root: Path, said: Path) -> None:
        self.ended: Ended | None = None
        self.memory = {0: 0}
        """The bytes that it held last while so many verifications were done."""
        self.peak = 0
        self._command, self._root, self._said = [sys.executable, *command], root, said
        self._env = {**os.environ, "XDG_CACHE_HOME": str(said.parent / "cache")}
        self._wall = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, seconds: float) -> None:
        """Go on for some seconds, or to the end."""
        began = time.perf_counter()
        process = self._process = self._process or self._started()
        _signal(process.pid, signal.SIGCONT)
        while self.ended is None and time.perf_counter() - began < seconds:
            time.sleep(LOOK_SECONDS)
            self._look(process, time.perf_counter() - began)
        if self.ended is None:
            _signal(process.pid, signal.SIGSTOP)
        self._wall += time.perf_counter() - began

    def kill(self) -> None:
        """End whatever still runs of it."""
        if self._process and self.ended is None:
            _signal(self._process.pid, signal.SIGKILL)

    def held_after(self, verifications: int) -> int:
        """The bytes that it held when so many were done, or the last few before."""
        return self.memory[max(done for done in self.memory if done <= verifications)]

    def verdicts(self) -> Counter[str]:
        """How many verifications had each verdict, as it has said so far."""
        return Counter(DONE.findall(self.said))

    @property
    def said(self) -> str:
        """What it has written on stderr."""
        return self._said.read_text("utf-8")

    def _started(self) -> subprocess.Popen[bytes]:
        with self._said.open("wb") as said:
            nothing = subprocess.DEVNULL
            return subprocess.Popen(self._command, cwd=self._root, env=self._env, stdout=nothing, stderr=said)

    def _look(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        if held := _resident(process.pid):
            self.memory[self.verdicts().total()] = held
            self.peak = max(self.peak, held)
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            self.ended = Ended(process.returncode, self._wall + seconds, used.ru_utime + used.ru_stime)


def by_turns(*sides: Side, seconds: float = TURN_SECONDS) -> list[Ended]:
    """Run all of them to the end, each some seconds at a time."""
    waiting = deque(sides)
    try:
        while waiting:
            side = waiting.popleft()
            side.run(seconds)
            if side.ended is None:
                waiting.append(side)
    finally:
        for side in sides:
            side.kill()
    return [side.ended for side in sides if side.ended]


def _resident(pid: int) -> int:
    """The bytes of memory that a process holds; none when it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and all below it, parents first, until there are no new ones."""
    told: set[int] = set()
    while new := {pid, *_below(pid)} - told:
        for each in new:
            with suppress(ProcessLookupError):
                os.kill(each, number)
        told |= new


def _below(pid: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    waiting = deque([pid])
    while waiting:
        found = children.get(waiting.popleft(), [])
        waiting.extend(found)
        yield from found
