"""Watch over one task in a process of its own: end it in time, leave nothing behind, say how it ended."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from finding_tickets.measure.worker import LOG, NO_ROOM, RESULT, UNWRITABLE, said, work

POLL_SECONDS = 0.005
PATIENCE_SECONDS = 5.0
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def supervise(task: dict[str, Any]) -> str:
    """Fork a worker for a task and wait for it; empty where it left a result, else why it did not.

    Whatever the worker started is killed when it ends, also in sessions of their own: orphans come to this
    process, which is their reaper.
    """
    reap_orphans()
    try:
        Path(task["folder"]).mkdir()
    except OSError:
        return NO_ROOM
    server = os.getppid()
    die_with(server, signal.SIGTERM)
    signal.signal(signal.SIGTERM, _stop)
    supervisor = os.getpid()
    if not (worker := os.fork()):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        die_with(supervisor, signal.SIGKILL)
        work(task)
    try:
        status = _wait(worker, float(task["timeout"]))
    finally:
        kill_descendants()
    return _reason(status, task)


def reap_orphans() -> None:
    """Have the orphans among the descendants of this process become its children."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants(but: Collection[int] = ()) -> None:
    """Kill every child of this process, but for some, and what its death hands over, until there is none."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (children := set(_children()) - set(but)) and time.monotonic() < deadline:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(POLL_SECONDS)


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
    kill_descendants()
    os._exit(0)


def _wait(worker: int, seconds: float) -> int | None:
    """The exit status of the worker, or None when its time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, status = os.waitpid(worker, os.WNOHANG)
        if pid:
            return status
        time.sleep(POLL_SECONDS)
    return None


def _reason(status: int | None, task: dict[str, Any]) -> str:
    if status is None:
        return f"still running after {task['timeout']:g} s"
    code = os.waitstatus_to_exitcode(status)
    if code == UNWRITABLE:
        return NO_ROOM
    if code < 0:
        return f"killed by {_name(-code)}{_place(task)}"
    # What is no file, but a pipe for instance, might be read for ever.
    if code or not (Path(task["folder"]) / RESULT).is_file():
        return f"ended with exit code {code} before it had a result"
    return ""


def _name(number: int) -> str:
    """What a signal is called; most of those for real time are not."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _place(task: dict[str, Any]) -> str:
    """Where the interpreter was when it crashed: the innermost frame in the caller's own files."""
    _, _, trace = said(Path(task["folder"]) / LOG).rpartition("Fatal Python error")
    for frame in FRAME.finditer(trace):
        for root in (Path(task["root"]), Path(task["code"])):
            if Path(frame["file"]).is_relative_to(root):
                return f" at {Path(frame['file']).relative_to(root).as_posix()}:{frame['line']}"
    return ""


def _children() -> Iterator[int]:
    """The processes whose parent is this one; on systems without ``/proc`` none are found."""
    own = str(os.getpid())
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if stat.read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                yield int(stat.parent.name)


def die_with(parent: int, number: signal.Signals) -> None:
    """Have this process get a signal when its parent dies, which may have happened already."""
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
