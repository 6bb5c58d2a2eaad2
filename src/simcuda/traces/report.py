"""The agreement with traces, as text for people and as JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from simcuda.measurement import table
from simcuda.traces.agreement import CONFIRMED, REFUTED, VERDICTS, Finding, TraceAgreement
from simcuda.traces.call import METRICS, Argument, RecordedTensor

UNDECIDED = 3
NOTHING_DECIDED = "nothing was decided: record with record_shapes=True, by a PyTorch that records strides too"
FINDING = [each.name for each in fields(Finding) if each.name != "operations"]
"""What JSON says of a finding."""


def to_lines(agreements: Sequence[TraceAgreement]) -> Iterator[str]:
    """Write the agreement as text."""
    for each in agreements:
        gpu = each.trace.devices[0] if each.trace.devices else "a GPU that the trace does not name"
        ops = {op for op, _ in each.replayed}
        yield f"{each.trace.path}: {gpu}, simulated as {each.profile}"
        told = f"{len(each.replayed)} distinct calls of {len(ops)} ops"
        yield f"  replayed {told}; {len(each.not_replayable)} not"
        yield from (f"  {line}" for line in (*each.trace.sums, *each.trace.left_out))
    by_metric = {metric: Counter[str]() for metric in METRICS}
    undecided = defaultdict[tuple[str, str, str], Counter[str]](Counter)
    wrong, kernels = [], dict[str, None]()
    for f in (finding for each in agreements for finding in each.findings):
        by_metric[f.metric][f.verdict] += f.count
        if f.verdict == REFUTED:
            wrong.append(
                (f"{f.count} x {f.op}", f.metric, *map(str, (f.recorded, f.simulated)), shown(f.arguments))
            )
            kernels |= dict.fromkeys(name[:100] for name in f.kernels)
        elif f.verdict != CONFIRMED:
            undecided[f.verdict, f.op, f.why][f.metric] += f.count
    yield ""
    rows = [(metric, *(str(counts[verdict]) for verdict in VERDICTS)) for metric, counts in by_metric.items()]
    yield from table([("metric", *VERDICTS), *rows])
    yield from section("refuted", ("call", "metric", "recorded", "simulated", "arguments"), wrong)
    yield from (f"  kernel {name}" for name in sorted(kernels))
    open_rows = []
    for (verdict, op, why), counts in sorted(undecided.items()):
        open_rows.append((verdict, op, str(max(counts.values())), ", ".join(counts), why))
    yield from section("undecided", ("verdict", "op", "calls", "metrics", "why"), open_rows)
    left = Counter((op, why) for each in agreements for op, _, why in each.not_replayable)
    left_rows = [(op, str(count), why) for (op, why), count in sorted(left.items())]
    yield from section("not replayable", ("op", "distinct calls", "why"), left_rows)
    if exit_code(agreements) == UNDECIDED:
        yield from ("", NOTHING_DECIDED)


def to_json(agreements: Sequence[TraceAgreement]) -> dict[str, Any]:
    """The agreement as JSON: of every trace, every finding."""
    return {
        "schema_version": 1,
        "kind": "trace-agreement",
        "data": [
            {
                "trace": each.trace.path,
                "devices": each.trace.devices,
                "profile": each.profile,
                "sums": each.trace.sums,
                "left_out": each.trace.left_out,
                "replayed": len(each.replayed),
                "ops": sorted({op for op, _ in each.replayed}),
                "findings": [
                    {name: getattr(f, name) for name in FINDING}
                    | {"arguments": shown(f.arguments), "kernels": f.kernels if f.verdict == REFUTED else ()}
                    for f in each.findings
                ],
                "not_replayable": [
                    {"op": op, "arguments": shown(arguments or ()), "why": why, "count": count}
                    for (op, arguments, why), count in each.not_replayable.items()
                ],
            }
            for each in agreements
        ],
    }


def confirmations(agreement: TraceAgreement) -> dict[str, list[list[int]]]:
    """Return what a trace decides about each operation of the simulation, for each of ``METRICS``.

    The numbers are of distinct calls: confirmed above 0, at 0, and refuted. Zeros at the end are left out.
    """
    decided = set()
    for f in agreement.findings:
        if f.verdict in (CONFIRMED, REFUTED):
            place = 2 if f.verdict == REFUTED else int(f.is_zero)
            decided |= {(name, f.metric, place, f.op, f.arguments) for name in f.operations}
    numbers: dict[str, list[list[int]]] = {}
    for name, metric, place, *_ in sorted(decided, key=lambda each: each[0]):
        rows = numbers.setdefault(name, [[] for _ in METRICS])
        row = rows[METRICS.index(metric)]
        row += [0] * (place + 1 - len(row))
        row[place] += 1
    return numbers


def save_confirmations(agreements: Sequence[TraceAgreement], path: Path) -> None:
    """Write what each trace decides to a file, in the place of what the file says of the same trace."""
    decided = {}
    for each in agreements:
        file = Path(each.trace.path)
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        about = {
            "file": file.name,
            "gpu": next(iter(each.trace.devices), "not named"),
            "cuda": each.trace.cuda,
        }
        decided[digest] = {**about, "operations": confirmations(each)}
    add_confirmations(decided, path)


def add_confirmations(decided: Mapping[str, Any], path: Path) -> None:
    """Write what recordings decide to a file, in the place of what it says of recordings with these names."""
    traces = json.loads(path.read_text(encoding="utf-8"))["traces"] if path.exists() else {}
    traces.update(decided)
    # A line for each operation, so that a change can be read.
    text = json.dumps({"metrics": METRICS, "traces": dict(sorted(traces.items()))}, indent=1)
    numbers = re.compile(r"\[[\s\d,\[\]]*\]")
    path.write_text(numbers.sub(lambda row: re.sub(r"\s+", "", row[0]), text) + "\n", encoding="utf-8")


def exit_code(agreements: Sequence[TraceAgreement]) -> int:
    """Return 1 if anything was refuted, and ``UNDECIDED`` if nothing was decided."""
    verdicts = {finding.verdict for each in agreements for finding in each.findings}
    if REFUTED in verdicts:
        return 1
    return 0 if CONFIRMED in verdicts else UNDECIDED


def shown(arguments: Iterable[Argument]) -> str:
    """Arguments in one line: ``float[2, 3], 1``; strides follow a tensor."""
    texts = []
    for each in arguments:
        if isinstance(each, RecordedTensor):
            texts.append(f"{each.dtype}{[*each.shape]} by {[*each.strides]}")
        else:
            texts.append(f"[{shown(each)}]" if isinstance(each, tuple) else "-" if each is None else each)
    return ", ".join(texts)


def section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with its title and number of rows; nothing without rows."""
    if rows:
        yield from ("", f"{title} ({len(rows)}):")
        yield from table([head, *rows])
