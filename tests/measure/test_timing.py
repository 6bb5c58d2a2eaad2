"""Timing variants: what a run consists of, the points in their order, and the processes that they run in."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch
from tests.measure.conftest import build, workload

import simcuda
from finding_tickets.measure.tasks import CannotMeasureError, Code, FunctionPath, Question, TimeJob
from finding_tickets.measure.timing import (
    LocalTimer,
    VariantRaisedError,
    answer_questions,
    measure_times,
    waiting_clock,
)
from finding_tickets.workload import Point, Workload

ROOT = Path("/repository")
VERIFIER = """
from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    return (point.n, device)


workload = Workload(ticket="X", build=build, sweep=[Point(n=1), Point(n=2)], timed_on="cpu")
"""
WORK = """
import os


def work(n, device):
    assert device == "cpu", device
    return sum(range({units} * n)), os.getpid()
"""


@dataclass
class Clock:
    """Time that passes only where somebody lets it."""

    now: float = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now

    def takes(self, seconds: float, result: Any = None) -> Callable[..., Any]:
        """A function that takes so long."""

        def function(*_: Any) -> Any:
            self.now += seconds
            return result

        return function


def here(clock: Clock, variants: dict[str, Callable[..., Any]], jobs: Workload | None = None) -> LocalTimer:
    """A timer of these functions in this process."""
    return LocalTimer(jobs or workload(3), variants, "cpu", ROOT, clock)


def job(*questions: Question, seconds: float = 1e9, **more: Any) -> TimeJob:
    """An order to time something in this process, or elsewhere with ``more``."""
    fields = {"root": "", "verifier": "", "codes": (), "device": "cpu", "device_name": "the CPU", **more}
    return TimeJob(questions=questions, seconds=seconds, **fields)


def question(n: int = 3) -> Question:
    """How many times longer the fix takes than the code as found."""
    return Question("fix", "found", {"n": n})


def test_building_is_not_timed_and_reading_is() -> None:
    """What makes the arguments takes 5 s, the variant 2 s, and what the caller does with its result 1 s."""
    clock = Clock()
    jobs = workload(3, read=clock.takes(1))
    object.__setattr__(jobs, "build", clock.takes(5, (None,)))
    assert 3 == here(clock, {"fix": clock.takes(2)}, jobs).run("fix", {"n": 3}, 0)
    # The reading takes part in every run, an empty one has none.
    assert 0 == here(clock, {}, jobs).empty({"n": 3})


def test_waiting_for_a_processor_is_not_timed() -> None:
    """Of 10 s that a run takes, other processes had the processor for 4 s, and 3 s of waiting were before."""
    clock, waited = Clock(), Clock(3)

    def function(_: torch.Tensor) -> None:
        clock.now += 10
        waited.now += 4

    timer = LocalTimer(workload(3), {"fix": function}, "cpu", ROOT, clock, waited)
    assert 6 == timer.run("fix", {"n": 3}, 0)


def test_what_was_waited_only_grows() -> None:
    """The system tells a total in seconds, which grows by no more than has passed."""
    waited = waiting_clock()
    before, start = waited(), perf_counter()
    sum(range(10_000))
    assert 0 <= waited() - before <= perf_counter() - start


def test_every_round_has_data_of_its_own() -> None:
    """Both variants get the same in one round; the next one, the warm-up and counting have other data."""
    seen: list[list[float]] = []
    timer = here(Clock(), dict.fromkeys(["found", "fix"], lambda values: seen.append(values.tolist())))
    for number in (-1, 0, 1):
        for name in ("found", "fix"):
            timer.run(name, {"n": 3}, number)
    counted = build(Point(n=3), "cpu", torch.Generator().manual_seed(0))[0].tolist()
    assert seen[::2] == seen[1::2]
    assert 4 == len({tuple(values) for values in [*seen, counted]})


def test_nothing_counts_while_a_variant_is_timed() -> None:
    """No simulated device is there, and no collector of garbage runs."""
    import gc

    found: list[tuple[object, bool]] = []
    timer = here(Clock(), {"fix": lambda _: found.append((simcuda.simulation.active(), gc.isenabled()))})
    timer.run("fix", {"n": 3}, 0)
    assert [(None, False)] == found


@dataclass
class Steady:
    """A timer whose variants take a second each, by a clock of its own; none can run at ``n=2``."""

    clock: Clock

    def ask(self, method: str, *given: Any) -> Any:
        """What another process would answer."""
        return getattr(self, method)(*given)

    def run(self, variant: str, at: dict[str, int], number: int) -> float:  # noqa: ARG002 - a timer's signature
        """One second."""
        self.clock.now += 1
        if at["n"] == 2:
            raise VariantRaisedError(f"{variant} at n=2: ValueError: two")
        return 1

    def empty(self, at: dict[str, int]) -> float:  # noqa: ARG002 - a timer's signature
        """No time."""
        return 0

    def cannot_time(self, at: dict[str, int]) -> str | None:
        """Nothing is known of ``n=9``."""
        return "nine is too many" if at["n"] == 9 else None


def steadily(*questions: Question, seconds: float = 1e9) -> list[dict[str, Any]]:
    """The answers of a steady timer."""
    timer = Steady(Clock())
    return list(
        answer_questions(
            job(*questions, seconds=seconds), dict.fromkeys(["found", "fix"], timer.ask), timer.clock
        )
    )


def test_a_gpu_finishes_before_and_after_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both devices of a point, and what they still do of a run belongs to its time."""
    clock = Clock()
    done: list[object] = []

    def synchronize(device: int) -> None:
        done.append(device)
        clock.now += 1

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    jobs = workload(3, devices=lambda _: 2)
    object.__setattr__(jobs, "build", lambda _point, device, _generator: (device,))
    timer = LocalTimer(jobs, {"fix": done.append}, "cuda", ROOT, clock)
    # One second for each of the two devices, after the run.
    assert 2 == timer.run("fix", {"n": 3}, 0)
    assert [0, 1, "cuda", 0, 1] == done


def test_a_variant_that_raises_is_told_with_its_point() -> None:
    """The error names both, as it does where it is counted."""

    def fail(_: torch.Tensor) -> None:
        raise ValueError("two")

    with pytest.raises(VariantRaisedError, match="fix at n=2: ValueError: two"):
        here(Clock(), {"fix": fail}).run("fix", {"n": 2}, 0)


def test_a_point_without_times_leaves_the_others() -> None:
    """Where a variant raises, or nothing can be timed, there is a reason instead of a ratio."""
    assert [
        (None, "fix at n=2: ValueError: two"),
        (None, "nine is too many"),
        (1.0, "1 (1 to 1 over 64 rounds)"),
    ] == [(each["ratio"], each["text"]) for each in steadily(question(2), question(9), question(3))]


def test_a_point_leaves_the_time_that_it_does_not_need_to_the_next() -> None:
    """Of 280 s two points have 140 s each; what the first leaves makes the second whole."""
    found = steadily(question(3), question(4), seconds=280)
    # Rounds of 2 s: 2 to warm up and 64, of which 140 s are enough; 132 s are used, and 148 s left.
    assert [64, 64] == [each["rounds"] for each in found]
    # Of 100 s the first has 50: 2 rounds to warm up and 23 that begin in time; so with the second.
    short = steadily(question(3), question(4), seconds=100)
    assert [24, 23] == [each["rounds"] for each in short]


def test_one_cpu_is_one_device() -> None:
    """A point with two devices is not timed there."""
    timer = here(Clock(), {}, workload(3, devices=lambda point: point.n))
    assert [None, "needs 2 devices, and the CPU is one"] == [timer.cannot_time({"n": n}) for n in (1, 2)]


def test_memory_is_not_limited_for_a_time() -> None:
    """What a GPU does at the end of its memory is counted, and not timed; the CPU has all it has."""
    limited = workload(3, memory=lambda _: 1 << 20)
    told = [LocalTimer(limited, {}, device, ROOT).cannot_time({"n": 3}) for device in ("cuda", "cpu")]
    assert ["memory is limited only where it is counted", None] == told


def test_a_verifier_is_told_where_nothing_is_timed() -> None:
    """``timed_on`` is a device or the host."""
    with pytest.raises(ValueError, match="timed_on must be one of cuda, cpu, not 'gpu'"):
        workload(1, timed_on="gpu")


def repository(root: Path, **variants: str) -> dict[str, Code]:
    """A verifier, and each variant in a folder of its own with the code of a revision."""
    (root / "verifiers").mkdir()
    (root / "verifiers/x.py").write_text(VERIFIER, encoding="utf-8")
    codes = {}
    for name, text in variants.items():
        (root / name).mkdir()
        (root / name / "revised.py").write_text(text, encoding="utf-8")
        codes[name] = Code(str(root / name), {name: FunctionPath("revised.py", "work")})
    return codes


def children() -> set[int]:
    """The processes that this one has started and not waited for."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


def test_each_revision_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Both have a module of one name, 200 times as much work is told from it, and no process is left."""
    codes = repository(tmp_path, found=WORK.format(units=200_000), fix=WORK.format(units=1_000))
    order = job(
        question(1), question(2), root=str(tmp_path), verifier="verifiers/x.py", codes=tuple(codes.values())
    )
    before = children()
    found = measure_times(order)
    assert [({"n": 1}, True), ({"n": 2}, True)] == [
        (each["at"], each["high"] is not None and each["high"] < 0.5) for each in found
    ]
    assert before == children()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import gone\n", "revised.py:1: ModuleNotFoundError: No module named 'gone'"),
        ("import os\n\n\ndef work(n, device):\n    os._exit(0)\n", "fix: the process that was timed ended"),
    ],
)
def test_code_that_cannot_run_is_named(tmp_path: Path, text: str, message: str) -> None:
    """A variant that does not import, or that ends its process, is told as when it is counted."""
    codes = repository(tmp_path, found=WORK.format(units=1000), fix=text)
    order = job(question(1), root=str(tmp_path), verifier="verifiers/x.py", codes=tuple(codes.values()))
    with pytest.raises(CannotMeasureError) as caught:
        measure_times(order)
    assert message == str(caught.value)
