"""Sizes are those of float32, 4 bytes."""

import pytest
import torch

import simcuda
from simcuda.traces.replay import shapes_only


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
