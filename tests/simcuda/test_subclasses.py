"""Subclasses of tensors: what they are asked, and what becomes of them on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import simcuda

ASKED: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []


class Asked(torch.Tensor):
    """A subclass that notes what it is asked."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note a call."""
        ASKED.append((func, args[1:], kwargs or {}))
        default: Any = super().__torch_function__
        return default(func, types, args, kwargs or {})


class Pair(torch.Tensor):
    """A tensor of two, which applies each operation to both, and notes the arguments of copies."""

    first: torch.Tensor
    second: torch.Tensor

    @staticmethod
    def __new__(cls, first: torch.Tensor, second: torch.Tensor) -> Pair:
        """Make one like the first."""
        make: Any = torch.Tensor._make_wrapper_subclass
        made: Pair = make(cls, first.size(), dtype=first.dtype, device=first.device)
        made.first, made.second = first, second
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]  # as libraries write it
        """Apply an operation to both."""
        ASKED.append((func, (), kwargs or {}))
        pair, *rest = args
        return Pair(*(func(each, *rest, **(kwargs or {})) for each in (pair.first, pair.second)))


@pytest.fixture(autouse=True)
def _gpu() -> Iterator[None]:
    ASKED.clear()
    with simcuda.device():
        yield


FACTORIES: dict[str, Callable[..., torch.Tensor]] = {
    "tensor": torch.tensor,
    "as_tensor": torch.as_tensor,
    "asarray": torch.asarray,
}


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_factories_give_plain_tensors(name: str, device: str) -> None:
    """As without a simulation: torch.tensor and its kin ask no class."""
    kept = torch.tensor([1, 2, 3], dtype=torch.float16).as_subclass(Asked)
    made = FACTORIES[name](kept, device=device, dtype=torch.float32)
    assert (torch.Tensor, device) == (type(made), made.device.type)
    assert [] == ASKED


MOVES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "to": (torch.Tensor.to, (torch.float16,), {}),
    "to by name": (torch.Tensor.to, (), {"device": "cuda", "non_blocking": True}),
    "cuda": (torch.Tensor.cuda, (), {}),
    "cpu": (torch.Tensor.cpu, (), {}),
    "type": (torch.Tensor.type, (torch.float64,), {}),
    "type_as": (torch.Tensor.type_as, (torch.ones(1),), {}),
    "numpy": (torch.Tensor.numpy, (), {}),
    "pin_memory": (torch.Tensor.pin_memory, (), {}),
}


@pytest.mark.parametrize(("name", "call"), MOVES.items(), ids=MOVES)
def test_a_class_is_asked_with_the_arguments_that_were_given(
    name: str, call: tuple[Any, tuple[Any, ...], dict[str, Any]]
) -> None:
    """First of all, by the public method; no argument is invented, as ``copy=False`` was."""
    _, args, kwargs = call
    method = name.split(" ", maxsplit=1)[0]
    getattr(torch.ones(2).as_subclass(Asked), method)(*args, **kwargs)
    assert (getattr(torch.Tensor, method), args, kwargs) == ASKED[0]


def test_a_subclass_stays_one_where_it_is_moved() -> None:
    """The default ``__torch_function__`` gives what a function returns its class."""
    moved = torch.ones(2).as_subclass(Asked).to("cuda")
    assert (Asked, "cuda") == (type(moved), moved.device.type)


@pytest.mark.parametrize("move", [lambda pair: pair.to("cuda"), lambda pair: pair.cuda()])
def test_a_copy_reaches_a_wrapper_with_its_device(move: Callable[[Pair], Any]) -> None:
    """With dtype, layout and device, as torch passes them to ``meta``; each part is copied there."""
    moved = move(Pair(torch.arange(4), torch.arange(3)))
    assert ["cuda:0"] * 3 == [str(each.device) for each in (moved, moved.first, moved.second)]
    ((_, _, kwargs),) = ASKED
    assert {"dtype": torch.int64, "layout": torch.strided, "device": torch.device("cuda", 0)} == kwargs
    ASKED.clear()
    back: Any = moved.to("cpu", torch.float32)
    assert "cpu" == back.second.device.type
    ((_, _, kwargs),) = ASKED
    assert {"dtype": torch.float32, "device": torch.device("cpu")} == kwargs
