"""What a simulated device cannot run is refused in one clear sentence."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda
from simcuda.torch_api import refusals
from simcuda.torch_api.patches import Patches

CODE = {
    "torch.export.export(layer, (x,), strict=True)": "export with strict=False",
    "torch.cuda.CUDAGraph()": "run the captured code as it is",
    "torch.cuda.graph(None)": "run the captured code as it is",
    "torch.cuda.make_graphed_callables(layer, (x,))": "run the captured code as it is",
    "torch.nn.DataParallel(layer, [0, 0])": "call the module itself, on one device",
    "torch.nn.parallel.replicate(layer, [0, 1])": "copy by Tensor.to",
    "torch.distributed.init_process_group('nccl')": "use the backend gloo, or one process",
    "torch.distributed.init_process_group('cpu:gloo,cuda:nccl')": "use the backend gloo, or one process",
    "torch.cuda.nccl.unique_id()": "use the backend gloo, or one process",
    "profiler.profile(activities=[profiler.ProfilerActivity.CUDA]).start()": "ProfilerActivity.CPU",
    "torch.cuda.memory_snapshot()": r"torch.cuda.memory_stats\(\)",
    "torch.cuda.memory._record_memory_history()": r"torch.cuda.memory_stats\(\)",
    "torch.cuda.MemPool()": "allocate from the default pool",
    "torch.cuda.ExternalStream(1)": "make a torch.cuda.Stream",
    "torch.cuda.Event().ipc_handle()": "let one process do the work",
    "torch.cuda.caching_allocator_alloc(8)": "run it on a real GPU",
    "torch.cuda.cudart().cudaHostRegister(0, 0, 0)": r"Tensor.pin_memory\(\)",
    "torch.utils.dlpack.to_dlpack(x)": r"Tensor.cpu\(\)",
    "x.__dlpack__()": r"Tensor.cpu\(\)",
    "x.__dlpack_device__()": r"Tensor.cpu\(\)",
    "x.__cuda_array_interface__": r"Tensor.cpu\(\)",
}


@pytest.mark.parametrize(("code", "advice"), CODE.items(), ids=CODE)
def test_a_refusal_says_what_to_do_instead(gpu: SimulatedCuda, code: str, advice: str) -> None:
    """The error names what does not run, and what does; what comes next is counted as ever."""
    x = torch.ones(1, 2, device="cuda")
    layer = torch.nn.Linear(2, 2, device="cuda")
    names = {"torch": torch, "profiler": torch.profiler, "layer": layer, "x": x}
    with gpu.measure() as cost:
        with pytest.raises(RuntimeError, match=f"does not run on a simulated CUDA device; .*{advice}"):
            eval(code, names)  # noqa: S307 - the code is above
        x.sum().item()
    assert (1, 1, 1, ()) == (cost.launches, cost.syncs, cost.allocations, cost.unknown)


TRITON = """\
class JITFunction:
    __name__ = "add_kernel"
    def run(self, *arguments, **how):
        return "launched"
"""


@pytest.mark.parametrize("imported_first", [False, True])
def test_triton_kernels_are_refused(
    imported_first: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A launch is refused whether Triton is imported before or within the simulation, and works after it."""
    package = tmp_path / "triton" / "runtime"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "jit.py").write_text(TRITON)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("triton", "triton.runtime", "triton.runtime.jit"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def kernel() -> Any:
        return importlib.import_module("triton.runtime.jit").JITFunction()

    if imported_first:
        kernel()
    with simcuda.device(), pytest.raises(RuntimeError, match="The Triton kernel add_kernel does not run"):
        kernel().run()
    assert "launched" == kernel().run()
    # To undo a deletion would put the modules back, which others would take for Triton.
    for name in ("triton", "triton.runtime", "triton.runtime.jit"):
        del sys.modules[name]


@pytest.mark.usefixtures("gpu")
def test_an_operation_of_torch_for_cuda_alone_is_refused() -> None:
    """The error names it, and not the CPU as the place where the program would have run it."""
    with pytest.raises(NotImplementedError, match=r"^aten::_cslt_compress does not run on a simulated CUDA"):
        torch._cslt_compress(torch.ones(2, 2, device="cuda"))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["histogram", "histogramdd"])
def test_what_cuda_lacks_is_refused(name: str) -> None:
    """By the error that PyTorch raises for an operation without a CUDA kernel."""
    rows = torch.ones(4, 6, device="cuda")
    with pytest.raises(NotImplementedError, match="with arguments from the 'CUDA' backend"):
        getattr(torch, name)(rows, 4)


@pytest.mark.usefixtures("gpu")
def test_what_is_missing_is_no_attribute() -> None:
    """``hasattr`` answers False for what is refused, so that code that asks first goes another way."""
    assert not hasattr(torch._C, "_cuda_nothing_of_this_name")
    with pytest.raises(AttributeError, match=r"^module 'torch._C' has no attribute 'nothing'$"):
        torch._C.nothing  # type: ignore[attr-defined]  # noqa: B018 - that is the point


@pytest.mark.usefixtures("gpu")
def test_host_tensors_are_shared_as_ever() -> None:
    """Other libraries may have what lies on the host."""
    x = torch.ones(2)
    share: Any = torch.utils.dlpack
    assert 2 == share.from_dlpack(share.to_dlpack(x)).sum().item()
    assert not hasattr(x, "__cuda_array_interface__")


@pytest.mark.usefixtures("gpu")
def test_modules_on_the_host_may_be_distributed() -> None:
    """It is PyTorch that lacks a process group."""
    with pytest.raises(ValueError, match="process group"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))


def test_a_module_is_exported_by_running_it_on_fake_tensors(gpu: SimulatedCuda) -> None:
    """Which costs nothing; the program is for the device, and costs what the module does."""
    layer, x = torch.nn.Linear(2, 2, device="cuda"), torch.ones(1, 2, device="cuda")
    layer(x)
    with gpu.measure() as cost:
        exported = torch.export.export(layer, (x,)).module()
    assert (0, 0, 0, ()) == (cost.launches, cost.syncs, cost.allocations, cost.unknown)
    costs = []
    for run in (layer, exported):
        with gpu.measure() as cost:
            assert run(x).is_cuda
        costs.append((cost.launches, cost.syncs, cost.allocations))
    assert costs[0] == costs[1]


@pytest.mark.filterwarnings("ignore:A simulated CUDA device has no kernels")
@pytest.mark.parametrize(("activities", "waits"), [(["CPU"], 0), (["CPU", "CUDA"], 1), ([], 1)])
def test_the_host_is_profiled(gpu: SimulatedCuda, activities: list[str], waits: int) -> None:
    """The profile has the operations of the CPU. One of CUDA too, as is the default, waits when it ends."""
    x = torch.ones(2, device="cuda")
    asked = [torch.profiler.ProfilerActivity.__members__[name] for name in activities]
    with gpu.measure() as cost, torch.profiler.profile(activities=asked or None, acc_events=True) as profile:
        x.exp()
    events = profile.key_averages()
    assert "aten::exp" in {event.key for event in events}
    assert "exp" in events.table(sort_by="device_time_total")
    assert (waits, 1) == (cost.device_syncs, cost.launches)


def test_marks_for_a_profiler_of_nvidia_wait_for_the_device(gpu: SimulatedCuda) -> None:
    """Before and after the block, unless they are switched off; they hide no error."""
    marks: Any = torch.autograd.profiler.emit_nvtx
    waits = []
    for enabled in (True, False):
        with gpu.measure() as cost, pytest.raises(ZeroDivisionError), marks(enabled=enabled):
            _ = 1 / torch.ones(1, device="cuda").numel() / 0
        waits.append(cost.device_syncs)
    assert [2, 0] == waits


def test_no_function_for_a_real_device_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a build with CUDA, what C++ would do for a real device is refused unless it is answered."""
    monkeypatch.setattr(torch._C, "_cuda_something", lambda: "real", raising=False)
    patches = Patches()
    refusals.refuse_c_functions(patches)
    something: Any = torch._C
    with pytest.raises(RuntimeError, match=r"torch\._C\._cuda_something does not run"):
        something._cuda_something()
    patches.restore()
    assert "real" == something._cuda_something()


@pytest.mark.usefixtures("gpu")
def test_cudnn_is_there() -> None:
    """Code that asks for cuDNN finds it, in a version that comes with CUDA 13."""
    # A version is major x 10000 + minor x 100 + patch; CUDA 13 needs cuDNN 9.12.
    cudnn: Any = torch.backends.cudnn  # torch has no annotations here
    version = cudnn.version()
    assert cudnn.is_available()
    assert version is not None
    assert 91_200 <= version < 100_000
