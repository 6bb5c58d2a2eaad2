"""Types such as ``torch.FloatTensor`` and ``torch.cuda.LongTensor``, and moves between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from simcuda import SimulatedCuda

DEVICES = 2

legacy: Any = torch.cuda  # torch has no annotations for these types
host: Any = torch


Make = Callable[[], torch.Tensor]

MADE: dict[str, tuple[Make, int, torch.dtype, list[float] | None]] = {
    # Sizes make memory on the device; Python data is made on the host and copied, which waits once.
    "sizes": (lambda: legacy.FloatTensor(2), 0, torch.float32, None),
    "a size": (lambda: legacy.HalfTensor(torch.Size([2])), 0, torch.float16, None),
    "numbers": (lambda: legacy.LongTensor([1, 2]), 1, torch.int64, [1, 2]),
    "another device": (lambda: legacy.FloatTensor([1, 2], device="cuda:1"), 1, torch.float32, [1, 2]),
    "the same memory": (
        lambda: legacy.DoubleTensor(torch.ones(2, device="cuda").double()),
        0,
        torch.float64,
        [1, 1],
    ),
}


@pytest.mark.parametrize(("make", "waits", "dtype", "values"), MADE.values(), ids=MADE)
def test_types_of_the_device_make_tensors_there(
    gpu: SimulatedCuda, make: Make, waits: int, dtype: torch.dtype, values: list[float] | None
) -> None:
    """Each form gives a tensor of the type's dtype on the device, and costs what the form costs."""
    with gpu.measure() as cost:
        made = make()
    assert (waits, waits, 0) == (cost.syncs, cost.h2d, cost.d2h)
    assert ("cuda", dtype, (2,)) == (made.device.type, made.dtype, tuple(made.shape))
    if values is not None:
        assert values == made.tolist()


def test_nothing_is_an_empty_tensor(gpu: SimulatedCuda) -> None:
    """Without data a type makes a tensor without elements."""
    with gpu.measure() as cost:
        made = legacy.ByteTensor()
    assert (0, "cuda:0", (0,)) == (cost.syncs, str(made.device), tuple(made.shape))


MOVED: dict[str, tuple[Callable[[torch.Tensor, torch.Tensor], Any], str, torch.dtype, int]] = {
    "name of a host type": (lambda d, _: d.type("torch.DoubleTensor"), "cpu", torch.float64, 1),
    "host type": (lambda d, _: d.type(host.FloatTensor), "cpu", torch.float32, 1),
    "host type, without waiting": (
        lambda d, _: d.type(host.FloatTensor, non_blocking=True),
        "cpu",
        torch.float32,
        0,
    ),
    "name of a device type": (lambda _, h: h.type("torch.cuda.LongTensor"), "cuda:0", torch.int64, 1),
    "device type": (lambda _, h: h.type(legacy.FloatTensor), "cuda:0", torch.float32, 1),
    "device type on the device": (lambda d, _: d.type(legacy.HalfTensor), "cuda:1", torch.float16, 0),
    "dtype": (lambda d, _: d.type(torch.int32), "cuda:1", torch.int32, 0),
    "as on the device": (lambda d, h: h.type_as(d), "cuda:1", torch.float32, 1),
    "as on the host": (lambda d, h: d.type_as(h), "cpu", torch.float32, 1),
    "as on the same device": (lambda d, _: d.type_as(d.half()), "cuda:1", torch.float16, 0),
}


@pytest.mark.parametrize(("move", "device", "dtype", "waits"), MOVED.values(), ids=MOVED)
def test_a_type_says_where_to(
    gpu: SimulatedCuda,
    move: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    device: str,
    dtype: torch.dtype,
    waits: int,
) -> None:
    """A tensor that becomes one of another type is copied where that type lives, and the host waits."""
    on_device, on_host = torch.ones(2).to("cuda:1"), torch.ones(2)
    with gpu.measure() as cost:
        moved = move(on_device, on_host)
    assert (device, dtype, waits) == (str(moved.device), moved.dtype, cost.syncs)


@pytest.mark.usefixtures("gpu")
def test_a_tensor_is_of_one_type() -> None:
    """``isinstance`` and ``type`` tell host and device apart."""
    x = torch.ones(2, device="cuda")
    assert isinstance(x, legacy.FloatTensor)
    assert not isinstance(x, torch.FloatTensor | legacy.DoubleTensor)
    assert isinstance(x.cpu(), torch.FloatTensor)
    assert ("torch.cuda.FloatTensor", "torch.FloatTensor") == (x.type(), x.cpu().type())
    assert "<class 'torch.cuda.FloatTensor'>" == repr(legacy.FloatTensor)
    with pytest.raises(TypeError, match=r"expected torch.cuda.FloatTensor \(got torch.FloatTensor\)"):
        legacy.FloatTensor(x.cpu())
    with pytest.raises(TypeError, match=r"expected torch.FloatTensor \(got torch.cuda.FloatTensor\)"):
        torch.FloatTensor(x)
    with pytest.raises(ValueError, match=r"invalid type: 'torch.cuda.Wrong'"):
        x.type("torch.cuda.Wrong")


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type.. is deprecated")
def test_a_default_type_of_the_device_is_refused_by_what_to_do_instead() -> None:
    """Default types of the host are set as ever."""
    with pytest.raises(RuntimeError, match=r"use torch.set_default_dtype.. and torch.set_default_device.."):
        torch.set_default_tensor_type(legacy.FloatTensor)
    torch.set_default_tensor_type("torch.DoubleTensor")
    try:
        assert torch.float64 == torch.ones(1).dtype
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.float32 == torch.ones(1).dtype


SPARSE: dict[str, tuple[Make, tuple[int, ...]]] = {
    "nothing": (lambda: legacy.sparse.FloatTensor(*()), (0,)),
    "sizes": (lambda: legacy.sparse.FloatTensor(2, 2), (2, 2)),
    "parts": (lambda: legacy.sparse.FloatTensor(torch.eye(2).long().cuda(), torch.ones(2).cuda()), (2, 2)),
    "parts and a size": (
        lambda: legacy.sparse.FloatTensor(
            torch.eye(2).long().cuda(), torch.ones(2).cuda(), torch.Size((2, 3))
        ),
        (2, 3),
    ),
}


@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor", "ignore:Sparse invariant checks")
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("make", "shape"), SPARSE.values(), ids=SPARSE)
def test_sparse_types_of_the_device_make_tensors_there(make: Make, shape: tuple[int, ...]) -> None:
    """Of nothing, sizes, or indices and values; the type tells them from dense ones and the host's."""
    made = make()
    assert ("cuda", torch.sparse_coo, shape) == (made.device.type, made.layout, tuple(made.shape))
    assert isinstance(made, legacy.sparse.FloatTensor)
    assert not isinstance(made, legacy.FloatTensor)
    assert not isinstance(made, host.sparse.FloatTensor)
    assert isinstance(host.sparse.FloatTensor(2, 2), host.sparse.FloatTensor)
