"""Counting where torch.compile would break a function into several graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from finding_tickets.measure.run import graph_breaks

# Loading the compiler takes seconds.
pytestmark = pytest.mark.slow

Tensors = list[torch.Tensor]


def whole(tensors: Tensors) -> torch.Tensor:
    """One graph."""
    return torch.stack([tensor.sum() for tensor in tensors])


def nothing(tensors: Tensors) -> int:
    """No graph at all, and nothing broken."""
    return len(tensors)


def once(tensors: Tensors) -> Tensors:
    """A break between two graphs."""
    doubled = [tensor * 2 for tensor in tensors]
    torch._dynamo.graph_break()
    return [tensor + 1 for tensor in doubled]


def in_a_loop(tensors: Tensors) -> int:
    """A decision in a loop, for which the compiler gives up on the whole function."""
    count = 0
    for tensor in tensors:
        if tensor.sum() > 0:
            count += 1
    return count


def decide(tensor: torch.Tensor) -> torch.Tensor:
    """A function with a decision of its own."""
    return tensor if tensor.sum() > 0 else -tensor


def in_a_called_function(tensors: Tensors) -> Tensors:
    """A break in a function that is called in a loop."""
    results = []
    for tensor in tensors:
        results.append(decide(tensor))  # a comprehension is compiled differently
    return results


@pytest.mark.parametrize(("function", "expected"), [(whole, 0), (nothing, 0), (once, 1), (in_a_loop, 1)])
def test_breaks_are_counted(function: Callable[..., Any], expected: int) -> None:
    """Where the compiler gives up, that is one break at least, although it reports -1."""
    assert expected == graph_breaks(function, ([torch.ones(2), torch.ones(3)],))


def test_a_break_in_a_called_function_counts() -> None:
    """The report of the outer function alone would say 0."""
    assert 1 <= graph_breaks(in_a_called_function, ([torch.ones(2), torch.ones(3)],))


def test_counts_do_not_add_up() -> None:
    """Each count starts afresh."""
    arguments = ([torch.ones(2)],)
    assert [1, 1, 0] == [graph_breaks(function, arguments) for function in (once, once, whole)]


def test_tracing_leaves_the_checks_of_distributions_on() -> None:
    """What a variant costs after tracing is what it costs before: a normal's scale is still checked."""
    graph_breaks(whole, ([torch.ones(2)],))
    with pytest.raises(ValueError, match="scale"):
        torch.distributions.Normal(torch.zeros(()), -torch.ones(()))
