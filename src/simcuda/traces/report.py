"""The agreement with traces, as text for people and as JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any

from simcuda.measurement import table
from simcuda.traces.agreement import CONFIRMED, LEAST, REFUTED, VERDICTS, Finding, TraceAgreement
from simcuda.traces.call import METRICS, Argument, RecordedTensor

CALLS, AGREE = "calls", "agree, raw"
NOTHING_DECIDED = "nothing was decided: record with record_shapes=True, by a PyTorch that records strides too"
FINDING = [each.name for each in fields(Finding) if each.name not in ("is_zero", "operations")]
"""What JSON says of a finding."""


def to_lines(agreements: Sequence[TraceAgreement]) -> Iterator[str]:
    """The agreement as text."""
    for each in agreements:
        gpu = each.trace.devices[0] if each.trace.devices else "a GPU that the trace does not name"
        ops = {op for op, _ in each.replayed}
        yield f"{each.trace.path}: {gpu}, simulated as {each.profile}"
        told = f"{len(each.replayed)} distinct calls of {len(ops)} ops"
        yield f"  replayed {told}; {len(each.not_replayable)} not"
        yield from (f"  {line}" for line in (*each.trace.sums, *each.trace.left_out))
    findings = [finding for each in agreements for finding in each.findings]
    yield ""
    columns = (CALLS, AGREE, *VERDICTS)
    rows: list[tuple[str, ...]] = [("metric", *columns, "share of the decided", "least")]
    for metric in METRICS:
        counts = _counts(f for f in findings if f.metric == metric)
        share, least = _share(counts), LEAST[metric]
        told = "-" if share is None else f"{share:.2%}{' falls short' if share < least else ''}"
        rows.append((metric, *(str(counts[column]) for column in columns), told, f"{least:.2%}"))
    yield from table(rows)
    wrong = [f for f in findings if f.verdict == REFUTED]
    rows = [
        (
            f"{f.count} x {f.op}",
            f.metric,
            str(f.recorded),
            str(f.simulated),
            shown(f.arguments),
        )
        for f in wrong
    ]
    yield from section("refuted", ("call", "metric", "recorded", "simulated", "arguments"), rows)
    kernels = {name[:100] for f in wrong for name in f.kernels}
    yield from (f"  kernel {name}" for name in sorted(kernels))
    for verdict in VERDICTS:
        if verdict not in (CONFIRMED, REFUTED):
            by_op: dict[tuple[str, str], list[Finding]] = defaultdict(list)
            for finding in findings:
                if finding.verdict == verdict:
                    by_op[finding.op, finding.why].append(finding)
            rows = []
            for (op, why), mine in sorted(by_op.items()):
                counts, metrics = _counts(mine), dict.fromkeys(finding.metric for finding in mine)
                rows.append((op, str(counts[CALLS]), str(counts[AGREE]), ", ".join(metrics), why))
            yield from section(verdict, ("op", CALLS, AGREE, "metrics", "why"), rows)
    left = Counter((op, why) for each in agreements for op, _, why in each.not_replayable)
    rows = [(op, str(count), why) for (op, why), count in sorted(left.items())]
    yield from section("not replayable", ("op", "distinct calls", "why"), rows)
    if not any(finding.verdict in (CONFIRMED, REFUTED) for finding in findings):
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
    """What a trace decides about each operation of the simulation, for each of ``METRICS``.

    The numbers are of distinct calls: confirmed above 0, at 0, and refuted. Zeros at the end are left out.
    """
    decided = {
        (name, f.metric, 2 if f.verdict == REFUTED else int(f.is_zero), f.op, f.arguments)
        for f in agreement.findings
        if f.verdict in (CONFIRMED, REFUTED)
        for name in f.operations
    }
    counts = Counter((name, metric, place) for name, metric, place, *_ in decided)
    numbers = {name: [[0, 0, 0] for _ in METRICS] for name in sorted({name for name, *_ in counts})}
    for (name, metric, place), count in counts.items():
        numbers[name][METRICS.index(metric)][place] = count
    for row in chain.from_iterable(numbers.values()):
        while row and not row[-1]:
            row.pop()
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
    """Return 1 if a metric agrees in fewer of the decided calls than it must, 3 if nothing was decided."""
    findings = [finding for each in agreements for finding in each.findings]
    shares = {metric: _share(_counts(f for f in findings if f.metric == metric)) for metric in METRICS}
    decided = {metric: share for metric, share in shares.items() if share is not None}
    if any(share < LEAST[metric] for metric, share in decided.items()):
        return 1
    return 0 if decided else 3


def shown(arguments: Iterable[Argument]) -> str:
    """Arguments in one line: ``float[2, 3], 1``; strides follow where they were recorded."""
    texts = []
    for each in arguments:
        if isinstance(each, RecordedTensor):
            strides = "" if each.strides is None else f" by {[*each.strides]}"
            texts.append(f"{each.dtype}{[*each.shape]}{strides}")
        else:
            texts.append(f"[{shown(each)}]" if isinstance(each, tuple) else "-" if each is None else each)
    return ", ".join(texts)


def _counts(findings: Iterable[Finding]) -> Counter[str]:
    """Recorded calls by verdict, and also all of them and those that agree."""
    counts = Counter[str]()
    for finding in findings:
        counts.update({finding.verdict: finding.count, CALLS: finding.count})
        counts[AGREE] += finding.count * finding.agrees
    return counts


def _share(counts: Counter[str]) -> float | None:
    decided = counts[CONFIRMED] + counts[REFUTED]
    return counts[CONFIRMED] / decided if decided else None


def section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with its title and number of rows; nothing without rows."""
    if rows:
        yield from ("", f"{title} ({len(rows)}):")
        yield from table([head, *rows])
