"""``torch.cuda`` on the simulated machine.

The Python code of ``torch.cuda`` runs as it is. What it asks of C++ (the functions ``torch._C._cuda_*``) is
answered here, and the few classes and functions that it cannot run without CUDA's libraries are replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import torch
import torch.cuda
from torch import Tensor

from simcuda.device.allocator import Allocator
from simcuda.device.generators import SimulatedGenerator
from simcuda.device.machine import Machine
from simcuda.profile import GPU_NAME, workspace_bytes
from simcuda.torch_api import streams
from simcuda.torch_api.patches import Patches
from simcuda.torch_api.refusals import NotSimulatedError, refuse

NCCL_VERSION = 2 << 32 | 29 << 16 | 7
"""As C++ packs 2.29.7, which torch 2.13.0+cu130 requires: programs look at it before they use NCCL."""

SHARED_MEMORY = {(8, 0): 164 << 10, (9, 0): 228 << 10}
"""Bytes of one multiprocessor by compute capability, of which each block takes 1 KiB for the system.

Source: CUDA C++ Programming Guide, technical specifications per compute capability.
"""
CUFFT_PLANS = 4096
"""How many plans of cuFFT are kept, by default. Source: ATen/native/cuda/CuFFTPlanCache.h."""
UNKNOWN = ("clock_rate", "memory_clock_rate", "memory_bus_width")


@dataclass(frozen=True)
class DeviceProperties:
    """The result of ``torch.cuda.get_device_properties``. Source: torch/csrc/cuda/Module.cpp."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    L2_cache_size: int
    shared_memory_per_multiprocessor: int
    shared_memory_per_block_optin: int
    uuid: UUID
    warp_size: int = 32
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    regs_per_multiprocessor: int = 65_536
    shared_memory_per_block: int = 49_152

    @property
    def gcnArchName(self) -> str:  # noqa: N802 - the name CUDA's properties have
        """Of a build for CUDA, the name."""
        return self.name

    def __getattr__(self, name: str) -> Any:
        if name in UNKNOWN:
            raise NotSimulatedError(
                f"{name} of a simulated CUDA device is not known; ask a real GPU"
            )
        raise AttributeError(
            f"'_CudaDeviceProperties' object has no attribute {name!r}"
        )


class _Runtime:
    """The parts of CUDA's runtime that ``torch.cuda.cudart()`` gives to Python; 0 is success."""

    cudaError = SimpleNamespace(success=0)  # noqa: N815 - CUDA's names
    cudaProfilerStart = cudaProfilerStop = staticmethod(lambda: 0)  # noqa: N815 - as above
    cudaGetErrorString = staticmethod(lambda _: "no error")  # noqa: N815 - as above
    cudaMemGetInfo = staticmethod(lambda device: torch.cuda.mem_get_info(device))  # noqa: N815, PLW0108 - as above; torch.cuda has it later
    cudaHostRegister = cudaHostUnregister = staticmethod(  # noqa: N815 - as above
        refuse("Pinning memory that is there already", "use Tensor.pin_memory()")
    )


class CudaApi:
    """Takes the place of the C++ side of ``torch.cuda`` and ``torch.accelerator``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._event: Any = type("Event", (streams.Event,), {"machine": machine})
        bound = {"machine": machine, "event": self._event}
        self._stream: Any = type("Stream", (streams.Stream,), bound)

    def end(self) -> None:
        """Make streams and events that outlive the simulation raise an error."""
        ended: Any = streams.EndedMachine()
        self._stream.machine = self._event.machine = ended

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        machine = self.machine
        stream = self._stream
        event = self._event
        profile, process = machine.profile, os.getpid()
        shared = SHARED_MEMORY[profile.capability]
        properties = [
            DeviceProperties(
                os.environ.get(GPU_NAME, profile.gpu),
                *profile.capability,
                total_memory=machine.allocators[0].capacity,
                multi_processor_count=profile.multiprocessors,
                max_threads_per_multi_processor=profile.threads_per_multiprocessor,
                L2_cache_size=profile.l2_cache_bytes,
                shared_memory_per_multiprocessor=shared,
                shared_memory_per_block_optin=shared - 1024,
                uuid=UUID(int=number),
            )
            for number in range(1, len(machine.devices) + 1)
        ]
        patches.set(torch.version, cuda=profile.cuda_version)
        patches.set(
            torch,
            Generator=SimulatedGenerator,
            Stream=streams.for_any_device(torch.Stream, stream),
            Event=streams.for_any_device(torch.Event, event),
        )
        patches.set(
            torch.cuda,
            _initialized=True,
            has_magma=True,
            _cached_device_count=len(machine.devices),
            _is_in_bad_fork=lambda: os.getpid() != process,
            _get_device_properties=properties.__getitem__,
            _exchange_device=self.exchange_device,
            _maybe_exchange_device=self.exchange_device,
            _cudart=_Runtime,
            default_generators=machine.generators.defaults,
            mem_get_info=self.memory_info,
            Stream=stream,
            Event=event,
        )
        patches.set(torch.cuda.memory, mem_get_info=self.memory_info)
        patches.set(torch.cuda.streams, Stream=stream, Event=event)
        # Bound when its module was loaded.
        patches.set(torch.cuda.graphs, _cuda_isCurrentStreamCapturing=lambda: False)
        pools = count(1)
        patches.set(torch.cuda.graphs, _graph_pool_handle=lambda: (0, next(pools)))
        plans: dict[int, int] = {}
        answers: dict[str, Callable[..., Any]] = {
            "get_plan_cache_size": refuse(
                "Counting plans of cuFFT", "ask for max_size alone"
            ),
            "get_plan_cache_max_size": lambda device: plans.get(device, CUFFT_PLANS),
            "set_plan_cache_max_size": plans.__setitem__,
            "clear_plan_cache": lambda _: None,
        }
        for name, answer in answers.items():
            patches.redirect(getattr(torch, f"_cufft_{name}"), answer)
        # What a build without CUDA refuses to choose is kept, and chooses nothing.
        for kind in ("linalg", "blas"):
            chosen = [getattr(torch._C, f"_get_{kind}_preferred_backend")()]
            get, choose = partial(chosen.__getitem__, 0), partial(chosen.__setitem__, 0)
            choice = {
                f"_get_{kind}_preferred_backend": get,
                f"_set_{kind}_preferred_backend": choose,
            }
            patches.set(torch._C, **choice)
        engine: Any = torch.autograd  # torch has no annotation for the name
        run_backward = partial(
            streams.run_backward, machine, engine._engine_run_backward
        )
        patches.set(engine, _engine_run_backward=run_backward)
        patches.set(torch._C, **self._c_functions(process))

    def _c_functions(self, process: int) -> dict[str, Any]:
        """Answers for the functions in ``torch._C``, by name; only ``process`` may use the devices."""
        machine = self.machine
        profile = self.machine.profile
        major, minor = profile.capability
        version = int(float(profile.cuda_version) * 1000)
        devices: dict[str, Any] = {
            "_has_cuda": True,
            "has_cuda": True,
            "_cuda_isInBadFork": lambda: os.getpid() != process,
            "_cuda_getDeviceCount": lambda: len(machine.devices),
            "_cuda_getDevice": lambda: machine.current.device,
            "_cuda_setDevice": self.exchange_device,
            "_cuda_canDeviceAccessPeer": lambda device, peer: device != peer,
            "_cuda_getArchFlags": lambda: f"sm_{major}{minor}",
            "_cuda_synchronize": lambda: machine.wait_for_device(
                machine.current.device
            ),
            "_cuda_set_sync_debug_mode": lambda mode: setattr(
                machine, "sync_debug_mode", mode
            ),
            "_cuda_get_sync_debug_mode": lambda: machine.sync_debug_mode,
            "_cuda_isCurrentStreamCapturing": lambda: False,
        }
        memory: dict[str, Callable[..., Any]] = {
            "_cuda_memoryStats": lambda device: self._allocator(
                device
            ).as_nested_dict(),
            "_cuda_resetPeakMemoryStats": lambda device: self._allocator(
                device
            ).stats.reset_peak(),
            "_cuda_resetAccumulatedMemoryStats": lambda device: self._allocator(
                device
            ).stats.reset_accumulated(),
            "_cuda_emptyCache": machine.empty_caches,
            "_cuda_setMemoryFraction": lambda fraction, device: setattr(
                machine.allocators[device], "fraction", fraction
            ),
            "_cuda_getMemoryFraction": lambda device: (
                machine.allocators[device].fraction
            ),
        }
        streams_and_runtime: dict[str, Callable[..., Any]] = {
            "_cuda_getCurrentStream": lambda device: self._describe(
                streams.current(machine, device)
            ),
            "_cuda_getCurrentRawStream": lambda device: (
                torch.cuda.current_stream(device).cuda_stream
            ),
            "_cuda_getDefaultStream": self._describe,
            "_cuda_setStream": self.set_stream,
            "_group_tensors_by_device_and_dtype": group_by_device_and_dtype,
            "_scatter": scatter,
            "_gather": gather,
            "_cuda_init": lambda: None,
            "_cuda_getCompiledVersion": lambda: version,
            "_cuda_getDriverVersion": lambda: version,
            "_cuda_hasPrimaryContext": lambda _: True,
            "_cuda_getAllocatorBackend": lambda: "native",
            "_cuda_isHistoryEnabled": lambda: False,
            "_cuda_ipc_collect": lambda: None,
            "_cuda_sleep": lambda _: machine.run(machine.current.device, 1, (), ()),
            "_cuda_getCublasWorkspaceSize": lambda: workspace_bytes(profile),
            "_cuda_clearCublasWorkspaces": machine.free_cublas,
            "_cuda_tunableop_is_enabled": lambda: False,
            "_nccl_version": lambda: NCCL_VERSION,
            "_nccl_version_suffix": lambda: b"",
            "_is_flash_attention_available": lambda: True,
        }
        # ``torch.accelerator`` asks the same under its own names.
        accelerator: dict[str, Callable[..., Any]] = {
            "_accelerator_getAccelerator": lambda: torch.device("cuda"),
            "_get_accelerator": lambda: torch.device("cuda"),
            "_accelerator_getDeviceIndex": lambda: machine.current.device,
            "_accelerator_setDeviceIndex": self.exchange_device,
            "_accelerator_exchangeDevice": self.exchange_device,
            "_accelerator_maybeExchangeDevice": self.exchange_device,
            "_accelerator_synchronizeDevice": machine.wait_for_device,
            "_accelerator_emptyCache": machine.empty_caches,
            "_accelerator_emptyHostCache": machine.empty_host_cache,
            "_accelerator_isAllocatorInitialized": lambda: True,
            "_accelerator_getDeviceStats": memory["_cuda_memoryStats"],
            "_accelerator_resetPeakStats": memory["_cuda_resetPeakMemoryStats"],
            "_accelerator_resetAccumulatedStats": memory[
                "_cuda_resetAccumulatedMemoryStats"
            ],
            "_accelerator_getMemoryInfo": self.memory_info,
            "_accelerator_getDeviceCapability": refuse(
                "torch.accelerator.get_device_capability",
                "use torch.cuda.get_device_capability()",
            ),
            "_accelerator_getStream": torch.cuda.current_stream,
            "_accelerator_setStream": torch.cuda.set_stream,
        }
        return devices | memory | streams_and_runtime | accelerator

    def exchange_device(self, index: int) -> int:
        """Make a device current and tell the one before; a negative index changes nothing."""
        previous = self.machine.current.device
        if index >= 0:
            self.machine.current.device = self.machine.index(
                torch.device("cuda", index)
            )
        return previous

    def set_stream(self, stream_id: int, device_index: int, device_type: int) -> None:  # noqa: ARG002 - C++'s
        """Make a stream current on its device, and the device current."""
        self.machine.current.set_stream(device_index, stream_id or device_index)
        self.machine.current.device = device_index

    def memory_info(self, device: Any = None) -> tuple[int, int]:
        """Bytes of a device that are free, and all of them."""
        # It may be given as a number, a name or a device.
        index = torch.cuda._utils._get_device_index(device, optional=True)
        allocator = self.machine.allocators[
            self.machine.index(torch.device("cuda", index))
        ]
        return allocator.capacity - allocator.reserved, allocator.capacity

    def _allocator(self, device: int) -> Allocator:
        # As CUDA has it: an invalid device is only found out when it is asked for.
        if not 0 <= device < len(self.machine.devices):
            raise RuntimeError(f"Invalid device argument {device}: did you call init?")
        return self.machine.allocators[device]

    def _describe(self, stream: int) -> tuple[int, int, int]:
        """A stream as C++ describes it: its number, which is 0 for a default stream, its device and type."""
        stream_id = 0 if stream < len(self.machine.devices) else stream
        return stream_id, self.machine.stream_devices[stream], streams.CUDA_DEVICE_TYPE


def scatter(
    tensor: Tensor,
    devices: list[int],
    chunk_sizes: list[int] | None = None,
    dim: int = 0,
    streams: list[Any] | None = None,
) -> list[Tensor]:
    """Parts of a tensor, each on its device. Source: torch/csrc/cuda/comm.cpp."""
    parts = (
        tensor.chunk(len(devices), dim)
        if chunk_sizes is None
        else torch.split_with_sizes(tensor, chunk_sizes, dim)
    )
    moved = []
    for part, device, stream in zip(
        parts, devices, streams or [None] * len(devices), strict=False
    ):
        with torch.cuda.stream(stream):
            target = torch.device("cuda", device)
            moved.append(
                part if part.device == target else part.to(target, non_blocking=True)
            )
    return moved


def gather(tensors: list[Tensor], dim: int, destination: int) -> Tensor:
    """Parts from several devices, joined on one, or for -1 on the host. Source: torch/csrc/cuda/comm.cpp."""
    target = (
        torch.device("cpu") if destination == -1 else torch.device("cuda", destination)
    )
    lengths = [each.shape[dim] for each in tensors]
    size = list(tensors[0].shape)
    size[dim] = sum(lengths)
    result = torch.empty(size, dtype=tensors[0].dtype, device=target)
    for part, each in zip(
        torch.split_with_sizes(result, lengths, dim), tensors, strict=True
    ):
        part.copy_(each, non_blocking=result.is_cuda)
    return result


def group_by_device_and_dtype(
    tensor_lists: list[list[Any]], with_indices: bool = False
) -> dict[tuple[torch.device, torch.dtype], tuple[list[list[Any]], list[int]]]:
    """The lists cut into groups by the device and type of the first list's tensors, which are all present.

    Multi-tensor optimizers group their tensors so; C++ would see one device only. Tensors at one position of
    the lists belong together and stay in their order. ``with_indices`` adds the positions.
    """
    groups: dict[
        tuple[torch.device, torch.dtype], tuple[list[list[Any]], list[int]]
    ] = {}
    for position, tensor in enumerate(tensor_lists[0]):
        key = (tensor.device, tensor.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensor_lists], []))
        for group, tensors in zip(lists, tensor_lists, strict=True):
            # Optimizers leave lists empty that they do not use, such as that of the maxima.
            if tensors:
                group.append(tensors[position])
        if with_indices:
            indices.append(position)
    return groups
