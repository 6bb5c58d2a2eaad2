"""Device memory: what is charged when, what the statistics say, and running out of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda

MIB = 1 << 20


def test_memory_is_returned_when_the_last_view_is_gone(gpu: SimulatedCuda) -> None:
    """A storage is live as long as a tensor or a view of it, or the gradient graph, holds it."""
    x = torch.ones(100, device="cuda")
    view = x[10:20]
    assert 400 == gpu.live_bytes()
    del x
    assert 400 == gpu.live_bytes()
    del view
    assert 0 == gpu.live_bytes()
    leaf = torch.ones(100, device="cuda", requires_grad=True)
    result = leaf.exp().sum()
    # leaf, the result of exp that its gradient needs, and the 0-d sum.
    assert 400 + 400 + 4 == gpu.live_bytes()
    del result
    assert 400 == gpu.live_bytes()


def test_temporaries_of_an_expression_live_as_long_as_python_holds_them(gpu: SimulatedCuda) -> None:
    """Both operands of the last addition are live beside its result."""
    x = torch.ones(1000, device="cuda")
    with gpu.measure() as cost:
        y = x * 2 + x * 3
    assert 3 * 4000 == cost.peak_bytes
    assert 4000 == cost.retained_bytes
    del y
    assert 0 == cost.retained_bytes


def test_gradients_that_meet_are_added_in_place(gpu: SimulatedCuda) -> None:
    """The engine adds a gradient to the one before it, where nothing else holds that."""
    leaf = torch.ones(1000, device="cuda", requires_grad=True)
    middle = leaf * 2
    total = (middle * 3 + middle.relu() + middle.exp()).sum()
    with gpu.measure() as cost:
        torch.autograd.backward(total)
    # The first gradient, one each through exp, relu and the two products: nothing for the two meetings.
    assert 5 == cost.allocations
    assert leaf.grad is not None


def test_gradients_held_elsewhere_are_not_changed(gpu: SimulatedCuda) -> None:
    """A gradient that user code keeps is left alone when another one meets it."""
    kept: list[torch.Tensor] = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
            return x * 2

        @staticmethod
        def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
            kept.append(gradient * 2)
            return kept[-1]

    leaf = torch.ones(3, device="cuda", requires_grad=True)
    middle = leaf * 1
    double: Any = Double.apply
    torch.autograd.backward((double(middle) + double(middle)).sum())
    assert leaf.grad is not None
    assert [4.0] * 3 == leaf.grad.tolist()
    assert [[2.0] * 3] * 2 == [gradient.tolist() for gradient in kept]
    assert gpu.live_bytes() > 0


def test_memory_from_the_driver_may_block_the_host(gpu: SimulatedCuda) -> None:
    """Each segment that the allocator asks for, and each that it gives back, is a call that may block."""

    def work() -> None:
        torch.empty(100, device="cuda")
        large = [torch.empty(12 * MIB, dtype=torch.uint8, device="cuda") for _ in range(3)]
        # A small block and one of 5 MiB, from a segment of 20 MiB, while the others are in use.
        torch.empty(5 * MIB, dtype=torch.uint8, device="cuda").add_(len(large))

    counts = []
    for function in (work, work, torch.cuda.empty_cache, torch.cuda.empty_cache, work):
        with gpu.measure() as cost:
            function()
        counts.append(cost.implicit_syncs)
    # One segment of 2 MiB, three of 12, one of 20: 5 are asked for, reused, given back, and asked for again.
    assert [5, 0, 5, 0, 5] == counts
    assert 0 == cost.syncs


def test_a_retry_frees_cached_segments_first() -> None:
    """Two cached segments of 20 MiB go before 40 MiB are served from 64: three calls that may block."""
    with simcuda.device(capacity=64 * MIB) as gpu:
        del [torch.empty(20 * MIB, dtype=torch.uint8, device="cuda") for _ in range(2)][:]
        with gpu.measure() as cost:
            torch.empty(40 * MIB, dtype=torch.uint8, device="cuda")
    assert (3, 0) == (cost.implicit_syncs, cost.syncs)


def test_pinned_memory_is_cached_by_powers_of_two(gpu: SimulatedCuda) -> None:
    """A pinned block serves all sizes down to half of its own while it is free; a new one may block."""
    counts = []

    def pin(*sizes: int) -> list[torch.Tensor]:
        with gpu.measure() as cost:
            made = [torch.empty(size, dtype=torch.uint8, pin_memory=True) for size in sizes]
        counts.append(cost.implicit_syncs)
        return made

    kept = pin(100)  # 128 bytes
    pin(128, 65)  # 128 bytes each, both freed at the end
    pin(128, 65, 64)  # the third has 64 bytes
    pin(0)
    with gpu.measure() as cost:
        torch.accelerator.empty_host_cache()
    # Two blocks of 128 bytes and one of 64 are free; the first is in use.
    assert 3 == cost.implicit_syncs
    del kept
    pin(100, 100)
    assert [1, 2, 1, 0, 1] == counts


def test_memory_that_is_in_pieces_does_not_serve_a_large_request() -> None:
    """Free bytes in partly used segments do not help: the request fails, with CUDA's words."""
    with simcuda.device(capacity=64 * MIB) as gpu:
        blocks = [torch.empty(6 * MIB, dtype=torch.uint8, device="cuda") for _ in range(9)]
        # A segment of 20 MiB holds three of them; the middle ones keep every segment in use.
        del blocks[0::3], blocks[1::2]
        with gpu.measure() as cost, pytest.raises(torch.OutOfMemoryError) as failed:
            torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
        assert 18 * MIB == torch.cuda.memory_allocated()
    assert 1 == cost.ooms
    message = str(failed.value)
    assert message.startswith(
        "CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of 64.00"
    )
    assert "42.00 MiB is reserved by PyTorch but unallocated" in message


def test_more_than_all_memory_is_refused_at_once() -> None:
    """A request beyond the capacity fails as on CUDA, without asking the host for as much."""
    with (
        simcuda.device(capacity=64 * MIB),
        pytest.raises(torch.cuda.OutOfMemoryError, match=r"93132\.26 GiB"),
    ):
        torch.zeros(10**14, dtype=torch.uint8, device="cuda")


def test_an_operation_that_runs_out_of_memory_leaves_nothing_behind() -> None:
    """Of two temporaries the second fits nowhere: the first one is free for the next attempt."""
    with simcuda.device(capacity=30 * MIB):
        x = torch.ones(1024, 1536, device="cuda")
        host = torch.empty(1536, 1024, dtype=torch.float64)
        # A segment of 20 MiB holds the 6 MiB of x and the first temporary; both take 12 MiB.
        for _ in range(2):
            with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 12\.00 MiB"):
                host.copy_(x.t(), non_blocking=True)
            assert 6 * MIB == torch.cuda.memory_allocated()


def test_a_copy_that_is_refused_leaves_nothing_behind(gpu: SimulatedCuda) -> None:
    """``set_sync_debug_mode`` raises in the middle of a copy that goes through a temporary."""
    x = torch.ones(4, 8, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    with pytest.raises(RuntimeError, match="synchronizing"):
        torch.empty(8, 2).copy_(x.t()[:, ::2])
    assert 4 * 8 * 4 == gpu.live_bytes()


def test_memory_follows_a_storage_that_changes_its_size(gpu: SimulatedCuda) -> None:
    """Growing moves a tensor to a larger block, beside the old one for a while; shrinking frees it."""
    x = torch.empty(100, device="cuda")
    with gpu.measure() as cost:
        x.resize_(1000)
    assert 4000 == gpu.live_bytes()
    # The new 4000 bytes while the old 400 are still there, which are copied: ATen/native/cuda/Resize.cpp.
    assert (4000, 1, 400) == (cost.peak_bytes, cost.d2d, cost.d2d_bytes)
    with gpu.measure() as cost:
        torch.empty(0, device="cuda").resize_(1000)
    assert 0 == cost.d2d
    x.untyped_storage().resize_(0)
    assert 0 == gpu.live_bytes()


def test_host_tensors_are_counted_apart(gpu: SimulatedCuda) -> None:
    """Host memory made in the block has a peak of its own."""
    x = torch.ones(1000, device="cuda")
    with gpu.measure() as cost:
        first = x.cpu()
        del first
        torch.zeros(300)
    assert (4000, 0) == (cost.host_peak_bytes, cost.peak_bytes)


def test_measurements_nest(gpu: SimulatedCuda) -> None:
    """A measurement within another counts its own part, from what was live when it began."""
    with gpu.measure() as outer:
        x = torch.ones(1000, device="cuda")
        with gpu.measure() as inner:
            (x * 2).sum().item()
    # The product and its sum; and x beside them.
    assert (4004, 1) == (inner.peak_bytes, inner.syncs)
    assert (8004, 1) == (outer.peak_bytes, outer.syncs)


def steps_of(gpu: SimulatedCuda, work: Callable[[], object]) -> int:
    """Return how many functions of Python are called to count some work, the second time that it is done.

    Where the tests run beside each other there is another thread, and a lock.
    """
    steps = list[str]()
    with gpu.measure():
        work()
        sys.setprofile(lambda frame, event, _: steps.append(frame.f_code.co_name if event == "call" else ""))
        work()
        sys.setprofile(None)
    return sum(1 for name in steps if name not in ("", "<lambda>", "_locked"))


def test_a_large_block_makes_small_ones_no_dearer(gpu: SimulatedCuda) -> None:
    """An operation is counted in as many steps after a product, whose workspace is large, as before."""
    x = torch.ones(8, device="cuda")
    before = steps_of(gpu, lambda: torch.mul(x, 2))
    torch.mm(x.view(2, 4), x.view(4, 2))
    assert before == steps_of(gpu, lambda: torch.mul(x, 2)) > 0


def test_a_small_operation_is_counted_in_few_steps(gpu: SimulatedCuda) -> None:
    """In place: the kernel of the key, the dispatcher's two, the launch and its order.

    A result takes 8 more for its memory, its line and the peak, and 7 as it goes.
    """
    x = torch.ones(8, device="cuda")
    assert steps_of(gpu, lambda: x.mul_(2)) == 5
    assert steps_of(gpu, lambda: x.mul(2)) == 5 + 8 + 7
