"""Fake quantization: what the host reads of its parameters, and the kernels around them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from simcuda import SimulatedCuda

WEIGHT = (4, 6)
_torch: Any = torch  # whose annotations lack some of these arguments


@pytest.mark.parametrize(
    ("zero_point", "expected"),
    [
        # The extremes by one kernel, each read, 4 bytes; then mask and values.
        (torch.int32, (2, 2, 8, 3)),
        # Floating ones may be anything: nothing is read.
        (torch.float32, (0, 0, 0, 2)),
    ],
)
def test_zero_points_of_channels_are_read_if_they_are_whole(
    gpu: SimulatedCuda, zero_point: torch.dtype, expected: tuple[int, ...]
) -> None:
    """Counted are waits, copies to the host, their bytes and launches; values are the CPU's."""
    weight, scale = torch.randn(WEIGHT), torch.rand(4) + 0.1
    arguments = (scale, torch.zeros(4, dtype=zero_point))
    there = [tensor.cuda() for tensor in (weight, *arguments)]
    with gpu.measure() as cost:
        result = _torch.fake_quantize_per_channel_affine(*there, 0, -8, 7)
    assert expected == (cost.syncs, cost.d2h, cost.d2h_bytes, cost.launches)
    assert () == cost.unknown
    assert torch.equal(torch.fake_quantize_per_channel_affine(weight, *arguments, 0, -8, 7), result.cpu())


@pytest.mark.parametrize(
    ("by_channel", "switched", "expected"),
    [
        # Extremes, moving average, scale and zero point, values with mask.
        (False, 1, (0, 0, 0, 4)),
        # The same whether it is on: the kernel looks.
        (False, 0, (0, 0, 0, 4)),
        # Three kernels; the switch of 8 bytes is read; then as whole zero points of channels.
        (True, 1, (3, 3, 8 + 8, 3 + 3)),
        # Three kernels and the switch; a mask of ones, and a copy.
        (True, 0, (1, 1, 8, 3 + 1)),
    ],
)
def test_observing_reads_the_switch_by_channel_alone(
    gpu: SimulatedCuda, by_channel: bool, switched: int, expected: tuple[int, ...]
) -> None:
    """Counted are waits, copies to the host, their bytes and launches; only rows may have to be resized."""
    channels = WEIGHT[0] if by_channel else 1
    state: list[Any] = [torch.tensor([value], device="cuda") for value in (1, switched)]
    state += [torch.zeros(channels, device="cuda") for _ in range(3)]
    zero_point, weight = torch.zeros(channels, dtype=torch.int32, device="cuda"), torch.ones(WEIGHT).cuda()
    with gpu.measure() as cost:
        _torch.fused_moving_avg_obs_fake_quant(weight, *state, zero_point, 0.1, -8, 7, 0, by_channel)
    assert expected == (cost.syncs, cost.d2h, cost.d2h_bytes, cost.launches)
    assert (96 if by_channel and not switched else 0) == cost.d2d_bytes
    assert ((), 1) == (cost.unknown, len(cost.approximate))


def test_the_first_observation_by_channel_sizes_the_ranges(gpu: SimulatedCuda) -> None:
    """Four values for each of 4 channels, 4 bytes each, are live then; nothing was before."""
    switches: list[Any] = [torch.tensor([1], device="cuda") for _ in range(2)]
    state: list[Any] = [torch.zeros(0, device="cuda") for _ in range(3)]
    zero_point, weight = torch.zeros(0, dtype=torch.int32, device="cuda"), torch.ones(WEIGHT).cuda()
    before = gpu.live_bytes()
    _torch.fused_moving_avg_obs_fake_quant(weight, *switches, *state, zero_point, 0.1, -8, 7, 0, True)
    assert 4 * 4 * 4 == gpu.live_bytes() - before
