"""What the cost of each operation rests on.

``recorded.json`` has what recordings confirm: in a clone ``python -m tests.gpu.confirm`` adds to it.
``tested.json`` has the operations that PyTorch's own samples of operators use, where they do as on the CPU.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

RECORDED, TESTED = (Path(__file__).with_name(f"{name}.json") for name in ("recorded", "tested"))

READ, MODELLED, UNKNOWN, DECLARED = "read", "modelled", "unknown", "declared"
"""What the cost of an operation is known from."""
BY_RECORDINGS, BY_ZEROS, REFUTED, BY_TESTS, BY_NOTHING = (
    "recorded",
    "recorded at 0",
    "refuted",
    "tested",
    "confirmed by nothing",
)


@dataclass(frozen=True)
class Basis:
    """What the cost of an operation rests on.

    Attributes:
        recorded: What recordings decide about it: the GPU, a metric, and in how many distinct calls that is
            confirmed above 0, confirmed at 0, and refuted; without the last numbers that are 0.
        tested: Whether PyTorch's own samples of operators run it, and agree.
    """

    recorded: tuple[tuple[str, str, tuple[int, ...]], ...]
    tested: bool

    @property
    def confirmed(self) -> tuple[str, ...]:
        """What confirms it, or contradicts it, in the words of ``MEANINGS``."""
        above_zero, zero, refuted = map(self.calls, range(3))
        by_recordings = BY_RECORDINGS if above_zero else BY_ZEROS if zero else ""
        words = (REFUTED if refuted else "", by_recordings, BY_TESTS if self.tested else "")
        return tuple(filter(None, words)) or (BY_NOTHING,)

    def calls(self, place: int) -> Counter[str]:
        """In how many calls each metric is what stands at this place of ``recorded``."""
        counts = Counter[str]()
        for _, metric, numbers in self.recorded:
            counts[metric] += sum(numbers[place : place + 1])
        return +counts

    def about(self, metrics: Collection[str]) -> Basis:
        """What it rests on by these metrics of recordings alone."""
        return replace(self, recorded=tuple(each for each in self.recorded if each[1] in metrics))

    def __str__(self) -> str:
        """In one line: ``recorded (A100, V100: launches 12), tested``."""
        place = next((place for place in (2, 0) if self.calls(place)), 1)
        gpus = name_models(gpu for gpu, _, numbers in self.recorded if numbers[place : place + 1])
        counts = name_counts(self.calls(place)) if place != 1 else ""
        first, *rest = self.confirmed
        where = f" ({': '.join(filter(None, (gpus, counts)))})" if self.recorded else ""
        return ", ".join([f"{first}{where}", *rest])


def basis_of(operation: str) -> Basis:
    """Return what the cost of an operation rests on, by its name with or without overload."""
    packet = ".".join(operation.split(".")[:2])
    return Basis(recorded().get(packet, ()), packet in tested())


@cache
def _data(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def recorded() -> dict[str, tuple[tuple[str, str, tuple[int, ...]], ...]]:
    """Return what recordings decide, as ``Basis.recorded``, by operation."""
    found = defaultdict[str, list[tuple[str, str, tuple[int, ...]]]](list)
    for trace in _data(RECORDED)["traces"].values():
        for operation, numbers in trace["operations"].items():
            each = zip(_data(RECORDED)["metrics"], numbers, strict=True)
            found[operation] += [(trace["gpu"], metric, tuple(counts)) for metric, counts in each if counts]
    return {operation: tuple(sorted(each)) for operation, each in found.items()}


@cache
def tested() -> frozenset[str]:
    """Return the operations that PyTorch's own samples of operators run, and agree with the CPU in."""
    return frozenset(f"aten.{name}" for name in _data(TESTED)["operations"])


def name_models(gpus: Iterable[str]) -> str:
    """Return ``A100, V100`` for ``NVIDIA A100-PG509-200`` and two kinds of V100."""
    found = [(re.search(r"\b[A-Z]*\d+\w*", gpu) or [gpu])[0] for gpu in gpus]
    return ", ".join(dict.fromkeys(found))


def name_counts(counts: Counter[str]) -> str:
    """Return ``launches 12, copies/waits 3``: metrics with equal numbers together."""
    metrics = defaultdict[int, list[str]](list)
    for metric, number in counts.items():
        metrics[number].append(metric)
    return ", ".join(f"{'/'.join(names)} {number}" for number, names in metrics.items())
