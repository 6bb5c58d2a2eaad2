"""What the cost of each operation rests on.

``recorded.json`` has what recordings confirm: ``python -m simcuda.agree --trace FILE... --save`` adds to it,
and in a clone ``python -m tests.gpu.confirm``.
``tested.json`` has the operations that PyTorch's own samples of operators use, where they do as on the CPU.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import torch

from simcuda.costs.rules import RULES
from simcuda.costs.rules.without_rule import HOST_ONLY, NEVER_WAITING, TAKEN_APART
from simcuda.costs.traits import COPIES, traits_of

RECORDED, TESTED = (Path(__file__).with_name(f"{name}.json") for name in ("recorded", "tested"))

_APART, _NEVER_WAITING = (
    {f"aten.{name}": source for source, names in table.items() for name in names}
    for table in (TAKEN_APART, NEVER_WAITING)
)
"""Where it is known from how an operation is taken apart, or that it never waits."""

READ, MODELLED, UNKNOWN, DECLARED = "read", "modelled", "unknown", "declared"
BY_RECORDINGS, BY_ZEROS, REFUTED, BY_TESTS, BY_NOTHING = (
    "recorded",
    "recorded at 0",
    "refuted",
    "tested",
    "confirmed by nothing",
)
MEANINGS = {
    READ: "the cost follows from PyTorch's source, which is named",
    MODELLED: "in some calls at least, launches or memory are an estimate: a library chooses kernels or "
    "workspaces. Waits and copies are read from the source",
    UNKNOWN: "in some calls at least, nobody knows whether it waits; a measurement lists it as unknown",
    DECLARED: "the program says what it costs, by `simcuda.cost`",
    BY_RECORDINGS: "a recording of a real GPU has the same count, above 0, of at least one metric",
    BY_ZEROS: "recordings have the same counts, all of them 0. That proves little",
    REFUTED: "a recording has another count",
    BY_TESTS: "PyTorch's samples of the operators that use it give the CPU's values, strides and gradients "
    "([which](simcuda-ops.md)). That shows that it runs, and nothing about its cost",
    BY_NOTHING: "neither a recording nor a test of PyTorch shows anything about it",
}
"""The words for what a cost rests on: where it is known from, and then what confirms it."""

COPY = (
    "ATen/native/cuda/Copy.cu: bytes where both are laid out alike, else a kernel; waits unless non_blocking"
)
MADE_OF_OTHERS = "PyTorch takes it apart"
VIEW = "PyTorch's schemas: a view"
TAGGED = "PyTorch's tags: elementwise or a reduction"


@dataclass(frozen=True)
class Basis:
    """What the cost of an operation rests on.

    Attributes:
        cost: ``READ``, ``MODELLED`` or ``UNKNOWN``.
        source: Names of its rules, or where the cost is known from without one.
        recorded: What recordings decide about it: the GPU, a metric, and in how many distinct calls that is
            confirmed above 0, confirmed at 0, and refuted; without the last numbers that are 0.
        tested: Whether PyTorch's own samples of operators run it, and agree.
    """

    cost: str
    source: str
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
        """In one line: ``read, recorded (A100, V100: launches 12), tested``."""
        place = next((place for place in (2, 0) if self.calls(place)), 1)
        gpus = name_models(gpu for gpu, _, numbers in self.recorded if numbers[place : place + 1])
        counts = name_counts(self.calls(place)) if place != 1 else ""
        first, *rest = self.confirmed
        where = f" ({': '.join(filter(None, (gpus, counts)))})" if self.recorded else ""
        return ", ".join([self.cost, f"{first}{where}", *rest])


def basis_of(operation: str) -> Basis:
    """Return what the cost of an operation rests on, by its name with or without overload."""
    packet = _packet(operation)
    return Basis(*_source_of(packet), _recorded().get(packet, ()), packet in _tested())


def operations() -> set[str]:
    """Return the packets of ATen that have a cost, or of which a recording or a test tells."""
    there = {_packet(name.replace("::", ".")) for name in torch._C._dispatch_get_all_op_names()}
    named = {*_APART, *_NEVER_WAITING}
    for op in {op for rule in RULES for op in rule.ops}:
        named |= {name for name in there if fnmatchcase(name, _packet(op))}
    # Both list what contains others too.
    seen = {*_recorded(), *_tested()} & there
    return (named & there) - HOST_ONLY | {name for name in seen if _source_of(name)[1] != MADE_OF_OTHERS}


def _packet(operation: str) -> str:
    return ".".join(operation.split(".")[:2])


@cache
def _source_of(packet: str) -> tuple[str, str]:
    """The word for where a cost is known from, and that."""
    namespace, _, name = packet.partition(".")
    packet_of_torch = getattr(getattr(torch.ops, namespace), name)
    overloads = [getattr(packet_of_torch, overload) for overload in packet_of_torch.overloads()]
    # Some are TorchScript's own, and few write to a given result: these do not speak for the operation.
    traits = [
        traits_of(each)
        for each in overloads
        if torch._C._dispatch_has_kernel(each.name()) and not any(of.is_out for of in each._schema.arguments)
    ]
    if packet in _APART:
        return READ, _APART[packet]
    if packet in COPIES:
        return READ, COPY
    if all(each.composite for each in traits):
        return READ, MADE_OF_OTHERS
    sources, costs = dict[str, None](), {READ}
    for each in traits:
        if each.composite:
            continue
        for rule in each.rules:
            sources[rule.id] = None
            costs |= {MODELLED} if rule.approximate else set()
            if rule.when is None:
                break
        # Here some calls may meet the condition of no rule.
        else:
            if each.is_view:
                sources[VIEW] = None
            elif each.is_one_kernel:
                sources[TAGGED] = None
            elif packet in _NEVER_WAITING:
                sources[_NEVER_WAITING[packet]] = None
                costs.add(MODELLED)
            elif each.is_unknown:
                costs.add(UNKNOWN)
    return max(costs, key=(READ, MODELLED, UNKNOWN).index), ", ".join(sources) or "nothing"


@cache
def _data(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def _recorded() -> dict[str, tuple[tuple[str, str, tuple[int, ...]], ...]]:
    """As ``Basis.recorded``, by operation."""
    found = defaultdict[str, list[tuple[str, str, tuple[int, ...]]]](list)
    for trace in _data(RECORDED)["traces"].values():
        for operation, numbers in trace["operations"].items():
            each = zip(_data(RECORDED)["metrics"], numbers, strict=True)
            found[operation] += [(trace["gpu"], metric, tuple(counts)) for metric, counts in each if counts]
    return {operation: tuple(sorted(each)) for operation, each in found.items()}


@cache
def _tested() -> frozenset[str]:
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
