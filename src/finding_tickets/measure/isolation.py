"""Run code that may hang, crash or exit, each task in a process of its own, and go on whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar, cast

from finding_tickets.errors import UnreachableError
from finding_tickets.ground.processors import usable
from finding_tickets.measure.interpreter import command, environment
from finding_tickets.measure.sandbox import bubblewrap
from finding_tickets.measure.worker import LOG, NO_ROOM, RESULT, said
from finding_tickets.model.record import Record

K = TypeVar("K", bound=Hashable)

PRELOADED = (
    "finding_tickets.measure.cuda",
    "finding_tickets.measure.run",
    "finding_tickets.measure.simulated",
    "finding_tickets.measure.tasks",
)
ENVIRONMENT = {
    # Sets of strings iterate the same way in every run.
    "PYTHONHASHSEED": "0",
    # A library that asks at import whether there is a GPU must not start CUDA: it does not survive a fork.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}
SHUTDOWN_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Task:
    """A call of ``target`` (``module:function``) with a payload that JSON can carry.

    ``timeout`` is in seconds. ``memory`` is in bytes, on top of what a process with torch loaded takes.
    Places in error messages are relative to ``root``, or to ``code`` where code comes from there. Of ``gpus``
    it sees one, which no other task has meanwhile, or all of them where it is to be ``alone`` on them. What
    it ``loads`` is a function that was called before its time begins, once for all tasks that name it.
    """

    target: str
    payload: Any
    root: Path
    timeout: float
    memory: int
    code: Path | None = None
    gpus: tuple[str, ...] = ()
    alone: bool = False
    loads: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a task returned, or the reason why it did not; ``never_ran`` where that is not its fault."""

    value: Any = None
    reason: str | None = None
    never_ran: bool = False


class _Written(Record):
    """What a worker leaves as JSON, unless the code that it runs has left something else."""

    value: Any = None
    error: str | None = None


class Isolation:
    """A server that has torch loaded; starting it returns at once, and leaving the context ends it.

    With ``at_once=False`` it is started by the first task, so that having nothing to do costs nothing. In a
    ``sandbox`` its tasks can write nothing but their own folder, and have no network. ``interpreter`` is the
    Python that it runs on, where that is not the tool's own.

    Raises:
        UsageError: This system has nothing to make a sandbox with.
    """

    def __init__(
        self,
        preload: Sequence[str] = PRELOADED,
        workers: int | None = None,
        *,
        at_once: bool = True,
        sandbox: bool = False,
        interpreter: str = "",
    ) -> None:
        self._again = partial(Isolation, preload, workers, at_once=False, sandbox=sandbox)
        self._others: dict[str, Isolation] = {}
        program = bubblewrap() if sandbox else ""
        server = ["finding_tickets.measure.forkserver", str(workers or usable()), *preload]
        janitor = ["finding_tickets.measure.janitor", program, *command(interpreter), *server]
        self._interpreter = interpreter
        self._command = [*command(""), *janitor]
        self._folder = ""
        self._tasks = count()
        self._running: set[str] = set()
        self._server: subprocess.Popen[bytes] | None = self._started() if at_once else None

    @property
    def folder(self) -> str:
        """A folder that is gone when the context has ended, also where the caller was killed.

        Raises:
            UnreachableError: There is no room for one.
        """
        if not self._folder:
            self._server = self._server or self._started()
            told = json.loads(cast("IO[bytes]", self._server.stdout).readline() or "{}")
            if "folder" not in told:
                errors = cast("IO[bytes]", self._server.stderr).read().decode(errors="replace")
                # Whoever asks again is told the same by another one.
                self._end(self._server)
                self._server = None
                raise UnreachableError(f"nothing can be measured: {told.get('error') or _last_line(errors)}")
            self._folder = told["folder"]
        return self._folder

    def on(self, interpreter: str) -> Isolation:
        """The same on another Python, kept until this one ends; this one itself for no other."""
        if interpreter == self._interpreter:
            return self
        if interpreter not in self._others:
            self._others[interpreter] = self._again(interpreter=interpreter)
        return self._others[interpreter]

    @property
    def has_ended(self) -> bool:
        """Whether the server is gone although nobody ended it: every further task would fail."""
        return self._server is not None and self._server.poll() is not None

    def __enter__(self) -> Self:
        """The context itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the server and whatever it still runs, also while it is still loading."""
        for other in self._others.values():
            other.__exit__(kind, error, trace)
        if self._server:
            self._end(self._server)
        # Gone already, unless somebody killed the process that sees to it.
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def run(
        self, tasks: Mapping[K, Task], on_start: Callable[[K], None] | None = None
    ) -> Iterator[tuple[K, Outcome]]:
        """Run all tasks, several at a time, and yield each outcome under its name as soon as it is there.

        ``on_start`` is told the name of each task whose process begins.
        """
        if not tasks:
            return
        self._server = self._server or self._started()
        stdin, stdout = cast("IO[bytes]", self._server.stdin), cast("IO[bytes]", self._server.stdout)
        folder = self.folder
        names = {
            self._send(task, f"{folder}/{next(self._tasks)}", stdin): name for name, task in tasks.items()
        }
        del tasks  # the server has them
        while self._running and (line := stdout.readline()):
            event = json.loads(line)
            folder = event["id"]
            if event["started"]:
                if on_start:
                    on_start(names[folder])
                continue
            self._running.remove(folder)
            yield names.pop(folder), self._outcome(folder, event["reason"])
        yield from ((name, Outcome(reason=self._failure(), never_ran=True)) for name in names.values())

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - this interpreter, and a module of ours
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT, **environment(self._interpreter)},
            # An interrupt from the terminal is for the caller, who ends the server in order.
            start_new_session=True,
        )

    def _end(self, server: subprocess.Popen[bytes]) -> None:
        for stream in (server.stdin, server.stdout, server.stderr):
            with suppress(BrokenPipeError):
                cast("IO[bytes]", stream).close()
        try:
            server.wait(SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    def _send(self, task: Task, folder: str, stdin: IO[bytes]) -> str:
        """Give a task to the server; its folder, which is still to be made, is its name there."""
        self._running.add(folder)
        roots = {"root": str(task.root), "code": str(task.code or task.root)}
        order = {**asdict(task), **roots, "id": folder, "folder": folder}
        # A server that is gone has closed its output too, which is where that shows.
        with suppress(BrokenPipeError):
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
        return folder

    def _outcome(self, folder: str, reason: str) -> Outcome:
        if reason:
            return Outcome(reason=reason, never_ran=reason == NO_ROOM)
        try:
            written = _Written.model_validate_json((Path(folder) / RESULT).read_bytes())
        except (OSError, ValueError):
            return Outcome(reason="what came back is no result")
        return Outcome(written.value, written.error)

    def _failure(self) -> str:
        return f"the measuring process ended: {_last_line(said(Path(self.folder) / LOG))}"


def _last_line(text: str) -> str:
    return next(filter(None, reversed(text.split("\n"))), "it said nothing")
