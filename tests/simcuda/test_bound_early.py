"""What reads a device's data costs the same however code has bound it, and whenever."""

from __future__ import annotations

import _thread
import pickle
import signal
import sys
import textwrap
import threading
import time
import types
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from tests.conftest import Ended

import simcuda
from simcuda import SimulatedCuda, simulation
from simcuda.torch_api import patches
from simcuda.torch_api.refusals import NotSimulatedError
from simcuda.torch_api.tensor_api import DEVICE_ADDRESSES

Read = Callable[[Any], Any]

BYTES = 16
"""Of a tensor with 4 elements of 4 bytes."""

_jit: Any = torch.jit
_tensor: Any = torch.Tensor
_base: Any = torch._C.TensorBase
_storage: Any = torch.UntypedStorage


def bind(*owners: Any, name: str, **how: Any) -> dict[str, Read]:
    """Functions of some owners, bound now: that is before there is a device."""
    return {f"{owner.__name__}.{name}": partial(getattr(owner, name), **how) for owner in owners}


class Own(torch.Tensor):
    """A subclass that has bound a method of its base."""

    read = torch.Tensor.tolist


COPIES: dict[str, Read] = {
    **bind(_tensor, _base, name="tolist"),
    **bind(_tensor, _base, name="cpu"),
    **bind(_tensor, _base, name="to", device="cpu"),
    **bind(_tensor, _base, name="numpy", force=True),
    **bind(_tensor, _base, name="type", dtype="torch.FloatTensor"),
    **bind(torch, name="tensor", device="cpu"),
    **bind(torch, name="as_tensor", device="cpu"),
    **bind(torch, name="asarray", device="cpu"),
    "aten.to": partial(lambda to, x: to(x, "cpu"), torch.ops.aten.to),
    "aten.to.device": partial(lambda to, x: to(x, "cpu", torch.float32), torch.ops.aten.to.device),
    "aten.to.dtype_layout": partial(torch.ops.aten.to.dtype_layout, layout=torch.strided, device="cpu"),
    "aten._to_copy": partial(torch.ops.aten._to_copy, device="cpu"),
    "aten._to_copy.default": partial(torch.ops.aten._to_copy.default, device="cpu"),
    "aten.cpu": torch.ops.aten.cpu,
    "_to_cpu": partial(lambda copy, x: copy([x]), torch._to_cpu),
    "pickle.dumps": pickle.dumps,
    "a method of a subclass": lambda x: x.as_subclass(Own).read(),
    "UntypedStorage.cpu": partial(lambda cpu, x: cpu(x.untyped_storage()), _storage.cpu),
}
"""Each reads all 4 elements at once: one wait, one copy of 16 bytes."""

VALUES: dict[str, Read] = {
    **bind(_tensor, _base, name="item"),
    **bind(_tensor, _base, name="__float__"),
    **bind(_tensor, _base, name="__int__"),
    **bind(_tensor, _base, name="__bool__"),
    "list": partial(lambda make, x: make([x]), torch.tensor),
    "a list within a list": partial(lambda make, x: make([[x]]), torch.as_tensor),
    "a type": partial(lambda make, x: make([x]), torch.FloatTensor),
    "a class": partial(lambda make, x: make([x]), torch.Tensor),
    "operation": torch.ops.aten._local_scalar_dense,
    "overload": torch.ops.aten._local_scalar_dense.default,
}
"""Each reads one element: one wait, one copy of 4 bytes."""


def cost(gpu: SimulatedCuda, read: Read, x: torch.Tensor) -> tuple[int, int, int]:
    """Waits, copies to the host, and their bytes."""
    with gpu.measure() as counted:
        read(x)
    return counted.syncs, counted.d2h, counted.d2h_bytes


@pytest.mark.parametrize("read", [pytest.param(read, id=name) for name, read in COPIES.items()])
def test_a_copy_to_the_host_is_counted_however_it_is_bound(gpu: SimulatedCuda, read: Read) -> None:
    """As ``x.cpu()`` is: 4 elements of 4 bytes."""
    assert (1, 1, BYTES) == cost(gpu, read, torch.ones(4, device="cuda"))


@pytest.mark.parametrize("read", [pytest.param(read, id=name) for name, read in VALUES.items()])
def test_a_value_is_counted_however_it_is_read(gpu: SimulatedCuda, read: Read) -> None:
    """As ``x.item()`` is: one element of 4 bytes."""
    assert (1, 1, 4) == cost(gpu, read, torch.ones((), device="cuda"))


def test_what_is_bound_early_is_put_back() -> None:
    """After the simulation it is the function that it was, and refuses what a function of C++ refuses."""
    read, before = _base.tolist, repr(_base.tolist)
    with simcuda.device():
        assert [1.0] == read(torch.ones(1, device="cuda"))
    assert (before, [1.0]) == (repr(read), read(torch.ones(1)))
    with pytest.raises(TypeError):
        read(3)


@pytest.mark.usefixtures("gpu")
def test_an_error_of_what_is_bound_early_is_that_of_cuda() -> None:
    """Its type and its text: here that of ``numpy`` for a tensor on a device."""
    x = torch.ones(4, device="cuda")
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy.*Tensor\.cpu"):
        COPIES["Tensor.numpy"].func(x)  # type: ignore[attr-defined]  # it is a partial


UNREADABLE: dict[str, Read] = {
    "apply_": partial(lambda apply, x: apply(x, float), _tensor.apply_),
    "to_dlpack": torch._C._to_dlpack,
    "__dlpack__": _tensor.__dlpack__,
    "part of a storage": partial(lambda get, x: get(x.untyped_storage(), slice(0, 4)), _storage.__getitem__),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("read", [pytest.param(read, id=name) for name, read in UNREADABLE.items()])
def test_what_hands_out_memory_is_refused_however_it_is_bound(read: Read) -> None:
    """Nothing would see what is done with it."""
    with pytest.raises(NotSimulatedError):
        read(torch.ones(4, device="cuda"))


def script(code: Any) -> Any:
    """Compile a function or a module, which torch calls deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(code)


SCRIPTS: Any = torch.jit.CompilationUnit("""
def lists(x: Tensor) -> List[float]:
    values: List[float] = x.tolist()
    return values

def copies(x: Tensor) -> Tensor:
    return x.to("cpu")

def prints(x: Tensor) -> str:
    return str(x)

def per_cent(x: Tensor) -> str:
    return "%s" % x

def held(tensors: Dict[str, Tensor]) -> List[float]:
    values: List[float] = tensors["x"].tolist()
    return values

def honest(x: Tensor, y: Tensor) -> Tensor:
    assert x.dim() == 1, "{} dimensions".format(x.dim())
    return x.to(torch.float64).to(y.device) + y
""")
lists = SCRIPTS.lists


@script
def forks(x: torch.Tensor) -> list[float]:
    """Read by another thread of the interpreter."""
    values: list[float] = _jit.wait(_jit.fork(lists, x))
    return values


class Calls(torch.nn.Module):
    """A module that calls such a function."""

    def forward(self, x: torch.Tensor) -> list[float]:
        """Call it."""
        values: list[float] = lists(x)
        return values


class Reads(torch.nn.Module):
    """What a module can call without knowing what it is."""

    def forward(self, x: torch.Tensor) -> None:
        """Read."""
        pass  # noqa: PIE790 - torch looks for it


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.jit.interface(Reads)


class ReadsQuietly(torch.nn.Module):
    """One of those."""

    def forward(self, x: torch.Tensor) -> None:
        """Read."""
        lists(x)


class CallsAny(torch.nn.Module):
    """A module that calls whatever it has."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = ReadsQuietly()

    def forward(self, x: torch.Tensor) -> None:
        """Call it."""
        self.reads.forward(x)


CallsAny.__annotations__ = {"reads": Reads}


@pytest.mark.parametrize(
    ("run", "names"),
    [
        (lists, ("prim::tolist in TorchScript",)),
        (SCRIPTS.copies, ("aten::to in TorchScript",)),
        (SCRIPTS.prints, ("aten::str in TorchScript",)),
        (script(Calls()), ("prim::tolist in TorchScript",)),
        (forks, ("prim::tolist in TorchScript",)),
        (SCRIPTS.per_cent, ("aten::percentFormat in TorchScript",)),
        (lambda x: SCRIPTS.held({"x": x}), ("prim::tolist in TorchScript",)),
        (script(CallsAny()), ("prim::CallMethod in TorchScript",)),
        (lambda x: SCRIPTS.honest(x, x), ()),
    ],
    ids=["tolist", "to", "str", "module", "fork", "percent", "dict", "interface", "honest"],
)
def test_what_a_script_reads_by_itself_is_named(gpu: SimulatedCuda, run: Read, names: Any) -> None:
    """It is not counted, so the measurement says what was not."""
    x = torch.ones(4, device="cuda")
    with gpu.measure() as counted:
        run(x)
    assert names == counted.unknown


def test_the_same_script_on_the_host_is_not(gpu: SimulatedCuda) -> None:
    """There is nothing to wait for."""
    with gpu.measure() as counted:
        lists(torch.ones(4))
        SCRIPTS.held({"x": torch.ones(4)})
    assert () == counted.unknown


_native: Any = torch._C


class Holds(torch.nn.Module):
    """A module with a tensor."""

    def __init__(self, x: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("x", x)


WAYS_PAST: dict[str, Read] = {
    "_jit_interpret_graph": lambda x: _native._jit_interpret_graph(lists.graph, (x,)),
    "ScriptModule.save_to_buffer": lambda x: script(Holds(x))._c.save_to_buffer(),
    "_pickle_save": torch._C._pickle_save,
}


@pytest.mark.parametrize("name", WAYS_PAST)
def test_a_way_past_the_device_is_named(gpu: SimulatedCuda, name: str) -> None:
    """What runs there is not seen, so that its cost is unknown."""
    x = torch.ones(1, device="cuda")
    with gpu.measure() as counted:
        WAYS_PAST[name](x)
    assert (f"torch._C.{name}",) == counted.unknown


@pytest.mark.parametrize("read", [torch.ops.aten._tensor_to_list, torch.ops.aten._tensor_to_list.default])
def test_an_operation_that_scripts_alone_have_is_named(gpu: SimulatedCuda, read: Read) -> None:
    """It has no kernel that the dispatcher would see."""
    x = torch.ones(4, dtype=torch.int32, device="cuda")
    with gpu.measure() as counted:
        assert [1, 1, 1, 1] == read(x)
    assert ("torch.ops.aten._tensor_to_list",) == counted.unknown


def test_addresses_on_a_device_compare_as_they_should(gpu: SimulatedCuda) -> None:
    """Of one memory they are equal, of two they differ, and distances are bytes; nothing is marked."""
    x, y = torch.ones(4, device="cuda"), torch.ones(4, device="cuda")
    with gpu.measure() as counted:
        assert x.data_ptr() == x.view(2, 2).data_ptr() == x.untyped_storage().data_ptr() != y.data_ptr()
        assert 4 == x[1:].data_ptr() - x.data_ptr()
    assert (0, ()) == (counted.d2h, counted.unknown)


@pytest.mark.slow
def test_memory_of_a_device_cannot_be_read_by_its_address(torch_alone: Callable[[str], Ended]) -> None:
    """As on a real one: the process ends. The address of host memory is its own.

    Each process has another place where devices begin, so that code cannot subtract it.
    """
    code = """
        import ctypes, faulthandler, torch
        address = torch.Tensor.data_ptr
        import simcuda
        from simcuda.torch_api.tensor_api import DEVICE_ADDRESSES
        faulthandler.disable()
        print(DEVICE_ADDRESSES, flush=True)
        with simcuda.device():
            x = torch.ones(4, device="cuda")
            copy = x.cpu()
            assert 1.0 == ctypes.c_float.from_address(address(copy)).value
            ctypes.c_float.from_address(address(x)).value
    """
    ended = torch_alone(textwrap.dedent(code))
    assert (-signal.SIGSEGV, "") == (ended.code, ended.err)
    assert DEVICE_ADDRESSES != int(ended.out)


def take_all(gpu: SimulatedCuda, give: Callable[[Callable[[], None]], object]) -> tuple[int, int]:
    """The waits and copies to the host that are counted when ``give`` lets another thread read a tensor."""
    x, done = torch.ones(4, device="cuda"), threading.Event()

    def read() -> None:
        x.tolist()
        done.set()

    with gpu.measure() as counted:
        give(read)
        assert done.wait(10)
    assert () == counted.unknown
    return counted.syncs, counted.d2h


def test_a_start_of_threads_that_is_bound_early_is_followed(gpu: SimulatedCuda) -> None:
    """One wait and one copy, in a thread without an object."""
    assert (1, 1) == take_all(gpu, partial(_start_early, args=()))


def _start_early(function: Callable[[], None], args: Any, start: Any = _thread.start_new_thread) -> None:
    start(function, args)


FOLLOWED = """
    from concurrent.futures import ThreadPoolExecutor
    from multiprocessing.pool import ThreadPool
    import _thread, queue, threading, time, torch
    from simcuda.torch_api.concurrency import follow_threads
    {first}
    given, taken = queue.Queue(), queue.Queue()
    def work():
        while True:
            taken.put(given.get()())
    threading.Thread(target=work, daemon=True).start()
    _thread.start_new_thread(work, ())
    pool, executor = ThreadPool(1), ThreadPoolExecutor(1)
    executor.submit(int).result()
    import simcuda
    with simcuda.device() as gpu:
        x = torch.ones(4, device="cuda")
        with gpu.measure() as counted:
            for _ in range(50):
                given.put(x.tolist), taken.get()
            pool.apply(x.tolist)
            executor.submit(x.tolist).result()
        # A pool's thread still works for a moment after it has given its result.
        time.sleep(0.3)
        with gpu.measure() as idle:
            x.tolist()
    print(counted.syncs, counted.d2h, counted.unknown, idle.syncs, idle.unknown)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "expected"),
    [
        # 50 reads in plain threads, one in each pool.
        ("follow_threads()", "52 52 () 1 ()"),
        # Not followed: that of the executor alone is counted, and the rest is said.
        ("", "1 1 ('a thread that was there before and ran',) 1 ()"),
    ],
    ids=["followed", "not followed"],
)
def test_threads_that_were_there_before_are_followed_or_named(
    torch_alone: Callable[[str], Ended], first: str, expected: str
) -> None:
    """Those that are idle are not."""
    ended = torch_alone(textwrap.dedent(FOLLOWED).format(first=first))
    assert expected == ended.out.strip(), ended.err


WORK = """
import time
def work(started, stop):
    started.set()
    while not stop.is_set():
        time.sleep(0)
"""


@pytest.mark.parametrize(
    ("module", "unknown"),
    [("execnet.gateway_base", ()), ("other", ("a thread that was there before and ran",))],
)
def test_the_thread_of_a_test_runner_is_no_doubt(module: str, unknown: tuple[str, ...]) -> None:
    """A worker of pytest-xdist has a thread that hears of the next test, and does nothing else."""
    own: dict[str, Any] = {"__name__": module}
    exec(WORK, own)  # noqa: S102 - the module that it says it is decides
    started, stop = threading.Event(), threading.Event()
    _thread.start_new_thread(own["work"], (started, stop))
    started.wait()
    with simcuda.device() as gpu, gpu.measure() as counted:
        # Long enough for the other thread to get its turn.
        time.sleep(0.05)
    stop.set()
    assert unknown == counted.unknown


def test_a_python_with_other_objects_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then only names are replaced, and the measurement says so."""
    monkeypatch.setattr(patches, "CAN_REDIRECT", False)
    monkeypatch.setattr(simulation, "CAN_REDIRECT", False)
    with simcuda.device() as gpu, gpu.measure() as counted:
        torch.ones(4, device="cuda").tolist()
    assert (1, ("functions bound before the device was opened",)) == (counted.syncs, counted.unknown)


def test_a_call_of_scripts_that_is_written_in_python_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch's own tests replace it."""
    kind: Any = torch._C.ScriptFunction
    original = kind.__call__

    def call(self: Any, *args: Any) -> Any:
        return original(self, *args)

    monkeypatch.setattr(kind, "__call__", call)
    with simcuda.device() as gpu, gpu.measure() as counted:
        lists(torch.ones(4, device="cuda"))
    assert ("prim::tolist in TorchScript",) == counted.unknown


@pytest.mark.parametrize("number", [1, 300])
def test_modules_that_came_since_are_followed(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """However many came since the simulation before; what they have bound is torch's own again in the end."""
    with simcuda.device():
        pass
    own = torch.cuda.Stream
    late = [types.ModuleType(f"late_{each}") for each in range(number)]
    for module in late:
        monkeypatch.setattr(module, "Stream", own, raising=False)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    with simcuda.device():
        assert {torch.cuda.Stream} == {vars(module)["Stream"] for module in late} != {own}
    assert {own} == {vars(module)["Stream"] for module in late}
