"""Where the cost of each operation is known from, for ``docs/truth.md``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

import torch

from simcuda.basis import (
    BY_NOTHING,
    BY_RECORDINGS,
    BY_TESTS,
    BY_ZEROS,
    DECLARED,
    MODELLED,
    READ,
    REFUTED,
    UNKNOWN,
    confirmations,
    recorded,
    tested,
)
from simcuda.costs.rules import RULES
from simcuda.costs.rules.without_rule import HOST_ONLY, NEVER_WAITING, TAKEN_APART
from simcuda.costs.traits import COPIES, traits_of
from simcuda.traces.call import METRICS

_APART, _NEVER_WAITING = (
    {f"aten.{name}": source for source, names in table.items() for name in names}
    for table in (TAKEN_APART, NEVER_WAITING)
)
"""Where it is known from how an operation is taken apart, or that it never waits."""

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


def operations() -> set[str]:
    """Return the packets of ATen that have a cost, or of which a recording or a test tells."""
    there = {_packet(name.replace("::", ".")) for name in torch._C._dispatch_get_all_op_names()}
    named = {*_APART, *_NEVER_WAITING}
    for op in {op for rule in RULES for op in rule.ops}:
        named |= {name for name in there if fnmatchcase(name, _packet(op))}
    # Both list what contains others too.
    seen = {*recorded(), *tested()} & there
    return (named & there) - HOST_ONLY | {name for name in seen if source_of(name)[1] != MADE_OF_OTHERS}


def _packet(operation: str) -> str:
    return ".".join(operation.split(".")[:2])


@cache
def source_of(packet: str) -> tuple[str, str]:
    """Return the word for where the cost of an operation without overload is known from, and that."""
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


@dataclass(frozen=True)
class Basis:
    """What the cost of an operation, named without overload, rests on."""

    operation: str

    @property
    def recorded(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """What recordings decide about it."""
        return recorded().get(self.operation, ())

    @property
    def confirmed(self) -> tuple[str, ...]:
        """What confirms it, or contradicts it, in the words of ``MEANINGS``."""
        return confirmations(self.operation, METRICS)

    def calls(self, place: int) -> Counter[str]:
        """In how many calls each metric is what stands at this place of ``recorded``."""
        counts = Counter[str]()
        for _, metric, numbers in self.recorded:
            counts[metric] += sum(numbers[place : place + 1])
        return +counts


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
