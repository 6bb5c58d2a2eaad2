"""Time the variants of a ticket by turns, without any counting: one process for each revision's code."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Protocol

import torch

from finding_tickets.measure.loading import load_function, load_workload
from finding_tickets.measure.places import describe
from finding_tickets.measure.report import (
    At,
    CannotMeasureError,
    Code,
    Interval,
    Question,
    TimeJob,
    Timing,
    at_text,
)
from finding_tickets.measure.rounds import Pair, compared
from finding_tickets.measure.spread import share
from finding_tickets.measure.trial import Function, arguments, attempt, steady_state
from finding_tickets.workload import Point, Workload

Clock = Callable[[], float]
StandingIn = Callable[[Mapping[str, Function]], Mapping[str, Function]]

FIRST_SEED = 2
"""Added to the workload's own seed, which counting used with the one after it."""
EMPTY_RUNS = 9


class RaisedError(Exception):
    """A variant ended a run with an exception: which one, where, and what that says."""


def waiting() -> Clock:
    """What tells how many seconds this thread has waited for a processor, while others had it.

    That prolongs long runs more often than short ones, and says nothing about them. Where the system does not
    tell, it is always 0. Source: schedstat in the kernel's documentation of its scheduler.
    """
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        return _never
    return lambda: int(os.pread(file, 100, 0).split()[1]) / 1e9


def _never() -> float:
    return 0.0


class Player(Protocol):
    """Runs variants and takes their times."""

    def variants(self) -> tuple[str, ...]:
        """Those that it runs."""

    def run(self, variant: str, at: At, number: int) -> float:
        """The seconds of one run on fresh data, the same for every variant with the same ``number``.

        Raises:
            RaisedError: The variant raised.
        """

    def empty(self, at: At) -> float:
        """The seconds that a run of nothing takes."""

    def cannot_time(self, at: At) -> str | None:
        """Why nothing can be timed at a point; None where it can."""


@dataclass(frozen=True)
class Here:
    """Runs variants in this process, on the device ``cuda`` or ``cpu``.

    What ``waited`` adds up during a run is no part of its time.
    """

    workload: Workload
    functions: Mapping[str, Function]
    device: str
    root: Path
    clock: Clock = perf_counter
    waited: Clock = _never

    def variants(self) -> tuple[str, ...]:
        """As a ``Player`` does."""
        return tuple(self.functions)

    def run(self, variant: str, at: At, number: int) -> float:
        """As a ``Player`` does."""
        seconds, error = self._timed(self.workload, self.functions[variant], Point(**at), number)
        if error:
            raise RaisedError(f"{variant} at {at_text(at)}: {error}")
        return seconds

    def empty(self, at: At) -> float:
        """The median of several, each with arguments of its own as for any other run."""
        idle = replace(self.workload, read=_nothing)
        return median(self._timed(idle, _nothing, Point(**at), number)[0] for number in range(EMPTY_RUNS))

    def cannot_time(self, at: At) -> str | None:
        """One CPU is one device, and a real one's memory is limited only while it counts."""
        point = Point(**at)
        if self.device == "cpu":
            devices = self.workload.devices(point)
            return f"needs {devices} devices, and the CPU is one" if devices > 1 else None
        limited = self.workload.memory(point) is not None
        return "memory is limited only where it is counted" if limited else None

    def _timed(
        self, workload: Workload, function: Function, point: Point, number: int
    ) -> tuple[float, str | None]:
        with steady_state():
            inputs = arguments(workload, point, self.device, workload.seed + FIRST_SEED + number)
            self._wait(point)
            start, before = self.clock(), self.waited()
            _, error = attempt(workload, function, inputs, self.root)
            self._wait(point)
            waited = self.waited() - before
            return self.clock() - start - waited, error

    def _wait(self, point: Point) -> None:
        """Let the devices finish: what a run asked of them is part of it."""
        if self.device == "cuda":
            for index in range(max(1, self.workload.devices(point))):
                torch.cuda.synchronize(index)


@dataclass(frozen=True)
class There:
    """Has another process run variants."""

    connection: Connection
    names: str

    def variants(self) -> tuple[str, ...]:
        """As a ``Player`` does."""
        names: tuple[str, ...] = self._asked("variants")
        return names

    def run(self, variant: str, at: At, number: int) -> float:
        """As a ``Player`` does."""
        seconds: float = self._asked("run", variant, at, number)
        return seconds

    def empty(self, at: At) -> float:
        """As a ``Player`` does."""
        seconds: float = self._asked("empty", at)
        return seconds

    def cannot_time(self, at: At) -> str | None:
        """As a ``Player`` does."""
        why: str | None = self._asked("cannot_time", at)
        return why

    def _asked(self, *order: Any) -> Any:
        """What the other process returned; raises what it raised."""
        try:
            self.connection.send(order)
            returned, error = self.connection.recv()
        except (EOFError, OSError):
            raise CannotMeasureError(f"{self.names}: the process that was timed ended") from None
        if error:
            raise error
        return returned


def measure_times(job: TimeJob, prepare: Callable[[], StandingIn] | None = None) -> list[Timing]:
    """Time what a job asks for.

    ``prepare`` is called in each process before any code is loaded, and returns what may give other functions
    for variants, once they are.

    Raises:
        CannotMeasureError: Code cannot be loaded, or ends the process that it runs in.
    """
    with ExitStack() as stack:
        players: dict[str, Player] = {}
        for code in job.codes:
            player = stack.enter_context(_elsewhere(job, code, prepare))
            players |= dict.fromkeys(player.variants(), player)
        return list(answers(job, players))


def answers(job: TimeJob, players: Mapping[str, Player], clock: Clock = perf_counter) -> Iterator[Timing]:
    """The answers to a job's questions, point by point; the time that one point leaves goes to the next.

    ``players`` are those that run each variant.
    """
    at_point: dict[str, list[Question]] = {}
    for question in job.questions:
        at_point.setdefault(repr(question.at), []).append(question)
    end = clock() + job.seconds
    for place, questions in enumerate(at_point.values()):
        now = clock()
        deadline = now + (end - now) / (len(at_point) - place)
        yield from _answers(questions, players, share(len(job.questions)), deadline, clock)


def _answers(
    questions: list[Question], players: Mapping[str, Player], doubt: float, deadline: float, clock: Clock
) -> Iterator[Timing]:
    """The answers at one point."""
    at = questions[0].at
    some = players[questions[0].subject]
    edges: dict[Pair, tuple[float, ...]] = {(each.subject, each.reference): each.edges for each in questions}
    found: Mapping[Pair, Interval | str]
    if why := some.cannot_time(at):
        found = dict.fromkeys(edges, why)
    else:
        try:
            found = compared(
                lambda variant, number: players[variant].run(variant, at, number),
                edges,
                doubt=doubt,
                empty=some.empty(at),
                deadline=deadline,
                clock=clock,
            )
        except RaisedError as error:
            found = dict.fromkeys(edges, str(error))
    for (subject, reference), answer in found.items():
        if isinstance(answer, Interval):
            yield Timing(subject, reference, at, answer)
        else:
            yield Timing(subject, reference, at, None, answer)


@contextmanager
def _elsewhere(job: TimeJob, code: Code, prepare: Callable[[], StandingIn] | None) -> Iterator[There]:
    """A player in a process of its own, which ends with the context."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    process = fork.Process(target=_serve, args=(theirs, job, code, prepare), daemon=True)
    process.start()
    theirs.close()
    try:
        yield There(ours, ", ".join(code.variants))
    finally:
        with suppress(OSError):
            ours.send(None)
        process.join()


def _serve(
    connection: Connection, job: TimeJob, code: Code, prepare: Callable[[], StandingIn] | None
) -> None:
    """Load the code and do what is asked for, until nothing is."""
    roots = [Path(job.root), Path(code.folder)]
    player: Here | None = None
    while order := connection.recv():
        method, *given = order
        answer: tuple[Any, Exception | None]
        try:
            player = player or _player(job, code, prepare)
            answer = getattr(player, method)(*given), None
        except (RaisedError, CannotMeasureError) as error:
            answer = None, error
        except Exception as error:
            answer = None, CannotMeasureError(describe(error, *roots))
        connection.send(answer)


def _player(job: TimeJob, code: Code, prepare: Callable[[], StandingIn] | None) -> Here:
    # One thread, as in counting: what else runs on this machine disturbs one less than all.
    torch.set_num_threads(1)
    standing_in = prepare() if prepare else _as_they_are
    root, folder = Path(job.root), Path(code.folder)
    workload = load_workload(job.verifier, root, folder)
    loaded = {name: load_function(source, folder) for name, source in code.variants.items()}
    gc.freeze()  # what is loaded is no garbage, and collecting before each run stays short
    # A GPU goes on while the host waits, so that nothing can be taken off there.
    waited = waiting() if job.device == "cpu" else _never
    return Here(workload, standing_in(loaded), job.device, folder, waited=waited)


def _as_they_are(functions: Mapping[str, Function]) -> Mapping[str, Function]:
    return functions


def _nothing(*_: Any) -> None:
    """What an empty run runs."""
