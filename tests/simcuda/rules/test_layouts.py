"""Nested tensors, whose sizes lie on the host, and sparse ones of coordinates."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from simcuda import SimulatedCuda

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested", "ignore:Sparse")
_torch: Any = torch  # which has no annotations for these


def nested(*shapes: tuple[int, ...]) -> Any:
    """A nested tensor on the device, of parts of these shapes."""
    parts = [torch.arange(float(torch.Size(shape).numel())).reshape(shape) for shape in shapes]
    return _torch.nested.as_nested_tensor([part.cuda() for part in parts])


def test_sizes_of_a_nested_tensor_lie_on_the_host(gpu: SimulatedCuda) -> None:
    """To read them is to wait for nothing; to join two parts is one kernel."""
    with gpu.measure() as cost:
        x = nested((2, 3), (4, 3))
        sizes = x._nested_tensor_size()
        assert ("cpu", [[2, 3], [4, 3]]) == (sizes.device.type, sizes.tolist())
    # Each part is copied and waited for as it is made; no more.
    assert (2, 2, 0, 1, ()) == (cost.syncs, cost.h2d, cost.d2h, cost.launches, cost.unknown)


def test_a_nested_tensor_is_computed_as_its_buffer(gpu: SimulatedCuda) -> None:
    """One product of all rows, and one kernel for each activation, as for a dense matrix of 6 rows."""
    x, dense = nested((2, 3), (4, 3)), torch.ones(6, 3, device="cuda")
    layer = torch.nn.Linear(3, 2, device="cuda")
    layer(dense)  # which takes the workspace of cuBLAS
    costs = []
    for each in (x, dense):
        with gpu.measure() as cost:
            torch.nn.functional.relu(layer(each)).neg()
        costs.append((cost.launches, cost.syncs, cost.allocations, cost.unknown, cost.approximate))
    assert costs[0] == costs[1]
    expected = layer(torch.arange(6.0).reshape(2, 3).cuda())
    assert torch.equal(expected, layer(x).unbind()[0])


@pytest.mark.parametrize(("shapes", "told"), [(((2, 3), (4, 3)), 20), (((2, 3), (4, 5)), 28)])
def test_to_pad_copies_the_sizes_to_the_device(gpu: SimulatedCuda, shapes: Any, told: int) -> None:
    """And waits for that, before one kernel.

    3 offsets of 2 parts, and 1 size of each where all rows are as long, or else 2: integers of 4 bytes.
    """
    x = nested(*shapes)
    with gpu.measure() as cost:
        _torch.nested.to_padded_tensor(x, 0.0)
    assert (1, 1, told, 1, ()) == (cost.syncs, cost.h2d, cost.h2d_bytes, cost.launches, cost.unknown)


def test_a_mask_is_read_before_its_tensor_is_nested(gpu: SimulatedCuda) -> None:
    """Whether it has gaps is one answer, and lengths and widths of 2 rows are 4 numbers of 8 bytes."""
    x, mask = torch.ones(2, 4, 3, device="cuda"), torch.ones(2, 4, dtype=torch.bool, device="cuda")
    with gpu.measure() as cost:
        assert _torch._nested_tensor_from_mask_left_aligned(x, mask)
    assert (1, 1, 1, ()) == (cost.syncs, cost.d2h, cost.d2h_bytes, cost.unknown)
    with gpu.measure() as cost:
        assert _torch._nested_tensor_from_mask(x, mask).is_cuda
    assert (2, 2, 1 + 32, ()) == (cost.syncs, cost.d2h, cost.d2h_bytes, cost.unknown)
    # To the device go 4 sizes, 3 dimensions and 3 offsets, of 8 bytes, which become 4 there.
    assert (1, 80) == (cost.h2d, cost.h2d_bytes)


def test_to_coalesce_waits_at_least_once(gpu: SimulatedCuda) -> None:
    """For how many there are; whether Thrust waits more often nobody knows. One alone is at most copied."""
    positions = torch.tensor([[0, 2, 2]], device="cuda")
    with gpu.measure() as cost:
        sparse = _torch.sparse_coo_tensor(positions, torch.ones(3).cuda(), (4,), check_invariants=False)
    # The values are copied and waited for; the tensor takes both as they are.
    assert (1, 0, ()) == (cost.syncs, cost.launches, cost.unknown)
    with gpu.measure() as cost:
        assert [1.0, 2.0] == sparse.coalesce().values().tolist()
    # And the list that is read.
    assert (2, (2, None), ()) == (cost.syncs, cost.ranges["syncs"], cost.unknown)
    one = _torch.sparse_coo_tensor(positions[:, :1], torch.ones(1).cuda(), (4,), check_invariants=False)
    with gpu.measure() as cost:
        one.coalesce()
    assert {0} == {cost.syncs, cost.launches, cost.d2d}
    with gpu.measure() as cost:
        _torch._coalesce(one._coalesced_(False))
    # An index of 8 bytes and a value of 4.
    assert (0, 2, 12, ()) == (cost.syncs, cost.d2d, cost.d2d_bytes, cost.unknown)


def sparse_matrix() -> Any:
    """A matrix of 3 rows and 4 columns with 2 elements, on the device."""
    return _torch.sparse_coo_tensor([[0, 2], [1, 3]], [2.0, 3.0], (3, 4), is_coalesced=True).cuda()


def test_a_product_of_coordinates_waits_for_nothing(gpu: SimulatedCuda) -> None:
    """Zeros and a clearing, rows and columns as int32, the result there and back, and cuSPARSE: 7 kernels."""
    sparse, dense = sparse_matrix(), torch.arange(8.0).reshape(4, 2).cuda()
    with gpu.measure() as cost:
        product = sparse @ dense
    assert (7, 0, 0, ()) == (cost.launches, cost.syncs, cost.d2d, cost.unknown)
    # Only cuSPARSE may launch more.
    assert ((7, None), 6) == (cost.ranges["launches"], cost.aten_launches)
    assert torch.equal(sparse.cpu().to_dense() @ dense.cpu(), product.cpu())
    vector = dense[:, 1].contiguous()
    with gpu.measure() as cost:
        column = sparse @ vector
    # A single column of 3 floats is copied as bytes, there and back.
    assert (5, 2, 24, 0, ()) == (cost.launches, cost.d2d, cost.d2d_bytes, cost.syncs, cost.unknown)
    assert torch.equal(product[:, 1].cpu(), column.cpu())
    with gpu.measure() as cost:
        total = _torch.sparse.addmm(product, sparse, dense)
    # What is added is copied, 24 bytes; nothing is filled.
    assert (5, 1, 24, 0, ()) == (cost.launches, cost.d2d, cost.d2d_bytes, cost.syncs, cost.unknown)
    assert torch.equal(2 * product.cpu(), total.cpu())


def test_a_product_of_rows_is_left_to_the_library(gpu: SimulatedCuda) -> None:
    """Zeros, which a product that is multiplied by 0 is not copied from, and cuSPARSE."""
    sparse, dense = sparse_matrix().to_sparse_csr(), torch.arange(8.0).reshape(4, 2).cuda()
    with gpu.measure() as cost:
        product = sparse @ dense
    assert (2, 0, 0, ()) == (cost.launches, cost.d2d, cost.syncs, cost.unknown)
    assert torch.equal(sparse_matrix().cpu().to_dense() @ dense.cpu(), product.cpu())


def test_layouts_are_converted_by_what_they_are_made_of(gpu: SimulatedCuda) -> None:
    """To find what is not zero is one wait, however it is laid out; between sparse layouts none is needed."""
    sparse = sparse_matrix()
    with gpu.measure() as cost:
        dense = sparse.to_dense()
    # Zeros, to which one kernel adds.
    assert (2, 0, (), {}) == (cost.launches, cost.syncs, cost.unknown, cost.ranges)
    with gpu.measure() as cost:
        rows = sparse.to_sparse_csr()
    # Where rows begin; columns and values are taken as they are.
    assert (1, 0, ()) == (cost.launches, cost.syncs, cost.unknown)
    with gpu.measure() as cost:
        back = rows.to_sparse_coo()
    # The row of each, and a copy of 2 columns of 8 bytes.
    assert (1, 16, 0, ()) == (cost.launches, cost.d2d_bytes, cost.syncs, cost.unknown)
    with gpu.measure() as cost:
        found = dense.to_sparse()
    assert (1, 1, ()) == (cost.syncs, cost.d2h, cost.unknown)
    for each in (dense, rows.to_dense(), back.to_dense(), found.to_dense(), dense.to_sparse_csr().to_dense()):
        assert [[0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 3]] == each.tolist()


def test_a_sparse_gradient_is_added_without_a_wait(gpu: SimulatedCuda) -> None:
    """What looked rows up twice is not coalesced: by how many kernels they are added is not sure."""
    table = torch.nn.Embedding(5, 4, sparse=True, device="cuda")
    before = table.weight.detach().cpu()
    optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
    total: Any = table(torch.tensor([1, 1, 3], device="cuda")).sum()
    total.backward()
    with gpu.measure() as cost:
        optimizer.step()
    assert (1, 0, ()) == (cost.launches, cost.syncs, cost.unknown)
    expected = before - torch.tensor([0.0, 2, 0, 1, 0])[:, None]
    torch.testing.assert_close(expected, table.weight.detach().cpu())


def twice() -> Any:
    """A matrix of 3 rows and 4 columns whose first element is given in two parts, on the device."""
    return _torch.sparse_coo_tensor([[0, 2, 0], [1, 3, 1]], [2.0, 3.0, 4.0], (3, 4)).cuda()


def test_a_product_sorts_coordinates_that_are_not_coalesced(gpu: SimulatedCuda) -> None:
    """The number of unique ones is read, each time, because the tensor stays as it is."""
    sparse, dense = twice(), torch.arange(8.0).reshape(4, 2).cuda()
    for _ in range(2):
        with gpu.measure() as cost:
            product = sparse @ dense
        # Flattened by a product and a sum; 2 ranges, a sort, what is unique twice, and values; 2 for each
        # of 2 dimensions, which are copied. Then the 7 of coordinates in order.
        assert 2 + 6 + 2 * 2 + 7 == cost.launches
        assert 2 == cost.d2d
        assert (1, 1, 8, ()) == (cost.syncs, cost.d2h, cost.d2h_bytes, cost.unknown)
        # Thrust may wait more often.
        assert (1, None) == cost.ranges["syncs"]
    assert torch.equal(sparse.cpu().to_dense() @ dense.cpu(), product.cpu())


def test_a_sparse_tensor_times_a_number_is_its_values(gpu: SimulatedCuda) -> None:
    """The indices, 2 x 2 of 8 bytes, are copied; in place only one kernel runs on a quotient."""
    sparse = sparse_matrix()
    for scale in ("sparse * 2", "2 * sparse", "sparse / 0.5"):
        with gpu.measure() as cost:
            made = eval(scale)  # noqa: S307 - one of these three
        assert (1, 1, 32, 0, ()) == (cost.launches, cost.d2d, cost.d2d_bytes, cost.syncs, cost.unknown)
        assert [4.0, 6.0] == made.values().tolist()
    with gpu.measure() as cost:
        sparse.div_(0.5)
    assert (1, 0, 0, ()) == (cost.launches, cost.d2d, cost.syncs, cost.unknown)
    assert [4.0, 6.0] == sparse.values().tolist()


def test_sparse_tensors_are_added_by_joining_them(gpu: SimulatedCuda) -> None:
    """Two kernels join indices and values, and a factor is one more; nothing is merged, so nothing waits."""
    one, other = sparse_matrix(), sparse_matrix()
    with gpu.measure() as cost:
        total = one + other
    assert (2, 0, ()) == (cost.launches, cost.syncs, cost.unknown)
    assert (4, False) == (total._nnz(), total.is_coalesced())
    with gpu.measure() as cost:
        one.add_(other, alpha=2)
    assert (3, 0, ()) == (cost.launches, cost.syncs, cost.unknown)
    assert (4, False) == (one._nnz(), one.is_coalesced())
    assert torch.equal(3 * other.to_dense(), one.to_dense())
    # 8 + 8 elements would be more than the 12 of the whole matrix: they are merged, and their number is read.
    for _ in range(2):
        one = one + one
        assert one._nnz() in (8, 2)
    assert torch.equal(12 * other.to_dense(), one.to_dense())
    # What the host adds is its own business.
    assert torch.equal(2 * other.to_dense().cpu(), (other.cpu() + other.cpu()).to_dense())


def test_a_transposed_matrix_is_a_copy(gpu: SimulatedCuda) -> None:
    """Values and indices are copied, then the two rows of indices exchanged by way of a third, of zeros."""
    sparse = sparse_matrix()
    with gpu.measure() as cost:
        turned = sparse.t()
    assert (1, 2 + 3, 0, ()) == (cost.launches, cost.d2d, cost.syncs, cost.unknown)
    assert torch.equal(sparse.to_dense().t(), turned.to_dense())


def test_rows_times_a_vector_are_left_to_the_library(gpu: SimulatedCuda) -> None:
    """Nothing is copied before, unless something is added."""
    sparse, vector = sparse_matrix().to_sparse_csr(), torch.arange(4.0).cuda()
    with gpu.measure() as cost:
        column = sparse @ vector
    assert (1, 0, 0, ()) == (cost.launches, cost.aten_launches, cost.syncs, cost.unknown)
    assert [2.0, 0.0, 9.0] == column.tolist()
    with gpu.measure() as cost:
        total = torch.addmv(column, sparse, vector)
    # 3 floats.
    assert (1, 1, 12, 0, ()) == (cost.launches, cost.d2d, cost.d2d_bytes, cost.syncs, cost.unknown)
    assert [4.0, 0.0, 18.0] == total.tolist()
    with gpu.measure() as cost:
        torch.addmv(column, sparse, vector, beta=0)
    # What counts nothing is not copied.
    assert (1, 0, ()) == (cost.launches, cost.d2d, cost.unknown)


def test_sparse_adam_waits_once_a_step(gpu: SimulatedCuda) -> None:
    """Where the gradient is coalesced; moments are looked up where it has values."""
    kept = torch.rand(8, 4)
    tables = []
    for device in ("cuda", "cpu"):
        table = torch.nn.Parameter(kept.to(device, copy=True))
        optimizer: Any = torch.optim.SparseAdam([table])
        for _ in range(2):
            optimizer.zero_grad()
            index = torch.tensor([[1, 1], [3, 4]], device=device)
            loss: Any = torch.nn.functional.embedding(index, table, sparse=True).square().sum()
            loss.backward()
            with gpu.measure() as cost:
                optimizer.step()
            waits = int(device == "cuda")
            assert (waits, waits, ()) == (cost.syncs, cost.d2h, cost.unknown)
        tables.append(table.detach().cpu())
    torch.testing.assert_close(*tables)


def test_a_sparse_gradient_of_bags_waits_for_nothing(gpu: SimulatedCuda) -> None:
    """It has a row for each index, also where there is a sparse tensor already."""
    bags = torch.nn.EmbeddingBag(8, 4, sparse=True, device="cuda")
    for _ in range(2):
        bags.zero_grad()
        out = bags(torch.tensor([1, 2, 1], device="cuda"), torch.tensor([0, 2], device="cuda")).sum()
        with gpu.measure() as cost:
            out.backward()
        assert (0, ()) == (cost.syncs, cost.unknown)
    assert bags.weight.grad is not None
    assert (3, 4) == bags.weight.grad._values().shape


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_transformer_in_eval_waits_for_nothing(gpu: SimulatedCuda, activation: str) -> None:
    """The fast path is made of attention, 2 sums, 2 norms and 2 products; no wait is in doubt."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, activation=activation, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        expected = layer(x)
        layer.cuda()
        with gpu.measure() as cost:
            made = layer(x.cuda())
    # The copy of x is waited for.
    assert (1, 1, ()) == (cost.syncs, cost.h2d, cost.unknown)
    assert not {"syncs", "d2h", "h2d", "drains"} & set(cost.ranges)
    torch.testing.assert_close(expected, made.cpu())


@pytest.mark.parametrize("given", [False, True])
def test_padding_a_jagged_tensor_and_taking_it_away(gpu: SimulatedCuda, given: bool) -> None:
    """A kernel each; without the number of rows, which is 5, the last of 3 offsets is found and read."""
    rows, ends = torch.arange(5.0, device="cuda")[:, None], torch.tensor([0, 2, 5], device="cuda")
    with gpu.measure() as cost:
        padded = torch.ops.aten._jagged_to_padded_dense_forward(rows, [ends], [3], -1.0)
    # 2 sequences of 3 floats.
    assert (1, 0, 24, ()) == (cost.launches, cost.syncs, cost.peak_bytes, cost.unknown)
    assert [[0, 1, -1], [2, 3, 4]] == padded[..., 0].tolist()
    told = 5 if given else None
    with gpu.measure() as cost:
        back = torch.ops.aten._padded_dense_to_jagged_forward(padded, [ends], told)
    # 5 floats, twice; the largest of the offsets is an integer of 8 bytes, held to the end here.
    asked = (0, 1, 0, 2, 40) if given else (1, 2, 8, 3, 48)
    assert asked == (cost.syncs, cost.launches, cost.d2h_bytes, cost.allocations, cost.peak_bytes)
    assert torch.equal(rows, back)
