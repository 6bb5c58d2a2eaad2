"""Time the variants of a ticket by turns, without any counting: one process for each revision's code.

The interval of a ratio is one of order statistics for the median: it supposes nothing about how times are
distributed (H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, section 7.1).
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from math import comb
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch

from finding_tickets.claims.check import at_text
from finding_tickets.measure.loading import load_function, load_workload
from finding_tickets.measure.meter import Function, arguments, attempt, steady_state
from finding_tickets.measure.places import describe
from finding_tickets.measure.run import Replace
from finding_tickets.measure.tasks import At, CannotMeasureError, Code, Question, TimeJob
from finding_tickets.measure.workloads import Point, Workload

# How many times each variant is timed at a point, if there is time for that.
ROUNDS = 64
# How likely it may be, at most, that any interval of a ticket misses the median of its ratio.
DOUBT = 0.01
# Runs of each variant before the rounds: the first ones load, compile and fill caches.
WARM_UPS = 2
# Runs of nothing, of whose times the median is taken.
EMPTY_RUNS = 9
# How many times longer the longer of two variants must take than a run of nothing, so that what a run takes
# besides moves a ratio by 1/20 at most.
LEAST_WORK = 20
# Added to the workload's own seed, which counting used with the one after it.
FIRST_SEED = 2

Clock = Callable[[], float]
# Asks a timer, here or in another process, for one of its methods with its arguments.
Ask = Callable[..., Any]
# The subject, whose time is divided, and the reference.
Pair = tuple[str, str]


# Stands in an answer where an interval does.
UNKNOWN = {"ratio": None, "low": None, "high": None, "rounds": 0}


class VariantRaisedError(Exception):
    """A variant ended a run with an exception: which one, where, and what that says."""


@dataclass(frozen=True)
class RatioInterval:
    """The median of a ratio over some rounds, and between which ratios it lies but for the doubt allowed."""

    ratio: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        """``0.31 (0.29 to 0.34 over 32 rounds)``."""
        return f"{self.ratio:.3g} ({self.low:.3g} to {self.high:.3g} over {self.rounds} rounds)"


def time_payload(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Time what the payload asks for; raises what importing and building raise."""
    return measure_times(TimeJob.from_payload(payload))


def measure_times(job: TimeJob, prepare: Callable[[], Replace] | None = None) -> list[dict[str, Any]]:
    """What a ``Timing`` is made of, for each question of a job.

    ``prepare`` is called in each process before any code is loaded. It returns what may give other functions
    for variants, once they are.

    Raises:
        CannotMeasureError: Code cannot be loaded, or ends the process that it runs in.
    """
    with ExitStack() as stack:
        timers: dict[str, Ask] = {}
        for code in job.codes:
            ask = stack.enter_context(_process(job, code, prepare))
            timers |= dict.fromkeys(ask("variants"), ask)
        return list(answer_questions(job, timers))


def answer_questions(
    job: TimeJob, timers: Mapping[str, Ask], clock: Clock = perf_counter
) -> Iterator[dict[str, Any]]:
    """The answers to a job's questions, point by point; the time that one point leaves goes to the next.

    ``timers`` are those that run each variant: a ``LocalTimer``, or one in another process.
    """
    # All pairs of a point share their rounds: a variant that is in two of them runs once.
    at_point: dict[str, list[Question]] = {}
    for question in job.questions:
        at_point.setdefault(repr(question.at), []).append(question)
    doubt = DOUBT / len(job.questions)
    end = clock() + job.seconds
    for place, questions in enumerate(at_point.values()):
        now = clock()
        deadline = now + (end - now) / (len(at_point) - place)
        at, pairs = questions[0].at, [(each.subject, each.reference) for each in questions]
        try:
            found = compare_times(timers, at, pairs, doubt=doubt, deadline=deadline, clock=clock)
        except VariantRaisedError as error:
            found = dict.fromkeys(pairs, str(error))
        for (subject, reference), answer in found.items():
            known = asdict(answer) if isinstance(answer, RatioInterval) else UNKNOWN
            about = {"variant": subject, "reference": reference, "at": at, "device": job.device_name}
            yield {**about, **known, "text": str(answer)}


def compare_times(
    timers: Mapping[str, Ask],
    at: At,
    pairs: Collection[Pair],
    *,
    doubt: float,
    deadline: float,
    clock: Clock,
) -> dict[Pair, RatioInterval | str]:
    """How the times of each pair compare at a point, or why that is not known.

    Every round runs each variant once, on data of its own, and in the opposite order of the round before, so
    that what else the machine does falls on all alike. No round begins after the ``deadline`` by ``clock``.
    ``doubt`` is how likely each interval may miss.
    """
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    ask = timers[names[0]]
    if why := ask("cannot_time", at):
        return dict.fromkeys(pairs, str(why))
    empty = float(ask("empty", at))
    for number in range(WARM_UPS):
        for name in names:
            timers[name]("run", name, at, -1 - number)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(ROUNDS):
        if clock() > deadline:
            break
        for name in names if number % 2 == 0 else reversed(names):
            seconds[name].append(float(timers[name]("run", name, at, number)))
    return {pair: _ratio(seconds, pair, doubt, empty) for pair in pairs}


def _ratio(
    seconds: Mapping[str, Sequence[float]], pair: Pair, doubt: float, empty: float
) -> RatioInterval | str:
    subject, reference = (seconds[name] for name in pair)
    if not subject:
        return "there was no time for a round"
    if max(median(subject), median(reference)) < LEAST_WORK * empty or min(reference) <= 0:
        return "a run takes hardly longer than an empty one: give this point more work"
    found = confidence_interval([one / other for one, other in zip(subject, reference, strict=True)], doubt)
    return found or f"there was time for {len(subject)} rounds alone"


def confidence_interval(ratios: Sequence[float], doubt: float) -> RatioInterval | None:
    """The interval that misses the median with at most the probability ``doubt``; None with too few rounds.

    The median lies between the k-th smallest and the k-th largest of n values unless fewer than k of them are
    on one side of it, which is as likely as fewer than k heads or fewer than k tails in n throws of a coin.
    """
    count = len(ratios)
    left_out, missed = 0, 2 / 2**count
    while missed <= doubt:
        left_out += 1
        missed += 2 * comb(count, left_out) / 2**count
    if not left_out:
        return None
    ordered = sorted(ratios)
    return RatioInterval(median(ordered), ordered[left_out - 1], ordered[-left_out], count)


def waiting() -> Clock:
    """What tells how many seconds this thread has waited for a processor, while others had it.

    That prolongs long runs more often than short ones, and says nothing about them. Where the system does not
    tell, it is always 0. Source: schedstat in the kernel's documentation of its scheduler.
    """
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        return float
    return lambda: int(os.pread(file, 100, 0).split()[1]) / 1e9


@dataclass(frozen=True)
class LocalTimer:
    """Runs variants in this process, on the device ``cuda`` or ``cpu``.

    What ``waited`` adds up during a run is no part of its time; ``float()`` is 0.
    """

    workload: Workload
    functions: Mapping[str, Function]
    device: str
    root: Path
    clock: Clock = perf_counter
    waited: Clock = float

    def ask(self, method: str, *given: Any) -> Any:
        """What one of the methods below returns."""
        return getattr(self, method)(*given)

    def variants(self) -> list[str]:
        """The variants that it runs."""
        return list(self.functions)

    def run(self, variant: str, at: At, number: int) -> float:
        """The seconds of one run on fresh data, the same for every variant with the same ``number``.

        Raises:
            VariantRaisedError: The variant raised.
        """
        seconds, error = self._time(self.workload, self.functions[variant], at, number)
        if error:
            raise VariantRaisedError(f"{variant} at {at_text(at)}: {error}")
        return seconds

    def empty(self, at: At) -> float:
        """The seconds that a run of nothing takes: the median of several, each with arguments of its own."""

        def nothing(*_: Any) -> None:
            pass

        idle = replace(self.workload, read=nothing)
        return median(self._time(idle, nothing, at, number)[0] for number in range(EMPTY_RUNS))

    def cannot_time(self, at: At) -> str | None:
        """Why nothing can be timed at a point; None where it can."""
        point = Point(**at)
        if self.device == "cpu":
            devices = self.workload.devices(point)
            return f"needs {devices} devices, and the CPU is one" if devices > 1 else None
        limited = self.workload.memory(point) is not None
        return "memory is limited only where it is counted" if limited else None

    def _time(self, workload: Workload, function: Function, at: At, number: int) -> tuple[float, str | None]:
        point = Point(**at)
        with steady_state():
            inputs = arguments(workload, point, self.device, workload.seed + FIRST_SEED + number)
            self._finish(point)
            start, before = self.clock(), self.waited()
            _, error = attempt(workload, function, inputs, self.root)
            self._finish(point)
            waited = self.waited() - before
            return self.clock() - start - waited, error

    def _finish(self, point: Point) -> None:
        """Let the devices finish: what a run asked of them is part of it."""
        if self.device == "cuda":
            for index in range(max(1, self.workload.devices(point))):
                torch.cuda.synchronize(index)


@contextmanager
def _process(job: TimeJob, code: Code, prepare: Callable[[], Replace] | None) -> Iterator[Ask]:
    """A timer in a process of its own, which ends with the context; asking raises what the timer raised."""
    # This worker has torch loaded, and a fork of it has too.
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    process = fork.Process(target=_serve, args=(theirs, job, code, prepare), daemon=True)
    process.start()
    theirs.close()

    def ask(*order: Any) -> Any:
        try:
            ours.send(order)
            answer, error = ours.recv()
        except (EOFError, OSError):
            names = ", ".join(code.variants)
            raise CannotMeasureError(f"{names}: the process that was timed ended") from None
        if error:
            raise error
        return answer

    try:
        yield ask
    finally:
        with suppress(OSError):
            ours.send(None)
        process.join()


def _serve(connection: Connection, job: TimeJob, code: Code, prepare: Callable[[], Replace] | None) -> None:
    """Load the code and do what is asked for, until nothing is."""
    timer: LocalTimer | None = None
    while order := connection.recv():
        answer: tuple[Any, Exception | None]
        try:
            timer = timer or _load_timer(job, code, prepare)
            answer = timer.ask(*order), None
        except (VariantRaisedError, CannotMeasureError) as error:
            answer = None, error
        except Exception as error:
            answer = None, CannotMeasureError(describe(error, Path(job.root), Path(code.folder)))
        connection.send(answer)


def _load_timer(job: TimeJob, code: Code, prepare: Callable[[], Replace] | None) -> LocalTimer:
    folder = Path(code.folder)
    # One thread, as in counting: what else runs on this machine disturbs one less than all.
    torch.set_num_threads(1)
    replace_functions = prepare() if prepare else dict
    workload = load_workload(job.verifier, Path(job.root), folder)
    loaded = {name: load_function(path, folder) for name, path in code.variants.items()}
    gc.freeze()  # what is loaded is no garbage, and collecting before each run stays short
    # A GPU goes on while the host waits, so that nothing can be taken off there.
    waited = waiting() if job.device == "cpu" else float
    return LocalTimer(workload, replace_functions(loaded), job.device, folder, waited=waited)
