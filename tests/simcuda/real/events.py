"""Events as Kineto exports them: the profiler's trace in Chrome's format."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]
PLACES = [("train.py", 10, "step"), ("train.py", 20, "log"), ("hooks.py", 5, "hook")]


def runtime(name: str, ts: float, correlation: int, op: int = 0, category: str = "cuda_runtime") -> Event:
    """A call of the CUDA runtime that takes 2 microseconds, made for the operation number ``op``."""
    args = (
        {"External id": op, "cbid": 211, "correlation": correlation} if op else {"correlation": correlation}
    )
    return _event(category, name, ts, 2.0, args)


def kernel(ts: float, correlation: int) -> Event:
    """A kernel on a device."""
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
    return _event("kernel", name, ts, 1.5, {"device": 0, "stream": 7, "correlation": correlation})


def memcpy(name: str, ts: float, correlation: int, nbytes: int) -> Event:
    """A copy by a device."""
    args = {"device": 0, "stream": 7, "correlation": correlation, "bytes": nbytes}
    return _event("gpu_memcpy", name, ts, 1.0, args | {"memory bandwidth (GB/s)": 0.5})


def memory(ts: float, address: int, nbytes: int, device: int = 1) -> Event:
    """A change of memory: of a device, unless its type is 0."""
    args = {"Addr": address, "Bytes": nbytes, "Device Type": device, "Device Id": 0}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": ts, "s": "t", "args": args}


def operation(name: str, ts: float, number: int) -> Event:
    """An operation of ATen on the host."""
    return _event(
        "cpu_op", name, ts, 50.0, {"External id": number, "Record function id": 0, "Ev Idx": number}
    )


def mark(text: str, ts: float) -> Event:
    """A mark of ours, which shows as an operation."""
    return _event("cpu_op", f"simcuda {text}", ts, 1.0, {"External id": 900, "Ev Idx": 900})


def block(*inside: Event) -> list[Event]:
    """A measured block from 100 to 1000, and around it what the profiler and the measurement do."""
    return [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        mark("begin", 90) | {"dur": 9.0},
        runtime("cudaDeviceSynchronize", 92, 1),
        *inside,
        mark("end", 1000) | {"dur": 9.0},
        runtime("cudaDeviceSynchronize", 1002, 2),
        runtime("cudaDeviceSynchronize", 1020, 3),
        {"ph": "s", "id": 4, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 100.0},
    ]


def _event(category: str, name: str, ts: float, dur: float, args: dict[str, Any]) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}
