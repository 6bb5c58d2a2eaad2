"""Run suites in processes of their own, and continue in a new one if a case ends its process."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any, cast

from simcuda.recording.worker import SuiteOrder

READ_AT_ONCE = 1 << 16


class CannotRecordError(Exception):
    """There is nothing to record; the message says why."""


class CannotCountHereError(CannotRecordError):
    """Nothing can be counted on the requested device; the message says why."""


@dataclass
class SuiteProgress:
    """What the workers of one suite have reported so far.

    Attributes:
        environment: What the counts depend on.
        absent: Why the suite has no cases here.
        groups_done: Groups that are done.
        cases_done: Cases of the present group that are done.
        group: The running group.
        case: The running case.
        ended: Whether a worker came to its end.
    """

    environment: dict[str, Any] = field(default_factory=dict)
    absent: str | None = None
    groups_done: set[str] = field(default_factory=set)
    cases_done: set[str] = field(default_factory=set)
    group: str | None = None
    case: str | None = None
    ended: bool = False

    def follow(self, message: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """Process a message; returns a case and its outcome if it reports one.

        Raises:
            CannotCountHereError: Nothing can be counted.
        """
        match message:
            case {"why_not": reason}:
                raise CannotCountHereError(reason)
            case {"environment": environment}:
                self.environment = environment
            case {"absent": reason}:
                self.absent, self.ended = reason, True
            case {"end": _}:
                self.ended = True
            case {"group": group}:
                if self.group not in (None, group):
                    self.groups_done.add(str(self.group))
                    self.cases_done.clear()
                self.group = group
            case {"case": case, "outcome": outcome}:
                self.case = None
                self.cases_done.add(case)
                return case, outcome
            case {"case": case}:
                self.case = case
        return None

    def lose(self) -> str | None:
        """Count the running case or group as done; its name, or None if there was none."""
        lost = self.case or self.group
        if self.case:
            self.cases_done.add(self.case)
        elif self.group:
            self.groups_done.add(self.group)
        self.case = None
        return lost


def run_suite(
    order: SuiteOrder, progress: SuiteProgress, seconds: float
) -> Generator[tuple[str, dict[str, Any]]]:
    """Run a suite in as many processes as it takes, and yield every case with its outcome.

    A case that ends its process is ``lost``, with how that ended.

    Args:
        order: What to run.
        progress: A fresh one, which is updated on the way.
        seconds: How long a worker may be silent.

    Raises:
        CannotCountHereError: Nothing can be counted on the requested device.
    """
    while not progress.ended:
        done = len(progress.groups_done), len(progress.cases_done)
        order = replace(
            order, groups_done=frozenset(progress.groups_done), cases_done=frozenset(progress.cases_done)
        )
        with _worker(order) as (process, pipe):
            try:
                for message in _messages(pipe, seconds):
                    if told := progress.follow(message):
                        yield told
                if progress.ended:
                    return
                code = process.wait(seconds)
                ending = f"ended with exit code {code}"
                reason = f"killed by {signal.Signals(-code).name}" if code < 0 else ending
            except (TimeoutError, subprocess.TimeoutExpired):
                reason = f"silent for {seconds:g} s"
        advanced = done != (len(progress.groups_done), len(progress.cases_done))
        # A worker that ends between two cases is followed by another without a loss.
        if progress.case or not advanced:
            lost = progress.lose()
            yield lost or order.suite, {"lost": reason}
            if lost is None:
                return


@contextmanager
def _worker(order: SuiteOrder) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A worker with the pipe it reports on; killed on leaving, with all that it started."""
    ours, theirs = os.pipe()
    process = subprocess.Popen(  # noqa: S603 - this interpreter, and a module of ours
        [sys.executable, "-m", "simcuda.recording.worker", str(theirs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=(theirs,),
        # Sets of strings iterate the same way in every run.
        env={**os.environ, "PYTHONHASHSEED": "0"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        with suppress(BrokenPipeError), cast("IO[bytes]", process.stdin) as stdin:
            stdin.write(pickle.dumps(order))
        yield process, ours
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(ours)


def _messages(pipe: int, seconds: float) -> Iterator[dict[str, Any]]:
    """The messages of a worker until it closes the pipe; ``TimeoutError`` after so long without one."""
    rest = b""
    while select.select([pipe], [], [], seconds)[0]:
        if not (read := os.read(pipe, READ_AT_ONCE)):
            return
        *lines, rest = (rest + read).split(b"\n")
        yield from map(json.loads, lines)
    raise TimeoutError
