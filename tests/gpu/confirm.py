"""Write what recordings of a GPU confirm, by operation: ``python -m tests.gpu.confirm [--trace FILE...]``.

It adds them to ``src/simcuda/recorded.json``: those of the recordings in this folder, or those of traces. A
count above 0 confirms the operation that alone made it, a 0 each operation that ran.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from tests.gpu.by_simulation import measure_on
from tests.gpu.pattern import METRICS, NothingToRunError, load
from tests.gpu.run import read_recording

import simcuda
from simcuda.basis import RECORDED
from simcuda.ledger import noting_operations
from simcuda.traces.agreement import CONFIRMED, TraceAgreement, agreement_with
from simcuda.traces.agreement import REFUTED as REFUTED_BY_TRACE
from simcuda.traces.call import METRICS as METRICS_OF_TRACES
from simcuda.traces.kineto import read

HERE = Path(__file__).parent
OF_OPERATORS = HERE / "op_db-h100-cuda13-torch2.11.json.gz"
RECORDINGS = (
    ("patterns", HERE / "h100-cuda13-torch2.11.json"),
    ("patterns", HERE / "h200-cuda13-torch2.11.json"),
    ("op_db", OF_OPERATORS),
)
GROUPS = {
    "launches": ("launches",),
    "copies": ("h2d", "d2h", "d2d"),
    "waits": ("waits",),
    "allocations": ("allocations",),
}
"""Which metrics of patterns must be equal for each metric of recordings to be confirmed."""
MADE_OF = {
    "launches": ("launches", "aten_launches", "library_launches"),
    "waits": ("syncs", "stream_syncs", "event_syncs", "device_syncs"),
}
"""By which counts of the library a metric of patterns is made; any other has the same name."""
ABOVE_ZERO, AT_ZERO, REFUTED = range(3)

Decided = dict[str, dict[str, list[int]]]
"""By operation and metric: in how many patterns it is confirmed above 0, at 0, and refuted."""


def main() -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, nargs="+", help="traces of PyTorch's profiler")
    traces = parser.parse_args().trace
    warnings.simplefilter("ignore")
    if traces:
        add_confirmations(dict(entry_of_trace(path) for path in traces), RECORDED)
        return 0
    for kind, file in RECORDINGS:
        recording = read_recording(file)
        decided: Decided = {}
        with noting_operations(), simcuda.device() as gpu:
            for _, outcome, recorded in compared(gpu, kind, recording):
                if "error" not in outcome and not outcome["unknown"]:
                    decide(decided, outcome, recorded)
        machine = recording["machine"]
        about = {"file": file.name, "gpu": machine["gpu"], "cuda": machine["cuda"]}
        entry = {**about, "operations": as_rows(decided)}
        add_confirmations({file.name: entry}, RECORDED)
    return 0


def entry_of_trace(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the digest of a trace, and what it decides about the operations of the simulation."""
    agreement = agreement_with(read(path))
    trace = agreement.trace
    about = {"file": path.name, "gpu": next(iter(trace.devices), "not named"), "cuda": trace.cuda}
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return digest, {**about, "operations": confirmations(agreement)}


def confirmations(agreement: TraceAgreement) -> dict[str, list[list[int]]]:
    """Return what a trace decides about each operation of the simulation, for each of ``METRICS_OF_TRACES``.

    The numbers are of distinct calls: confirmed above 0, at 0, and refuted. Zeros at the end are left out.
    """
    decided = set()
    for f in agreement.findings:
        if f.verdict in (CONFIRMED, REFUTED_BY_TRACE):
            place = 2 if f.verdict == REFUTED_BY_TRACE else int(f.is_zero)
            decided |= {(name, f.metric, place, f.op, f.arguments) for name in f.operations}
    numbers: dict[str, list[list[int]]] = {}
    for name, metric, place, *_ in sorted(decided, key=lambda each: each[0]):
        rows = numbers.setdefault(name, [[] for _ in METRICS_OF_TRACES])
        row = rows[METRICS_OF_TRACES.index(metric)]
        row += [0] * (place + 1 - len(row))
        row[place] += 1
    return numbers


def add_confirmations(decided: Mapping[str, Any], path: Path) -> None:
    """Write what recordings decide to a file, in the place of what it says of recordings with these names."""
    traces = json.loads(path.read_text(encoding="utf-8"))["traces"] if path.exists() else {}
    traces.update(decided)
    # A line for each operation, so that a change can be read.
    text = json.dumps({"metrics": METRICS_OF_TRACES, "traces": dict(sorted(traces.items()))}, indent=1)
    numbers = re.compile(r"\[[\s\d,\[\]]*\]")
    path.write_text(numbers.sub(lambda row: re.sub(r"\s+", "", row[0]), text) + "\n", encoding="utf-8")


def compared(
    gpu: simcuda.SimulatedCuda, kind: str, recording: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, int]]]:
    """Yield name, outcome and recorded numbers of each pattern that is the same here and there.

    Numbers that were derived to be others under that version of torch are left out.
    """
    patterns = load(kind)
    for name, outcome in recording["patterns"].items():
        if name not in patterns or "error" in outcome:
            continue
        pattern = patterns[name]
        try:
            simulated = measure_on(gpu, pattern)
        except NothingToRunError:
            continue
        except RuntimeError as error:
            simulated = {"error": str(error)}
        if pattern.runs() == outcome.get("runs", ""):
            here = pattern.expected_on(torch.__version__)
            there = pattern.expected_on(recording["machine"]["torch"])
            same = [metric for metric in METRICS if here.get(metric) == there.get(metric)]
            yield name, simulated, {metric: outcome["counted"].get(metric, 0) for metric in same}


def decide(decided: Decided, outcome: Mapping[str, Any], recorded: Mapping[str, int]) -> None:
    """Note what one pattern decides about the operations that ran in it."""
    operations: Mapping[str, Mapping[str, int]] = outcome.get("operations", {})
    for group, metrics in GROUPS.items():
        made_of = [name for metric in metrics for name in MADE_OF.get(metric, (metric,))]
        if any(name in outcome["ranges"] for name in made_of):
            # A library chose it.
            continue
        if not recorded.keys() >= set(metrics):
            continue
        counted = [outcome["counted"][metric] for metric in metrics]
        right = [recorded[metric] for metric in metrics]
        makers = set()
        for operation, made in operations.items():
            if any(made.get(name) for name in made_of):
                makers.add(operation)
        if counted == right and not any(right):
            place, of = AT_ZERO, set(operations)
        else:
            place = ABOVE_ZERO if counted == right else REFUTED
            of = makers if len(makers) == 1 else set()
        for operation in of:
            packet = ".".join(operation.split(".")[:2])
            decided.setdefault(packet, {}).setdefault(group, [0, 0, 0])[place] += 1


def as_rows(decided: Decided) -> dict[str, list[list[int]]]:
    """Return the numbers for each metric of recordings, without zeros at the end."""
    rows: dict[str, list[list[int]]] = {}
    for operation, by_metric in sorted(decided.items()):
        rows[operation] = [by_metric.get(metric, []) for metric in METRICS_OF_TRACES]
        for row in rows[operation]:
            while row and not row[-1]:
                row.pop()
    return rows


if __name__ == "__main__":
    sys.exit(main())
