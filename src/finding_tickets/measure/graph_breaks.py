"""Count the places at which torch.compile would break a function into several graphs."""

from __future__ import annotations

from typing import Any

import torch
import torch._dynamo as dynamo
from torch._dynamo.utils import counters
from torch.distributions import Distribution

from finding_tickets.measure.trial import Function


def load() -> None:
    """Have the compiler load what it loads at the first trace that breaks; starts no thread."""
    graph_breaks(_broken, (torch.ones(1),))


def graph_breaks(function: Function, inputs: tuple[Any, ...]) -> int:
    """Breaks met while tracing ``function`` with these arguments, which are on the CPU.

    Where a break inside a loop makes the compiler give up on a whole function, ``explain`` reports -1 breaks,
    or none where that function was called by another; the compiler's own counters still know of it. A
    function that was given up has 1 break at least, since the compiler does not look any further.
    """
    dynamo.reset()
    counters.clear()
    checked = Distribution._validate_args  # noqa: SLF001 - there is a setter, and no getter
    try:
        explained = dynamo.explain(function)(*inputs)
    finally:
        # Tracing ends the distributions' checks for the whole process; each of them waits for the GPU.
        Distribution.set_default_validate_args(checked)
    counted = sum(counters["graph_break"].values())
    given_up = bool(counters["unimplemented"])
    return max(int(explained.graph_break_count), counted, int(given_up))


def _broken(value: torch.Tensor) -> torch.Tensor:
    dynamo.graph_break()
    return value + 1
