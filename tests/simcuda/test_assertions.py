"""Assertions about what a block costs, and what they say where it costs more."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

import simcuda
from simcuda import Measurement, real
from simcuda.assertions import BEHIND, MOST_LINES
from simcuda.measurement import HEAVIEST_FIRST, METRICS


@pytest.fixture
def x(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.Tensor]:
    """A tensor on a simulated device, in a test that runs in this file's folder."""
    monkeypatch.chdir(Path(__file__).parent)
    with simcuda.device():
        yield torch.ones(3, device="cuda")


def step(x: torch.Tensor) -> float:
    """One wait in its second line."""
    loss = x.sum()
    return loss.item()


FIRST_LINE = inspect.getsourcelines(step)[1]
SUMMING, READING = (f"test_assertions.py:{FIRST_LINE + below} in step" for below in (2, 3))


def failure(step: Any, *arguments: Any, **limits: int) -> list[str]:
    """The lines that a failing assertion prints."""
    limited: Any = limits
    with pytest.raises(AssertionError) as failed, simcuda.assert_at_most(**limited):
        step(*arguments)
    return str(failed.value).splitlines()


def test_a_block_without_waits_passes(x: torch.Tensor) -> None:
    """Work on the device alone keeps to the limit, and the block's measurement is at hand."""
    with simcuda.assert_no_syncs() as cost:
        x.sum()
    assert (0, 1) == (cost.syncs, cost.launches)


def test_a_wait_fails_with_its_line(x: torch.Tensor) -> None:
    """The message says how many, how many are allowed, and where, with the text of the line."""
    with pytest.raises(AssertionError) as failed, simcuda.assert_no_syncs():
        step(x)
    expected = f"syncs: 1, at most 0 allowed\n  {READING}: 1 stream_syncs  return loss.item()"
    assert expected == str(failed.value)


def test_a_limit_may_be_reached(x: torch.Tensor) -> None:
    """A limit is the most that passes, and a metric without a limit may cost anything."""
    with simcuda.assert_at_most(syncs=2, d2h_bytes=8):
        step(x)
        step(x)
    assert failure(step, x, syncs=0, d2h=1) == failure(step, x, syncs=0)


def test_every_limit_that_is_exceeded_is_named(x: torch.Tensor) -> None:
    """Copies, bytes and memory are shown with the lines behind them, in the order they were asked for."""
    # One float of 4 bytes is summed up and read.
    assert [
        "d2h_bytes: 4, at most 3 allowed",
        f"  {READING}: 1 d2h  return loss.item()",
        "peak_bytes: 4, at most 0 allowed",
        f"  {SUMMING}: 1 allocations  loss = x.sum()",
    ] == failure(step, x, d2h_bytes=3, peak_bytes=0)


def test_lines_that_do_most_come_first_and_are_not_too_many(x: torch.Tensor) -> None:
    """The line with the most waits leads, and of very many only some are shown."""

    def thrice() -> None:
        x[0].item()
        for _ in range(2):
            x[0].item()

    _, most, least = failure(thrice, syncs=0)
    assert (": 2 stream_syncs" in most, ": 1 stream_syncs" in least) == (True, True)
    many: dict[str, Any] = {}
    exec("def many(x):\n" + "    x[0].item()\n" * (MOST_LINES + 2), many)  # noqa: S102 - so many lines
    lines = failure(many["many"], x, syncs=0)
    assert (1 + MOST_LINES + 1, "  and 2 more lines") == (len(lines), lines[-1])


def test_an_unknown_operation_fails_whatever_was_counted(x: torch.Tensor) -> None:
    """An operation of which nobody knows whether it waits is named, and no limit holds."""
    with torch.library._scoped_library("simcuda_test", "DEF") as library:
        library.define("odd(Tensor x) -> Tensor")
        library.impl("odd", torch.Tensor.clone, "CPU")
        lines = failure(lambda: torch.ops.simcuda_test.odd(x), launches=100)
    assert [
        "whether the host waits in simcuda_test.odd.default is not known, so that no limit is sure to hold",
        "  keep it out of the block, or count what is known with gpu.measure()",
    ] == lines


def test_an_exception_of_the_block_passes_through(x: torch.Tensor) -> None:
    """What the block raises is not hidden by what it costs."""

    def fail() -> None:
        with simcuda.assert_no_syncs():
            step(x)
            raise KeyError

    with pytest.raises(KeyError):
        fail()


def test_assertions_nest(x: torch.Tensor) -> None:
    """An outer assertion counts what the inner ones count, and more."""
    with simcuda.assert_at_most(syncs=2) as outer:
        step(x)
        with simcuda.assert_at_most(syncs=1) as inner:
            step(x)
    assert (2, 1) == (outer.syncs, inner.syncs)


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        ({}, TypeError, "name at least one limit"),
        ({"sync": 0}, TypeError, "there is no metric 'sync'; there are syncs, "),
        ({"syncs": -1}, ValueError, "syncs: -1 is no limit"),
        ({"syncs": 0.5}, ValueError, "syncs: 0.5 is no limit"),
    ],
)
def test_wrong_limits_are_refused_at_once(limits: Any, error: type[Exception], message: str) -> None:
    """An assertion that could not fail, or not as meant, is not made."""
    with pytest.raises(error, match=message):
        simcuda.assert_at_most(**limits)


def test_without_any_device_the_block_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside a simulation and without a GPU the message says what to do, and why there is no real one."""
    monkeypatch.setattr(real, "why_not", lambda: "no driver")
    with pytest.raises(RuntimeError, match=r"enter simcuda.device\(\) first \(no driver\)"):
        simcuda.assert_no_syncs().__enter__()


def test_outside_a_simulation_a_real_device_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is a GPU, its counts are judged."""

    class Waits:
        """A device on which everything waits."""

        @contextmanager
        def measure(self) -> Iterator[Measurement]:
            """One wait, known once the block has ended."""
            cost = Measurement()
            yield cost
            cost.event_syncs = 1

    @contextmanager
    def real_device() -> Iterator[Waits]:
        yield Waits()

    monkeypatch.setattr(real, "why_not", lambda: None)
    monkeypatch.setattr(real, "real_device", real_device)
    assert ["syncs: 1, at most 0 allowed"] == failure(lambda: None, syncs=0)


def test_what_the_device_did_not_count_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on a metric that a real device cannot count fails, and a report names the metric."""

    class WithoutHazards(Measurement):
        """A measurement that refuses to tell what was not counted, as those of real devices do."""

        def __getattribute__(self, name: str) -> Any:
            if name == "hazards":
                raise AttributeError(name)
            return super().__getattribute__(name)

    class Blind:
        """A device that cannot count hazards."""

        @contextmanager
        def measure(self) -> Iterator[Measurement]:
            """Nothing was counted."""
            yield WithoutHazards()

    monkeypatch.setattr("simcuda.assertions.gpu_at_hand", lambda: nullcontext(Blind()))
    expected = "hazards: not counted on this device, so the limit of 0 cannot be checked"
    assert [expected] == failure(lambda: None, hazards=0, syncs=0)
    assert "every count is 0; not counted on this device: hazards" == WithoutHazards().report()


def test_every_metric_leads_to_lines() -> None:
    """The kinds of lines behind each metric that has any are those that a report can sort."""
    without_lines = {"launches", "aten_launches", "host_peak_bytes"}
    for metric in set(METRICS) - without_lines:
        assert set(BEHIND.get(metric, (metric.removesuffix("_bytes"),))) <= set(HEAVIEST_FIRST)
