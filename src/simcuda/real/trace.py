"""What the profiler saw, as plain records read from the trace that it exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MARK = "simcuda "
"""How the names of our own marks in the trace begin."""


@dataclass(frozen=True)
class Call:
    """A call of the CUDA runtime or driver by the host.

    Attributes:
        name: Such as ``cudaLaunchKernel``.
        start: Microseconds on the trace's clock.
        end: The same.
        correlation: Number that what the device did for it carries too.
        op: Number of the ATen operation that it was made for; 0 where none is known.
    """

    name: str
    start: float
    end: float
    correlation: int
    op: int = 0


@dataclass(frozen=True)
class Copy:
    """A copy that a device made: ``name`` is such as ``Memcpy HtoD (Pageable -> Device)``."""

    name: str
    correlation: int
    nbytes: int


@dataclass(frozen=True)
class Mark:
    """A mark that we left in the trace; see ``marks``."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Trace:
    """Everything in a trace that is counted, calls and marks in the order of their start.

    Attributes:
        kernels: The correlation of every kernel that ran.
        operations: Names of ATen operations by their number.
    """

    calls: tuple[Call, ...]
    kernels: tuple[int, ...]
    copies: tuple[Copy, ...]
    marks: tuple[Mark, ...]
    operations: Mapping[int, str]


def read(events: Iterable[Mapping[str, Any]]) -> Trace:
    """The records in the ``traceEvents`` of a trace in Chrome's format, as Kineto writes it."""
    by_category: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        if event.get("ph") == "X":
            by_category.setdefault(str(event.get("cat")), []).append(event)
    ops = by_category.get("cpu_op", [])
    # A call of the driver that the runtime makes for one of its own has the number of that.
    runtime, driver = (map(_call, by_category.get(name, [])) for name in ("cuda_runtime", "cuda_driver"))
    calls = {call.correlation: call for call in (*driver, *runtime)}
    return Trace(
        calls=tuple(sorted(calls.values(), key=lambda call: call.start)),
        kernels=tuple(_number(event, "correlation") for event in by_category.get("kernel", [])),
        copies=tuple(map(_copy, by_category.get("gpu_memcpy", []))),
        marks=tuple(sorted(map(_mark, filter(_is_mark, ops)), key=lambda mark: mark.start)),
        operations={_number(event, "External id"): event["name"] for event in ops if not _is_mark(event)},
    )


def _call(event: Mapping[str, Any]) -> Call:
    correlation, op = _number(event, "correlation"), _number(event, "External id")
    return Call(event["name"], *_span(event), correlation, op)


def _copy(event: Mapping[str, Any]) -> Copy:
    return Copy(event["name"], _number(event, "correlation"), _number(event, "bytes"))


def _mark(event: Mapping[str, Any]) -> Mark:
    return Mark(event["name"].removeprefix(MARK), *_span(event))


def _is_mark(event: Mapping[str, Any]) -> bool:
    return str(event["name"]).startswith(MARK)


def _span(event: Mapping[str, Any]) -> tuple[float, float]:
    return event["ts"], event["ts"] + event.get("dur", 0)


def _number(event: Mapping[str, Any], name: str) -> int:
    return int(event.get("args", {}).get(name, 0))
