"""Refuse what cannot run on a simulated device, and say what to do instead.

What is refused in a module is refused as soon as it is loaded. Modules of torch that are first imported
during a simulation are imported outside it: some look for a GPU as they load, and what they bind to replaced
names would outlive the simulation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, partial, partialmethod
from importlib.machinery import PathFinder
from operator import attrgetter
from types import ModuleType, SimpleNamespace
from typing import Any
from warnings import warn

import torch
import torch.autograd.profiler
import torch.cuda.graphs
import torch.distributed
import torch.nn.parallel
import torch.utils.dlpack
from torch import Tensor

from simcuda.costs.call import tensors_in
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api.patches import Patches, genuine

NOT_SIMULATED = "does not run on a simulated CUDA device"
EAGERLY = "run the captured code as it is"
ALONE = "call the module itself, on one device"
COPIED = "copy the tensor to the host first, by Tensor.cpu()"
WITH_STATISTICS = "use torch.cuda.memory_stats() or gpu.measure()"
WITH_OPERATIONS = "call operations of PyTorch instead"

REFUSED: tuple[tuple[Any, str, str, str], ...] = (
    (torch.cuda.graphs.CUDAGraph, "__new__", "torch.cuda.CUDAGraph", EAGERLY),
    (torch.cuda.graphs.graph, "__init__", "torch.cuda.graph", EAGERLY),
    (
        torch.cuda,
        "make_graphed_callables",
        "torch.cuda.make_graphed_callables",
        EAGERLY,
    ),
    (
        torch.cuda.graphs,
        "make_graphed_callables",
        "torch.cuda.make_graphed_callables",
        EAGERLY,
    ),
    (
        torch.cuda.ExternalStream,
        "__new__",
        "torch.cuda.ExternalStream",
        "make a torch.cuda.Stream",
    ),
    (
        torch.UntypedStorage,
        "_share_cuda_",
        "Sharing memory with another process",
        COPIED,
    ),
    (
        torch.cuda.memory.MemPool,
        "__new__",
        "torch.cuda.MemPool",
        "allocate from the default pool",
    ),
)
"""Owner, name, what it is, and what to do instead."""

NCCL = "use the backend gloo, or one process"

REFUSED_ON_DEVICE: tuple[tuple[Any, str, str, str], ...] = (
    (Tensor, "__dlpack__", "Export by DLPack", COPIED),
    (Tensor, "__dlpack_device__", "Export by DLPack", COPIED),
    *((Tensor, name, f"Tensor.{name}", COPIED) for name in ("apply_", "map_", "map2_")),
)
"""The same for what works with host tensors."""

REFUSED_ON_IMPORT = ("torch.export", "triton.runtime.jit")
"""Modules that may be loaded at any time, of which ``imported`` refuses something."""

C_FUNCTIONS: dict[str, str] = {
    "_cuda_memorySnapshot": WITH_STATISTICS,
    "_cuda_record_memory_history": WITH_STATISTICS,
    "_cuda_hostMemoryStats": WITH_STATISTICS,
    "_nccl_": NCCL,
    "_broadcast": "copy by Tensor.to",
    "_cuda_": "leave it out, or run it on a real GPU",
}
"""What to do instead of C++ functions whose names begin like this; the first match counts."""

C_SETTINGS = ("_cudnn_", "_conv_benchmark_")
"""Parts of the names of those that only keep a setting."""


OF_A_MODULE = ("ScriptModule.save", "ScriptModule.save_to_buffer")
"""Functions of C++ that read whatever a module has, past the watcher."""
WAYS_PAST = (
    *(
        "_jit_interpret_graph",
        "_pickle_save",
        "LiteScriptModule.forward",
        "LiteScriptModule.run_method",
    ),
)
"""The same of tensors that they are given."""
OF_SCRIPTS: tuple[Any, ...] = (torch.ops.aten._tensor_to_list, torch.ops.onnx.Reshape)
"""The operations that TorchScript has in place of kernels, and that read by themselves."""

_TORCH = "torch."
_TEST_HELPERS = "torch.testing._internal."


class NotSimulatedError(AttributeError, RuntimeError):
    """A simulated device cannot do this. Also an ``AttributeError``, so that ``hasattr`` returns False."""


def install(patches: Patches) -> None:
    """Refuse what needs a compiler, a driver, another process or one of NVIDIA's libraries."""
    for owner, name, what, instead in REFUSED:
        patches.set(owner, **{name: refuse(what, instead)})
    refuse_on_device = partial(refuse_if, lambda tensor, *_, **__: tensor.is_cuda)
    for native in (torch._C._to_dlpack, torch._C._to_dlpack_versioned):
        patches.redirect(native, refuse_on_device(native, "Export by DLPack", COPIED))
    for owner, name, what, instead in REFUSED_ON_DEVICE:
        patches.set(
            owner, **{name: refuse_on_device(getattr(owner, name), what, instead)}
        )
    interface: Any = vars(Tensor)["__cuda_array_interface__"]
    share = refuse_on_device(interface.__get__, "Export to other libraries", COPIED)
    patches.set(Tensor, __cuda_array_interface__=property(share))
    profile: Any = torch.autograd.profiler.profile
    patches.set(profile, __init__=partialmethod(_profile_the_host, profile.__init__))
    # What is profiled unless activities are given.
    activities: Any = torch._C._profiler.ProfilerActivity
    patches.set(
        torch.autograd, _supported_activities=lambda: {activities.CPU, activities.CUDA}
    )
    parallel: Any = torch.nn.DataParallel
    several = refuse_if(
        _is_of_several,
        parallel.__init__,
        "torch.nn.DataParallel on several devices",
        ALONE,
    )
    patches.set(parallel, __init__=several)
    distributed: Any = torch.distributed
    if distributed.is_available():
        asks_for_nccl = refuse_if(
            lambda backend=None, *_, **__: "nccl" in str(backend).lower(),
            distributed.init_process_group,
            "NCCL",
            NCCL,
        )
        patches.set(distributed, init_process_group=asks_for_nccl)
        patches.set(distributed.distributed_c10d, init_process_group=asks_for_nccl)
    # What is loaded later is refused then.
    for module in REFUSED_ON_IMPORT:
        if module in sys.modules:
            imported(patches, sys.modules[module])


def _is_of_several(
    _: Any, __: Any, device_ids: Sequence[Any] | None = None, *___: Any, **____: Any
) -> bool:
    """Return True if a ``torch.nn.DataParallel`` has several devices: NCCL copies its module to them."""
    return (torch.cuda.device_count() if device_ids is None else len(device_ids)) > 1


def _profile_the_host(
    profile: Any,
    init: Callable[..., None],
    *args: Any,
    use_cpu: bool = True,
    **how: Any,
) -> None:
    """``torch.autograd.profiler.profile.__init__``, without the kernels of a device."""
    is_of_cuda = bool(how.pop("use_cuda", False)) or how.get("use_device") == "cuda"
    if is_of_cuda:
        if not use_cpu:
            refuse(
                "Profiling of CUDA alone",
                "profile with activities=[ProfilerActivity.CPU]",
            )()
        warn(
            "A simulated CUDA device has no kernels: the profile is that of the host",
            stacklevel=3,
        )
        how.pop("use_device", None)
    init(profile, *args, use_cpu=use_cpu, **how)
    if is_of_cuda:
        # It waits for its device when it ends.
        profile.use_device = "cuda"


def doubt_ways_past(machine: Machine, patches: Patches) -> None:
    """Let a run be marked where C++ reads a device's memory by itself: what that costs is unknown."""

    def call(
        what: str, original: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        devices = map(machine.storages.device_of, tensors_in((*args, *kwargs.values())))
        if what.endswith(OF_A_MODULE) or any(device != HOST for device in devices):
            machine.ledger.doubt(what)
        return original(*args, **kwargs)

    for name in (*OF_A_MODULE, *WAYS_PAST):
        native: Any = attrgetter(name)(torch._C)
        native = getattr(native, "__func__", native)
        patches.redirect(native, partial(call, f"torch._C.{name}", genuine(native)))
    for operation in OF_SCRIPTS:
        for native in (operation._op, operation.default._op):
            patches.redirect(
                native, partial(call, f"torch.ops.{operation}", genuine(native))
            )


def refuse_c_functions(patches: Patches) -> None:
    """Refuse what C++ would do for a real device, except what the simulation implements."""
    # A build for CUDA has these functions, and they would reach for the driver.
    for name in list(vars(torch._C)):
        instead = _instead_of_c_function(name)
        if instead and not any(part in name for part in C_SETTINGS):
            patches.set(torch._C, **{name: refuse(f"torch._C.{name}", instead)})

    def missing(name: str) -> Any:
        # A build without CUDA lacks most of these functions.
        if instead := _instead_of_c_function(name):
            refuse(f"torch._C.{name}", instead)()
        raise AttributeError(f"module 'torch._C' has no attribute {name!r}")

    patches.set(torch._C, __getattr__=missing)


def imported(patches: Patches, module: ModuleType) -> None:
    """Refuse what is in a module that was loaded before, or has just been."""
    if module.__name__ == "torch.export":
        what = "torch.export of bytecode", "export with strict=False"
        traced = refuse_if(lambda *_, strict=False, **__: strict, module.export, *what)
        patches.set(module, export=traced)
    if module.__name__ == "triton.runtime.jit":

        def refused(kernel: Any, *_: Any, **__: Any) -> Any:
            refuse(f"The Triton kernel {kernel.__name__}", WITH_OPERATIONS)()

        patches.set(module.JITFunction, run=refused)


def refuse(what: str, instead: str) -> Callable[..., Any]:
    """A function that raises the error which says that ``what`` does not run, and what to do ``instead``."""

    def refused(*_: Any, **__: Any) -> Any:
        raise NotSimulatedError(f"{what} {NOT_SIMULATED}; {instead}")

    return refused


def refuse_if(
    is_refused: Callable[..., Any],
    original: Callable[..., Any],
    what: str,
    instead: str,
) -> Callable[..., Any]:
    """The original, except for calls with arguments for which ``is_refused`` is true; see ``refuse``."""
    refused, original = refuse(what, instead), genuine(original)

    def function(*args: Any, **kwargs: Any) -> Any:
        return refused() if is_refused(*args, **kwargs) else original(*args, **kwargs)

    return function


@cache
def _instead_of_c_function(name: str) -> str | None:
    """Return what to do instead of a C++ function that is refused; None for any other."""
    return next(
        (instead for prefix, instead in C_FUNCTIONS.items() if name.startswith(prefix)),
        None,
    )


@contextmanager
def torch_imports_outside(
    patches: Patches, *imported: Callable[[ModuleType], None]
) -> Iterator[None]:
    """Suspend ``patches`` while a module of torch is imported, and tell ``imported`` of it."""

    def execute(loader: Any, module: ModuleType) -> None:
        # Nothing should show later that it was loaded in a special way.
        if module.__spec__ is not None:
            module.__spec__.loader = loader
        module.__loader__ = loader
        # PyTorch's helpers for tests ask at import whether there is a GPU, as a test's own module does.
        is_outside = module.__name__.startswith(
            _TORCH
        ) and not module.__name__.startswith(_TEST_HELPERS)
        with patches.suspended() if is_outside else nullcontext():
            loader.exec_module(module)
        for tell in imported:
            tell(module)

    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> Any:
        if not name.startswith(_TORCH) and name not in REFUSED_ON_IMPORT:
            return None
        spec: Any = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            found = spec.loader
            spec.loader = SimpleNamespace(
                create_module=found.create_module, exec_module=partial(execute, found)
            )
        return spec

    finder: Any = SimpleNamespace(find_spec=find_spec)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
