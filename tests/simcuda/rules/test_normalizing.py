"""Sizes are those of float32, 4 bytes."""

import pytest
import torch
from torch.nn import functional

import simcuda
from simcuda import SimulatedCuda
from simcuda.traces.replay import shapes_only


def test_a_softmax_is_one_kernel_on_contiguous_memory(gpu: SimulatedCuda) -> None:
    """Rows of a transposed matrix are copied first: a kernel and 4 x 6 floats more."""
    x = torch.rand(6, 4, device="cuda")
    with gpu.measure() as m:
        x.softmax(1)
    assert (1, 96, ()) == (m.launches, m.peak_bytes, m.approximate)
    with gpu.measure() as m:
        x.t().log_softmax(1)
    assert (2, 192) == (m.launches, m.peak_bytes)


def test_the_gradient_of_a_softmax_wants_a_contiguous_gradient(gpu: SimulatedCuda) -> None:
    """The gradient of a sum is one value looked at 24 times, which is spread out first: 2 kernels."""
    x = torch.rand(6, 4, device="cuda", requires_grad=True)
    y = x.softmax(1)
    one = torch.ones((), device="cuda")
    with gpu.measure() as m:
        torch.autograd.grad(y, x, one.expand(6, 4))
    # The gradient spread out, and the result.
    assert (2, 192) == (m.launches, m.peak_bytes)


@pytest.mark.parametrize(
    ("columns", "dtype", "kernels"),
    [
        (8, torch.float32, 1),
        (8, torch.float16, 1),
        # Rows that end within a vector of 4, and double precision, get their moments by a kernel before.
        (6, torch.float32, 2),
        (8, torch.float64, 2),
    ],
)
def test_a_layer_norm_reads_vectors_of_four(
    gpu: SimulatedCuda, columns: int, dtype: torch.dtype, kernels: int
) -> None:
    """Rows of whole vectors take one kernel, others two; the result, means and deviations are allocated."""
    x = torch.rand(5, columns, device="cuda", dtype=dtype)
    with gpu.measure() as m:
        functional.layer_norm(x, (columns,))
    assert (kernels, 3, ()) == (m.launches, m.allocations, m.approximate)


@pytest.mark.parametrize(
    ("wanted", "kernels"), [((True, True, True), 2), ((True, False, False), 1), ((False, True, False), 1)]
)
def test_the_gradients_of_a_layer_norm_are_two_kernels(
    gpu: SimulatedCuda, wanted: tuple[bool, bool, bool], kernels: int
) -> None:
    """One for the input, and one for weight and bias together, each where it is asked for."""
    x = torch.rand(5, 8, device="cuda")
    weight, bias = torch.ones(8, device="cuda"), torch.zeros(8, device="cuda")
    _, mean, rstd = torch.native_layer_norm(x, (8,), weight, bias, 1e-5)
    with gpu.measure() as m:
        torch.ops.aten.native_layer_norm_backward(x, x, (8,), mean, rstd, weight, bias, wanted)
    assert (kernels, ()) == (m.launches, m.approximate)


@pytest.mark.parametrize(
    ("profile", "columns", "in_parts"),
    [
        # Half of 132 multiprocessors is 66, half of 108 is 54, blocks are 32 columns wide.
        ("h200-cuda13", 65 * 32, True),
        ("h200-cuda13", 66 * 32, False),
        ("a100-cuda12", 53 * 32, True),
        ("a100-cuda12", 54 * 32, False),
    ],
)
def test_many_short_rows_are_added_up_in_parts(profile: str, columns: int, in_parts: bool) -> None:
    """More than 65536 rows, where there are too few columns for the device: two reductions more."""
    rows = 64 * 1024 + 1
    with simcuda.device(profile=profile) as gpu, shapes_only():
        # Nothing of that size is needed to count.
        x = torch.zeros(1, device="cuda").expand(rows, columns)
        mean = torch.zeros(rows, 1, device="cuda")
        weight = torch.ones(columns, device="cuda")
        with gpu.measure() as m:
            torch.ops.aten.native_layer_norm_backward(
                x, x, (columns,), mean, mean, weight, weight, (False, True, True)
            )
    # Two copies of what is not contiguous, one kernel, and a reduction for each of weight and bias.
    assert 2 + 1 + 2 * in_parts == m.launches
    parts = min(32 * 1024 // -(-columns // 32), -(-rows // 32))
    held = 2 * parts * columns * 4
    assert in_parts == (m.peak_bytes >= 2 * rows * columns * 4 + held)


@pytest.mark.parametrize(
    ("shape", "has_weights", "kernels", "nbytes"),
    [
        # The result, and mean and deviation of 2 x 2 groups; with weights a factor and an offset a channel.
        ((2, 4, 3), False, 2, 96 + 2 * 16),
        ((2, 4, 3), True, 3, 96 + 2 * 16 + 2 * 32),
        # One place a channel.
        ((2, 4, 1), True, 2, 32 + 2 * 16),
    ],
)
def test_a_group_norm_takes_factors_of_each_channel(
    gpu: SimulatedCuda, shape: tuple[int, ...], has_weights: bool, kernels: int, nbytes: int
) -> None:
    """Moments, the factors where there are weights and several places, and the result."""
    x, weight = torch.rand(shape, device="cuda"), torch.ones(4, device="cuda") if has_weights else None
    with gpu.measure() as m:
        functional.group_norm(x, 2, weight, weight)
    assert (kernels, nbytes, ()) == (m.launches, m.peak_bytes, m.approximate)
