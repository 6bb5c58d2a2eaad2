"""What is read from the traces of PyTorch's profiler; times are microseconds, and each call takes 2."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.simcuda.real.events import Event, kernel, memcpy, operation, runtime

from simcuda.real.trace import IncompleteTraceError
from simcuda.traces import events
from simcuda.traces.call import RecordedCall, RecordedCopy, RecordedTensor, Trace
from simcuda.traces.events import EventFile, NotATraceError
from simcuda.traces.kineto import read

KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces"


def traced(path: Path, *inside: Event, **beside: Any) -> Trace:
    """Read a trace of these events between the waits for the device that the profiler makes."""
    around = [runtime("cudaDeviceSynchronize", ts, number) for ts, number in ((1.0, 1), (9000.0, 9000))]
    (path / "trace.json").write_text(
        json.dumps({"schemaVersion": 1, **beside, "traceEvents": [*around, *inside]})
    )
    return read(path / "trace.json")


def op(name: str, ts: float, end: float, number: int, **arguments: Any) -> Event:
    """An op that ends at some time."""
    event = operation(name, ts, number)
    return event | {"dur": end - ts, "args": event["args"] | arguments}


def launch(ts: float, number: int, of: int = 0) -> list[Event]:
    """A launch and its kernel, made for the op of that number."""
    return [runtime("cudaLaunchKernel", ts, number, op=of), kernel(ts + 3, number)]


def memory(ts: float, nbytes: int, device: int = 1) -> Event:
    """An event of an allocator: of CUDA, or with ``device=0`` of the host."""
    args = {"Device Type": device, "Device Id": 0, "Bytes": nbytes}
    return {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "args": args}


def frame(text: str, ts: float, end: float) -> Event:
    """A Python function that runs."""
    return {"ph": "X", "cat": "python_function", "name": text, "pid": 1, "tid": 1, "ts": ts, "dur": end - ts}


COPYING = {
    "Input Dims": [[2], [2], []],
    "Input type": ["float", "float", "Scalar"],
    "Input Strides": [[1], [1], []],
    "Concrete Inputs": ["", "", "False"],
}
READ = [
    op("aten::item", 100, 200, 1),
    op("aten::_local_scalar_dense", 110, 190, 2),
    runtime("cudaMemcpyAsync", 120, 12, op=2),
    memcpy("Memcpy DtoH (Device -> Pinned)", 123, 12, 4),
    runtime("cudaStreamSynchronize", 130, 13, op=2),
]


def test_outermost_ops_have_the_costs_of_those_within(tmp_path: Path) -> None:
    """``item()`` is one call: a copy of 4 bytes from the device and a wait of 2 microseconds."""
    (call,) = traced(tmp_path, *READ).calls
    assert ("aten::item", ["aten::_local_scalar_dense"]) == (call.op, call.inner)
    assert [RecordedCopy("d2h", 4, pageable=False)] == call.cost.copies
    assert (1, 2.0, []) == (call.cost.stream_syncs, call.cost.waited, call.cost.kernels)
    assert call.cost.allocations is None


def test_wrappers_and_custom_ops_are_no_ops_of_aten(tmp_path: Path) -> None:
    """ATen's op within them is outermost, and what they launch themselves stands apart by their name."""
    found = traced(
        tmp_path,
        op("ProfilerStep#1", 90, 400, 1),
        op("MulBackward0", 100, 200, 2),
        op("aten::mul", 110, 190, 3),
        *launch(120, 20),
        op("mine::twice", 210, 300, 4),
        *launch(220, 21),
        *launch(310, 22),
    )
    assert [("aten::mul", "MulBackward0")] == [(call.op, call.parent) for call in found.calls]
    # Of three launches one is ATen's, one the custom op's, and one nobody's: a step is an annotation.
    assert [[KERNEL]] == [call.cost.kernels for call in found.calls]
    assert {"": 1, "mine::twice": 1} == {name: len(cost.kernels) for name, cost in found.outside.items()}


def test_threads_nest_on_their_own(tmp_path: Path) -> None:
    """A launch of another thread is not the op's, although it happens at the same time."""
    other = [launch(120, 20)[0] | {"tid": 2}, launch(120, 20)[1]]
    (call,) = traced(tmp_path, op("aten::mul", 100, 200, 1), *other).calls
    assert [] == call.cost.kernels


def test_arguments_as_recorded(tmp_path: Path) -> None:
    """Tensors have shape, type and strides, scalars their text; an absent one and an empty list are None."""
    arguments = {
        "Input Dims": [[2, 3], [], [], [[4], [5]], []],
        "Input type": ["c10::Half", "float", "Scalar", "TensorList", ""],
        "Input Strides": [[3, 1], [], [], [[1], [2]], []],
        "Concrete Inputs": ["", "", "1.5", "", ""],
    }
    found = traced(tmp_path, op("aten::x", 100, 200, 1, **arguments))
    assert found.calls[0].arguments == (
        RecordedTensor((2, 3), "c10::Half", (3, 1)),
        RecordedTensor((), "float", ()),
        "1.5",
        (RecordedTensor((4,), "", (1,)), RecordedTensor((5,), "", (2,))),
        None,
    )


@pytest.mark.parametrize("missing", ["Input Dims", "Input type", "Input Strides", "Concrete Inputs"])
def test_arguments_are_recorded_in_full_or_not_at_all(tmp_path: Path, missing: str) -> None:
    """Older traces have neither strides nor scalars: what they lack is not guessed."""
    arguments = {name: value for name, value in COPYING.items() if name != missing}
    found = traced(tmp_path, op("aten::x", 100, 200, 1, **arguments), op("aten::y", 300, 400, 2, **COPYING))
    assert [False, True] == [call.arguments is not None for call in found.calls]


def test_allocations_on_devices(tmp_path: Path) -> None:
    """What is allocated on a device counts; what is freed, or is the host's, does not."""
    found = traced(
        tmp_path, op("aten::x", 100, 200, 1), memory(110, 512), memory(120, -512), memory(130, 64, device=0)
    )
    assert (True, [512]) == (found.has_memory, found.calls[0].cost.allocations)


def test_a_coarse_clock_leaves_allocations_open(tmp_path: Path) -> None:
    """Where one op ends and another begins in the same microsecond, neither has known allocations."""
    found = traced(tmp_path, op("aten::x", 100, 200, 1), op("aten::y", 200, 300, 2), memory(200, 512))
    assert [None, None] == [call.cost.allocations for call in found.calls]
    assert ("2 ops have allocations of which the clock leaves open whose they are",) == found.left_out


def test_numbers_decide_where_the_clock_does_not(tmp_path: Path) -> None:
    """A call at the end of one op and the beginning of another belongs to the one whose number it has."""
    ops = op("aten::x", 100, 200, 1), op("aten::y", 200, 300, 2)
    found = traced(tmp_path, *ops, *launch(200, 20, of=1))
    assert [1, 0] == [len(call.cost.kernels) for call in found.calls]


def test_calls_of_the_driver_count_once(tmp_path: Path) -> None:
    """A driver call with the number of a runtime call is the same launch; one of its own is another."""
    driver = [
        runtime("cuLaunchKernel", ts, number, category="cuda_driver") for ts, number in ((121, 20), (130, 21))
    ]
    both = *launch(120, 20), *driver, kernel(140, 21)
    for order in (both, both[::-1]):
        (call,) = traced(tmp_path, op("aten::mm", 100, 200, 1), *order).calls
        assert 2 == len(call.cost.kernels)


def test_a_wait_within_the_driver_is_that_of_the_runtime(tmp_path: Path) -> None:
    """Of two calls with one number the runtime's name tells what they are, in any order."""
    driver = runtime("cuStreamSynchronize", 131, 21, category="cuda_driver")
    both = [runtime("cudaStreamSynchronize", 130, 21), driver]
    for order in (both, both[::-1]):
        (call,) = traced(tmp_path, op("aten::mm", 100, 200, 1), *order).calls
        assert 1 == call.cost.stream_syncs


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([op("aten::x", 200, 100, 1)], "1 events of the host end before they begin"),
        (
            [runtime("cuCtxSynchronize", 120, 20, category="cuda_driver")],
            "1 waits of another kind, such as cuCtxSynchronize, are not counted",
        ),
        ([runtime("cudaLaunchKernel", 120, 20) | {"dur": -5.0}, kernel(123, 20)], ""),
    ],
)
def test_what_a_profiler_seldom_writes_is_told(tmp_path: Path, events: list[Event], told: str) -> None:
    """An op without an end and a wait of another kind are named; how long a launch took does not matter."""
    found = traced(tmp_path, op("aten::y", 110, 190, 3), *events)
    assert [bool(told)] == [told in line for line in found.left_out] or not told
    assert ["aten::y"] == [call.op for call in found.calls]


def test_names_of_2021(tmp_path: Path) -> None:
    """The first traces name categories and keys otherwise, and write threads as text."""
    (read_, _), wait = launch(120, 20), runtime("cudaStreamSynchronize", 130, 21)
    old = {"cat": "Runtime", "tid": "1"}
    kernel_ = kernel(123, 20) | {"cat": "Kernel"}
    found = traced(
        tmp_path, op("aten::x", 100, 200, 1) | {"cat": "Operator"}, read_ | old, wait | old, kernel_
    )
    assert (1, 1) == (len(found.calls[0].cost.kernels), found.calls[0].cost.stream_syncs)


def test_work_from_before_the_recording_is_left_out(tmp_path: Path) -> None:
    """A kernel with a lower number than any call was launched earlier; that is no loss."""
    found = traced(tmp_path, op("aten::x", 100, 200, 1), kernel(5, 0))
    assert ("1 kernels and copies were launched before the recording began",) == found.left_out


def test_captured_launches_cost_nothing_yet(tmp_path: Path) -> None:
    """What is recorded into a CUDA graph runs when the graph does: its launch has all the kernels."""
    found = traced(
        tmp_path,
        runtime("cudaStreamBeginCapture", 90, 10),
        op("aten::x", 100, 200, 1),
        runtime("cudaLaunchKernel", 120, 11),
        runtime("cudaStreamEndCapture", 210, 12),
        runtime("cudaGraphLaunch", 220, 13),
        kernel(230, 13),
        kernel(240, 13),
    )
    assert [] == found.calls[0].cost.kernels
    assert 2 == len(found.outside[""].kernels)


def test_a_launch_of_a_graph_may_have_kernels_copies_and_memsets(tmp_path: Path) -> None:
    """All have the number of the launch: three records of one call."""
    memset = kernel(250, 13) | {"cat": "gpu_memset", "name": "Memset (Device)"}
    found = traced(
        tmp_path,
        op("aten::x", 100, 200, 1),
        runtime("cudaGraphLaunch", 220, 13),
        kernel(230, 13),
        memcpy("Memcpy DtoD (Device -> Device)", 240, 13, 8),
        memset,
    )
    cost = found.outside[""]
    assert (1, 1) == (len(cost.kernels), len(cost.copies))
    assert "records of the device 1, with their call 1" in found.sums


@pytest.mark.parametrize("is_known", [True, False])
def test_copies_that_may_not_block_do_not_wait(tmp_path: Path, is_known: bool) -> None:
    """A program whose pageable copies are all asked not to block has lost nothing.

    Without arguments, a wait for a stream elsewhere shows that such waits were recorded.
    """
    arguments = COPYING | {"Concrete Inputs": ["", "", "True"]} if is_known else {}
    found = traced(
        tmp_path,
        op("aten::copy_", 99, 200, 1, **arguments),
        runtime("cudaMemcpyAsync", 120, 20, op=1),
        memcpy("Memcpy HtoD (Pageable -> Device)", 121, 20, 8),
        *([] if is_known else [runtime("cudaStreamSynchronize", 300, 30)]),
    )
    assert [("h2d", True)] == [(copy.kind, copy.pageable) for copy in found.calls[0].cost.copies]


@pytest.mark.parametrize(
    ("events", "sum_"),
    [
        (launch(120, 20)[:1], "launches 1, with their kernel 0"),
        (launch(120, 20)[1:], "records of the device 1, with their call 0"),
        ([runtime("cudaMemcpyAsync", 120, 20)], "copies 1, with their record 0"),
        (READ[:-1], "reads of scalars 1, with their wait 0"),
        (
            [runtime("cudaMemcpyAsync", 120, 20), memcpy("Memcpy HtoD (Pageable -> Device)", 121, 20, 8)],
            "pageable copies 1, with a wait 0",
        ),
        (
            [
                op("aten::copy_", 300, 310, 51, **COPYING),
                runtime("cudaMemcpyAsync", 305, 20, op=51),
                memcpy("Memcpy HtoD (Pageable -> Device)", 306, 20, 8),
                runtime("cudaStreamSynchronize", 350, 30),
            ],
            "pageable copies 1, with a wait 0",
        ),
    ],
)
def test_lost_events_are_refused_with_their_sum(tmp_path: Path, events: list[Event], sum_: str) -> None:
    """What the host asked for and what the device did must add up, and blocking copies must wait."""
    with pytest.raises(IncompleteTraceError, match=f"lost events: {sum_}"):
        traced(tmp_path, op("aten::x", 99, 200, 50), *events)


def test_lines_of_python(tmp_path: Path) -> None:
    """A wait is the innermost user function's, with the time that the host waited; torch's own are none."""
    frames = [
        frame("train.py(5): step", 50, 300),
        frame("torch/_tensor.py(9): __float__", 60, 250),
        frame("threading.py(655): wait", 61, 250),
        frame("<built-in method item>", 70, 250),
        frame("nn.Module: Linear_0", 71, 250),
    ]
    found = traced(tmp_path, *frames, *READ)
    waits = [site for site in found.sites if site.what == "stream_syncs"]
    assert [("train.py", 5, "step", 1, 2.0)] == [
        (site.file, site.line, site.function, site.count, site.waited) for site in waits
    ]
    assert (True, False) == (found.has_stacks, found.has_lines)


def test_waits_of_the_profiler_are_its_own(tmp_path: Path) -> None:
    """The wait with which a recording ends is made by the profiler, not by the line that steps it."""
    frames = frame("train.py(5): step", 50, 300), frame("torch/profiler/profiler.py(9): stop_trace", 60, 250)
    found = traced(tmp_path, op("aten::x", 20, 40, 1), *frames, runtime("cudaDeviceSynchronize", 120, 20))
    # The others are those around all that ``traced`` writes.
    assert ["<library>"] == [site.file for site in found.sites]
    assert ("1 waits are the profiler's own, and at no place",) == found.left_out


def test_stacks_of_2021_name_lines(tmp_path: Path) -> None:
    """The ops of older traces carry the lines that ran."""
    stack = "/x/site-packages/torch/a.py(3): b;train.py(7): step;train.py(9): <module>"
    found = traced(tmp_path, op("aten::x", 100, 200, 1, **{"Call stack": stack}), *launch(120, 20))
    launches = [site for site in found.sites if site.what == "launches"]
    assert [("train.py", 7, "step")] == [(site.file, site.line, site.function) for site in launches]
    assert found.has_lines


def test_the_device_and_its_cuda(tmp_path: Path) -> None:
    """The names of the devices and the version of CUDA stand beside the events."""
    beside = {
        "deviceProperties": [{"name": "NVIDIA H100"}, {"name": "NVIDIA H100"}],
        "cuda_runtime_version": 12040,
    }
    found = traced(tmp_path, op("aten::x", 100, 200, 1), **beside)
    assert (("NVIDIA H100",), "12.4") == (found.devices, found.cuda)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([operation("aten::x", 1, 1), runtime("hipLaunchKernel", 2, 2)], "AMD GPU"),
        ([{"ph": "X", "cat": "XlaModule", "name": "jit_f", "ts": 1}], "no operation of PyTorch.*XlaModule"),
        ([operation("aten::x", 1, 1)], "no call of CUDA.*ProfilerActivity.CUDA"),
        ([operation("aten::x", 1, 1) | {"ts": None}], "none of a profiler"),
        ([operation("aten::x", 1, 1) | {"args": 3}], "none of a profiler"),
        ([runtime("cudaLaunchKernel", 1, 1) | {"args": {"correlation": "x"}}], "none of a profiler"),
        ([operation("aten::x", 1, 1) | {"ts": "1", "dur": "2"}, *launch(3, 3)], "none of a profiler"),
        ([], "no operation of PyTorch among 0 events"),
        ([operation("aten::x", 1, 1), *launch(3, 3), *launch(3, 3)], "two calls of CUDA have the number 3"),
        ([operation("aten::x", 1, 1), launch(3, 3)[0] | {"ts": float("nan")}], "has no time"),
    ],
)
def test_what_pytorch_on_cuda_did_not_write(tmp_path: Path, events: list[Event], reason: str) -> None:
    """Other GPUs, other frameworks and traces of the host alone are refused with the reason."""
    path = tmp_path / "other.json"
    path.write_text(json.dumps(events))
    with pytest.raises(NotATraceError, match=reason):
        read(path)


def whole(path: Path) -> bytes:
    """A trace of 40 launches."""
    traced(
        path, op("aten::x", 100, 900, 1), *[each for at in range(40) for each in launch(110 + at, 20 + at)]
    )
    return (path / "trace.json").read_bytes()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_trace_that_is_cut(tmp_path: Path, packed: bool, share: float) -> None:
    """It is refused, with the number of events before the cut: costs of ops stand after the ops."""
    data = gzip.compress(whole(tmp_path)) if packed else whole(tmp_path)
    (tmp_path / "cut").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(NotATraceError, match=r"cut or damaged after \d+ events"):
        read(tmp_path / "cut")


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
def test_reading_in_pieces(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read alike in pieces of any size, numbers that a piece ends in included."""
    data = json.loads(whole(tmp_path))
    monkeypatch.setattr(events, "CHUNK", chunk)
    for value in (data | {"after": 1234567}, data["traceEvents"]):
        (tmp_path / "again.json").write_text(json.dumps(value, indent=1))
        file = EventFile(tmp_path / "again.json")
        assert data["traceEvents"] == list(file)
    (tmp_path / "again.json").write_text(json.dumps(data | {"after": 1234567}))
    file = EventFile(tmp_path / "again.json")
    assert (len(list(file)), 1234567) == (file.read, file.metadata["after"])


def test_damage_is_not_searched_for_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value without an end is given up before it fills the memory."""
    monkeypatch.setattr(events, "LARGEST_VALUE", 1000)
    monkeypatch.setattr(events, "CHUNK", 100)
    (tmp_path / "long.json").write_text('{"traceEvents": ["' + "x" * 100_000)
    with pytest.raises(NotATraceError, match="cut or damaged after 0 events: Unterminated string"):
        read(tmp_path / "long.json")


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_that_is_too_large(tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused with the limit, one that unpacks to too much as well."""
    data = whole(tmp_path)
    monkeypatch.setattr(events, "LARGEST_TEXT", len(data) - 1)
    (tmp_path / "large").write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(NotATraceError, match=f"^larger than {len(data) - 1:,} characters"):
        read(tmp_path / "large")


# Ops, their kernels, copies and waits for streams: counted from the JSON, by merging the intervals of ops.
RECORDINGS = {
    "b300_moe_01": (60, 36, 0, 0),
    "event_sync": (4, 3, 1, 1),
    "event_sync_multi_stream": (3, 3, 0, 0),
    "h100_bert_small": (104, 60, 1, 1),
    "h100_qwen1.5_prefill": (1378, 1029, 1, 1),
    "v100_dlrm_training_rank0": (659, 200, 16, 10),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "numbers"), RECORDINGS.items(), ids=list(RECORDINGS))
def test_recordings_of_real_gpus(name: str, numbers: tuple[int, ...]) -> None:
    """All of a recording is found again: within ops of ATen and outside of them."""
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no recordings in {TRACES}")
    found = read(path)

    def counted(calls: tuple[RecordedCall, ...]) -> tuple[int, ...]:
        costs = [call.cost for call in calls]
        kernels, copies = (sum(len(getattr(cost, each)) for cost in costs) for each in ("kernels", "copies"))
        return len(calls), kernels, copies, sum(cost.stream_syncs for cost in costs)

    assert numbers == counted(found.calls)
    events_ = [(str(event.get("cat")).lower(), event) for event in EventFile(path) if event.get("ph") == "X"]
    numbers_of_calls = [
        event["args"]["correlation"]
        for kind, event in events_
        if kind in {"cuda_runtime", "cuda_driver", "runtime"}
    ]
    kernels = sum(
        kind == "kernel" and event["args"]["correlation"] >= min(numbers_of_calls) for kind, event in events_
    )
    outside = sum(len(cost.kernels) for cost in found.outside.values())
    assert kernels == numbers[1] + outside
