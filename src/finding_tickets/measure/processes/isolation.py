"""Run code that may hang, crash or exit, each task in a process of its own, and go on whatever happens.

There are three levels of processes: the caller, a server that has torch loaded, and a worker for each task,
which the server forks.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import select
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar, cast

from finding_tickets.errors import UnreachableError
from finding_tickets.measure.processes.server import (
    CHUNK,
    END,
    FOLDER_VARIABLE,
    LOG,
    NO_ROOM,
    RESULT,
    USED,
    Task,
    read_log,
)
from finding_tickets.measure.processes.used_files import UsedFiles, read_used_files
from finding_tickets.measure.tasks import KEPT

__all__ = ["Isolation", "Task", "TaskOutcome"]
K = TypeVar("K", bound=Hashable)

SERVER = "finding_tickets.measure.processes.server"
# The server is a module too, which it imports for the first task: what is prepared for workers knows it.
PRELOADED = ("finding_tickets.measure.run", "finding_tickets.workload", SERVER)
# A variable that marks all processes below a server.
MARK = "TICKETS_SERVER"
ENVIRONMENT = {
    # Sets of strings then have the same order in every run.
    "PYTHONHASHSEED": "0",
    # CUDA does not survive a fork, so a library that looks for a GPU at import must not start it.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}
GPU_FILES = ("nvidia[0-9]*", "dxg")
SHUTDOWN_SECONDS = 10.0
# How much longer than a task may take the server may be silent, and how long it may load torch.
PATIENCE_SECONDS, LOADING_SECONDS = 15.0, 600.0
SERVER_KILLED = "the process that measures was stopped or killed"


@dataclass(frozen=True)
class TaskOutcome:
    """The value that a task returned, or why it returned none; ``never_ran`` if its code is not at fault.

    ``used`` are the files that it used, also if it failed.
    """

    value: Any = None
    reason: str | None = None
    never_ran: bool = False
    used: UsedFiles = field(default=UsedFiles(), compare=False)


class ServerEndedError(Exception):
    """The server ended on its own; the message is what it said last."""


class Isolation:
    """A server that has torch loaded. Starting it does not wait; leaving the context ends it.

    With ``at_once=False`` the first task starts it.

    Raises:
        UnreachableError: It cannot be started: torch is not installed.
    """

    def __init__(
        self,
        preload: Sequence[str] = PRELOADED,
        workers: int | None = None,
        *,
        at_once: bool = True,
    ) -> None:
        most = str(workers or len(os.sched_getaffinity(0)))
        # Without the current folder among those of modules: it may have one that the server loads.
        self._command = [sys.executable, "-P", "-m", SERVER, most, *preload]
        self._mark = secrets.token_hex(16)
        self._folder = ""
        self._at_work: dict[str, float] = {}  # until when
        self._server: subprocess.Popen[bytes] | None = None
        self._unread = self._unsent = b""
        if at_once:
            self._start()

    @property
    def folder(self) -> str:
        """Return a folder that is removed with the context, even if the caller is killed.

        Raises:
            UnreachableError: The disk is full.
        """
        if not self._folder:
            server = self._server or self._start()
            self._folder = os.fsdecode(self._read_line(server)).rstrip("\n")
            if not self._folder:
                why = self._why_ended()
                # The next call starts a new server and reports the same error.
                self._end()
                raise UnreachableError(f"nothing can be measured: {why}")
        return self._folder

    @property
    def may_have_gpu(self) -> bool:
        """Return whether this machine could have a GPU; if not, no process needs to ask CUDA."""
        return any(file for pattern in GPU_FILES for file in Path("/dev").glob(pattern))

    def __enter__(self) -> Self:
        """Return the context itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server and whatever it still runs, also while it is still loading."""
        self._end()
        # The server removes it, unless it was killed.
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, tasks: dict[K, Task]) -> Iterator[tuple[K, TaskOutcome]]:
        """Run all tasks, several at a time, and yield each outcome with its name as soon as it is there.

        Tasks are removed when they have ended; the caller may add more at any time. If the server
        is killed, a new one runs the tasks that were at work again, one at a time: one that kills it again is
        to blame.
        """
        running = set[K]()
        while tasks:
            try:
                for name, outcome in self._run_on_server(tasks, running):
                    running.discard(name)
                    del tasks[name]
                    yield name, outcome
            except ServerEndedError as error:
                self._end()
                if not running:
                    # It did not even start.
                    while tasks:
                        yield (
                            tasks.popitem()[0],
                            TaskOutcome(reason=str(error), never_ran=True),
                        )
                    return
                # Code of a ticket runs as the same user as the server, and can kill it by mistake.
                suspects = {
                    name: tasks.pop(name) for name in list(tasks) if name in running
                }
                running.clear()
                for name, task in suspects.items():
                    if len(suspects) > 1:
                        yield from self.run({name: task})
                    else:
                        yield name, TaskOutcome(reason=SERVER_KILLED, never_ran=True)

    def _run_on_server(
        self, tasks: Mapping[K, Task], running: set[K]
    ) -> Iterator[tuple[K, TaskOutcome]]:
        """Run tasks on this server, and add each that begins to ``running``.

        Raises:
            ServerEndedError: The server is gone.
        """
        folder = self.folder
        server = self._server or self._start()
        names: dict[str, K] = {}
        sent = set[K]()
        while tasks:
            for name in (
                [name for name in tasks if name not in sent]
                if len(names) < len(tasks)
                else ()
            ):
                # The server knows the task by its folder, which the worker will make; its name tells nothing.
                own = f"{folder}/{secrets.token_hex(8)}"
                names[own] = name
                sent.add(name)
                # Where its results are moved to would tell where those of others are.
                self._unsent += (
                    b64encode(pickle.dumps((own, replace(tasks[name], kept=""))))
                    + b"\n"
                )
            event = json.loads(self._read_line(server) or "{}")
            if "folder" not in event:
                raise ServerEndedError(
                    f"the measuring process ended: {event.get('failure') or self._why_ended()}"
                )
            own = event["folder"]
            # Other tasks are left from a run whose caller did not wait for the end.
            if own in names and event["started"]:
                running.add(names[own])
                self._at_work[own] = time.monotonic() + tasks[names[own]].timeout
            elif own in names:
                self._at_work.pop(own, None)
                name = names.pop(own)
                if tasks[name].kept:
                    _move_files(Path(own) / KEPT, Path(tasks[name].kept))
                outcome = _outcome(Path(own), event["reason"])
                yield name, replace(outcome, used=read_used_files(Path(own) / USED))
                # To remove what thousands of tasks left would take minutes in the end.
                shutil.rmtree(own, ignore_errors=True)

    def _read_line(self, server: subprocess.Popen[bytes]) -> bytes:
        """Return the next line from the server; less if it ended, or is so late that it is killed.

        Code of a ticket, or another process, may have stopped it.
        """
        stdin, stdout = (
            cast("IO[bytes]", server.stdin).fileno(),
            cast("IO[bytes]", server.stdout).fileno(),
        )
        patience = PATIENCE_SECONDS if self._at_work else LOADING_SECONDS
        end = min(self._at_work.values(), default=time.monotonic()) + patience
        end = max(end, time.monotonic() + 1)
        while b"\n" not in self._unread:
            poll = select.poll()
            poll.register(stdout, select.POLLIN)
            if self._unsent:
                poll.register(stdin, select.POLLOUT)
            ready = dict(poll.poll(max(0.0, end - time.monotonic()) * 1000))
            if not ready:
                self._at_work.clear()
                server.kill()
                return b""
            if stdin in ready:
                try:
                    self._unsent = self._unsent[os.write(stdin, self._unsent) :]
                except BrokenPipeError:
                    # The server is gone, and its output ends.
                    self._unsent = b""
            if stdout in ready:
                if not (chunk := os.read(stdout, CHUNK)):
                    break
                self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def end_tasks(self) -> None:
        """Ask what is at work to end and to answer what it has so far."""
        if self._server:
            os.write(cast("IO[bytes]", self._server.stdin).fileno(), END + b"\n")

    def _start(self) -> subprocess.Popen[bytes]:
        # Every other command works without torch, so that it may be missing.
        found = None
        with suppress(ImportError, ValueError):
            found = find_spec("torch")
        if found is None:
            why = "nothing can be measured: torch is not installed"
            raise UnreachableError(why, hint="pip install torch")
        variables = {
            **os.environ,
            **ENVIRONMENT,
            FOLDER_VARIABLE: self._folder,
            MARK: self._mark,
        }
        self._unread = self._unsent = b""
        try:
            self._server = subprocess.Popen(  # noqa: S603 - this interpreter, and a module of ours
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=variables,
                # An interrupt from the terminal is for the caller, which then ends the server.
                start_new_session=True,
            )
        except OSError as error:
            raise UnreachableError(
                f"nothing can be measured: {self._command[0]}: {error.strerror}"
            ) from None
        os.set_blocking(cast("IO[bytes]", self._server.stdin).fileno(), False)
        return self._server

    def _why_ended(self) -> str:
        """Return the last line that the server wrote before it ended."""
        text = (
            cast("IO[bytes]", self._server.stderr).read().decode(errors="replace")
            if self._server
            else ""
        )
        if self._folder:
            text += f"\n{read_log(Path(self._folder) / LOG)}"
        return text.strip().rpartition("\n")[2] or "it said nothing"

    def _end(self) -> None:
        """End the server and wait for it; if it was killed, kill what it left behind."""
        server, self._server = self._server, None
        if server is None:
            return
        # The server ends when its input does, and kills everything below it.
        for stream in (server.stdin, server.stdout, server.stderr):
            with suppress(BrokenPipeError):
                cast("IO[bytes]", stream).close()
        try:
            server.wait(SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        # The workers of a killed server died with it, but not what they had started.
        mark = f"{MARK}={self._mark}\0".encode()
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        is_left = bool(server.returncode)
        while is_left and time.monotonic() < deadline:
            is_left = False
            for file in Path("/proc").glob("[0-9]*/environ"):
                # Other users' environments cannot be read, and a process that has just ended has none.
                with suppress(OSError):
                    if mark in file.read_bytes():
                        is_left = True
                        os.kill(int(file.parent.name), signal.SIGKILL)


def _move_files(source: Path, target: Path) -> None:
    """Move the files that a task left, except links, which could lead to files of another task."""
    if not source.is_symlink() and source.is_dir():
        for file in os.scandir(source):
            with suppress(OSError):
                if (
                    file.is_file(follow_symlinks=False)
                    and file.stat(follow_symlinks=False).st_nlink == 1
                ):
                    Path(file.path).rename(target / file.name)


def _outcome(folder: Path, reason: str) -> TaskOutcome:
    """Read the outcome of a task from its folder, where its code could write anything."""
    if reason:
        return TaskOutcome(reason=reason, never_ran=reason == NO_ROOM)
    try:
        written = json.loads((folder / RESULT).read_bytes())
        # Raises ValueError for half a surrogate pair, which nobody could print.
        json.dumps(written, ensure_ascii=False).encode()
    except (OSError, ValueError, RecursionError):
        written = None
    # Anything that a worker does not write is forged.
    match written:
        case {"error": str(error), **rest} if not rest:
            return TaskOutcome(reason=error)
        case {"value": value, **rest} if not rest:
            return TaskOutcome(value=value)
        case _:
            return TaskOutcome(reason="invalid result from the worker")
