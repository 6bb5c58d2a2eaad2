"""Sparse tensors: they lie where their parts lie, and what operations on them cost is not known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda
from simcuda.device.dispatch_key import VIEWS
from simcuda.ledger import noting_operations

pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:The PyTorch API of nested")
_torch: Any = torch  # whose annotations know one way to make sparse tensors of several

MAKE: dict[str, Callable[[], torch.Tensor]] = {
    "coo of tensors": lambda: torch.sparse_coo_tensor(
        torch.tensor([[0, 2]], device="cuda"), torch.ones(2, device="cuda"), (4,)
    ),
    "coo of lists": lambda: _torch.sparse_coo_tensor([[0, 2]], [1.0, 1.0], (4,), device="cuda"),
    "csr of lists": lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 1.0], (2, 2), device="cuda"),
    "csc of lists": lambda: torch.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 1.0], (2, 2), device="cuda"),
    "nothing": lambda: _torch.sparse_coo_tensor(size=(4,), device="cuda"),
    "dense": lambda: torch.eye(2, device="cuda").to_sparse(),
    "dense by rows": lambda: torch.eye(2, device="cuda").to_sparse_csr(),
    "sum": lambda: torch.eye(2, device="cuda").to_sparse() + torch.eye(2, device="cuda").to_sparse(),
    "copy": lambda: torch.eye(2).to_sparse().cuda(),
    "transposed": lambda: torch.eye(2).to_sparse().cuda().t(),
    "in place": lambda: torch.eye(2).to_sparse().cuda().add_(torch.eye(2).to_sparse().cuda()),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_sparse_tensors_lie_on_the_device(make: Callable[[], torch.Tensor]) -> None:
    """However they are made, and so do their values, and what is dense of them."""
    sparse = make()
    values = sparse.coalesce().values() if sparse.layout is torch.sparse_coo else sparse.values()
    assert ["cuda:0"] * 3 == [str(tensor.device) for tensor in (sparse, values, sparse.to_dense())]
    assert sparse.is_cuda
    assert "device='cuda:0'" in repr(sparse)


def test_a_sparse_tensor_is_copied_by_its_parts(gpu: SimulatedCuda) -> None:
    """Each way two blocking copies: 2 x 3 positions of 8 bytes, and 3 values of 4."""
    there = torch.eye(3).to_sparse()
    with gpu.measure() as cost:
        here = there.cuda()
    assert (2, 48 + 12, 2, 2) == (cost.h2d, cost.h2d_bytes, cost.syncs, cost.allocations)
    assert 48 + 12 == cost.retained_bytes
    with gpu.measure() as cost:
        back = here.cpu()
    assert (2, 48 + 12, 2, "cpu") == (cost.d2h, cost.d2h_bytes, cost.syncs, back.device.type)
    assert torch.equal(torch.eye(3), back.to_dense())
    assert () == cost.unknown


def test_operations_on_sparse_tensors_are_unknown(gpu: SimulatedCuda) -> None:
    """Also those that are one kernel on dense ones; on the host, and asking for parts, costs nothing."""
    sparse = torch.eye(3, device="cuda").to_sparse()
    with gpu.measure() as cost:
        sparse * sparse
    assert ("aten.mul.Tensor",) == cost.unknown
    with gpu.measure() as cost:
        sparse.coalesce().values(), sparse.sparse_dim(), sparse.is_coalesced(), torch.eye(3).to_sparse() * 2
    assert () == cost.unknown


@pytest.mark.usefixtures("gpu")
def test_sparse_tensors_mix_no_devices() -> None:
    """A sparse tensor of the host and one of the device do not meet."""
    sparse = torch.eye(3).to_sparse()
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        sparse + sparse.cuda()


def test_a_sparse_gradient_lies_on_the_device(gpu: SimulatedCuda) -> None:
    """That of an embedding's table takes as many rows as were looked up, and none of the others."""
    table = torch.nn.Embedding(100, 4, sparse=True, device="cuda")
    index = torch.tensor([3, 7], device="cuda")
    with gpu.measure() as cost:
        table(index).sum().backward()
    gradient = table.weight.grad
    assert gradient is not None
    assert (torch.sparse_coo, torch.device("cuda", 0)) == (gradient.layout, gradient.device)
    # Two rows of 4 floats are held a few times over; a dense gradient would have 100.
    assert cost.peak_bytes < 100 * 4 * 4


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_nested_tensor_lies_where_its_parts_lie(gpu: SimulatedCuda, layout: torch.layout) -> None:
    """Made there or copied there; layers run on it, forward and backward."""
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    layer = torch.nn.Linear(3, 2, device="cuda")
    made = torch.nested.nested_tensor(parts, device="cuda", layout=layout)
    moved = torch.nested.nested_tensor(parts, layout=layout).cuda()
    for nested in (made, moved):
        assert ("cuda:0", True) == (str(nested.device), nested.is_cuda)
        padded = layer(nested).to_padded_tensor(0.0)
        assert ("cuda:0", (2, 4, 2)) == (str(padded.device), padded.shape)
        padded.sum().backward()
    # Twice the gradient of a sum over 6 rows.
    assert layer.bias.grad is not None
    assert [12.0, 12.0] == layer.bias.grad.tolist()
    assert gpu.live_bytes() > 0


def test_a_nested_tensor_is_copied_as_one_buffer(gpu: SimulatedCuda) -> None:
    """Its 18 values of 4 bytes; sizes stay on the host, also on a GPU."""
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    with gpu.measure() as cost:
        nested.cuda()
    assert (1, 72, 1, ()) == (cost.h2d, cost.h2d_bytes, cost.syncs, cost.unknown)
    there, other = nested.cuda(), nested.cuda()
    with gpu.measure() as cost:
        there.copy_(other)
        there.copy_(nested)
    # Within the device, then from the host, which is waited for.
    assert (1, 72, 1, 1) == (cost.d2d, cost.d2d_bytes, cost.h2d, cost.syncs)


VIEWED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "alias": torch.ops.aten.alias,
    "detach": torch.Tensor.detach,
    "squeeze.dim": lambda sparse: sparse.squeeze(0),
    "t": torch.Tensor.t,
    "transpose.int": lambda sparse: sparse.transpose(0, 1),
}


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc], ids=str)
@pytest.mark.parametrize("name", VIEWED)
def test_views_of_sparse_tensors_that_pass_by_cost_what_they_do_noted(
    name: str, layout: torch.layout
) -> None:
    """Only where operations are noted, views are watched: counts do not depend on that."""
    costs = []
    for noted in (False, True):
        with noting_operations(noted), simcuda.device() as gpu:
            sparse, kept = torch.eye(2, 3, device="cuda").to_sparse(layout=layout), list[torch.Tensor]()
            # Compressed ones cannot be squeezed.
            with gpu.measure() as cost, suppress(RuntimeError):
                kept.append(VIEWED[name](sparse))
            assert all(tensor.is_cuda for tensor in kept)
            counts = (cost.launches, cost.syncs, cost.allocations, cost.d2d_bytes, cost.peak_bytes)
            costs.append((counts, cost.unknown, gpu.live_bytes()))
    assert name in VIEWS
    assert costs[0] == costs[1]


def test_usual_views_enter_no_code_of_the_simulation(gpu: SimulatedCuda) -> None:
    """They are a quarter of the operations of a training step; ``mul`` shows that others do enter it."""
    x, entered = torch.ones(2, 3, device="cuda"), list[str]()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "simcuda" in frame.f_code.co_filename.split("/")[-3:-1]:
            entered.append(frame.f_code.co_name)

    def entries(run: Callable[[], object]) -> int:
        entered.clear()
        sys.setprofile(note)
        run()
        sys.setprofile(None)
        return len(entered)

    with gpu.measure():
        assert [0, 0] == [entries(x.t), entries(x.detach)]
        assert entries(lambda: x.mul(2)) > 0


def test_a_number_comes_first_in_a_sum(gpu: SimulatedCuda) -> None:
    """Scaled, as ``alpha`` asks: 1 + 2 x 3, by one kernel, with a sparse tensor about or without."""
    x = torch.full((2,), 3.0, device="cuda")
    for _ in range(2):
        with gpu.measure() as cost:
            result = torch.add(1.0, x, alpha=2)
        assert [7.0, 7.0] == result.tolist()
        assert (1, ()) == (cost.launches, cost.unknown)
        x.to_sparse()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("convert", "layout"),
    [
        (torch.Tensor.to_sparse_csr, torch.sparse_csr),
        (torch.Tensor.to_sparse_coo, torch.sparse_coo),
        (torch.Tensor.to_dense, torch.strided),
    ],
)
def test_columns_are_converted_to_other_layouts(
    gpu: SimulatedCuda, device: str, convert: Callable[[torch.Tensor], torch.Tensor], layout: torch.layout
) -> None:
    """ATen/native/TensorConversions.cpp has one function for both devices."""
    dense = torch.tensor([[1.0, 0.0], [3.0, 2.0]], device=device)
    columns = dense.to_sparse_csc()
    with gpu.measure() as cost:
        converted = convert(columns)
    assert (layout, device) == (converted.layout, converted.device.type)
    assert dense.tolist() == converted.to_dense().tolist()
    assert bool(cost.launches) == (device == "cuda")
