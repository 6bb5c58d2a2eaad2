"""The agreement with traces, as text for people and as JSON."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from simcuda.measurement import table
from simcuda.traces.agreement import (
    CONFIRMED,
    REFUTED,
    VERDICTS,
    Finding,
    TraceAgreement,
)
from simcuda.traces.call import METRICS, Argument, RecordedTensor

UNDECIDED = 3
NOTHING_DECIDED = "nothing was decided: record with record_shapes=True, by a PyTorch that records strides too"
FINDING = [each.name for each in fields(Finding) if each.name != "operations"]
"""What JSON says of a finding."""


def to_lines(agreements: Sequence[TraceAgreement]) -> Iterator[str]:
    """Write the agreement as text."""
    for each in agreements:
        gpu = (
            each.trace.devices[0]
            if each.trace.devices
            else "a GPU that the trace does not name"
        )
        ops = {op for op, _ in each.replayed}
        yield f"{each.trace.path}: {gpu}, simulated as {each.profile}"
        told = f"{len(each.replayed)} distinct calls of {len(ops)} ops"
        yield f"  replayed {told}; {len(each.not_replayable)} not"
        yield from (f"  {line}" for line in (*each.trace.sums, *each.trace.left_out))
    by_metric = {metric: Counter[str]() for metric in METRICS}
    undecided = defaultdict[tuple[str, str, str], Counter[str]](Counter)
    wrong = []
    for f in (finding for each in agreements for finding in each.findings):
        by_metric[f.metric][f.verdict] += f.count
        if f.verdict == REFUTED:
            wrong.append(
                (
                    f"{f.count} x {f.op}",
                    f.metric,
                    *map(str, (f.recorded, f.simulated)),
                    shown(f.arguments),
                )
            )
        elif f.verdict != CONFIRMED:
            undecided[f.verdict, f.op, f.why][f.metric] += f.count
    yield ""
    rows = [
        (metric, *(str(counts[verdict]) for verdict in VERDICTS))
        for metric, counts in by_metric.items()
    ]
    yield from table([("metric", *VERDICTS), *rows])
    yield from section(
        "refuted", ("call", "metric", "recorded", "simulated", "arguments"), wrong
    )
    open_rows = []
    for (verdict, op, why), counts in sorted(undecided.items()):
        open_rows.append(
            (verdict, op, str(max(counts.values())), ", ".join(counts), why)
        )
    yield from section(
        "undecided", ("verdict", "op", "calls", "metrics", "why"), open_rows
    )
    left = Counter(
        (op, why) for each in agreements for op, _, why in each.not_replayable
    )
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
                    | {
                        "arguments": shown(f.arguments),
                        "kernels": f.kernels if f.verdict == REFUTED else (),
                    }
                    for f in each.findings
                ],
                "not_replayable": [
                    {
                        "op": op,
                        "arguments": shown(arguments or ()),
                        "why": why,
                        "count": count,
                    }
                    for (op, arguments, why), count in each.not_replayable.items()
                ],
            }
            for each in agreements
        ],
    }


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
            texts.append(
                f"[{shown(each)}]"
                if isinstance(each, tuple)
                else "-"
                if each is None
                else each
            )
    return ", ".join(texts)


def section(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[str]:
    """A table with its title and number of rows; nothing without rows."""
    if rows:
        yield from ("", f"{title} ({len(rows)}):")
        yield from table([head, *rows])
