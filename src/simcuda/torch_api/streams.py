"""``torch.cuda.Stream`` and ``torch.cuda.Event`` on the simulated machine.

``query`` answers False about pending work at first, and True when it is asked again. Asking costs nothing,
unless a loop does nothing else until the answer is True.
"""

from __future__ import annotations

import ctypes
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from simcuda.device.dispatch_key import stay_awake
from simcuda.device.machine import Machine, is_in_backward
from simcuda.device.ordering import StreamMark
from simcuda.torch_api.refusals import refuse

CUDA_DEVICE_TYPE = 1
LEAST_PRIORITY, GREATEST_PRIORITY = 0, -3
ONE_PROCESS = "let one process do the work"
TIMES_MEAN_NOTHING = (
    "Times between events mean nothing on a simulated CUDA device: they are the host's"
)
_FIRST_HANDLE = 0x5550000000


class Stream:
    """A queue of work on one device; each simulation has its own class, for its machine.

    Attributes:
        number: Its number on the machine; a default stream has that of its device.
        device: Its device.
        device_type: The number of the device type ``cuda``.
        stream_id: Its number among the streams of its device; 0 for the default stream.
        cuda_stream: A made-up handle; 0 for the default stream.
    """

    machine: Machine
    event: type[Event]
    device_type = CUDA_DEVICE_TYPE
    priority_range = staticmethod(lambda: (LEAST_PRIORITY, GREATEST_PRIORITY))
    # A CUDA graph cannot be recorded on a simulated device.
    is_capturing = staticmethod(lambda: False)

    def __init__(self, device: Any = None, priority: int = 0, **known: int) -> None:
        self.priority = priority
        # PyTorch makes a stream of a description that C++ gave, to name one that is there.
        if "stream_id" in known:
            self.number = known["stream_id"] or known["device_index"]
        else:
            target = (
                torch.device("cuda", device)
                if isinstance(device, int)
                else torch.device(device or "cuda")
            )
            self.number = self.machine.new_stream(self.machine.index(target))
        self.device = self.machine.devices[self.device_index]
        self.stream_id = 0 if self.number < len(self.machine.devices) else self.number
        self.cuda_stream = self.stream_id and _FIRST_HANDLE + self.stream_id
        self._as_parameter_ = ctypes.c_void_p(self.cuda_stream)
        self._context: Any = None

    @property
    def device_index(self) -> int:
        """Index of its device; asked before the stream is made current, which fails after the simulation."""
        return self.machine.stream_devices[self.number]

    def synchronize(self) -> None:
        """Let the host wait for it."""
        self.machine.wait_for_stream(self.number)

    def query(self) -> bool:
        """Return whether its work is done."""
        return self.machine.poll(
            "stream_syncs", self.machine.ordering.record(self.number)
        )

    def record_event(self, event: Event | None = None) -> Event:
        """Mark its work so far by an event."""
        if event is None:
            event = self.event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let its later work come after an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let its later work come after the work of another stream so far."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        make_context: Any = torch.cuda.StreamContext
        self._context = make_context(self)
        self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.number == other.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        if isinstance(self.machine, EndedMachine):
            return "<torch.cuda.Stream of a simulation that has ended>"
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A mark in a stream's queue; each simulation has its own class, for its machine.

    Attributes:
        cuda_event: A made-up handle; 0 before it is recorded.
        device: Device of the stream it was recorded on; None before.
    """

    machine: Machine

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        self.enable_timing, self.blocking = enable_timing, blocking
        self.interprocess, self.external = interprocess, external
        self.cuda_event = 0
        self.device: torch.device | None = None
        self._mark: StreamMark | None = None
        self._version = 0
        self._recorded_at = 0.0

    def record(self, stream: Stream | None = None) -> None:
        """Mark the work of a stream so far, by default of the current one."""
        number = current(self.machine) if stream is None else stream.number
        self._mark = self.machine.ordering.record(number)
        self._version = self.machine.ordering.host_version
        self._recorded_at = time.perf_counter()
        self.cuda_event = id(self)
        self.device = self.machine.devices[self.machine.stream_devices[number]]

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream come after it, if it was ever recorded."""
        number = current(self.machine) if stream is None else stream.number
        if self._mark is not None:
            self.machine.ordering.wait(number, self._mark)

    def synchronize(self) -> None:
        """Let the host wait for it, if it was ever recorded."""
        if self._mark is not None:
            self.machine.wait_for_event(self._mark)

    def query(self) -> bool:
        """Return whether the work before it is done."""
        return self._mark is None or self.machine.poll(
            "event_syncs", self._mark, self._version
        )

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds of the host's time between two records: the simulated device takes none."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError(
                "Both events must be created with argument 'enable_timing=True'."
            )
        if self._mark is None or end_event._mark is None:
            raise ValueError(
                "Both events must be recorded before calculating elapsed time."
            )
        if not self.machine.has_told_times:
            self.machine.has_told_times = True
            warnings.warn(TIMES_MEAN_NOTHING, stacklevel=2)
        return 1000 * (end_event._recorded_at - self._recorded_at)

    ipc_handle = staticmethod(refuse("Sharing an event", ONE_PROCESS))
    from_ipc_handle = staticmethod(refuse("Sharing an event", ONE_PROCESS))

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Event {self.cuda_event:#x}>"
            if self._mark
            else "<torch.cuda.Event uninitialized>"
        )


def current(machine: Machine, device: int | None = None) -> int:
    """The current stream of a device, by default of the current one; within a backward pass, its node's."""
    index = machine.current.device if device is None else device
    if not 0 <= index < len(machine.devices):
        raise RuntimeError(
            f"Device index value {index} is out of index range [0, {len(machine.devices)})"
        )
    if machine.has_side_streams and is_in_backward():
        machine.follow_forward(index, torch._C._current_graph_task_id())
    return machine.current.streams[index]


def run_backward(
    machine: Machine, engine: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    """Run the autograd engine, then restore the streams that were current before."""
    streams = list(machine.current.streams) if machine.has_side_streams else None
    before = machine.ledger.totals() if machine.unsure_gradients else {}
    try:
        return engine(*args, **kwargs)
    finally:
        stay_awake()
        for name, metrics in machine.unsure_gradients.items():
            machine.ledger.doubt_since(name, before, metrics)
        if streams is not None:
            machine.leave_backward(streams)


class EndedMachine:
    """In place of the machine of a simulation that has ended."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            "this stream or event belongs to a simcuda.device() that has ended; make a new one"
        )


def for_any_device(original: Any, simulated: type[Stream | Event]) -> type:
    """``torch.Stream`` or ``torch.Event``: on CUDA, which is the default, one of ``torch.cuda``."""

    class AnyKind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, (original, simulated))

        def __call__(cls, device: Any = None, *how: Any, **named: Any) -> Any:
            target = torch.device("cuda" if device is None else device)
            if target.type != "cuda":
                return original(device, *how, **named)
            if issubclass(simulated, Stream):
                return simulated(target, *how, **named)
            return simulated(*how, **named)

    return AnyKind(original.__name__, (), {"__doc__": original.__doc__})
