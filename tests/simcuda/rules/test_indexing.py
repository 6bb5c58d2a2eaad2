from typing import Any

import numpy as np
import pytest
import torch

from simcuda import SimulatedCuda


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
