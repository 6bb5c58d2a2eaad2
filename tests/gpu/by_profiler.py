"""Measure a pattern on a real GPU by PyTorch's profiler and allocator alone."""

from __future__ import annotations

import gc
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tests.gpu.pattern import Pattern, prepare

from simcuda.real.availability import environment

MARK = "pattern that is measured"
WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize")
COPIES = {"HtoD": "h2d", "DtoH": "d2h", "DtoD": "d2d"}
MOST_RESERVED = 1 << 31
"""So many bytes a process may keep for later: it may share the GPU with others."""
MOST_SIZES = 30
"""So many allocations are recorded with their sizes."""
FUNCTOR = re.compile(r"\b(?!gpu_|ReduceOp)\w*(?:[Ff]unctor\w*|Ops?\b|_kernel_\w+)")


def describe_machine() -> dict[str, str]:
    """Return what the counts depend on."""
    return dict(vars(environment()))


def measure(pattern: Pattern) -> dict[str, Any]:
    """Return what a pattern costs, once it has run with other data."""
    work = prepare(pattern)
    outcome = measure_work(work)
    if torch.cuda.memory_reserved() > MOST_RESERVED:
        torch.cuda.empty_cache()
    return outcome


def measure_work(work: Callable[[], object]) -> dict[str, Any]:
    """Return what the profiler and the allocator tell of one run."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    record_history: Any = torch.cuda.memory._record_memory_history
    gc.collect()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=activities) as profiler:
        record_history("all", context=None, stacks="python", clear_history=True)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_stats()
        with torch.profiler.record_function(MARK):
            kept = work()
        after = torch.cuda.memory_stats()
        entries = torch.cuda.memory._snapshot()["device_traces"][0]
        record_history(None)
        torch.cuda.synchronize()
    del kept
    with tempfile.TemporaryDirectory(prefix="patterns-") as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        outcome = count_events(json.loads(file.read_bytes())["traceEvents"])
    allocated = "allocation.all.allocated"
    outcome["counted"]["allocations"] = after.get(allocated, 0) - before.get(allocated, 0)
    outcome["sizes"] = [entry["size"] for entry in entries if entry["action"] == "alloc"][:MOST_SIZES]
    peak = after.get("requested_bytes.all.peak", 0)
    outcome["peak_bytes"] = peak - before.get("requested_bytes.all.current", 0)
    return outcome


def count_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Count what a trace has of the marked part: waits, copies by direction, and kernels by name."""
    complete = [event for event in events if event.get("ph") == "X"]
    marked = [event for event in complete if event["name"] == MARK and event["cat"] == "user_annotation"]
    begin = marked[0]["ts"]
    end = begin + marked[0]["dur"]
    waits: Counter[str] = Counter()
    correlations: set[int] = set()
    for event in complete:
        if event["cat"] in ("cuda_runtime", "cuda_driver") and begin <= event["ts"] <= end:
            correlations.add(event["args"]["correlation"])
            called = event["name"].removesuffix("_ptsz")
            if called in WAITS:
                waits[called] += 1
    kernels: Counter[str] = Counter()
    counted: Counter[str] = Counter(waits=waits.total())
    for event in complete:
        if event.get("args", {}).get("correlation") not in correlations:
            continue
        if event["cat"] == "gpu_memcpy":
            counted[COPIES.get(event["name"].split()[1], "other copies")] += 1
        elif event["cat"] == "kernel":
            counted["launches"] += 1
            kernels[kernel_name(event["name"])] += 1
    return {"counted": counted, "waits": waits, "kernels": kernels}


def kernel_name(name: str) -> str:
    """Return the function of a kernel and what it applies, such as ``reduce_kernel MeanOps``."""
    plain = name.replace("(anonymous namespace)::", "").removeprefix("void ")
    function, *_ = re.split(r"[<(]", plain)
    applied = FUNCTOR.search(plain[len(function) :])
    short = function.split("::")[-1]
    return f"{short} {applied[0]}" if applied else short
