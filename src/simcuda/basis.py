"""Tell which source the cost of each operation rests on.

``recorded.json`` has what recordings confirm: in a clone ``python -m tests.gpu.confirm`` adds to it.
``tested.json`` has the operations that PyTorch's own samples of operators use, where they do as on the CPU.
``operations.json`` has tables of operations, read from PyTorch's sources, which it names.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

RECORDED, TESTED, OPERATIONS = (
    Path(__file__).with_name(f"{name}.json")
    for name in ("recorded", "tested", "operations")
)

READ = "read"
MODELLED = "modelled"
UNKNOWN = "unknown"
DECLARED = "declared"
"""What the cost of an operation is known from."""
BY_RECORDINGS, BY_ZEROS, REFUTED, BY_TESTS, BY_NOTHING = (
    "recorded",
    "recorded at 0",
    "refuted",
    "tested",
    "confirmed by nothing",
)


def confirmations(operation: str, metrics: Collection[str]) -> tuple[str, ...]:
    """Return what confirms the cost of an operation, or contradicts it, by these metrics of recordings."""
    packet = ".".join(operation.split(".")[:2])
    sums = [0, 0, 0]
    for _, metric, numbers in recorded().get(packet, ()):
        if metric in metrics:
            for place, number in enumerate(numbers):
                sums[place] += number
    above_zero, zero, refuted = sums
    words = [REFUTED] if refuted else []
    if above_zero:
        words.append(BY_RECORDINGS)
    elif zero:
        words.append(BY_ZEROS)
    if packet in tested():
        words.append(BY_TESTS)
    return tuple(words) or (BY_NOTHING,)


@cache
def _data(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def operations(table: str) -> Any:
    """Return what one of the tables says of operations of ATen."""
    return _data(OPERATIONS)[table]["operations"]


def in_aten(names: Iterable[str]) -> tuple[str, ...]:
    """Return operations of ATen by their names without it."""
    return tuple(f"aten.{name}" for name in names)


@cache
def recorded() -> dict[str, tuple[tuple[str, str, tuple[int, ...]], ...]]:
    """Return what recordings decide, by operation.

    Of each the GPU, a metric, and in how many distinct calls that is confirmed above 0, confirmed at 0, and
    refuted; without the last numbers that are 0.
    """
    found = defaultdict[str, list[tuple[str, str, tuple[int, ...]]]](list)
    for trace in _data(RECORDED)["traces"].values():
        for operation, numbers in trace["operations"].items():
            each = zip(_data(RECORDED)["metrics"], numbers, strict=True)
            found[operation] += [
                (trace["gpu"], metric, tuple(counts))
                for metric, counts in each
                if counts
            ]
    return {operation: tuple(sorted(each)) for operation, each in found.items()}


@cache
def tested() -> frozenset[str]:
    """Return the operations that PyTorch's own samples of operators run, and agree with the CPU in."""
    return frozenset(in_aten(_data(TESTED)["operations"]))
