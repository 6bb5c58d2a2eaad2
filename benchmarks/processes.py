"""Processes and what they take."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CACHE = "XDG_CACHE_HOME"
"""The variable that says where indexes, the times of verifications and the like are kept."""


@dataclass(frozen=True)
class Run:
    """What one process took: seconds by the clock and of processors, and MB of memory at its peak."""

    wall: float
    processor: float
    megabytes: float


def run(command: Sequence[str], env: Mapping[str, str], folder: Path | None = None) -> Run:
    """Run a command, which must succeed, with what it prints thrown away.

    A process begins with the memory of the one that starts it at its peak, so that has to be a small one.
    """
    nothing, start = subprocess.DEVNULL, time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=nothing, stderr=nothing)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def environment(folder: Path) -> dict[str, str]:
    """This process's environment, with indexes in a folder of its own; what is compiled is kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {CACHE: str(folder / "cache")}


@contextmanager
def empty_cache() -> Iterator[None]:
    """Let this process, and what it starts, know nothing that was kept before; what it keeps is not kept."""
    before = os.environ.get(CACHE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE] = folder
        try:
            yield
        finally:
            del os.environ[CACHE]
            if before is not None:
                os.environ[CACHE] = before


def used() -> float:
    """Seconds of processors that the children of this process have used, which have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def busy() -> float:
    """Seconds that the processors of this machine have worked for anybody."""
    user, nice, system = map(int, Path("/proc/stat").read_text(encoding="ascii").split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def usable() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def on(processors: int) -> Iterator[None]:
    """Let this process and what it starts use so many processors, or all where there are fewer."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:processors])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
