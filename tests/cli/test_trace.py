"""``tickets trace``: lines of a recorded run, with the time that the host waited, and beside a probe."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.simcuda.real.events import kernel, memcpy, operation, runtime

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Repository

Tickets = Callable[..., "Ran"]
CODE = """\
def step(loss):
    value = loss.item()
    return value
"""
EXACT = {"Call stack": "train.py(2): step;train.py(9): <module>"}
STEP = {
    "ph": "X",
    "cat": "python_function",
    "name": "train.py(1): step",
    "pid": 1,
    "tid": 1,
    "ts": 50,
    "dur": 300,
}


def written(repository: Repository, name: str, *more: dict[str, Any], **arguments: Any) -> str:
    """Write a trace of a read of a scalar, which waits for 2 microseconds, and of a multiplication."""
    ops = [operation("aten::item", 100, 1), operation("aten::mul", 200, 2)]
    for each in ops:
        each["args"] |= arguments
    events = [
        *ops,
        runtime("cudaMemcpyAsync", 110, 10, op=1),
        memcpy("Memcpy DtoH (Device -> Pinned)", 112, 10, 4),
        runtime("cudaStreamSynchronize", 120, 11, op=1),
        runtime("cudaLaunchKernel", 210, 12, op=2),
        kernel(212, 12),
        *more,
    ]
    device = [{"name": "NVIDIA H100"}]
    data = {"deviceProperties": device, "cuda_runtime_version": 12040, "traceEvents": events}
    return str(repository.write(name, json.dumps(data)))


def probe(repository: Repository, *sites: tuple[str, int, str, str]) -> str:
    """Write the JSON of a probe that found these sites, each 5 times."""
    names = ("file", "line", "function", "what")
    data = [{"sites": [dict(zip(names, site, strict=True)) | {"values": [5], "law": None} for site in sites]}]
    return str(
        repository.write("probe.json", json.dumps({"schema_version": 1, "kind": "probe", "data": data}))
    )


@pytest.fixture
def exact(repository: Repository) -> str:
    """A trace that names lines."""
    repository.write("train.py", CODE)
    return written(repository, "exact.json", **EXACT)


def test_the_lines_of_a_recorded_run(exact: str, tickets: Tickets) -> None:
    """The table is that of a probe, from the recorded GPU, with the time of the waits."""
    shown = tickets("trace", exact, "--lines").out
    assert f"{exact}  recorded NVIDIA H100, CUDA 12.4\n" in shown
    # The wait takes 2 microseconds.
    assert "train.py:2  value = loss.item()  waits 1x for 0.002 ms, copies d2h 1x" in shown
    assert "in all: syncs 1, d2h 1, launches 1" in shown


def test_json_of_a_trace(exact: str, tickets: Tickets) -> None:
    """The sites of a probe, with the microseconds that each waited, and what was added up."""
    (item,) = tickets("trace", exact, "--lines", "--format", "json").data
    assert item["agreement"] is None
    assert ("NVIDIA H100, CUDA 12.4", 2, True, None) == (
        item["device"],
        item["calls"],
        item["has_lines"],
        item["beside"],
    )
    assert [("stream_syncs", 2, 2.0), ("d2h", 2, 0.0)] == [
        (site["what"], site["line"], site["waited"]) for site in item["sites"]
    ]
    assert "launches 1, with their kernel 1" in item["sums"]


def test_beside_a_probe(exact: str, repository: Repository, tickets: Tickets) -> None:
    """Lines that agree are apart from those that only one has; hazards no trace can have."""
    other = probe(
        repository,
        ("src/train.py", 2, "Model.step", "stream_syncs"),
        ("train.py", 3, "step", "h2d"),
        ("train.py", 3, "step", "hazards"),
        ("train.py", 3, "step", "allocations"),
    )
    (item,) = tickets("trace", exact, "--lines", "--beside", other, "--format", "json").data
    assert [("stream_syncs", 1, "5"), ("d2h", 1, None), ("h2d", None, "5")] == [
        (each["what"], each["recorded"], each["probed"]) for each in item["beside"]
    ]
    shown = tickets("trace", exact, "--lines", "--beside", other).out
    assert "both (1)\n    train.py:2  step  waits  recorded 1x, probed 5x\n" in shown.replace(
        "\n  ", "\n    "
    )


def test_functions_without_lines(repository: Repository, tickets: Tickets) -> None:
    """Newer traces name functions: all lines of one are then one place, and the table says so."""
    repository.write("train.py", CODE)
    file = written(repository, "functions.json", STEP)
    other = probe(repository, ("train.py", 2, "step", "d2h"), ("train.py", 3, "step", "d2h"))
    (item,) = tickets("trace", file, "--lines", "--beside", other, "--format", "json").data
    assert ("d2h", 0, 1, "5 + 5") == tuple(
        item["beside"][0][key] for key in ("what", "line", "recorded", "probed")
    )
    shown = tickets("trace", file, "--lines").out
    assert "train.py:1  def step(loss):  waits 1x for 0.002 ms, copies d2h 1x" in shown
    assert "a line is where its function begins" in shown


def test_a_trace_without_stacks(repository: Repository, tickets: Tickets) -> None:
    """There are totals and no lines, and the way to record them is named."""
    shown = tickets("trace", written(repository, "bare.json"), "--lines").out
    assert "no lines: recorded without with_stack=True\n  in all: syncs 1, d2h 1, launches 1" in shown


def test_a_refused_trace_keeps_no_other_back(exact: str, repository: Repository, tickets: Tickets) -> None:
    """Each rank is a file: what is wrong with one is said, the others are shown, and the exit code is 4."""
    cut = str(repository.write("cut.json", '{"traceEvents": [{"ph"'))
    ran = tickets("trace", cut, exact, "--lines")
    assert (4, True) == (ran.code, "recorded NVIDIA H100" in ran.out)
    assert f"error: {cut}: cut or damaged after 0 events" in ran.err


@pytest.mark.parametrize(
    "text", ["", "{}", '{"kind": "list", "data": [{"sites": []}]}', '{"kind": "probe", "data": []}']
)
def test_beside_something_else(text: str, exact: str, repository: Repository, tickets: Tickets) -> None:
    """What is no probe's JSON is refused, and the command that makes it is named."""
    ran = tickets("trace", exact, "--beside", str(repository.write("other.json", text)))
    assert (4, True) == (ran.code, "tickets probe TARGET --format json" in ran.err)


def test_the_simulation_beside_a_trace(repository: Repository, tickets: Tickets) -> None:
    """Below the lines stands whether replays agree: a multiplication is one launch, here and there."""
    arguments = {
        "Input Dims": [[4], [4]],
        "Input type": ["float", "float"],
        "Input Strides": [[1], [1]],
        "Concrete Inputs": ["", ""],
    }
    mul = operation("aten::mul", 300, 3)
    mul["args"] |= arguments
    file = written(repository, "mul.json", mul, runtime("cudaLaunchKernel", 310, 20, op=3), kernel(312, 20))
    (item,) = tickets("trace", file, "--format", "json").data
    launches = [each for each in item["agreement"]["findings"] if each["metric"] == "launches"]
    # The other two calls have no shapes.
    assert [("aten::mul", "confirmed", 1)] == [
        (each["op"], each["verdict"], each["count"]) for each in launches
    ]
    assert "replayed 1 distinct calls of 1 ops; 2 not" in tickets("trace", file).out
