"""Attribute a trace of the profiler to lines of Python, and compare it with the simulation."""

from __future__ import annotations

import hashlib
import linecache
from collections import Counter
from pathlib import Path
from typing import Any

from finding_tickets.claims.check import ONCE
from simcuda.measurement import HEAVIEST_FIRST
from simcuda.real.trace import LIBRARY, IncompleteTraceError
from simcuda.traces import report
from simcuda.traces.agreement import agreement_with
from simcuda.traces.call import RecordedSite, Trace
from simcuda.traces.events import NotATraceError
from simcuda.traces.kineto import read


def trace_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a ``TracedRun``, or why the file is ``wrong``."""
    try:
        with Path(payload["file"]).open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        trace = read(Path(payload["file"]))
    except (NotATraceError, IncompleteTraceError, OSError) as error:
        return {"wrong": str(error)}
    root = Path(payload["root"])
    compared = [] if payload["only_lines"] else [agreement_with(trace)]
    sites = [site for site in trace.sites if site.what in HEAVIEST_FIRST]
    sites.sort(
        key=lambda site: (
            HEAVIEST_FIRST.index(site.what),
            -site.waited,
            -site.count,
            site,
        )
    )
    return {
        "probed": {
            "target": payload["target"],
            "kind": "trace",
            "meter": "recorded",
            "torch": "",
            "device": f"{', '.join(trace.devices) or 'GPU'}{f', CUDA {trace.cuda}' if trace.cuda else ''}",
            "points": [ONCE],
            "metrics": {
                name: {"values": [count]} for name, count in totals(trace).items()
            },
            "sites": [_site(site, root, trace.has_lines) for site in sites],
            **dict.fromkeys(
                ("errors", "not_measured", "unknown", "approximate", "files"), ()
            ),
            "printed": 0,
            "function": "",
        },
        "sha256": digest,
        "has_stacks": trace.has_stacks,
        "has_lines": trace.has_lines,
        "has_memory": trace.has_memory,
        "calls": len(trace.calls),
        "distinct": len({(call.op, call.arguments) for call in trace.calls}),
        "sums": trace.sums,
        "left_out": trace.left_out,
        "agreement": list(report.to_lines(compared)) if compared else [],
        "compared": report.to_json(compared)["data"][0] if compared else None,
        "undecided": report.NOTHING_DECIDED
        if compared and report.exit_code(compared) == 3
        else "",
    }


def totals(trace: Trace) -> dict[str, int]:
    """Count the whole trace by metric, inside and outside of ATen's operations."""
    found: Counter[str] = Counter()
    for cost in (*(call.cost for call in trace.calls), *trace.outside.values()):
        found["syncs"] += cost.stream_syncs + cost.event_syncs + cost.device_syncs
        found["launches"] += len(cost.kernels)
        for copy in cost.copies:
            found[copy.kind] += 1
            found[f"{copy.kind}_bytes"] += copy.nbytes
    return dict(found)


def _site(site: RecordedSite, root: Path, has_line: bool) -> dict[str, Any]:
    text = linecache.getline(str(root / site.file), site.line).strip()
    if not has_line and not text.startswith(
        ("def ", "async def ", "class ", "@", "lambda")
    ):
        # The source has changed since, or is not here.
        text = ""
    where = (
        f"in {site.function}"
        if site.file != LIBRARY
        else "without Python: a backward pass, or C++"
    )
    return {
        "file": site.file,
        "line": site.line,
        "function": site.function,
        "what": site.what,
        "text": text,
        "statement": text or where,
        "cost": {"values": [site.count]},
        "waited": site.waited,
        "nbytes": site.nbytes,
    }
