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


def call(name: str, number: int = 10, ts: float = 200, category: str = "cuda_runtime") -> Event:
    """A call of CUDA, made for an operation."""
    return runtime(name, ts, number, op=5, category=category)


COPY, WAIT = call("cudaMemcpyAsync"), call("cudaStreamSynchronize", 11, 210)
COPIED = {"h2d": 1, "h2d_bytes": 4000}
WITHIN, PINNED = "Memcpy DtoD (Device -> Device)", "Memcpy HtoD (Pinned -> Device)"
TOTALS: list[tuple[list[Event], dict[str, int]]] = [
    # The waits that bound a block and those of the profiler are not its own.
    ([], {}),
    # Each call that waits is its own kind, also in code compiled for per-thread default streams.
    ([call("cudaStreamSynchronize")], {"stream_syncs": 1}),
    ([call("cudaStreamSynchronize_ptsz")], {"stream_syncs": 1}),
    ([call("cudaEventSynchronize")], {"event_syncs": 1}),
    ([call("cudaDeviceSynchronize")], {"device_syncs": 1}),
    # Asking for an event and ordering streams cost the host nothing.
    *(([call(name)], {}) for name in ("cudaEventQuery", "cudaStreamWaitEvent", "cudaEventRecord")),
    # Every way to launch a kernel counts once, whoever launched it.
    *(
        ([call(name, category=f"cuda_{kind}"), kernel(205, 10)], {"aten_launches": 1})
        for kind, names in {
            "runtime": ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel"),
            "driver": ("cuLaunchKernel", "cuLaunchKernelEx"),
        }.items()
        for name in names
    ),
    # What the copy engine does is no kernel.
    ([call("cudaMemsetAsync"), memcpy("Memset (Device)", 205, 10, 64) | {"cat": "gpu_memset"}], {}),
    ([COPY, memcpy(WITHIN, 205, 10, 64)], {"d2d": 1, "d2d_bytes": 64}),
    # What was asked for before does not belong to the block; what runs while its end waits does.
    ([call("cudaLaunchKernel", ts=80), kernel(200, 10)], {}),
    ([call("cudaMemcpyAsync", ts=80), memcpy(FROM_PAGEABLE, 210, 10, 8)], {}),
    ([call("cudaLaunchKernel", ts=999), kernel(1003, 10)], {"aten_launches": 1}),
    # The device's record tells direction and bytes; a pageable copy that nobody waits for may block.
    ([COPY, memcpy(FROM_PAGEABLE, 205, 10, 4000)], COPIED | {"implicit_syncs": 1}),
    ([COPY, memcpy(PINNED, 205, 10, 4000)], COPIED),
    ([COPY, memcpy(TO_PINNED, 205, 10, 4)], {"d2h": 1, "d2h_bytes": 4}),
    ([COPY, memcpy("Memcpy PtoP (Device -> Device)", 205, 10, 64)], {"p2p": 1, "p2p_bytes": 64}),
    # Without access between devices the driver makes two records for one call of a peer copy.
    (
        [call("cudaMemcpyPeerAsync"), memcpy(TO_PINNED, 205, 10, 4000), memcpy(PINNED, 207, 10, 4000)],
        {"p2p": 1, "p2p_bytes": 4000},
    ),
    # A copy whose own operation waits for it is an explicit wait; one that is not asynchronous blocks itself.
    ([COPY, memcpy(FROM_PAGEABLE, 205, 10, 4000), WAIT], COPIED | {"stream_syncs": 1}),
    (
        [call("cudaMemcpy"), memcpy(FROM_PAGEABLE, 205, 10, 4000), WAIT],
        COPIED | {"implicit_syncs": 1, "stream_syncs": 1},
    ),
    # What the runtime asks of the driver has the runtime's number, and is one call.
    (
        [
            *(COPY, call("cuMemcpyHtoDAsync", ts=201, category="cuda_driver"), WAIT),
            *(memcpy(PINNED, 205, 10, 4000), call("cuStreamSynchronize", 11, 211, category="cuda_driver")),
        ],
        COPIED | {"stream_syncs": 1},
    ),
    # Calls that make room may block, but those that are ordered in a stream.
    *(
        ([call(name)], {"implicit_syncs": 1})
        for name in ("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost")
    ),
    *(([call(name)], {}) for name in ("cudaMallocAsync", "cudaFreeAsync")),
]


@pytest.mark.parametrize(("events", "expected"), TOTALS)
def test_what_events_cost(events: list[Event], expected: dict[str, int]) -> None:
    """Every total that is not 0."""
    assert expected == totals(*events)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        # Kernels that the profiler dropped would be launches that were never counted.
        (
            [call("cudaLaunchKernel"), kernel(205, 10), call("cudaLaunchKernel", 11)],
            "no record of 1 of 2 kernel launches",
        ),
        # Nobody knows the direction of a copy without a record, or its bytes.
        ([COPY], "no record of 1 of 1 copies"),
        ([COPY, memcpy("Memcpy Unknown (Unknown -> Unknown)", 205, 10, 4)], "direction of 'Memcpy Unknown"),
    ],
)
def test_what_gets_lost_is_an_error(events: list[Event], message: str) -> None:
    """It is not counted as nothing."""
    with pytest.raises(IncompleteTraceError, match=message):
        totals(*events)


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


@pytest.mark.parametrize("text", ["begin", "end"])
def test_a_lost_bound_is_an_error(text: str) -> None:
    """Without the wait at the beginning or the end, nobody knows what else was lost."""
    times = {"begin": 92, "end": 1002}
    events = [event for event in block() if event.get("ts") != times[text]]
    with pytest.raises(IncompleteTraceError, match=f"no record of the {text} of the measured block"):
        count_trace(ProfilerTrace(events), PLACES)
