"""What is counted in the profiler's trace; times are microseconds, and a block lasts from 100 to 1000."""

from __future__ import annotations

import pytest
from tests.simcuda.real.events import PLACES, Event, block, kernel, mark, memcpy, memory, operation, runtime

from simcuda.ledger import NOWHERE
from simcuda.real.trace import IncompleteTraceError, ProfilerTrace, TraceCounts
from simcuda.real.trace import count as count_trace

STEP, LOG, _ = PLACES
FROM_PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
TO_PINNED = "Memcpy DtoH (Device -> Pinned)"


def count(*inside: Event) -> TraceCounts:
    """Count a block with these events."""
    return count_trace(ProfilerTrace(block(*inside)), PLACES)


def totals(*inside: Event) -> dict[str, int]:
    """The totals that are not 0."""
    return {metric: amount for metric, amount in count(*inside).totals.items() if amount}


def test_an_empty_block_costs_nothing() -> None:
    """The waits that bound it and those of the profiler are not the block's."""
    assert ({}, {}) == (totals(), count().sites)


def test_a_read_of_a_scalar() -> None:
    """``item()`` is one copy of 4 bytes and one wait for the stream, both at the line that was running."""
    counted = count(
        operation("aten::_local_scalar_dense", 200, 5),
        mark("line 1", 210),
        runtime("cudaMemcpyAsync", 220, 12, op=5),
        memcpy(TO_PINNED, 223, 12, 4),
        runtime("cudaStreamSynchronize", 230, 13, op=5),
    )
    assert {"d2h": 1, "d2h_bytes": 4, "stream_syncs": 1} == counted.totals
    assert {(*LOG, "d2h"): 1, (*LOG, "stream_syncs"): 1} == counted.sites


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("cudaStreamSynchronize", "stream_syncs"),
        ("cudaEventSynchronize", "event_syncs"),
        ("cudaDeviceSynchronize", "device_syncs"),
        ("cudaStreamSynchronize_ptsz", "stream_syncs"),
    ],
)
def test_waits_by_kind(name: str, metric: str) -> None:
    """Each call that waits counts as its own kind, also in code compiled for per-thread default streams."""
    counted = count(mark("line 1", 150), runtime(name, 210, 10))
    assert ({metric: 1}, {(*LOG, metric): 1}) == (counted.totals, counted.sites)


@pytest.mark.parametrize("name", ["cudaEventQuery", "cudaStreamWaitEvent", "cudaEventRecord"])
def test_what_does_not_wait(name: str) -> None:
    """Asking for an event and ordering streams cost the host nothing."""
    assert {} == totals(runtime(name, 210, 10))


def test_waits_that_a_library_hides_show_at_the_line_at_work() -> None:
    """Of three waits the first is of the line before the hook's, in which the operation goes on."""
    counted = count(
        mark("line 0", 150),
        operation("aten::unique_dim", 200, 5),
        runtime("cudaStreamSynchronize", 210, 10, op=5),
        mark("line 2", 215),
        runtime("cudaStreamSynchronize", 230, 11, op=5),
        runtime("cudaStreamSynchronize", 240, 12, op=5),
    )
    assert {(*STEP, "stream_syncs"): 1, (*PLACES[2], "stream_syncs"): 2} == counted.sites


def test_without_lines_a_hidden_wait_shows_at_its_operation() -> None:
    """Where a debugger keeps us from following lines, the operation stands in."""
    counted = count(
        operation("aten::unique_dim", 200, 5),
        runtime("cudaStreamSynchronize", 210, 10, op=5),
        runtime("cudaFree", 220, 11),
    )
    assert {
        ("<library>", 0, "aten::unique_dim", "stream_syncs"): 1,
        ("<library>", 0, "<library>", "implicit_syncs"): 1,
    } == counted.sites


def test_the_line_at_work_is_the_last_one_that_was_come_to() -> None:
    """Marks of lines hold until the next one."""
    counted = count(
        mark("line 0", 150),
        runtime("cudaMalloc", 160, 10),
        mark("line 1", 170),
        runtime("cudaMalloc", 180, 11),
        runtime("cudaMalloc", 190, 12),
    )
    assert {(*STEP, "implicit_syncs"): 1, (*LOG, "implicit_syncs"): 2} == counted.sites


def test_allocations_are_of_the_line_at_work_whichever_thread_made_them() -> None:
    """Not what is given back, and not the host's memory; before any line nobody knows."""
    counted = count(
        memory(140, 7, 512),
        mark("line 0", 150),
        memory(160, 8, 512) | {"tid": 99},
        memory(161, 8, -512),
        memory(162, 9, 64, device=0),
        mark("line 1", 170),
        memory(180, 8, 1024),
    )
    assert [(7, NOWHERE), (8, STEP), (8, LOG)] == counted.allocations
    assert {} == counted.totals


LAUNCHES = [
    ("cudaLaunchKernel", "cuda_runtime"),
    ("cudaLaunchKernelExC", "cuda_runtime"),
    ("cudaLaunchCooperativeKernel", "cuda_runtime"),
    ("cuLaunchKernel", "cuda_driver"),
    ("cuLaunchKernelEx", "cuda_driver"),
]


@pytest.mark.parametrize(("name", "category"), LAUNCHES)
def test_launches_are_kernels(name: str, category: str) -> None:
    """Every way to launch a kernel counts once, whoever launched it."""
    assert {"aten_launches": 1} == totals(runtime(name, 200, 10, category=category), kernel(205, 10))


def test_copies_and_memsets_are_no_launches() -> None:
    """As in the simulation, what the copy engine does is no kernel."""
    memset = runtime("cudaMemsetAsync", 200, 10)
    filled = memcpy("Memset (Device)", 205, 10, 64) | {"cat": "gpu_memset"}
    within = (
        runtime("cudaMemcpyAsync", 210, 11, op=3),
        memcpy("Memcpy DtoD (Device -> Device)", 215, 11, 64),
    )
    assert {"d2d": 1, "d2d_bytes": 64} == totals(memset, filled, *within)


def test_what_was_begun_before_does_not_belong_to_the_block() -> None:
    """A kernel and a copy that run within, but were asked for before."""
    before = runtime("cudaLaunchKernel", 80, 10), runtime("cudaMemcpyAsync", 85, 11)
    assert {} == totals(*before, kernel(200, 10), memcpy(FROM_PAGEABLE, 210, 11, 8))


def test_kernels_that_outlast_their_launch_belong_to_the_block() -> None:
    """What was launched within counts, although it runs while the end waits for it."""
    assert {"aten_launches": 1} == totals(runtime("cudaLaunchKernel", 999, 10), kernel(1003, 10))


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        (FROM_PAGEABLE, "h2d"),
        ("Memcpy HtoD (Pinned -> Device)", "h2d"),
        ("Memcpy DtoH (Device -> Pageable)", "d2h"),
        ("Memcpy DtoD (Device -> Device)", "d2d"),
        ("Memcpy PtoP (Device -> Device)", "p2p"),
    ],
)
def test_copies_by_direction(name: str, metric: str) -> None:
    """The device's record tells direction and bytes."""
    counted = totals(runtime("cudaMemcpyAsync", 200, 10, op=4), memcpy(name, 205, 10, 4000))
    assert (1, 4000) == (counted[metric], counted[f"{metric}_bytes"])


def test_a_copy_between_devices_that_passes_through_the_host_is_one() -> None:
    """Without access between devices the driver makes two records for one call of a peer copy."""
    peer = (
        runtime("cudaMemcpyPeerAsync", 200, 10, op=4),
        memcpy("Memcpy DtoH (Device -> Pinned)", 205, 10, 4000),
        memcpy("Memcpy HtoD (Pinned -> Device)", 207, 10, 4000),
    )
    assert {"p2p": 1, "p2p_bytes": 4000} == totals(*peer)


def test_a_pageable_copy_that_does_not_wait_may_block() -> None:
    """The copy is asynchronous by name alone; a wait that a later operation makes is another matter."""
    copied = (
        mark("line 0", 150),
        operation("aten::copy_", 190, 5),
        runtime("cudaMemcpyAsync", 200, 10, op=5),
        memcpy(FROM_PAGEABLE, 205, 10, 4000),
    )
    assert 1 == count(*copied).sites[*STEP, "implicit_syncs"]
    later = runtime("cudaStreamSynchronize", 300, 11)
    assert 1 == count(*copied, later).totals["implicit_syncs"]


def test_a_blocking_copy_waits_once() -> None:
    """A copy whose own operation waits for it is an explicit wait and no implicit one."""
    counted = totals(
        runtime("cudaMemcpyAsync", 200, 10, op=5),
        memcpy(FROM_PAGEABLE, 205, 10, 4000),
        runtime("cudaStreamSynchronize", 210, 11, op=5),
    )
    assert {"h2d": 1, "h2d_bytes": 4000, "stream_syncs": 1} == counted


def test_a_copy_that_blocks_by_itself() -> None:
    """The call that is not asynchronous makes the host wait, whatever wait follows it."""
    counted = totals(
        runtime("cudaMemcpy", 200, 10, op=5),
        memcpy(FROM_PAGEABLE, 205, 10, 4000),
        runtime("cudaStreamSynchronize", 210, 11, op=5),
    )
    assert {"h2d": 1, "h2d_bytes": 4000, "implicit_syncs": 1, "stream_syncs": 1} == counted


def test_a_pinned_copy_does_not_block() -> None:
    """That is what pinning is for."""
    copied = runtime("cudaMemcpyAsync", 200, 10, op=5), memcpy("Memcpy HtoD (Pinned -> Device)", 205, 10, 8)
    assert {"h2d": 1, "h2d_bytes": 8} == totals(*copied)


def test_a_call_that_passes_through_the_driver_is_one() -> None:
    """What the runtime asks of the driver has the runtime's number."""
    through = (
        runtime("cudaMemcpyAsync", 200, 10, op=5),
        runtime("cuMemcpyHtoDAsync", 201, 10, op=5, category="cuda_driver"),
        memcpy(FROM_PAGEABLE, 205, 10, 4000),
    )
    waits = (
        runtime("cudaStreamSynchronize", 210, 11, op=6),
        runtime("cuStreamSynchronize", 211, 11, op=6, category="cuda_driver"),
    )
    expected = {"h2d": 1, "h2d_bytes": 4000, "implicit_syncs": 1, "stream_syncs": 1}
    assert expected == totals(*through, *waits)


@pytest.mark.parametrize("name", ["cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost"])
def test_calls_that_make_room_may_block(name: str) -> None:
    """They count as implicit waits, each once."""
    assert {"implicit_syncs": 1} == totals(runtime(name, 200, 10))


@pytest.mark.parametrize("name", ["cudaMallocAsync", "cudaFreeAsync"])
def test_stream_ordered_allocation_does_not_block(name: str) -> None:
    """Their names begin like those of calls that do."""
    assert {} == totals(runtime(name, 200, 10))


@pytest.mark.parametrize("text", ["begin", "end"])
def test_a_lost_bound_is_an_error(text: str) -> None:
    """Without the wait at the beginning or the end, nobody knows what else was lost."""
    times = {"begin": 92, "end": 1002}
    events = [event for event in block() if event.get("ts") != times[text]]
    with pytest.raises(IncompleteTraceError, match=f"no record of the {text} of the measured block"):
        count_trace(ProfilerTrace(events), PLACES)


def test_a_launch_without_its_kernel_is_an_error() -> None:
    """Kernels that the profiler dropped would be launches that were never counted."""
    launches = [runtime("cudaLaunchKernel", 200, 10), kernel(205, 10), runtime("cudaLaunchKernel", 210, 11)]
    with pytest.raises(IncompleteTraceError, match="no record of 1 of 2 kernel launches"):
        count(*launches)


def test_a_copy_without_its_record_is_an_error() -> None:
    """Nobody knows its direction or its bytes."""
    with pytest.raises(IncompleteTraceError, match="no record of 1 of 1 copies"):
        count(runtime("cudaMemcpyAsync", 200, 10))


def test_a_copy_in_no_direction_is_an_error() -> None:
    """What the profiler does not know cannot be counted as nothing."""
    unknown = "Memcpy Unknown (Unknown -> Unknown)"
    with pytest.raises(IncompleteTraceError, match="direction of 'Memcpy Unknown"):
        count(runtime("cudaMemcpyAsync", 200, 10), memcpy(unknown, 205, 10, 4))
