"""Recorded calls beside their replay; the calls are written here, as the reader would hand them over."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.gpu.confirm import add_confirmations, confirmations, entry_of_trace
from tests.simcuda.real.events import kernel, memcpy, operation, runtime

import simcuda
from simcuda import agree
from simcuda.basis import RECORDED
from simcuda.traces import report
from simcuda.traces.agreement import Finding, TraceAgreement, agreement_with, nearest_profile, same
from simcuda.traces.arguments import call_to_make
from simcuda.traces.call import Argument, RecordedCall, RecordedCopy, RecordedCost, RecordedTensor, Trace
from simcuda.traces.kineto import read
from simcuda.traces.replay import LARGE, replay, shapes_only, warm_up

OWN = "void at::native::vectorized_elementwise_kernel<4>(int)"
TRACES = Path(__file__).resolve().parents[4] / "shared" / "traces"
CUTLASS = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>(int)"


def tensor(*shape: int, dtype: str = "float", strides: tuple[int, ...] | None = None) -> RecordedTensor:
    """A recorded tensor, dense by default."""
    return RecordedTensor(shape, dtype, torch.empty(shape).stride() if strides is None else strides)


def compared(op: str, *arguments: Argument, inner: Sequence[str] = (), **cost: Any) -> dict[str, Finding]:
    """What a trace of this one call shows, by metric."""
    call = RecordedCall(f"aten::{op}", arguments, RecordedCost(**cost), [*inner])
    return {finding.metric: finding for finding in agreed(call).findings}


def agreed(*calls: RecordedCall) -> TraceAgreement:
    """The agreement with a trace of these calls."""
    trace = Trace(
        path="t.json",
        devices=("NVIDIA H100",),
        cuda="12.4",
        has_memory=False,
        has_stacks=False,
        has_lines=False,
        calls=calls,
    )
    return agreement_with(trace)


def test_an_equal_count_is_confirmed_as_often_as_recorded() -> None:
    """Three equal additions of one kernel each are one distinct call, confirmed three times."""
    call = RecordedCall("aten::add", (tensor(4, 3), tensor(4, 3), None), RecordedCost([OWN]))
    found = agreed(call, call, call)
    (launches,) = [finding for finding in found.findings if finding.metric == "launches"]
    assert ("confirmed", 3, False) == (launches.verdict, launches.count, launches.is_zero)
    assert {("aten::add", call.arguments): 3} == found.replayed


def test_another_count_is_refuted_with_both_numbers_and_the_kernels() -> None:
    """An addition launches one kernel: a recording of two of ATen's refutes it."""
    launches = compared("add", tensor(4, 3), tensor(4, 3), None, kernels=[OWN, OWN])["launches"]
    assert ("refuted", 2, 1) == (launches.verdict, launches.recorded, launches.simulated)
    assert (OWN, OWN) == launches.kernels


READ, WRITTEN = (RecordedCopy(kind, nbytes, kind == "h2d") for kind, nbytes in (("d2h", 4), ("h2d", 24)))
LONGS = tensor(3, dtype="long", strides=(1,))
TO_DEVICE = (tensor(3, dtype="long"), None, "4", "False", "False", None)
HALVES = [tensor(*shape, dtype="c10::BFloat16", strides=(*shape[1:], 1)) for shape in ((141, 512), (512,))]
FLOATS, NUMBER = tensor(100, strides=(1,)), tensor(dtype="double", strides=())
VERDICTS: list[tuple[str, tuple[Argument, ...], dict[str, Any], dict[str, str]]] = [
    # Two kernels of cuBLAS where the simulation has one decide nothing; a library's kernel is named.
    ("mm", (tensor(8, 8),) * 2, {"kernels": [CUTLASS] * 2}, {"launches": "library: marked: aten.mm.default"}),
    ("relu", (tensor(8),), {"kernels": ["triton_f"]}, {"launches": "library: not marked: triton_f"}),
    # On the host an addition calls nothing of CUDA, as recorded; a transposition costs nothing anywhere.
    ("add", (tensor(4), tensor(4), None), {}, {"launches": "host: nothing of CUDA was called"}),
    ("t", (tensor(4, 2),), {}, dict.fromkeys(("launches", "copies", "bytes", "waits"), "confirmed: ")),
    # Bytes depend on the types in lists, launches do not.
    (
        *("cat", ((RecordedTensor((4,), "", (1,)),) * 2, "0"), {"kernels": [OWN]}),
        {"launches": "confirmed: ", "bytes": "open: not recorded: types in lists"},
    ),
    # A long number and a long tensor of the device look alike; either is one kernel.
    ("add", (tensor(4), tensor(dtype="long"), "1"), {"kernels": [OWN]}, {"launches": "confirmed: "}),
    ("add", (tensor(4), tensor(dtype="long"), "1"), {"kernels": [OWN] * 2}, {"launches": "open: not rec"}),
    # A transposed tensor is copied by one kernel, a dense one is left alone.
    *(
        ("contiguous", (tensor(4, 3, strides=by), "0"), {"kernels": [OWN]}, {"launches": f"{verdict}: "})
        for by, verdict in (((1, 4), "confirmed"), ((3, 1), "refuted"))
    ),
    # ``item`` copies the 4 bytes of a float and waits once; nothing about it was inferred.
    (
        *("item", (tensor(),), {"copies": [READ], "stream_syncs": 1}),
        dict.fromkeys(("copies", "bytes", "waits"), "confirmed: "),
    ),
    ("item", (tensor(),), {"copies": [READ]}, {"waits": "refuted: "}),
    # That a copy came from the host is read out of the trace; its 3 x 8 bytes and its wait are not.
    (
        *("to", TO_DEVICE, {"copies": [WRITTEN], "stream_syncs": 1}),
        {"copies": "circular: ", "bytes": "confirmed: ", "waits": "confirmed: "},
    ),
    *(
        ("copy_", (LONGS, LONGS, blocks), {"copies": [WRITTEN], "stream_syncs": 1}, {"waits": f"{verdict}: "})
        for blocks, verdict in (("False", "confirmed"), ("True", "refuted"))
    ),
    # 100 floats are 400 bytes, in a block of 512; a block of 1024 was for something else.
    *(
        ("neg", (FLOATS,), {"kernels": [OWN], "allocations": (block,)}, {"allocated_bytes": f"{verdict}: "})
        for block, verdict in ((512, "confirmed"), (1024, "refuted"))
    ),
    # Every integer drawn is below the smallest size, so that a table of 3 rows can be looked up.
    (
        *("embedding", (tensor(3, 8), tensor(50, dtype="long"), "-1", "False", "False")),
        *({"kernels": [OWN]}, {"launches": "confirmed: "}),
    ),
    # A normalisation of 141 rows in bfloat16 keeps mean and deviation in 32 bits: 564 bytes in 1024 each;
    # 141 x 512 elements of 2 bytes are 144384, a multiple of 512.
    (
        *("layer_norm", (HALVES[0], "[512]", HALVES[1], HALVES[1], "1e-12", "True")),
        {"kernels": [OWN], "allocations": (144384, 1024, 1024)},
        {"allocated_bytes": "confirmed: "},
    ),
    # Traces show ``x * 2.0`` as a tensor of doubles; 256 floats fill 2 x 512, and would take 2048 as doubles.
    (
        *("mul", (tensor(256), NUMBER), {"kernels": [OWN], "allocations": (1024,)}),
        {"allocated_bytes": "confirmed: "},
    ),
]


@pytest.mark.parametrize(("op", "arguments", "cost", "verdicts"), VERDICTS)
def test_what_a_recorded_call_shows(
    op: str, arguments: tuple[Argument, ...], cost: dict[str, Any], verdicts: dict[str, str]
) -> None:
    """A verdict for each metric, with its reason."""
    found = compared(op, *arguments, **cost)
    for metric, expected in verdicts.items():
        assert f"{found[metric].verdict}: {found[metric].why}".startswith(expected)


def test_a_large_request_may_get_a_larger_block() -> None:
    """Above 1 MiB by up to 1 MiB, which is not split."""
    assert same("allocated_bytes", (3 << 20,), (2 << 20,))
    assert not same("allocated_bytes", ((3 << 20) + 512,), (2 << 20,))


@pytest.mark.parametrize("op", ["linear", "addmm"])
def test_a_bias_that_an_older_pytorch_added_in_the_product_has_changed(op: str) -> None:
    """For one row, newer versions copy the 16 bytes of the bias first: no such copy is the older one's."""
    rows, weight, bias = tensor(1, 3), tensor(4, 3) if op == "linear" else tensor(3, 4), tensor(4)
    arguments = (rows, weight, bias) if op == "linear" else (bias, rows, weight, "1", "1")
    older = compared(op, *arguments, inner=("aten::addmm",), kernels=[CUTLASS])
    assert {"library", "changed since"} == {finding.verdict for finding in older.values()}
    copies = [RecordedCopy("d2d", 16, pageable=False)]
    newer = compared(op, *arguments, inner=("aten::addmm",), kernels=[CUTLASS], copies=copies)
    assert ("confirmed", "confirmed") == (newer["copies"].verdict, newer["bytes"].verdict)


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("cat", (None, "0"), "the tensors of a list were not recorded"),
        ("add", None, "shapes, types, strides or scalars were not recorded"),
        ("no_such_op", (tensor(2),), "no overload in torch"),
        ("relu", (RecordedTensor((1 << 40,), "float", (1,)),), "take more than 4 GiB"),
        ("relu", (RecordedTensor((2,), "c10::New", (1,)),), "c10::New"),
        ("relu", (RecordedTensor((2,), "", (1,)),), "the type of a tensor was not recorded"),
        ("relu", (RecordedTensor((2, 3), "float", ()),), "not strided"),
        ("relu", (RecordedTensor((-2,), "float", (1,)),), "not strided"),
        ("zeros", ("[2]", "99", None, None, None), "the dtype 99 is not known"),
        ("__class__", (tensor(2),), "no overload in torch"),
    ],
)
def test_what_cannot_be_replayed_is_listed_with_its_reason(name: str, arguments: Any, why: str) -> None:
    """Nothing that a trace holds is left out in silence."""
    found = agreed(RecordedCall(f"aten::{name}", arguments, RecordedCost()))
    ((_, _, reason),) = found.not_replayable
    assert why in reason
    assert not found.replayed


def test_not_computing_costs_the_same() -> None:
    """Large elementwise operations and products leave memory as it is, and cost what they cost computed."""
    arguments = tensor(100, 100, strides=(100, 1)), tensor(100, 100, strides=(100, 1))
    with simcuda.device() as gpu:
        warm_up()
        without = replay(gpu, "aten::mm", call_to_make("aten::mm", arguments))
        ones, other = torch.ones(2, 100, 100, device="cuda")
        with gpu.measure() as cost:
            torch.mm(ones, other)
        found = without.values["launches"], without.values["allocated_bytes"]
        assert (cost.launches, (cost.largest_allocation,)) == found
        with shapes_only():
            ones.mul_(3)
            assert (100, 100) == (ones @ other).shape
        assert 1.0 == ones[0, 0].item()


def test_large_integers_have_a_value_where_they_are_read() -> None:
    """An index of more than a million elements is made without a value, and is 1 once something is chosen."""
    with simcuda.device(), shapes_only():
        index = torch.empty(LARGE + 1, dtype=torch.int64, device="cuda")
        assert (LARGE + 1, 1) == torch.zeros(2, 1, device="cuda")[index].shape
        assert {1} == {*index[::1000].tolist()}


@pytest.mark.parametrize(
    ("gpu", "cuda", "profile"),
    [
        ("NVIDIA A100-SXM4-80GB", "11.8", "a100-cuda12"),
        ("Tesla V100-DGXS-32GB", "", "a100-cuda12"),
        ("NVIDIA H100 80GB HBM3", "12.4", "h200-cuda12"),
        ("NVIDIA B300 SXM6 AC", "13.1", "h200-cuda13"),
    ],
)
def test_the_nearest_profile(gpu: str, cuda: str, profile: str) -> None:
    """By generation, then by the CUDA version, on which multi-tensor kernels depend."""
    assert profile == nearest_profile(replace(agreed().trace, devices=(gpu,), cuda=cuda))


def test_the_command_prints_a_table_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One read is confirmed: exit code 0; what is refuted falls short with 1; without shapes it is 3."""
    item, add = operation("aten::item", 100, 1), operation("aten::add", 300, 2)
    item["args"] |= {"Input Dims": [[]], "Input type": ["float"], "Input Strides": [[]]}
    item["args"] |= {"Concrete Inputs": [""]}
    add["args"] |= {"Input Dims": [[4], [4], []], "Input type": ["float", "float", "Scalar"]}
    add["args"] |= {"Input Strides": [[1], [1], []], "Concrete Inputs": ["", "", "1"]}
    reads = [
        item | {"dur": 100},
        runtime("cudaMemcpyAsync", 120, 12, op=1),
        memcpy("Memcpy DtoH (Device -> Pinned)", 123, 12, 4),
        runtime("cudaStreamSynchronize", 130, 13, op=1),
    ]
    launches = [runtime("cudaLaunchKernel", ts, ts, op=2) for ts in (310, 320)]
    kernels = [kernel(ts + 3, ts) | {"name": OWN} for ts in (310, 320)]
    good = {"schemaVersion": 1, "traceEvents": reads}
    bad = {"schemaVersion": 1, "traceEvents": [*reads, add | {"dur": 100}, *launches, *kernels]}
    bare = {"schemaVersion": 1, "traceEvents": [operation("aten::item", 100, 1) | {"dur": 100}, *reads[1:]]}
    for name, trace, code in (("bare", bare, 3), ("good", good, 0), ("bad", bad, 1)):
        (tmp_path / name).write_text(json.dumps(trace))
        command = ["simcuda.agree", "--trace", str(tmp_path / name)]
        monkeypatch.setattr(sys, "argv", command)
        assert code == agree.main()
        text = capsys.readouterr().out
        assert ("refuted (" in text) == (code == 1)
        assert ("nothing was decided" in text) == (code == 3)
        monkeypatch.setattr(sys, "argv", [*command, "--format", "json"])
        assert code == agree.main()
        parsed = json.loads(capsys.readouterr().out)
        assert (1, "trace-agreement") == (parsed["schema_version"], parsed["kind"])
    assert "waits" in text


@pytest.mark.slow
@pytest.mark.skipif(not TRACES.is_dir(), reason="the recordings are not there")
def test_the_simulation_agrees_with_real_gpus() -> None:
    """Nothing is refuted; of the three complete recordings all calls are made again but ``index``."""
    found = [agreement_with(read(path)) for path in sorted(TRACES.glob("*.json.gz"))]
    findings = [finding for each in found for finding in each.findings]
    assert [] == [f"{f.op}({report.shown(f.arguments)})" for f in findings if f.verdict == "refuted"]
    assert 0 == report.exit_code(found)
    complete = [each for each in found if each.replayed]
    assert [18, 23, 53] == [len(each.replayed) for each in complete]
    assert {"aten::index"} == {op for each in complete for op, _, _ in each.not_replayable}
    waits = [f for each in complete for f in each.findings if f.metric == "waits"]
    assert {"confirmed"} == {finding.verdict for finding in waits}
    kept = json.loads(RECORDED.read_text(encoding="utf-8"))["traces"].values()
    confirmed = {Path(each.trace.path).name: confirmations(each) for each in found}
    assert confirmed == {each["file"]: each["operations"] for each in kept if each["file"] in confirmed}


def test_what_a_trace_confirms_is_saved_by_operation_of_the_simulation() -> None:
    """Above 0 for what alone made the count, at 0, and refuted; the library's choice confirms nothing."""
    reading = RecordedCost(copies=[RecordedCopy("d2h", 4, pageable=False)], stream_syncs=1)
    calls = [
        *[RecordedCall("aten::item", (tensor(),), reading)] * 3,
        RecordedCall("aten::sin", (tensor(4),), RecordedCost(kernels=[OWN, OWN])),
        RecordedCall("aten::ldexp", (tensor(4), tensor(4)), RecordedCost(kernels=[OWN] * 3)),
        RecordedCall("aten::mm", (tensor(4, 4), tensor(4, 4)), RecordedCost(kernels=[CUTLASS])),
    ]
    # Launches, copies, bytes, waits, and two metrics of memory, which was not recorded. Equal calls are one.
    assert confirmations(agreed(*calls)) == {
        "aten._local_scalar_dense": [[0, 1], [1], [1], [1], [], []],
        # One kernel where two were recorded; no copy and no wait, in both.
        "aten.sin": [[0, 0, 1], [0, 1], [0, 1], [0, 1], [], []],
        "aten.mm": [[], [0, 1], [0, 1], [0, 1], [], []],
        # A fill and a power, then a product: the sum of three launches says nothing about either of them.
        **{f"aten.{name}": [[], [0, 1], [0, 1], [0, 1], [], []] for name in ("ldexp", "pow", "mul")},
    }


def test_a_trace_is_added_once_to_what_is_recorded(tmp_path: Path) -> None:
    """By its digest: the same trace takes its own place, another one comes beside it."""
    saved = tmp_path / "saved.json"
    for name in ("a", "b", "a"):
        event = operation("aten::sin", 100, 1) | {"dur": 100}
        event["args"] |= {"Input Dims": [[4]], "Input type": ["float"], "Input Strides": [[1]]}
        event["args"] |= {"Concrete Inputs": [""]}
        launch = [runtime("cudaLaunchKernel", 110, 110, op=1), kernel(113, 110) | {"name": OWN}]
        trace = {"schemaVersion": 1, "name": name, "traceEvents": [event, *launch]}
        (tmp_path / name).write_text(json.dumps(trace))
        add_confirmations(dict([entry_of_trace(tmp_path / name)]), saved)
    traces = json.loads(saved.read_text())["traces"].values()
    assert ["a", "b"] == sorted(each["file"] for each in traces)
    assert [[1], [0, 1], [0, 1], [0, 1], [], []] == next(iter(traces))["operations"]["aten.sin"]
