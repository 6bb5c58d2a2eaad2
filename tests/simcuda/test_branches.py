"""Functions of C++ that look at the device of their tensors do as on CUDA, though they see those of the host.

Each count is derived from PyTorch's source, which is named.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """One simulated device, with the workspace of cuBLAS taken."""
    with simcuda.device() as simulated:
        square = torch.ones(2, 2, device="cuda")
        torch.mm(square, square)
        yield simulated


def test_a_covariance_reads_whether_there_are_degrees_of_freedom(gpu: SimulatedCuda) -> None:
    """cov in ATen/native/Correlation.cpp makes both numbers of observations on the device, and compares one.

    Two scalar_tensor, sum, div, le, sub, true_divide; is_scalar_tensor_true is new_ones and equal: 9 kernels,
    beside the product; equal copies the only truth value within the device, and reads it.
    """
    x = torch.rand(3, 50, device="cuda")
    with gpu.measure() as m:
        torch.cov(x)
    assert (1, 1, 1, 1) == (m.syncs, m.d2h, m.d2h_bytes, m.d2d)
    assert (9, 1) == (m.aten_launches, m.library_launches)


def test_a_correlation_is_a_covariance_that_is_scaled(gpu: SimulatedCuda) -> None:
    """corrcoef: cov, then sqrt of the diagonal, two quotients, and clip."""
    x = torch.rand(3, 50, device="cuda")
    with gpu.measure() as m:
        x.corrcoef()
    assert (1, 1, 9 + 4) == (m.syncs, m.d2h, m.aten_launches)


def test_weights_of_a_covariance_are_read_as_before(gpu: SimulatedCuda) -> None:
    """min().ge(0), sum().ne(0), and the degrees of freedom: each an is_scalar_tensor_true."""
    x, weights = torch.rand(3, 50, device="cuda"), torch.ones(50, dtype=torch.int64, device="cuda")
    with gpu.measure() as m:
        x.cov(fweights=weights)
    assert (3, 3) == (m.syncs, m.d2h)


def test_a_covariance_on_the_host_stays_there(gpu: SimulatedCuda) -> None:
    with gpu.measure() as m:
        assert torch.device("cpu") == torch.rand(3, 5).cov().device
    assert (0, 0) == (m.syncs, m.launches)
