"""What is counted in the allocators' traces, with entries as ``torch.cuda.memory._snapshot`` gives them."""

from __future__ import annotations

from typing import Any

from simcuda.real.device import replay_allocations

STEP = ("train.py", 10, "step")
LOG = ("train.py", 20, "log")
SEGMENT = 0x7F0000000000


def entry(action: str, address: int, size: int, time: int) -> dict[str, Any]:
    """One entry of a device's trace."""
    return {
        "action": action,
        "addr": SEGMENT + address,
        "size": size,
        "stream": 0,
        "time_us": time,
        "compile_context": "N/A",
        "user_metadata": "",
    }


def freed(address: int, size: int, time: int) -> list[dict[str, Any]]:
    """A block that is given back: the request, and when it takes effect."""
    requested, completed = (
        entry(action, address, size, time) for action in ("free_requested", "free_completed")
    )
    return [requested, completed]


def test_nothing_was_allocated() -> None:
    """Devices without entries have no sizes and no peak."""
    counted = replay_allocations([[], []], [])
    assert ((), 0, {}) == (counted.sizes, counted.peak, counted.sites)


def test_requests_are_counted_with_their_sizes() -> None:
    """Segments that the allocator itself gets from CUDA are no requests, nor are those that failed."""
    failed = {"action": "oom", "size": 1 << 40, "stream": 0, "time_us": 4, "device_free": 1 << 30}
    trace = [
        entry("segment_alloc", 0, 2 << 20, 1),
        entry("alloc", 0, 400, 2),
        entry("alloc", 512, 4, 3),
        failed,
        entry("snapshot", 0, 0, 5),
    ]
    assert (400, 4) == replay_allocations([trace], []).sizes


def test_the_peak_is_above_the_beginning() -> None:
    """400 in use, 300 of before given back, 400 again: 500 above the beginning, once the free is done."""
    requested, completed = freed(4096, 300, 3)
    trace = [entry("alloc", 0, 400, 1), requested, completed, entry("alloc", 512, 400, 4), *freed(0, 400, 5)]
    assert 500 == replay_allocations([trace], []).peak
    assert 800 == replay_allocations([[event for event in trace if event is not completed]], []).peak


def test_the_peak_of_several_devices_is_that_of_their_sum() -> None:
    """The first device gives its 100 back before the second takes 50: together they hold 100 at most."""
    first = [entry("alloc", 0, 100, 1), *freed(0, 100, 2)]
    second = [entry("alloc", 0, 50, 3)]
    assert 100 == replay_allocations([first, second], []).peak
    assert 150 == replay_allocations([first, [entry("alloc", 0, 50, 1)]], []).peak


def test_places_come_from_what_the_profiler_saw_at_the_same_address() -> None:
    """An address that is used again belongs to the places in their order; without any, nobody knows."""
    trace = [
        entry("alloc", 0, 8, 1),
        *freed(0, 8, 2),
        entry("alloc", 0, 8, 3),
        entry("alloc", 512, 8, 4),
        entry("alloc", 1024, 8, 5),
    ]
    placed = [(SEGMENT, STEP), (SEGMENT, LOG), (SEGMENT + 512, LOG)]
    assert {STEP: 1, LOG: 2, ("<unknown>", 0, "<unknown>"): 1} == replay_allocations([trace], placed).sites
