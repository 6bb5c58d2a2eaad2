"""A fake of CUDA under the real profiler: what it is asked to do shows in the trace as a GPU's work would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd.profiler import profile

from simcuda.real import device, marks
from simcuda.real.marks import is_user_code
from simcuda.real.trace import MEMORY_CHANGE, ON_CUDA

Entry = dict[str, Any]
MEMORY = 143_156 << 20
"""Bytes of memory of each device."""


class FakeCuda:
    """What the tests let happen, in the place of PyTorch's CUDA code.

    Attributes:
        records: What the devices did, as events of the trace.
        under_way: What they were asked to do and will have done at the next wait.
        loses: Whether an event of the trace gets lost.
        in_use: Requested bytes in use on each device.
        peaks: The most that were since the peaks were reset.
        ooms: How often the first device had no room.
        recording: Whether the allocators' history is being recorded.
        limits: Bytes that the allocators may take, where that was ever limited.
    """

    def __init__(self, devices: int) -> None:
        self.records: list[dict[str, Any]] = []
        self.under_way: list[dict[str, Any]] = []
        self.loses: Callable[[dict[str, Any]], bool] = lambda _: False
        self.in_use = [0] * devices
        self.peaks = [0] * devices
        self.ooms = 0
        self.recording = False
        self.limits: dict[int, int] = {}
        self._history: list[list[Entry]] = [[] for _ in range(devices)]
        self._calls = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Answer for torch."""
        patch.setattr(torch._C, "_cuda_hasPrimaryContext", lambda place: place == 0, raising=False)
        patch.setattr(torch.cuda, "device_count", lambda: len(self.in_use))
        patch.setattr(torch.cuda, "synchronize", lambda *_: self.synchronize())
        patch.setattr(torch.cuda, "memory_stats", self._statistics)
        patch.setattr(torch.cuda, "reset_peak_memory_stats", self._reset_peak)
        patch.setattr(torch.cuda, "memory_reserved", lambda place: -(-self.in_use[place] >> 21) << 21)
        patch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=MEMORY))
        patch.setattr(torch.cuda, "set_per_process_memory_fraction", self._limit)
        patch.setattr(torch.cuda, "empty_cache", lambda: None)
        patch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None, raising=False)
        patch.setattr(torch.cuda.memory, "_record_memory_history", self._record_history)
        patch.setattr(torch.cuda.memory, "_snapshot", self._snapshot)
        patch.setattr(device, "profile", lambda **how: FakeProfile(self, **how))
        patch.setattr(device, "_probe", self.probe)
        patch.setattr(marks, "is_user_code", lambda file: file != __file__ and is_user_code(file))

    def call(self, name: str, op: int = 0) -> int:
        """A call of the CUDA runtime for an operation; the number by which its effects are known."""
        self._calls += 1
        with torch._C._profiler._RecordFunctionFast(f"{name}#{self._calls}#{op}"):
            return self._calls

    def synchronize(self) -> None:
        """``torch.cuda.synchronize``."""
        self.call("cudaDeviceSynchronize")
        self.records += self.under_way
        self.under_way.clear()

    def launch(self) -> None:
        """One kernel."""
        self._record("kernel", "void kernel()", self.call("cudaLaunchKernel"))

    def item(self) -> None:
        """A read of 4 bytes."""
        copy = self.call("cudaMemcpyAsync", op=7)
        self._record("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", copy, bytes=4)
        self.call("cudaStreamSynchronize", op=7)

    def probe(self) -> None:
        """What a measurement tries out first."""
        self.launch()
        self.launch()
        self.item()

    def allocate(self, nbytes: int, place: int = 0, *, shows: bool = True) -> None:
        """A block on a device, which shows in the profiler's trace too."""
        self.in_use[place] += nbytes
        self.peaks[place] = max(self.peaks[place], self.in_use[place])
        address = 1 << 20 | len(self._history[place])
        self._remember(place, "alloc", address, nbytes)
        if shows:
            with torch._C._profiler._RecordFunctionFast(f"{MEMORY_CHANGE}#{address}#{nbytes}"):
                pass

    def free(self, nbytes: int, place: int = 0) -> None:
        """Give a block back."""
        self.in_use[place] -= nbytes
        self._remember(place, "free_completed", 0, nbytes)

    def export(self, file: Path) -> None:
        """Make what happened look as it would in a trace of CUDA."""
        content = json.loads(file.read_text())
        content["traceEvents"] = [
            event for event in map(_as_runtime, content["traceEvents"]) if not self.loses(event)
        ]
        content["traceEvents"] += [event for event in self.records if not self.loses(event)]
        file.write_text(json.dumps(content))

    def _record(self, category: str, name: str, correlation: int, **more: int) -> None:
        args = {"correlation": correlation, **more}
        self.under_way.append({"ph": "X", "cat": category, "name": name, "ts": 0.0, "dur": 1.0, "args": args})

    def _remember(self, place: int, action: str, address: int, nbytes: int) -> None:
        if self.recording:
            time = sum(map(len, self._history))
            entry = {"action": action, "addr": address, "size": nbytes, "time_us": time}
            self._history[place].append(entry)

    def _record_history(self, enabled: str | None, **how: Any) -> None:
        self.recording = enabled == "all"
        if how.get("clear_history"):
            self._history = [[] for _ in self._history]

    def _limit(self, fraction: float, place: int) -> None:
        """PyTorch's allocator rounds down."""
        self.limits[place] = int(fraction * MEMORY)

    def _snapshot(self) -> dict[str, Any]:
        """The history so far, in which taking it shows too, on every device."""
        for place in range(len(self.in_use)):
            self._remember(place, "snapshot", 0, self.in_use[place])
        return {"device_traces": self._history}

    def _reset_peak(self, place: int) -> None:
        self.peaks[place] = self.in_use[place]

    def _statistics(self, place: int) -> dict[str, int]:
        """Blocks are multiples of 512 bytes; one block holds all that is in use."""
        return {
            "requested_bytes.all.current": self.in_use[place],
            "requested_bytes.all.peak": self.peaks[place],
            "allocated_bytes.all.current": -(-self.in_use[place] // 512) * 512,
            "allocated_bytes.all.peak": -(-self.peaks[place] // 512) * 512,
            "num_ooms": self.ooms if place == 0 else 0,
        }


class FakeProfile(profile):
    """The real profiler, told that CUDA is there."""

    def __init__(self, cuda: FakeCuda, **how: Any) -> None:
        assert "cuda" == how.pop("use_device")
        super().__init__(**how)
        self._cuda = cuda

    def __enter__(self) -> None:
        self._cuda.records.clear()
        super().__enter__()  # type: ignore[no-untyped-call]  # has no annotations

    def __exit__(self, *error: object) -> None:
        torch.cuda.synchronize()
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # has no annotations

    def export_chrome_trace(self, path: str, *_: Any, **__: Any) -> None:
        """As the real one does."""
        super().export_chrome_trace(path)  # type: ignore[no-untyped-call]  # has no annotations
        self._cuda.export(Path(path))


def _as_runtime(event: dict[str, Any]) -> dict[str, Any]:
    """Make a record of ``call`` a call of the CUDA runtime, and one of ``allocate`` a change of memory."""
    name, *numbers = str(event.get("name")).split("#")
    if not numbers:
        return event
    if name == MEMORY_CHANGE:
        address, nbytes = map(int, numbers)
        args = {"Addr": address, "Bytes": nbytes, "Device Type": ON_CUDA}
        return event | {"ph": "i", "cat": "cpu_instant_event", "name": name, "args": args}
    correlation, op = map(int, numbers)
    args = {"correlation": correlation, "External id": op}
    return event | {"cat": "cuda_runtime", "name": name, "args": args}
