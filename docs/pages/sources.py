"""What the cost of each operation rests on, for ``docs/truth.md``."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch

from simcuda.basis import (
    BY_NOTHING,
    BY_RECORDINGS,
    BY_TESTS,
    BY_ZEROS,
    DECLARED,
    MODELLED,
    READ,
    RECORDED,
    REFUTED,
    UNKNOWN,
    confirmations,
    recorded,
    tested,
)
from simcuda.costs.rules import RULES
from simcuda.costs.rules.without_rule import HOST_ONLY, NEVER_WAITING, TAKEN_APART
from simcuda.costs.traits import COPIES, OperationTraits, traits_of
from simcuda.traces.call import METRICS

_APART, _NEVER_WAITING = (
    {f"aten.{name}" for names in table.values() for name in names} for table in (TAKEN_APART, NEVER_WAITING)
)

MEANINGS = {
    READ: "the cost follows from PyTorch's source",
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


def recordings() -> list[dict[str, Any]]:
    """Return the recordings, with numbers by operation and metric, sorted by their names."""
    found = json.loads(RECORDED.read_text(encoding="utf-8"))["traces"].values()
    return sorted(found, key=lambda recording: str(recording["file"]))


def operations() -> set[str]:
    """Return the packets of ATen that have a cost, or of which a recording or a test tells."""
    there = {_packet(name.replace("::", ".")) for name in torch._C._dispatch_get_all_op_names()}
    named = {*_APART, *_NEVER_WAITING, *COPIES}
    for op in {op for rule in RULES for op in rule.ops}:
        named |= {name for name in there if fnmatchcase(name, _packet(op))}
    # Both list what contains others too.
    for name in {*recorded(), *tested()} & there:
        if not all(each.composite for each in traits_of_packet(name)):
            named.add(name)
    return (named & there).difference(HOST_ONLY)


def _packet(operation: str) -> str:
    return ".".join(operation.split(".")[:2])


def traits_of_packet(packet: str) -> list[OperationTraits]:
    """Return the traits of the overloads that speak for an operation."""
    namespace, _, name = packet.partition(".")
    packet_of_torch = getattr(getattr(torch.ops, namespace), name)
    found = []
    for overload in packet_of_torch.overloads():
        each = getattr(packet_of_torch, overload)
        # Some are TorchScript's own, and few write to a given result: these do not speak for the operation.
        writes = any(argument.is_out for argument in each._schema.arguments)
        if torch._C._dispatch_has_kernel(each.name()) and not writes:
            found.append(traits_of(each))
    return found


def known_from(packet: str) -> str:
    """Return the word for where the cost of an operation without overload is known from."""
    if packet in _APART or packet in COPIES:
        return READ
    words = {READ}
    for each in traits_of_packet(packet):
        if not each.composite:
            words |= _words_of(packet, each)
    return max(words, key=(READ, MODELLED, UNKNOWN).index)


def _words_of(packet: str, traits: OperationTraits) -> set[str]:
    """Return the words for an overload that is not taken apart."""
    words = set()
    for rule in traits.rules:
        if rule.approximate:
            words.add(MODELLED)
        if rule.when is None:
            return words
    # Some calls may meet the condition of no rule.
    if traits.is_view or traits.is_one_kernel:
        return words
    if packet in _NEVER_WAITING:
        words.add(MODELLED)
    elif traits.is_unknown:
        words.add(UNKNOWN)
    return words


@dataclass(frozen=True)
class Basis:
    """What the cost of an operation, named without overload, rests on."""

    operation: str

    @property
    def known_from(self) -> str:
        """Where it is known from, in a word of ``MEANINGS``."""
        return known_from(self.operation)

    @property
    def confirmed(self) -> tuple[str, ...]:
        """What confirms it, or contradicts it, in the words of ``MEANINGS``."""
        return confirmations(self.operation, METRICS)

    def calls(self, place: int) -> Counter[str]:
        """In how many calls each metric is what stands at this place of ``simcuda.basis.recorded``."""
        counts = Counter[str]()
        for _, metric, numbers in recorded().get(self.operation, ()):
            counts[metric] += sum(numbers[place : place + 1])
        return +counts
