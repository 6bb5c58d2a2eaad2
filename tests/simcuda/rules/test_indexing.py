from typing import Any

import numpy as np
import pytest
import torch

from simcuda import SimulatedCuda


def test_finding_what_is_true_reads_a_count(gpu: SimulatedCuda) -> None:
    """100 values, 30 of them true: CUB adds up and selects in 3 kernels, 4 bytes are read.

    30 indices of 8 bytes, and the count of 4.
    """
    x = torch.arange(100, device="cuda") < 30
    with gpu.measure() as m:
        x.nonzero()
    assert (1, 1, 4, 3, 244) == (m.syncs, m.d2h, m.d2h_bytes, m.launches, m.peak_bytes)


def test_indices_of_several_dimensions_take_one_kernel_more(gpu: SimulatedCuda) -> None:
    """They are worked out from positions, where there are any; a transposed input is copied first."""
    x = torch.arange(100, device="cuda").view(20, 5) < 30
    with gpu.measure() as m:
        x.nonzero()
    assert (1, 4, 30 * 16 + 4) == (m.syncs, m.launches, m.peak_bytes)
    with gpu.measure() as m:
        (x & False).nonzero()
    assert (1, 4) == (m.syncs, m.launches)
    with gpu.measure() as m:
        x.t().nonzero()
    assert (1, 5, 30 * 16 + 4 + 100) == (m.syncs, m.launches, m.peak_bytes)


def test_even_an_empty_search_waits(gpu: SimulatedCuda) -> None:
    """The count is copied whatever it counts."""
    x = torch.zeros(0, device="cuda")
    with gpu.measure() as m:
        x.nonzero()
    assert 1 == m.syncs


def test_a_single_value_is_only_counted(gpu: SimulatedCuda) -> None:
    """A single value has no indices to select: one kernel."""
    x = torch.ones((), device="cuda")
    with gpu.measure() as m:
        x.nonzero()
    assert (1, 1) == (m.syncs, m.launches)


def test_selecting_by_a_mask_finds_then_picks(gpu: SimulatedCuda) -> None:
    """Beside the 30 floats: 30 indices and the count; one kernel more."""
    x = torch.arange(100.0, device="cuda")
    mask = x < 30
    with gpu.measure() as m:
        x.masked_select(mask)
    assert (1, 4, 30 * 4 + 30 * 8 + 4) == (m.syncs, m.launches, m.peak_bytes)
    with gpu.measure() as indexed:
        x[mask]
    assert (m.syncs, m.launches, m.peak_bytes) == (indexed.syncs, indexed.launches, indexed.peak_bytes)


def test_a_mask_is_spread_over_what_it_selects_from(gpu: SimulatedCuda) -> None:
    """A row of 5 truth values over 4 rows becomes 20 in a copy, in which 8 are found, 16 bytes each.

    Beside the 8 floats: the copy of 20 bytes, the count of 4, 128 bytes of indices; 4 + 1 + 1 kernels.
    """
    x = torch.zeros(4, 5, device="cuda")
    mask = torch.arange(5, device="cuda") < 2
    with gpu.measure() as m:
        x.masked_select(mask)
    assert (1, 6, 8 * 4 + 20 + 4 + 128) == (m.syncs, m.launches, m.peak_bytes)


@pytest.mark.parametrize(("dimensions", "nbytes"), [(1, 4 * 8), (2, 4 * 2 * 8), (3, 16 * 3 * 8)])
def test_a_host_mask_is_searched_on_the_host(gpu: SimulatedCuda, dimensions: int, nbytes: int) -> None:
    """One pinned tensor of indices is copied, all dimensions together, and nobody waits for it.

    expandTensors in ATen/native/IndexingUtils.h: nonzero_out into pinned memory, .to(device, non_blocking).
    The first row is chosen: 4, 4 and 4 x 4 elements, but 4 of 4 in one dimension.
    """
    x = torch.zeros((4,) * dimensions, device="cuda")
    mask = torch.zeros((4,) * dimensions, dtype=torch.bool)
    mask[0 if dimensions > 1 else slice(None)] = True
    values = torch.ones((), device="cuda")
    with gpu.measure() as m:
        x[mask]
    with gpu.measure() as written:
        x[mask] = values
    for each in (m, written):
        assert (0, 1, nbytes, 0, 0, 1) == (
            *(each.syncs, each.h2d, each.h2d_bytes, each.implicit_syncs, each.d2h, each.launches),
        )


def test_a_number_written_by_a_host_mask_is_waited_for(gpu: SimulatedCuda) -> None:
    """The mask is not on the device, so this is no masked_fill: value.to(device) copies 4 bytes and waits."""
    x, mask = torch.zeros(6, device="cuda"), torch.arange(6) < 2
    with gpu.measure() as m:
        x[mask] = 2.0
    # Two indices of 8 bytes, and the value.
    assert (1, 2, 2 * 8 + 4, 1) == (m.syncs, m.h2d, m.h2d_bytes, m.launches)
    assert [2.0, 2.0, 0.0, 0.0, 0.0, 0.0] == x.tolist()


def test_an_empty_host_mask_copies_nothing(gpu: SimulatedCuda) -> None:
    """No index is selected, so none is pinned or copied."""
    x, mask = torch.zeros(6, device="cuda"), torch.zeros(6, dtype=torch.bool)
    with gpu.measure() as m:
        x[mask]
    assert (0, 0, 0) == (m.syncs, m.h2d, m.launches)


def test_places_that_are_sorted_are_copied_dimension_by_dimension(gpu: SimulatedCuda) -> None:
    """ComputeLinearIndex in ATen/native/cuda/Indexing.cu: (index * stride).to(device), for each dimension."""
    x, mask = torch.zeros(4, 5, device="cuda"), torch.eye(4, 5, dtype=torch.bool)
    values = torch.ones(4, device="cuda")
    with gpu.measure() as m:
        x.index_put_((mask,), values, accumulate=True)
    # Of 4 places, 8 bytes in each of 2 dimensions.
    assert (2, 2, 2 * 4 * 8) == (m.syncs, m.h2d, m.h2d_bytes)


def test_filling_with_a_device_value_reads_it(gpu: SimulatedCuda) -> None:
    """The value of 4 bytes goes to the host and comes back as an argument of one kernel."""
    x, value = torch.zeros(10, device="cuda"), torch.ones((), device="cuda")
    index = torch.tensor([1, 2], device="cuda")
    with gpu.measure() as m:
        x.masked_fill_(x > 1, value)
        x.index_fill_(0, index, value)
    # Compare, fill, fill.
    assert (2, 2, 8, 3) == (m.syncs, m.d2h, m.d2h_bytes, m.launches)


def test_filling_with_a_host_value_does_not_wait(gpu: SimulatedCuda) -> None:
    """A number, or a host tensor of one, is an argument of the kernel."""
    x, mask = torch.zeros(10, device="cuda"), torch.zeros(10, dtype=torch.bool, device="cuda")
    with gpu.measure() as m:
        x.masked_fill_(mask, 1.0)
        x.masked_fill_(mask, torch.tensor(1.0))
        x.index_fill_(0, torch.tensor([1, 2], device="cuda"), 1.0)
    # The index comes from the host, with a wait of its own.
    assert (1, 1, 0, 3) == (m.syncs, m.h2d, m.d2h, m.launches)


def test_filling_a_copy_copies_first(gpu: SimulatedCuda) -> None:
    """Bytes are copied where the result has the input's layout, elements where it has not."""
    x = torch.zeros(4, 5, device="cuda")
    mask = x > 1
    with gpu.measure() as m:
        x.masked_fill(mask, 1.0)
    assert (1, 1, 80) == (m.launches, m.d2d, m.d2d_bytes)
    with gpu.measure() as m:
        x[0].masked_fill(mask, 1.0)
    assert (2, 0) == (m.launches, m.d2d)


def test_filling_nothing_launches_nothing(gpu: SimulatedCuda) -> None:
    """Without an index there is nothing to fill, yet the value is read."""
    x, value = torch.zeros(10, device="cuda"), torch.ones((), device="cuda")
    nowhere = torch.zeros(0, dtype=torch.long, device="cuda")
    with gpu.measure() as m:
        x.index_fill_(0, nowhere, value)
    assert (1, 0) == (m.syncs, m.launches)


@pytest.mark.parametrize(
    ("code", "kernels", "nbytes"),
    [
        # 3 positions along each dimension meet in 9 pairs of 8 bytes each, which are written out; 9 floats.
        ("x[index[:, None], index]", 2 + 1, 72 + 72 + 36),
        ("x[index, index]", 1, 12),
        # 3 positions of 32 bits become 3 of 64; 3 rows of 6 floats.
        ("x[index.int()]", 1 + 1 + 1, 12 + 24 + 72),
        # 2 x 3 positions with gaps are written out, 8 bytes each; then as many rows of 6 floats.
        ("functional.embedding(places[:, 1:], x)", 1 + 1, 48 + 144),
        ("functional.embedding(places, x)", 1, 192),
    ],
)
def test_indices_become_alike(gpu: SimulatedCuda, code: str, kernels: int, nbytes: int) -> None:
    """Contiguous unless all have the same strides, and of 64 bits."""
    names = {
        "x": torch.rand(4, 6, device="cuda"),
        "index": torch.arange(3, device="cuda"),
        "places": torch.zeros(2, 4, dtype=torch.long, device="cuda"),
    }
    with gpu.measure() as m:
        result = eval(code, {"functional": torch.nn.functional}, names)  # noqa: S307 - the code is above
    assert (kernels, nbytes, ()) == (m.launches, m.peak_bytes, m.approximate), result


@pytest.mark.parametrize("index", [[0, 2], np.array([0, 2]), (np.array([0, 2]), [1, 1])], ids=str)
def test_a_sequence_in_an_index_is_made_a_tensor_of_the_device(gpu: SimulatedCuda, index: Any) -> None:
    """Each is 2 integers of 8 bytes, copied and waited for once: the gradient finds them on the device."""
    several = len(index) if isinstance(index, tuple) else 1
    x = torch.rand(3, 3, device="cuda", requires_grad=True)
    with gpu.measure() as cost:
        y = x[index]
    assert (several, several, 16 * several) == (cost.syncs, cost.h2d, cost.h2d_bytes)
    with gpu.measure() as cost:
        torch.autograd.backward(y.sum())
    assert (0, 0) == (cost.syncs, cost.h2d)
    # What lies on the host as a tensor is copied again.
    y = x[torch.from_numpy(np.array([0, 2]))]
    with gpu.measure() as cost:
        torch.autograd.backward(y.sum())
    assert (1, 1) == (cost.syncs, cost.h2d)


@pytest.mark.parametrize("mask", [[True, False, True], np.array([True, False, True])], ids=str)
def test_a_mask_of_python_is_searched_on_the_device(gpu: SimulatedCuda, mask: Any) -> None:
    """3 truths of a byte are copied there, and how many hold is read; nothing, to write one number."""
    x = torch.rand(3, device="cuda")
    with gpu.measure() as cost:
        x[mask]
    assert (2, 1, 3, 1) == (cost.syncs, cost.h2d, cost.h2d_bytes, cost.d2h)
    with gpu.measure() as cost:
        x[mask] = 1.0
    assert (1, 1, 3, 0, 1) == (cost.syncs, cost.h2d, cost.h2d_bytes, cost.d2h, cost.launches)
    assert [1.0, 1.0] == x[[0, 2]].tolist()
