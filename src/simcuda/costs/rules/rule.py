"""Rules: what an operation costs on CUDA, where that is known from, and an example that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from simcuda.costs.call import FREE, OpCost, OperationCall

Counts = OpCost | Callable[[OperationCall], OpCost]
C = TypeVar("C", bound=Counts)

LAST_TRIED = "2.14"
FIRST_UNTRIED = "2.15.dev0"
"""The last version of PyTorch that the rules were tried with, and whose files they name; and the next."""
UNTRIED = ""
if torch.__version__ >= FIRST_UNTRIED:
    UNTRIED = (
        f"rules of torch {LAST_TRIED}, the last that was tried, not {torch.__version__}"
    )
"""How a measurement says that it rests on rules of an older version; it lists what is charged by them."""

HALVES = (torch.float16, torch.bfloat16)
# What kernels of several topics keep beside the data: positions are int64, counters int32.
INDEX_BYTES = 8
COUNT_BYTES = 4
HALF_BYTES = 2


@dataclass(frozen=True)
class CostRule:
    """The cost of some operations: decorates the function that finds it, or is called with the cost itself.

    Attributes:
        id: Name of the rule, unique.
        ops: Operations it is for: ``aten.add`` for every overload, ``aten.add.Tensor`` for one, and a star
            for any end of a name.
        source: Where this is known from.
        example: Code whose last line is the operation; ``example_names`` has the names it may use.
        when: Whether it applies to a call, by default to all; the first rule that does is taken.
        approximate: Whether a library chooses kernels or workspaces, so that the cost is a model.
        takes_host_tensors: Whether its tensors may be spread over host and device.
        any_layout: Whether it is for sparse and nested tensors too.
        since: The first version of PyTorch that it is true of; empty for every one that is supported.
        until: The first version that it is true of no more; empty for none so far.
        counts: The cost, or how to find it once the operation has run.
    """

    id: str
    ops: tuple[str, ...]
    source: str
    example: str
    when: Callable[[OperationCall], bool] | None = None
    approximate: bool = False
    takes_host_tensors: bool = False
    any_layout: bool = False
    since: str = ""
    until: str = ""
    counts: Counts = FREE

    @property
    def is_of_this_version(self) -> bool:
        """Return whether it is true of the PyTorch that runs."""
        version = torch.__version__
        return version >= self.since and (not self.until or version < self.until)

    def __call__(self, counts: C) -> C:
        """Add the rule to all."""
        RULES.append(replace(self, counts=counts))
        return counts

    def cost(self, call: OperationCall) -> OpCost:
        """The cost of one call."""
        return self.counts if isinstance(self.counts, OpCost) else self.counts(call)


RULES: list[CostRule] = []
"""Every rule, once the modules of this folder are imported."""


def example_names() -> dict[str, Any]:
    """The names that every example may use, with fresh tensors on the current CUDA device.

    ``x`` and ``y`` are vectors of 8 and of 3 floats, ``value`` is one float without dimensions, and
    ``index`` a vector of 3 integers below 3.
    """
    return {
        "torch": torch,
        "x": torch.rand(8, device="cuda"),
        "y": torch.rand(3, device="cuda"),
        "value": torch.rand((), device="cuda"),
        "index": torch.tensor([0, 2, 1], device="cuda"),
    }


def run_example(rule: CostRule, names: dict[str, Any]) -> None:
    """Run the example of a rule with the names of ``example_names``."""
    exec(rule.example, names)  # noqa: S102 - the examples are this package's own
