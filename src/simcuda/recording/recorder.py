"""Recordings: as files, and how one is made, suite by suite, each in processes of its own.

A file is compressed JSON, the same bytes for the same content.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from math import inf
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, Any, cast

from simcuda.real import CannotCountError
from simcuda.recording.selection import Selection
from simcuda.recording.worker import SuiteOrder

FORMAT = "simcuda-recording"
VERSION = 1


class NotARecordingError(Exception):
    """A file is not a recording, or is of another version."""


@dataclass(frozen=True)
class Recording:
    """What cases cost on one device.

    Attributes:
        environment: What the counts depend on: ``made_by`` (``real`` or ``simulated``), ``device``,
            ``driver``, ``cuda``, ``torch``, ``python`` and the ``profile`` for a comparable simulation.
        selection: Which cases were asked for.
        left_out: Suites that did not run, or not to their end, each with the reason.
        cases: How each case ended, by its id, in the order of running. Beside the ``digest`` of what ran
            there is one of ``counts`` (those that are not 0, perhaps with ``unknown`` and ``approximate``
            operations), ``error`` (the exception with which it ended), ``not_run`` (why there was nothing
            to run) and ``lost`` (how its process ended).
    """

    environment: dict[str, Any]
    selection: Selection
    left_out: dict[str, str]
    cases: dict[str, dict[str, Any]]


def write_recording(recording: Recording, path: Path) -> None:
    """Write a recording, compressed where the path ends in ``.gz``."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        **recording.environment,
        "selection": vars(recording.selection),
        "left_out": recording.left_out,
    }
    # A line for each case, so that two recordings can be compared by eye.
    lines = (
        f"{json.dumps(id_)}: {json.dumps(case, separators=(',', ':'))}"
        for id_, case in recording.cases.items()
    )
    text = f'{{"header": {json.dumps(header)},\n"cases": {{\n' + ",\n".join(lines) + "\n}}\n"
    data = text.encode()
    # Without a name and a time inside, the same content is the same file.
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def read_recording(path: Path) -> Recording:
    """The recording in a file.

    Raises:
        NotARecordingError: It holds none that this version reads.
        OSError: It cannot be read.
    """
    try:
        data = path.read_bytes()
        content = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
        header, cases = content["header"], content["cases"]
        if (header.pop("format"), header.pop("version")) != (FORMAT, VERSION):
            raise NotARecordingError(f"{path}: not version {VERSION} of a recording")
        fields, left_out = header.pop("selection"), header.pop("left_out")
        selection = Selection(fields["samples"], *(tuple(fields[n]) for n in ("only", "cases", "within")))
    except (ValueError, KeyError, TypeError, EOFError, gzip.BadGzipFile) as error:
        raise NotARecordingError(f"{path}: not a recording: {error}") from None
    return Recording(header, selection, left_out, cases)


CASE_SECONDS = 120.0
"""How long one case may take, with what the worker loads before the first."""

BETWEEN_REPORTS = 5.0


class CannotRecordError(Exception):
    """There is nothing to record; the message says why."""


def record(
    selection: Selection,
    profile: dict[str, Any] | None,
    *,
    say: Callable[[str], object],
    case_seconds: float = CASE_SECONDS,
    all_seconds: float = inf,
) -> Recording:
    """Run every selected case, in the time that there is.

    Args:
        selection: Which cases.
        profile: The profile to simulate, as a header has it; None for the real devices.
        say: Called with messages about the progress, every few seconds.
        case_seconds: How long one case may take.
        all_seconds: How long all may take; cases that did not run by then are named as left out.

    Raises:
        CannotCountError: Nothing can be counted on the device.
        CannotRecordError: Nothing is selected.
        FileNotFoundError: A verifier that is selected is not there.
    """
    deadline = time.monotonic() + all_seconds
    environment: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    cases: dict[str, dict[str, Any]] = {}

    def leave_out(suite: str, reason: str) -> None:
        left_out[suite] = reason
        say(f"{suite}: left out: {reason}")

    for suite in selection.suites():
        if time.monotonic() >= deadline:
            leave_out(suite, "the time was up")
            continue
        before, begun = len(cases), time.monotonic()
        reported = begun
        try:
            with closing(run_suite(SuiteOrder(suite, selection, profile), case_seconds)) as messages:
                for message in messages:
                    now = time.monotonic()
                    match message:
                        case {"environment": found}:
                            environment = environment or found
                        case {"absent": reason}:
                            leave_out(suite, reason)
                        case {"end": id_, "outcome": outcome}:
                            if id_ in cases:
                                raise ValueError(f"two cases with the id {id_}")
                            cases[id_] = outcome
                            if "lost" in outcome:
                                say(f"lost {id_}: {outcome['lost']}")
                            if now > deadline:
                                leave_out(suite, f"what follows {id_}, as the time was up")
                                break
                            if now - reported > BETWEEN_REPORTS:
                                reported = now
                                say(f"{suite}: {id_}")
        except KeyboardInterrupt:
            # What there is by then is worth keeping: an interrupt is an early deadline.
            deadline = time.monotonic()
            leave_out(suite, "what had not run when it was interrupted")
        say(f"{suite}: {len(cases) - before} cases in {time.monotonic() - begun:.0f} s")
    if not environment:
        raise CannotRecordError("no case was run: none is selected, or every process ended before the first")
    return Recording(environment, selection, left_out, cases)


def say_on_stderr(text: str) -> None:
    """Print the progress to standard error.

    What it prints may be piped to a file or to another program.
    """
    print(text, file=sys.stderr, flush=True)


def run_suite(order: SuiteOrder, seconds: float) -> Generator[dict[str, Any]]:
    """Run a suite in as many processes as it takes, and yield what they report.

    A case that ends its process, or keeps it silent for so many seconds, is ``lost``.

    Raises:
        CannotCountError: Nothing can be counted on the requested device.
    """
    done = set[str]()
    while order.suite not in done:
        done_before, running = len(done), ""
        with _worker(replace(order, done=frozenset(done))) as (process, pipe):
            try:
                for message in _messages(pipe, seconds):
                    if "why_not" in message:
                        raise CannotCountError(message["why_not"])
                    running = message.get("begin", "")
                    if "end" in message:
                        done.add(message["end"])
                    yield message
                code = process.wait(seconds)
                ending = f"ended with exit code {code}"
                reason = f"killed by {signal.Signals(-code).name}" if code < 0 else ending
            except (TimeoutError, subprocess.TimeoutExpired):
                reason = f"silent for {seconds:g} s"
        # A worker that ends between two cases is followed by another without a loss.
        if running or len(done) == done_before:
            # Of one that did nothing at all, another would not do more.
            lost = running or order.suite
            done.add(lost)
            yield {"end": lost, "outcome": {"lost": reason}}


@contextmanager
def _worker(order: SuiteOrder) -> Iterator[tuple[subprocess.Popen[bytes], Connection]]:
    """A worker with the pipe it reports on; killed on leaving, with all that it started."""
    reader, writer = Pipe(duplex=False)
    process = subprocess.Popen(  # noqa: S603 - this interpreter, and a module of ours
        [sys.executable, "-m", "simcuda.recording.worker", str(writer.fileno())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=(writer.fileno(),),
        # Sets of strings iterate the same way in every run.
        env={**os.environ, "PYTHONHASHSEED": "0"},
        start_new_session=True,
    )
    writer.close()
    try:
        with suppress(BrokenPipeError), cast("IO[bytes]", process.stdin) as stdin:
            stdin.write(pickle.dumps(order))
        yield process, reader
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.close()


def _messages(reader: Connection, seconds: float) -> Iterator[dict[str, Any]]:
    """The messages of a worker until it closes the pipe; ``TimeoutError`` after so long without one."""
    while reader.poll(seconds):
        try:
            data = reader.recv_bytes()
        except (EOFError, OSError):
            # Also in the middle of a message, if it was killed.
            return
        yield json.loads(data)
    raise TimeoutError
