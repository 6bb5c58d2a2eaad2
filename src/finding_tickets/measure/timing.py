"""Time the variants of a ticket in turns, without counting, in one process for each revision's code.

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
from finding_tickets.measure.run import Replace
from finding_tickets.measure.tasks import At, CannotMeasureError, Code, Question, TimeJob, describe
from finding_tickets.measure.workloads import Point, Workload

# How often each variant is timed at a point, if time allows.
ROUNDS = 64
# The probability, at most, that any interval of a ticket misses the median of its ratio.
DOUBT = 0.01
# Runs of each variant before the rounds: the first ones load, compile and fill caches.
WARM_UPS = 2
# Runs of nothing; the median of their times counts.
EMPTY_RUNS = 9
# The longer of two variants must take so many times as long as a run of nothing: then the overhead of a run
# changes a ratio by at most 1/20.
LEAST_WORK = 20
# Added to the workload's seed: counting has used that and the next one.
FIRST_SEED = 2

Clock = Callable[[], float]
# Calls a method of a timer, by its name, in this process or in another.
Ask = Callable[..., Any]
# The subject, whose time is divided, and the reference.
Pair = tuple[str, str]


# Stands in an answer for an interval that is not known.
UNKNOWN = {"ratio": None, "low": None, "high": None, "rounds": 0}


class VariantRaisedError(Exception):
    """A variant raised; the message says which one, at which point, and what."""


@dataclass(frozen=True)
class RatioInterval:
    """The median of a ratio over some rounds, and an interval that holds the true median."""

    ratio: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        """``0.31 (0.29 to 0.34 over 32 rounds)``."""
        return f"{self.ratio:.3g} ({self.low:.3g} to {self.high:.3g} over {self.rounds} rounds)"


def measure_times(job: TimeJob, prepare: Callable[[], Replace] | None = None) -> list[dict[str, Any]]:
    """What a ``Timing`` is made of, for each question of a job; raises what importing and building raise.

    ``prepare`` is called in each process before any code is loaded; what it returns may replace the variants
    after that.

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
    """Answer a job's questions point by point; time that one point does not need goes to the next.

    ``timers`` has for each variant the timer that runs it, in this process or in another.
    """
    # All pairs of a point share their rounds: a variant in two pairs runs once.
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
    timers: Mapping[str, Ask], at: At, pairs: Collection[Pair], *, doubt: float, deadline: float, clock: Clock
) -> dict[Pair, RatioInterval | str]:
    """How the times of each pair compare at a point, or why that is not known.

    Every round runs each variant once, on data of its own, in the opposite order of the round before: what
    else the machine does then affects all variants alike. No round begins after the ``deadline``, a time of
    ``clock``. ``doubt`` is the probability with which each interval may miss.
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


def waiting_clock() -> Clock:
    """A clock of the seconds that this thread has waited for a processor that others had.

    Long runs wait more often than short ones, which says nothing about the code. If the system does not
    report it, the clock stays at 0. Source: schedstat in the kernel's documentation of its scheduler.
    """
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        return float
    return lambda: int(os.pread(file, 100, 0).split()[1]) / 1e9


@dataclass(frozen=True)
class LocalTimer:
    """Runs variants in this process, on the device ``cuda`` or ``cpu``.

    The time that passes on the clock ``waited`` is subtracted; by default that is always ``float()``, 0.
    """

    workload: Workload
    functions: Mapping[str, Function]
    device: str
    root: Path
    clock: Clock = perf_counter
    waited: Clock = float

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
        """The median of the seconds that several runs of nothing take, each with fresh arguments."""

        def nothing(*_: Any) -> None:
            pass

        idle = replace(self.workload, read=nothing)
        return median(self._time(idle, nothing, at, number)[0] for number in range(EMPTY_RUNS))

    def cannot_time(self, at: At) -> str | None:
        """Why nothing can be timed at a point; None if it can."""
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
        """Wait for the devices: their work is part of the run."""
        if self.device == "cuda":
            for index in range(max(1, self.workload.devices(point))):
                torch.cuda.synchronize(index)


@contextmanager
def _process(job: TimeJob, code: Code, prepare: Callable[[], Replace] | None) -> Iterator[Ask]:
    """A timer in a process of its own, which ends with the context; what the timer raises is raised here."""
    # A fork of this process has torch loaded too.
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
    """Load the code when the first call comes, and answer calls until the caller ends."""
    timer: LocalTimer | None = None
    while order := connection.recv():
        answer: tuple[Any, Exception | None]
        try:
            timer = timer or _load_timer(job, code, prepare)
            method, *given = order
            answer = getattr(timer, method)(*given), None
        except (VariantRaisedError, CannotMeasureError) as error:
            answer = None, error
        except Exception as error:
            answer = None, CannotMeasureError(describe(error, Path(job.root), Path(code.folder)))
        connection.send(answer)


def _load_timer(job: TimeJob, code: Code, prepare: Callable[[], Replace] | None) -> LocalTimer:
    folder = Path(code.folder)
    # One thread, as in counting: other programs on this machine disturb one thread less than several.
    torch.set_num_threads(1)
    replace_functions = prepare() if prepare else None
    workload = load_workload(job.verifier, Path(job.root), folder)
    loaded = {name: load_function(path, folder) for name, path in code.variants.items()}
    gc.freeze()  # what is loaded is no garbage, and collecting before each run stays short
    # A GPU works on while the host waits for a processor, so that nothing is subtracted there.
    waited = waiting_clock() if job.device == "cpu" else float
    timed = replace_functions(workload, loaded) if replace_functions else loaded
    return LocalTimer(workload, timed, job.device, folder, waited=waited)
