"""The headline laws of the founding documents, counted at sizes that no sweep contains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

import simcuda

Load = Callable[[str, str], Callable[..., Any]]


@contextmanager
def counting(devices: int = 1, capacity: int | None = None) -> Iterator[simcuda.SimulatedCuda]:
    """A simulated device for one test."""
    with simcuda.device(devices, capacity=capacity) as gpu:
        yield gpu


def parameters(count: int, elements: int, *, with_gradient: int, devices: int = 1) -> list[nn.Parameter]:
    """Parameters of ones, dealt to the devices in turn; the first of them have gradients of ones."""
    made = []
    for index in range(count):
        parameter = nn.Parameter(torch.ones(elements, device=f"cuda:{index % devices}"))
        parameter.grad = torch.ones_like(parameter.data) if index < with_gradient else None
        made.append(parameter)
    return made


def model(count: int, elements: int, *, with_gradient: int, devices: int = 1) -> nn.Module:
    """A model of such parameters."""
    module = nn.Module()
    for index, parameter in enumerate(
        parameters(count, elements, with_gradient=with_gradient, devices=devices)
    ):
        module.register_parameter(f"parameter{index}", parameter)
    return module


@pytest.mark.parametrize(("count", "with_gradient"), [(3, 0), (17, 17), (29, 11)])
def test_b7_pt_02_waits_for_each_answer(variant: Load, count: int, with_gradient: int) -> None:
    """Found waits twice for each weight and twice for each gradient, at the four lines that ask."""
    with counting() as gpu:
        checked = model(count, 19, with_gradient=with_gradient)
        with gpu.measure() as counted:
            variant("b7_pt_02", "found")(checked)
    assert 2 * count + 2 * with_gradient == counted.syncs
    waits = [site for site in counted.sites if site.what == "stream_syncs"]
    by_line = [count, count, with_gradient, with_gradient]
    assert [waited for waited in by_line if waited] == [
        site.count for site in sorted(waits, key=lambda s: s.line)
    ]


@pytest.mark.parametrize(("name", "waits"), [("recommended", 2), ("applied", 1), ("fix", 1)])
def test_b7_pt_02_batches_wait_a_fixed_number_of_times(variant: Load, name: str, waits: int) -> None:
    """The recommended batching reads twice, not once as it says; what was applied and the fix read once."""
    with counting() as gpu:
        checked = model(23, 19, with_gradient=13)
        with gpu.measure() as counted:
            variant("b7_pt_02", name)(checked)
    assert waits == counted.syncs


def test_b7_pt_02_results_without_dimensions_fill_blocks(variant: Load) -> None:
    """What was applied asks for 12 bytes a parameter and occupies four blocks for each."""
    with counting() as gpu:
        checked = model(50, 2, with_gradient=50)
        with gpu.measure() as counted:
            variant("b7_pt_02", "applied")(checked)
    # 4 x 50 results of 1 byte, four rows of 50 bytes, a table of 200 bytes: 200 + 200 + 200.
    assert 600 == counted.peak_bytes
    # 200 results, four rows and the table, each in a block of 512 bytes.
    assert 205 * 512 == counted.peak_allocated_bytes


def test_b7_pt_02_fix_on_three_devices(variant: Load) -> None:
    """One read for each device, and no more memory than one mask and three flags a tensor."""
    with counting(3) as gpu:
        checked = model(9, 5000, with_gradient=9, devices=3)
        with gpu.measure() as counted:
            variant("b7_pt_02", "fix")(checked)
    assert 3 == counted.syncs
    # 18 tensors x 3 flags of 1 byte, and a mask of 5000 elements.
    assert 54 + 5000 == counted.peak_bytes


def test_b7_pt_03_peak_follows_all_gradients(variant: Load) -> None:
    """Found holds the flat copy, a mask and the widened mask at once."""
    with counting() as gpu:
        seed = parameters(6, 1000, with_gradient=5)
        with gpu.measure() as counted:
            variant("b7_pt_03", "found")(seed)
    # 5000 elements: 4 bytes for the copy, 1 for the mask, 8 for the mask as int64; 32 for the statistics
    # and 8 for the sum that is being taken.
    assert 13 * 5000 + 40 == counted.peak_bytes
    assert 0 == counted.syncs


def test_b7_pt_03_fix_follows_one_piece(variant: Load) -> None:
    """The fix holds one piece's mask and its widened copy, however large a gradient is."""
    piece = 1 << 18
    with counting() as gpu:
        seed = parameters(2, 3 * piece, with_gradient=2)
        with gpu.measure() as counted:
            statistics = variant("b7_pt_03", "fix")(seed)
            read = statistics.tolist()
    # 9 bytes an element of a piece, 32 for the statistics, 8 for a sum. The sum of 2**18 int64 values is
    # shared by 2**18 / (512 x 16) = 32 blocks: 8 bytes for each, and a counter of 4 bytes.
    assert 9 * piece + 40 + 32 * 8 + 4 == counted.peak_bytes
    assert 1 == counted.syncs
    assert [0.0, 0.0, 0.0, 6.0 * piece] == read


@pytest.mark.parametrize(
    "layout",
    [
        lambda: torch.zeros(1024, 1024, device="cuda").t(),
        lambda: torch.zeros(3, 700, 1000, device="cuda").permute(2, 0, 1),
        lambda: torch.zeros(1024, 2048, device="cuda")[:, ::2],
        lambda: torch.zeros(1, 1, device="cuda").expand(1024, 1024),
    ],
    ids=["transposed", "permuted", "every second column", "expanded"],
)
def test_b7_pt_03_fix_copies_no_layout(variant: Load, layout: Callable[[], torch.Tensor]) -> None:
    """A large gradient that is not contiguous costs no more memory than a piece of one that is."""
    piece = 1 << 18
    with counting() as gpu:
        parameter = nn.Parameter(torch.zeros((), device="cuda"))
        gradient = layout()
        parameter.data = gradient
        parameter.grad = gradient
        with gpu.measure() as counted:
            read = variant("b7_pt_03", "fix")([parameter]).tolist()
    assert [0.0, 0.0, 1.0, gradient.numel()] == read
    # As for one piece above: a mask, its widened copy, the statistics, a sum and its workspace.
    assert counted.peak_bytes <= 9 * piece + 40 + 32 * 8 + 4
    assert 1 == counted.syncs


def test_b7_pt_03_recommended_waits_twice_for_each_gradient(variant: Load) -> None:
    """The loop reads two counts of every gradient, and none of a parameter without one."""
    with counting() as gpu:
        seed = parameters(31, 7, with_gradient=26)
        with gpu.measure() as counted:
            variant("b7_pt_03", "recommended")(seed)
    assert 52 == counted.syncs


def test_b7_pt_03_copy_needs_one_piece_of_memory(variant: Load) -> None:
    """With 8 MiB free in pieces of 2 MiB, a copy of 3 MiB is refused; the fix gets by with the pieces."""
    mib = 1 << 20
    # One segment of 20 MiB, and room for three of 2 MiB, in which small blocks lie.
    with counting(capacity=26 * mib) as gpu:
        seed = parameters(2, 3 * mib // 8, with_gradient=1)
        seed[1].grad = seed[1].data
        rest = [torch.empty(2 * mib, dtype=torch.uint8, device="cuda") for _ in range(7)]
        del rest[::2]
        with gpu.measure() as counted, pytest.raises(torch.OutOfMemoryError):
            variant("b7_pt_03", "found")(seed)
        assert 1 == counted.ooms
        with gpu.measure() as counted:
            variant("b7_pt_03", "fix")(seed)
        assert 0 == counted.ooms


@pytest.mark.parametrize(("name", "copies"), [("found", 14), ("alternative", 2)])
def test_b3_cr_05_copies_between_devices(variant: Load, name: str, copies: int) -> None:
    """Found copies every norm that is elsewhere, the alternative one number for each further device."""
    with counting(3) as gpu:
        # 21 norms on three devices in turn: 7 on the first, 14 elsewhere.
        norms = [torch.ones((), device=f"cuda:{index % 3}") for index in range(21)]
        with gpu.measure() as counted:
            norm = variant("b3_cr_05", name)(norms)
        assert torch.device("cuda:0") == norm.device
    assert (copies, 4 * copies, 0) == (counted.p2p, counted.p2p_bytes, counted.syncs)


@pytest.mark.parametrize(
    ("name", "wait", "unordered"),
    [("found", "device", 0), ("recommended", "stream", 1), ("unsynchronised", None, 1)],
)
def test_b1_pt_02_only_the_device_wait_orders_other_streams(
    variant: Load, name: str, wait: str | None, unordered: int
) -> None:
    """Of 8 parameters a side stream writes 1; what the rollback waits for decides whether that is ordered."""
    with counting() as gpu:
        rolled_back = model(8, 64, with_gradient=0)
        saved = {key: value.cpu().pin_memory() for key, value in rolled_back.state_dict().items()}
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch has no types here
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            rolled_back.get_parameter("parameter3").data.mul_(2)
        with gpu.measure() as counted:
            variant("b1_pt_02", name)(rolled_back, saved, torch.device("cuda"))
    assert (int(wait == "device"), int(wait == "stream")) == (counted.device_syncs, counted.stream_syncs)
    assert (0, unordered) == (counted.implicit_syncs, counted.hazards)


@pytest.mark.parametrize("name", ["found", "applied"])
def test_task_5_waits_once_a_side_before_and_after(variant: Load, name: str) -> None:
    """Neither version waits for a gradient: each reads one number of each side."""
    with counting() as gpu:
        host, seed = parameters(61, 3, with_gradient=61), parameters(5, 3, with_gradient=4)
        with gpu.measure() as counted:
            variant("task_5", name)(host, seed)
    assert 2 == counted.syncs


def test_task_5_launches(variant: Load) -> None:
    """Tensor by tensor costs three launches each, the multi-tensor norm a few for all."""
    with counting() as gpu:
        host = parameters(900, 3, with_gradient=900)
        with gpu.measure() as before:
            variant("task_5", "found")(host, [])
        with gpu.measure() as after:
            variant("task_5", "applied")(host, [])
    # pow, sum, add for each, and the root.
    assert 3 * 900 + 1 == before.launches
    # Clear the buffer; ceil(900/770) = 2 for the norms; ceil(900/400) = 3 to add up; ceil(900/128) = 8 to
    # stack; then pow, sum and the root.
    assert 1 + 2 + 3 + 8 + 3 == after.launches
