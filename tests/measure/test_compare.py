"""Comparing the results of two variants."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import torch

from finding_tickets.measure.results import difference, encoded, plain, to_host
from finding_tickets.measure.tasks import CannotMeasureError

Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True)
class Norms:
    """A result of user code that cannot be made again from its fields."""

    total: torch.Tensor
    names: list[str]

    def __init__(self, total: torch.Tensor) -> None:
        object.__setattr__(self, "total", total)
        object.__setattr__(self, "names", ["a"])


SAME: list[tuple[Any, Any]] = [
    (None, None),
    (3, 3),
    (nan, nan),
    (inf, inf),
    ("x", "x"),
    (torch.tensor([1.0, nan, inf]), torch.tensor([1.0, nan, inf])),
    (torch.zeros(0, 3), torch.zeros(0, 3)),
    ({"a": [torch.ones(2)], "b": (1, True)}, {"b": (1, True), "a": [torch.ones(2)]}),
    (Norms(torch.ones(1)), Norms(torch.ones(1))),
    (Pair(1, torch.ones(1)), Pair(1, torch.ones(1))),
    (torch.nn.Parameter(torch.ones(2)), torch.ones(2)),
    (torch.eye(2).to_sparse(), torch.eye(2).to_sparse()),
]


@pytest.mark.parametrize(("expected", "actual"), SAME)
def test_equal_results_do_not_differ(expected: Any, actual: Any) -> None:
    """Values, keys and elements are compared; NaN equals NaN, and the order of keys does not matter."""
    assert None is difference(expected, actual)


DIFFERENT: list[tuple[Any, Any, str]] = [
    (1, 2, "result: 2 instead of 1"),
    (1, 1.0, "result: float instead of int"),
    (1, True, "result: bool instead of int"),
    (1.0, nan, "result: nan instead of 1.0"),
    ([1], (1,), "result: tuple instead of list"),
    ([1, 2], [1], "result: 1 items instead of 2"),
    ({"a": 1}, {}, "result['a']: missing"),
    ({}, {"a": 1}, "result['a']: not expected"),
    ({"a": [0, {"b": 1}]}, {"a": [0, {"b": 2}]}, "result['a'][1]['b']: 2 instead of 1"),
    (Norms(torch.ones(1)), Norms(torch.ones(0)), "result['total']: shape (0,) instead of (1,)"),
    (torch.ones(1), torch.ones(1).double(), "result: dtype torch.float64 instead of torch.float32"),
    (
        torch.tensor([[1, 2], [3, 4]]),
        torch.tensor([[1, 2], [5, 6]]),
        "result: 2 of 4 elements differ, the first at (1, 0): 5 instead of 3",
    ),
    (
        torch.tensor([nan, 1.0]),
        torch.tensor([0.0, 1.0]),
        "result: 1 of 2 elements differ, the first at (0,): 0.0 instead of nan",
    ),
    (
        torch.tensor(True),
        torch.tensor(False),
        "result: 1 of 1 elements differ, the first at (): False instead of True",
    ),
    (
        torch.eye(2).to_sparse(),
        2 * torch.eye(2).to_sparse(),
        "result: 2 of 4 elements differ, the first at (0, 0): 2.0 instead of 1.0",
    ),
    (
        torch.eye(2),
        torch.eye(2).to_sparse(),
        "result: layout torch.sparse_coo instead of torch.strided",
    ),
]


@pytest.mark.parametrize(("expected", "actual", "words"), DIFFERENT)
def test_the_first_difference_is_named(expected: Any, actual: Any, words: str) -> None:
    """A difference is told with its path in the result and both values."""
    assert words == difference(expected, actual)


@dataclass
class Out:
    """A result that is filled in later."""

    loss: float = 0.0
    logits: torch.Tensor = field(init=False)


INSTEAD = ", which cannot be compared; return "
LONG = f"a numpy value of dtype {np.dtype(np.longdouble)}"
REFUSED: list[tuple[Any, str]] = [
    (np.array(["a"]), f"a numpy value of dtype <U1{INSTEAD}numbers, texts or a list of them"),
    ({"x": (1, np.longdouble(1))}, f"{LONG} in result['x'][1]{INSTEAD}"),
    (torch.ones(1, device="meta"), f"a tensor without data{INSTEAD}one that has data"),
    ([{"loss": object}], f"a type in result[0]['loss']{INSTEAD}its tensors and numbers, or give"),
    ({Ellipsis: 1}, f"an ellipsis in a key of result{INSTEAD}"),
]


@pytest.mark.parametrize(("value", "words"), REFUSED, ids=str)
def test_what_cannot_be_compared_is_named_with_its_place(value: Any, words: str) -> None:
    """The message says what it is, where in the result it is, and what to return instead."""
    with pytest.raises(CannotMeasureError) as refused:
        encoded(value)
    assert str(refused.value).startswith(f"returned {words}")


def test_a_field_that_was_never_set_is_none() -> None:
    """Two results without it are equal; one that has it differs by that."""
    filled = Out()
    filled.logits = torch.ones(1)
    assert None is difference(Out(), Out())
    assert "result['logits']: not expected" == difference(Out(), filled)


@pytest.mark.parametrize(
    ("expected", "actual", "agrees"),
    [
        # |100 - 100.9| = 0.9 <= 0.01 * 100.9 = 1.009, and 1.1 is more than 0.01 * 101.1.
        (100.0, 100.9, True),
        (100.0, 101.1, False),
        # Small numbers are no exception: 0.009 is more than 0.01 * 0.010.
        (0.001, 0.010, False),
        (0.001, 0.001009, True),
        (inf, 1.0, False),
        (1.0, inf, False),
        # Of a tensor, the largest magnitude counts: 0.01 * 100 = 1, and 0.01 * 0.02 = 0.0002.
        (torch.tensor([100.0, 0.001]), torch.tensor([100.0, 0.9]), True),
        (torch.tensor([0.02, 0.001]), torch.tensor([0.02, 0.0013]), False),
        (torch.tensor([0.02, inf]), torch.tensor([0.03, inf]), False),
        (torch.tensor([3 + 4j]), torch.tensor([3 + 4.04j]), True),
        (torch.zeros(2), torch.full((2,), 1e-6), False),
        (torch.zeros(0), torch.zeros(0), True),
        (torch.tensor([100.0, inf, nan]), torch.tensor([100.9, inf, nan]), True),
        (torch.tensor([100.0, inf]), torch.tensor([100.0, 1.0]), False),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        (5, 6, False),
    ],
)
def test_a_tolerance_is_for_floating_point(expected: Any, actual: Any, agrees: bool) -> None:
    """Numbers may differ by a share of their magnitude; integers and infinities may not."""
    assert agrees is (difference(expected, actual, 0.01) is None)


def test_a_copy_on_the_host_is_detached_and_whole() -> None:
    """Tensors in containers and dataclasses lose their graph and keep their values; the original stays."""
    weight = torch.nn.Parameter(torch.ones(2))
    norms = Norms(weight * 2)
    original = {"norms": norms, "pair": Pair(weight, 3), "list": [weight]}
    copied = to_host(original)
    assert None is difference(original, copied)
    assert (False, True) == (copied["norms"].total.requires_grad, norms.total.requires_grad)


def test_what_a_result_puts_off_is_done_when_it_is_settled() -> None:
    """What is plain holds plain containers, so that looking at it again runs no code of the variant."""
    looked = []

    class Later(dict[str, Any]):
        def items(self) -> Any:
            looked.append(1)
            return {"n": 1}.items()

    class Many(list[int]):
        def __iter__(self) -> Iterator[int]:
            looked.append(2)
            return iter([3, 4])

    made = plain((Later(), Many()))
    assert ([1, 2], ({"n": 1}, [3, 4])) == (looked, to_host(made))
    assert [1, 2] == looked
    assert [tuple, dict, list] == [type(each) for each in (made, *made)]
