"""Measure a pattern on a real GPU, twice: by the tool's meter, and by PyTorch's profiler alone."""

from __future__ import annotations

import gc
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from tests.gpu.pattern import METRICS, Pattern

from simcuda.measurement import METRICS as ALL_METRICS
from simcuda.real import RealCuda, environment, real_device

MEASURED = "pattern that is measured"
WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize")
COPIES = {"HtoD": "h2d", "DtoH": "d2h", "DtoD": "d2d"}
LONGEST_NAME = 160
OPEN = ExitStack()
"""Holds the device until the process ends."""
_GPUS: list[RealCuda | str] = []


def describe_machine() -> dict[str, str]:
    """Return what the counts depend on."""
    told = environment()
    machine = {"gpu": told.gpu, "driver": told.driver, "cuda": told.cuda, "torch": told.torch}
    try:
        gpu: RealCuda | str = OPEN.enter_context(real_device())
    except Exception as error:
        gpu = f"{type(error).__name__}: {error}"
        machine["real_device"] = gpu
    _GPUS.append(gpu)
    return machine


def measure(pattern: Pattern) -> dict[str, Any]:
    """Return what a pattern costs, once it has run with other data."""
    torch.manual_seed(0)
    pattern.build()()
    torch.cuda.synchronize()
    torch.manual_seed(1)
    outcome = measure_by_profiler(pattern.build())
    torch.manual_seed(1)
    meter = measure_by_meter(pattern.build())
    # The tool's meter is what is tested; the profiler alone stands in where it fails.
    outcome["meter"] = meter
    outcome["counted"] = outcome["profiler"] if "error" in meter else {m: meter[m] for m in METRICS}
    outcome["meters_differ"] = "error" not in meter and outcome["counted"] != outcome["profiler"]
    return outcome


def measure_by_meter(work: Callable[[], object]) -> dict[str, Any]:
    """Return what the tool's meter counts, or its error."""
    gpu = _GPUS[0]
    if isinstance(gpu, str):
        return {"error": gpu}
    try:
        gc.collect()
        with gpu.measure() as cost:
            kept = work()
        del kept
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    not_counted = getattr(cost, "not_counted", ())
    counted = {metric: getattr(cost, metric) for metric in ALL_METRICS if metric not in not_counted}
    return {**counted, "waits": cost.syncs}


def measure_by_profiler(work: Callable[[], object]) -> dict[str, Any]:
    """Return what PyTorch's profiler and allocator tell of one run, with names and sizes."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    gc.collect()
    torch.cuda.synchronize()
    record_history: Any = torch.cuda.memory._record_memory_history
    with torch.profiler.profile(activities=activities) as profiler:
        record_history("all", context=None, stacks="python", clear_history=True)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_stats()
        with torch.profiler.record_function(MEASURED):
            kept = work()
        after = torch.cuda.memory_stats()
        entries = torch.cuda.memory._snapshot()["device_traces"][0]
        record_history(None)
        torch.cuda.synchronize()
    del kept
    sizes = [entry["size"] for entry in entries if entry["action"] == "alloc"]
    with tempfile.TemporaryDirectory(prefix="patterns-") as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        made = count_events(json.loads(file.read_bytes())["traceEvents"])
    made["profiler"]["allocations"] = after.get("allocation.all.allocated", 0) - before.get(
        "allocation.all.allocated", 0
    )
    made["sizes"] = sizes[:100]
    made["peak_bytes"] = after.get("requested_bytes.all.peak", 0) - before.get(
        "requested_bytes.all.current", 0
    )
    return made


def count_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Count what a trace has of the marked part: calls of CUDA, kernels and copies, by name."""
    complete = [event for event in events if event.get("ph") == "X"]
    marked = [event for event in complete if event["name"] == MEASURED and event["cat"] == "user_annotation"]
    begin = marked[0]["ts"]
    end = begin + marked[0]["dur"]
    calls: Counter[str] = Counter()
    correlations: set[int] = set()
    for event in complete:
        if event["cat"] in ("cuda_runtime", "cuda_driver") and begin <= event["ts"] <= end:
            calls[event["name"].removesuffix("_ptsz")] += 1
            correlations.add(event["args"]["correlation"])
    kernels: Counter[str] = Counter()
    copies: Counter[str] = Counter()
    copied: list[tuple[str, int]] = []
    memsets = 0
    for event in complete:
        if event.get("args", {}).get("correlation") not in correlations:
            continue
        if event["cat"] == "gpu_memcpy":
            copies[event["name"].split()[1]] += 1
            copied.append((event["name"], event["args"].get("bytes", 0)))
        elif event["cat"] == "gpu_memset":
            memsets += 1
        elif event["cat"] == "kernel":
            kernels[event["name"][:LONGEST_NAME]] += 1
    counted = {kind: copies[code] for code, kind in COPIES.items()}
    counted["waits"] = sum(calls[name] for name in WAITS)
    counted["launches"] = kernels.total()
    return {
        "profiler": {metric: counted.get(metric, 0) for metric in METRICS},
        "calls": dict(calls),
        "kernels": dict(kernels),
        "copies": copied[:100],
        "memsets": memsets,
    }
