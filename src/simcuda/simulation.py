"""Entering and leaving the simulation."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch.utils._device

from simcuda.device import dispatch_key
from simcuda.device.machine import Machine
from simcuda.ledger import listening, operations_noted
from simcuda.measurement import Measurement
from simcuda.profile import DEFAULT_PROFILE, PROFILES, Profile
from simcuda.torch_api import host_kernels, refusals
from simcuda.torch_api.autocast import Autocast
from simcuda.torch_api.compiling import COMPILING, Compiler, Compiling, watch_scripts
from simcuda.torch_api.concurrency import (
    IDLE_SECONDS,
    Children,
    Threads,
    busy_seconds,
    follow_threads,
    forking,
)
from simcuda.torch_api.cuda_api import CudaApi
from simcuda.torch_api.device_branches import DeviceBranches
from simcuda.torch_api.dispatch import Dispatcher
from simcuda.torch_api.factories import Factories, LegacyTypes, wake_by_names
from simcuda.torch_api.patches import CAN_REDIRECT, Patches
from simcuda.torch_api.tensor_api import StorageApi, TensorApi

SESSION = "pytest --simcuda"
OLDEST_TORCH = "2.13"

_active: list[SimulatedCuda] = []
_ending_processes: list[bool] = []
"""Not empty while a simulation ends because its process does."""


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedCuda:
    """The simulated machine, as measuring code sees it."""

    _machine: Machine
    _children: Children
    # Whether it lasts for a session of tests: a ``device()`` within it is the same machine.
    _is_session: bool = False

    def __repr__(self) -> str:
        return f"<{len(self._machine.devices)} x {self.profile.name}, simulated>"

    @property
    def profile(self) -> Profile:
        """The kind of device that is simulated."""
        return self._machine.profile

    @contextmanager
    def measure(self) -> Iterator[Measurement]:
        """Count what the code in this block costs; the measurement is final once the block has ended.

        Raises:
            RuntimeError: The simulation has ended; nothing would be counted.
        """
        if active() is not self:
            raise RuntimeError(
                "this simulation has ended: measure within its simcuda.device() block"
            )
        # What the host allocates is counted too.
        dispatch_key.wake()
        self._children.collect()
        ledger, before = self._machine.ledger, busy_seconds()
        measurement = ledger.open()
        if not CAN_REDIRECT:
            ledger.doubt("functions bound before the device was opened")
        try:
            yield measurement
        finally:
            self._children.collect()
            if any(
                after - before.get(thread, 0) > IDLE_SECONDS
                for thread, after in busy_seconds().items()
            ):
                ledger.doubt("a thread that was there before and ran")
            ledger.close(measurement)

    def live_bytes(self) -> int:
        """Requested bytes that are live now, on all devices together."""
        return self._machine.usage()[0]


def active() -> SimulatedCuda | None:
    """The active simulation, if there is one."""
    return _active[0] if _active else None


@contextmanager
def device(
    count: int = 1,
    *,
    profile: str = DEFAULT_PROFILE,
    capacity: int | None = None,
    compile: Compiling = "eager",  # noqa: A002 - named as what it is about
) -> Iterator[SimulatedCuda]:
    """Let the device type ``cuda`` work within this block, on ``count`` simulated devices.

    Within a session of tests (``pytest --simcuda``) they are the session's devices.

    Args:
        count: Number of devices, ``cuda:0`` and on.
        profile: Name of the kind of device, one of ``PROFILES``.
        capacity: Bytes of memory of every device, by default the profile's.
        compile: ``eager`` runs what ``torch.compile`` would compile as it is, and marks the metrics that
            compiling changes; ``refuse`` raises an error.

    Raises:
        ValueError: There is no such profile, or ``count`` or ``capacity`` is no positive integer.
        RuntimeError: A simulation is already active, the session's devices are others than these, or the
            version of PyTorch is older than ``OLDEST_TORCH``.
    """
    if profile not in PROFILES:
        raise ValueError(
            f"there is no profile {profile!r}; there are {', '.join(PROFILES)}"
        )
    if not isinstance(count, int) or count <= 0:
        raise ValueError(f"a simulation needs at least one device, not {count!r}")
    if capacity is not None and (not isinstance(capacity, int) or capacity <= 0):
        raise ValueError(
            f"capacity: a positive number of bytes is needed, not {capacity!r}"
        )
    if compile not in COMPILING:
        raise ValueError(f"compile: {compile!r} is none of {', '.join(COMPILING)}")
    if reason := why_not_in_session(count, profile, capacity):
        raise RuntimeError(reason)
    if not _active:
        with _opened(count, profile, capacity, compile) as simulated:
            yield simulated
    elif _active[0]._is_session:
        yield _active[0]
    else:
        raise RuntimeError(
            "simcuda.device() is active already; leave it before entering it again"
        )


@contextmanager
def session(count: int, profile: str) -> Iterator[SimulatedCuda]:
    """Simulated devices for a session of tests, in a process that ends after it.

    While no device is used, operations are not watched; see ``dispatch_key.sleep``. Other arguments and
    errors as for ``device``.
    """
    with (
        ExitStack() as stack,
        _opened(count, profile, None, "eager", is_session=True) as simulated,
    ):
        try:
            yield simulated
        finally:
            _ending_processes.append(True)
            stack.callback(_ending_processes.clear)


def why_not_in_session(
    count: int, profile: str | None, capacity: int | None
) -> str | None:
    """Return why the devices of the session cannot be these; None if they can, or without a session."""
    if not _active or not _active[0]._is_session:
        return None
    machine = _active[0]._machine
    there = len(machine.devices)
    if count > there:
        missing = f"{count} devices are needed, as by --simcuda={count}"
    elif capacity is not None or profile not in (None, machine.profile.name):
        missing = (
            "another capacity or profile is needed; run this test without --simcuda"
        )
    else:
        return None
    return f"{SESSION} simulates {there} x {machine.profile.name}: {missing}"


def why_not_with_this_torch() -> str | None:
    """Return why devices cannot be simulated with this version of PyTorch; None if they can."""
    if torch.__version__ >= OLDEST_TORCH:
        return None
    return (
        f"devices are simulated with PyTorch {OLDEST_TORCH} or later, and this is {torch.__version__}: "
        "update it, or measure on a real GPU"
    )


@contextmanager
def _opened(
    count: int,
    profile: str,
    capacity: int | None,
    compile: Compiling,  # noqa: A002 - as in device
    *,
    is_session: bool = False,
) -> Iterator[SimulatedCuda]:
    if reason := why_not_with_this_torch():
        raise RuntimeError(reason)
    kind = PROFILES[profile]
    machine = Machine(count, kind, kind.memory_bytes if capacity is None else capacity)
    dispatcher = Dispatcher(machine)
    if operations_noted:
        run: Any = partial(_attributed, machine, dispatcher.run)
        dispatcher.run = run  # type: ignore[method-assign]  # for this one alone
    threads = Threads(machine, dispatcher)
    # This set is computed once per process: never from replaced functions.
    takes_default_device: Any = torch.utils._device._device_constructors()
    patches = Patches(tables=[takes_default_device])
    # Each replacement first registers how it is undone: entering may fail half-way.
    with ExitStack() as stack:

        def end_with_process() -> None:
            _ending_processes.append(True)
            stack.close()

        # Left open until the interpreter ends, it could not be undone: what that needs is gone by then.
        atexit.register(end_with_process)
        stack.callback(atexit.unregister, end_with_process)
        stack.callback(_start_real_cuda)
        stack.enter_context(_default_device_kept())
        # Which module answers for the accelerator is remembered.
        stack.callback(torch.get_device_module.cache_clear)
        stack.enter_context(host_kernels.registered())
        stack.callback(patches.restore)
        tensors = TensorApi(machine, dispatcher)
        tensors.install(patches)
        factories = Factories(tensors, sleeps=is_session)
        factories.install(patches)
        LegacyTypes(machine, factories).install(patches)
        StorageApi(machine).install(patches)
        # What is implemented replaces what is refused.
        refusals.refuse_c_functions(patches)
        api = CudaApi(machine)
        stack.callback(api.end)
        api.install(patches)
        autocast = Autocast(machine)
        stack.callback(autocast.remove)
        autocast.install(patches)
        DeviceBranches(machine).install(patches)
        refusals.install(patches)
        refusals.doubt_ways_past(machine, patches)
        watch_scripts(machine, patches)
        compiler = Compiler(machine, patches, compile)
        compiler.install()
        threads.install(patches)
        open_devices = partial(
            device, count, profile=profile, capacity=capacity, compile=compile
        )
        children = Children(machine.ledger, open_devices)
        children.install(patches)
        stack.callback(children.close)
        if is_session:
            wake_by_names(patches)
        # From here on nothing is replaced any more, so that other modules' names can follow.
        stack.enter_context(patches.followed())
        stack.enter_context(listening(forking, dispatcher))
        stack.enter_context(
            refusals.torch_imports_outside(
                patches, partial(refusals.imported, patches), compiler.imported
            )
        )
        torch.get_device_module.cache_clear()
        simulated = SimulatedCuda(machine, children, is_session)
        _active.append(simulated)
        stack.callback(_active.clear)
        stack.callback(threads.let_go)
        # Last of all: what was made on the way here is not the user's.
        stack.enter_context(
            dispatch_key.watched_by(dispatcher, views=bool(operations_noted))
        )
        yield simulated


def _attributed(
    machine: Machine, run: Callable[..., Any], operation: Any, *how: Any
) -> Any:
    with machine.ledger.attributed_to(f"{operation.namespace}.{operation.__name__}"):
        return run(operation, *how)


def prepare_forks() -> None:
    """Do once what the first simulation of each forked process would do, to operators too: they share it.

    Threads that such a process starts before a simulation take part in it, too.
    """
    follow_threads()
    # Where there is CUDA, the end of a simulation starts it, and it does not survive a fork.
    if not (torch._C._has_cuda or why_not_with_this_torch()):
        with device():
            torch.empty(0, device="cuda")


@cache
def _say_that_cuda_is_missing() -> Any:
    # A build without CUDA says so by a hook that the simulation has used up.
    library: Any = torch.library.Library
    kept = library("_", "IMPL")

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("Torch not compiled with CUDA enabled")

    kept.fallback(fail, "CUDA")
    return kept


@contextmanager
def _default_device_kept() -> Iterator[None]:
    """Restore the default device afterwards, whatever the block sets."""
    before = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    try:
        yield
    finally:
        now = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
        if now is not before:
            torch.set_default_device(getattr(before, "device", None))


def _start_real_cuda() -> None:
    # C++ asks for CUDA to be initialized once in a process, and the simulation has answered that.
    if not torch._C._has_cuda:
        _say_that_cuda_is_missing()
    elif (
        not _ending_processes
        and torch.cuda.is_available()
        and not torch.cuda._is_in_bad_fork()
    ):
        torch.cuda.init()  # type: ignore[no-untyped-call]  # has no annotations
