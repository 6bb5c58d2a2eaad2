"""``tickets trace``: lines of a recorded run, how long the host waited, and what the simulation says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository
from tests.simcuda.real.events import kernel, memcpy, operation, runtime

CODE = """\
def step(loss):
    value = loss.item()
    return value
"""
EXACT = {"Call stack": "train.py(2): step;train.py(9): <module>"}


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


def sha256(file: str) -> str:
    """The digest of a file, as ``sha256sum`` prints it."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


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
    assert "train.py:2  waits 1x for 0.002 ms, copies d2h 1x  value = loss.item()" in shown
    assert "in all: syncs 1, d2h 1, launches 1" in shown


def test_json_of_a_trace(exact: str, tickets: Tickets) -> None:
    """The sites of a probe, with the microseconds that each waited, and what was added up."""
    (item,) = tickets("trace", exact, "--lines", "--format", "json").data
    assert item["agreement"] is None
    assert ("NVIDIA H100, CUDA 12.4", 2, True) == (item["device"], item["calls"], item["has_lines"])
    assert [("stream_syncs", 2, 2.0, 0), ("d2h", 2, 0.0, 4)] == [
        (site["what"], site["line"], site["waited"], site["bytes"]) for site in item["sites"]
    ]
    assert sha256(exact) == item["sha256"]
    assert "launches 1, with their kernel 1" in item["sums"]


def test_a_refused_trace_keeps_no_other_back(exact: str, repository: Repository, tickets: Tickets) -> None:
    """Each rank is a file: what is wrong with one is said, the others are shown, and the exit code is 4."""
    cut = str(repository.write("cut.json", '{"traceEvents": [{"ph"'))
    ran = tickets("trace", cut, exact, "--lines")
    assert (4, True) == (ran.code, "recorded NVIDIA H100" in ran.out)
    assert f"error: {cut}: cut or damaged after 0 events" in ran.err


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


def test_a_trace_that_decides_nothing_is_inconclusive(exact: str, tickets: Tickets) -> None:
    """Without shapes the lines are shown, and what to record; with ``--lines`` nothing was to be compared."""
    ran = tickets("trace", exact)
    assert (3, True) == (ran.code, "waits 1x for 0.002 ms" in ran.out)
    assert f"{exact}: nothing was decided: record with record_shapes=True" in ran.err
    assert 0 == tickets("trace", exact, "--lines").code
