"""The process that has torch loaded and forks a worker for every task; started by ``isolation.py``.

It says on the first line of stdout where its folder for temporary files is. Then it reads a task as a line of
JSON from stdin and writes a line to stdout when one begins and when it has ended. Tasks begin in the order in
which they came, each on a GPU of its own if it needs one. It runs no torch op itself: a process forked after
a parallel op hangs in the next one.

When stdin ends, because the caller is done or was killed, everything below this process ends and its folder
goes away.
"""

from __future__ import annotations

import gc
import json
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Thread
from traceback import format_exception_only
from typing import Any

from finding_tickets.measure.worker import (
    FOLDER_VARIABLE,
    LOG,
    NO_ROOM,
    RESULT,
    UNWRITABLE,
    adopt_orphans,
    read_log,
    work,
)

CHUNK = 1 << 16
POLL_SECONDS = 0.005
PATIENCE_SECONDS = 5.0
FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


def main(most: int, preload: Sequence[str]) -> None:
    """Load modules and serve one caller, at most ``most`` tasks at a time."""
    adopt_orphans()
    # It is taken out, so that a server started by the code of a ticket makes a folder of its own.
    folder = os.environ.pop(FOLDER_VARIABLE, "")
    try:
        if folder:
            Path(folder).mkdir(0o700, exist_ok=True)
        else:
            folder = tempfile.mkdtemp(prefix="tickets-")
            print(folder, flush=True)
        log = os.open(Path(folder) / LOG, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        # A caller that is gone reads neither the folder nor this.
        with suppress(BrokenPipeError):
            print(f"there is no folder for temporary files: {error.strerror}", file=sys.stderr)
        return
    os.dup2(log, 2)
    try:
        with _ending_with_caller(folder):
            for name in preload:
                import_module(name)
        # Collecting garbage in a fork would write to every page of what is loaded, and so copy it.
        gc.freeze()
        ForkServer(most).serve()
    except Exception as error:
        tell(failure=format_exception_only(error)[-1].strip())
    finally:
        kill_children()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _ending_with_caller(folder: str) -> Iterator[None]:
    """End this process and remove its folder if the caller goes while the block is at work.

    Loading torch takes seconds. The thread is gone before anything is forked.
    """
    done, finish = os.pipe()

    def watch() -> None:
        poll = select.poll()
        poll.register(0, 0)
        poll.register(done, 0)
        if 0 in dict(poll.poll()):
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        os.close(finish)
        watcher.join()
        os.close(done)


@dataclass(frozen=True)
class RunningTask:
    """A task with the GPUs that it has and the moment at which its time is up."""

    order: dict[str, Any]
    gpus: tuple[str, ...]
    deadline: float


class ForkServer:
    """Runs tasks in workers, at most ``most`` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[dict[str, Any]] = deque()
        self._running: dict[int, RunningTask] = {}

    def serve(self) -> None:
        """Return when stdin ends."""
        # A worker that ends wakes this process up.
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(woken, select.POLLIN)
        unread = b""
        while True:
            deadlines = [task.deadline for task in self._running.values()]
            seconds = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
            for file, _ in poll.poll(None if seconds is None else 1 + int(seconds * 1000)):
                chunk = os.read(file, CHUNK)
                if file != woken:
                    if not chunk:
                        return
                    *lines, unread = (unread + chunk).split(b"\n")
                    self._waiting.extend(map(json.loads, lines))
            self._end_tasks()
            while self._waiting and len(self._running) < self._most:
                gpus = self._free_gpus(self._waiting[0])
                if gpus is None:
                    break
                self._begin(self._waiting.popleft(), gpus)

    def _free_gpus(self, order: dict[str, Any]) -> tuple[str, ...] | None:
        """The GPUs that a task can have now, one of its own or all of them; None where it must wait."""
        in_use = {gpu for task in self._running.values() for gpu in task.gpus}
        free = tuple(gpu for gpu in order["gpus"] if gpu not in in_use)
        if order["alone"]:
            return free if len(free) == len(order["gpus"]) else None
        return free[:1] if free or not order["gpus"] else None

    def _begin(self, order: dict[str, Any], gpus: tuple[str, ...]) -> None:
        server = os.getpid()
        if worker := os.fork():
            self._running[worker] = RunningTask(order, gpus, time.monotonic() + float(order["timeout"]))
            tell(id=order["id"], started=True)
            return
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            work({**order, "gpus": gpus}, server)
        finally:
            os._exit(1)

    def _end_tasks(self) -> None:
        """Report the tasks that have ended or whose time is up, when nothing of them is left."""
        for worker, task in list(self._running.items()):
            ended, status = os.waitpid(worker, os.WNOHANG)
            if ended or time.monotonic() >= task.deadline:
                del self._running[worker]
                # Also the worker itself, where its time is up.
                kill_children(but=self._running)
                reason = why_it_ended(status if ended else None, task.order)
                tell(id=task.order["id"], started=False, reason=reason)


def tell(**event: object) -> None:
    """Write an event for the caller, as a line of JSON."""
    # A caller that is gone has closed stdin too, which is where that shows.
    with suppress(BrokenPipeError):
        print(json.dumps(event), flush=True)


def kill_children(but: Collection[int] = ()) -> None:
    """Kill every child of this process, but for some, and what its death hands over, until there is none.

    On systems without ``/proc`` none are found.
    """
    own = str(os.getpid())
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        children = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # The name before may hold spaces and brackets.
                if stat.read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                    children.append(int(stat.parent.name))
        if not (strays := set(children).difference(but)):
            return
        for child in strays:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(POLL_SECONDS)


def why_it_ended(status: int | None, order: dict[str, Any]) -> str:
    """Why a worker left no result, from its exit status or None where its time was up; empty if it did."""
    if status is None:
        return f"still running after {order['timeout']:g} s"
    code = os.waitstatus_to_exitcode(status)
    if code == UNWRITABLE:
        return NO_ROOM
    folder = Path(order["folder"])
    if code >= 0:
        # What is no file, but a pipe for instance, might be read for ever.
        has_result = not code and (folder / RESULT).is_file()
        return "" if has_result else f"ended with exit code {code} before it had a result"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # most of those for real time have no name
        name = f"signal {-code}"
    # Where the interpreter was when it crashed: the innermost frame in the caller's own files.
    _, _, trace = read_log(folder / LOG).rpartition("Fatal Python error")
    for frame in FRAME.finditer(trace):
        for root in (Path(order["root"]), Path(order["code"])):
            if Path(frame["file"]).is_relative_to(root):
                return (
                    f"killed by {name} at {Path(frame['file']).relative_to(root).as_posix()}:{frame['line']}"
                )
    return f"killed by {name}"


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
    os._exit(0)
