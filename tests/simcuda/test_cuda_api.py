"""``torch.cuda`` and ``torch.accelerator``: devices, memory, and what is wrong with an index."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import simcuda
from simcuda import SimulatedCuda
from simcuda.torch_api.refusals import NotSimulatedError

cuda: Any = torch.cuda  # torch has no annotations for much of it
accelerator: Any = torch.accelerator
MIB = 1 << 20


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """Two simulated devices of 64 MiB."""
    with simcuda.device(2, capacity=64 * MIB) as simulated:
        yield simulated


ORDINAL = "CUDA error: invalid device ordinal"

OUT_OF_RANGE: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "factory": (lambda: torch.zeros(1, device="cuda:2"), torch.AcceleratorError, ORDINAL),
    "number": (lambda: torch.zeros(1, device=2), torch.AcceleratorError, ORDINAL),
    "tensor": (lambda: torch.tensor([1], device="cuda:2"), torch.AcceleratorError, ORDINAL),
    "to": (lambda: torch.zeros(1).to("cuda:2"), torch.AcceleratorError, ORDINAL),
    "cuda": (lambda: torch.zeros(1).cuda(2), torch.AcceleratorError, ORDINAL),
    "module": (lambda: torch.nn.Linear(2, 2).to("cuda:2"), torch.AcceleratorError, ORDINAL),
    "set_device": (lambda: cuda.set_device(2), torch.AcceleratorError, ORDINAL),
    "device": (lambda: cuda.device(2).__enter__(), torch.AcceleratorError, ORDINAL),
    "synchronize": (lambda: cuda.synchronize(2), torch.AcceleratorError, ORDINAL),
    "Stream": (lambda: cuda.Stream(2), torch.AcceleratorError, ORDINAL),
    "mem_get_info": (lambda: cuda.mem_get_info(2), torch.AcceleratorError, ORDINAL),
    "accelerator": (lambda: accelerator.set_device_index(2), torch.AcceleratorError, ORDINAL),
    "current_stream": (lambda: cuda.current_stream(2), RuntimeError, r"out of index range \[0, 2\)"),
    "memory_allocated": (lambda: cuda.memory_allocated(2), RuntimeError, "Invalid device argument 2"),
    "reset_peak": (lambda: cuda.reset_peak_memory_stats(2), RuntimeError, "Invalid device argument 2"),
    "properties": (lambda: cuda.get_device_properties(2), AssertionError, "Invalid device id"),
    "name": (lambda: cuda.get_device_name(2), AssertionError, "Invalid device id"),
    "load": (lambda: torch.load(saved(), map_location="cuda:2"), RuntimeError, "device_count"),
}


def saved() -> io.BytesIO:
    """A tensor of the second device in a file."""
    file = io.BytesIO()
    torch.save(torch.ones(1, device="cuda:1"), file)
    file.seek(0)
    return file


@pytest.mark.parametrize(("use", "error", "message"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_a_device_that_is_not_there(
    gpu: SimulatedCuda, use: Callable[[], object], error: type[Exception], message: str
) -> None:
    """The error is CUDA's, the current device stays, and the next operation costs what it costs."""
    with pytest.raises(error, match=message):
        use()
    with gpu.measure() as cost:
        torch.ones(1, device="cuda").item()
    assert (0, 1, 1) == (cuda.current_device(), cost.launches, cost.syncs)


@pytest.mark.usefixtures("gpu")
def test_devices_answer_for_themselves() -> None:
    """Count, name, capability, properties and peers are those of the profile."""
    profile = simcuda.PROFILES["h200-cuda13"]
    assert (True, 2, 0) == (cuda.is_available(), cuda.device_count(), cuda.current_device())
    assert (profile.gpu, profile.capability) == (cuda.get_device_name(1), cuda.get_device_capability())
    properties = cuda.get_device_properties(1)
    assert (64 * MIB, profile.multiprocessors) == (properties.total_memory, properties.multi_processor_count)
    assert (True, False) == (cuda.can_device_access_peer(0, 1), cuda.can_device_access_peer(0, 0))
    assert cuda.is_bf16_supported()
    assert profile.cuda_version == torch.version.cuda
    # Each device has an identifier of its own; what nobody knows of it is refused, as ``hasattr`` sees.
    numbers = {str(cuda.get_device_properties(number).uuid) for number in range(2)}
    assert (2, 16) == (len(numbers), len(properties.uuid.bytes))
    with pytest.raises(NotSimulatedError, match="clock_rate of a simulated CUDA device is not known"):
        _ = properties.clock_rate
    # Compute capability 9.0 has 228 KiB for each multiprocessor, of which a block takes 1 for the system.
    shared = (properties.shared_memory_per_multiprocessor, properties.shared_memory_per_block_optin)
    assert (properties.name, 228 * 1024, 227 * 1024) == (properties.gcnArchName, *shared)


@pytest.mark.usefixtures("gpu")
def test_queries_answer_or_are_refused_in_words() -> None:
    """As on a machine with CUDA: the cache of cuFFT, and pools of graphs, of which each is another one."""
    plans: Any = torch.backends.cuda.cufft_plan_cache
    plans[1].max_size = 7
    plans.clear()
    # 4,096 is what cuFFT's cache holds unless it is told.
    assert (4096, 7) == (plans.max_size, plans[1].max_size)
    refused: tuple[Callable[[], object], ...] = (lambda: plans.size, accelerator.get_device_capability)
    for query in refused:
        with pytest.raises(NotSimulatedError, match="does not run on a simulated CUDA device"):
            query()
    assert cuda.graph_pool_handle() != cuda.graph_pool_handle()
    accelerator.reset_accumulated_memory_stats()
    # What a build for the host has not got may be chosen.
    backends: Any = torch.backends.cuda
    chosen = backends.preferred_linalg_library("magma"), backends.preferred_blas_library("cublaslt")
    assert chosen == (backends.preferred_linalg_library(), backends.preferred_blas_library())
    assert ("Magma", "Cublaslt") == tuple(each.name for each in chosen)
    assert cuda.has_magma
    assert backends.is_flash_attention_available()


@pytest.mark.usefixtures("gpu")
def test_memory_of_a_device_is_shared_already_and_stays_in_its_process() -> None:
    """As CUDA's is; another process would need the driver to open it."""
    host: Any = torch.ones(1)
    there: Any = torch.ones(1, device="cuda")
    send: Any = torch.multiprocessing.reductions.reduce_tensor
    assert (False, True) == (host.is_shared(), there.is_shared())
    assert host.share_memory_().is_shared()
    assert there is there.share_memory_()
    with pytest.raises(NotSimulatedError, match=r"Sharing memory with another process .* copy the tensor"):
        send(there)


@pytest.mark.usefixtures("gpu")
def test_the_accelerator_is_cuda() -> None:
    """``torch.accelerator`` and ``torch.get_device_module`` answer as on a machine with CUDA."""
    assert torch.device("cuda") == accelerator.current_accelerator()
    assert (2, 0) == (accelerator.device_count(), accelerator.current_device_index())
    with accelerator.device_index(1):
        assert 1 == cuda.current_device()
    assert 0 == cuda.current_device()
    assert cuda is torch.get_device_module()


def test_streams_and_events_for_any_device(gpu: SimulatedCuda) -> None:
    """``torch.Stream`` and ``torch.Event`` are CUDA's unless they are asked for another device."""
    make_stream: Any = torch.Stream
    make_event: Any = torch.Event
    stream, event = make_stream("cuda:1"), make_event(enable_timing=True)
    assert isinstance(stream, torch.Stream)
    assert isinstance(event, torch.Event)
    assert torch.device("cuda", 1) == stream.device
    assert torch.device("cuda", 0) == make_stream().device
    with stream:
        assert stream == accelerator.current_stream()
        event.record()
    with gpu.measure() as cost:
        accelerator.current_stream().wait_event(event)
        event.synchronize()
        stream.synchronize()
        accelerator.synchronize()
    assert (1, 1, 1) == (cost.event_syncs, cost.stream_syncs, cost.device_syncs)
    assert "cpu" == make_stream("cpu").device.type


@pytest.mark.usefixtures("gpu")
def test_memory_is_told_by_device() -> None:
    """What is allocated, its peak, what is reserved and what is free are those of one device each."""
    x = torch.empty(MIB, dtype=torch.uint8, device="cuda:1")
    assert (0, MIB) == (cuda.memory_allocated(), cuda.memory_allocated(1))
    del x
    assert (0, MIB) == (cuda.memory_allocated(1), cuda.max_memory_allocated(1))
    cuda.reset_peak_memory_stats(1)
    # A block of up to 1 MiB comes from a segment of 2 MiB, which stays until the cache is emptied.
    assert (0, 2 * MIB) == (cuda.max_memory_allocated(1), cuda.memory_reserved(1))
    assert (62 * MIB, 64 * MIB) == cuda.mem_get_info(1) == cuda.cudart().cudaMemGetInfo(1)
    cuda.empty_cache()
    assert (0, (64 * MIB, 64 * MIB)) == (cuda.memory_reserved(1), cuda.mem_get_info(1))
    assert "GPU reserved memory" in cuda.memory_summary(1)
    assert 1 == cuda.memory_stats(1)["allocation.all.allocated"]
    assert cuda.memory_stats(1) == accelerator.memory_stats(1)


def test_running_out_of_memory(gpu: SimulatedCuda) -> None:
    """The error is CUDA's; what was allocated stays, and the next operation costs what it costs."""
    kept = torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")
    with gpu.measure() as cost, pytest.raises(torch.OutOfMemoryError, match=r"CUDA out of memory. Tried to"):
        torch.empty(48 * MIB, dtype=torch.uint8, device="cuda")
    assert (1, 0, 0) == (cost.ooms, cost.allocations, cost.retained_bytes)
    with gpu.measure() as cost:
        kept[:4].float().sum().item()
    assert (2, 1, 0) == (cost.launches, cost.syncs, cost.ooms)
    cuda.set_per_process_memory_fraction(0.25, 1)
    with pytest.raises(torch.OutOfMemoryError, match=r"16.00 MiB allowed"):
        torch.empty(20 * MIB, dtype=torch.uint8, device="cuda:1")


def test_a_result_larger_than_host_and_device_is_cudas_error(gpu: SimulatedCuda) -> None:
    """Where the host cannot even do the work, the error is the device's, and no memory is kept for it."""
    x = torch.ones(1 << 23, dtype=torch.uint8, device="cuda")
    # 2 ** 46 bytes are 65536 GiB, more than the address space of the host's processes is ever given.
    with gpu.measure() as cost, pytest.raises(torch.OutOfMemoryError, match=r"allocate 65536.00 GiB"):
        x[:, None] + x
    assert (1, 0, 0) == (cost.ooms, cost.allocations, cost.retained_bytes)


@pytest.mark.usefixtures("gpu")
def test_what_has_no_effect_here_is_accepted() -> None:
    """Settings and calls that change only how fast a real GPU works do nothing."""
    cuda.ipc_collect()
    cuda.profiler.start()
    cuda.profiler.stop()
    with cuda.nvtx.range("step"):
        cuda.nvtx.mark("here")
    cuda.check_error(0)
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        assert torch.backends.cudnn.benchmark
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    assert torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = before


USES_OF_WHAT_ENDED: dict[str, Callable[[Any, Any], object]] = {
    "Stream.synchronize": lambda stream, _: stream.synchronize(),
    "Stream.query": lambda stream, _: stream.query(),
    "stream": lambda stream, _: cuda.stream(stream).__enter__(),
    "Event.record": lambda _, event: event.record(),
    "Event.synchronize": lambda _, event: event.synchronize(),
    "Event.query": lambda _, event: event.query(),
}


@pytest.mark.parametrize("use", USES_OF_WHAT_ENDED.values(), ids=USES_OF_WHAT_ENDED)
def test_streams_and_events_end_with_their_simulation(use: Callable[[Any, Any], object]) -> None:
    """Outside, and in the next simulation, they say that theirs has ended; and the next one counts right."""
    with simcuda.device():
        stream, event = cuda.Stream(), cuda.Event()
        event.record(stream)
    with simcuda.device() as gpu, gpu.measure() as cost:
        with pytest.raises(RuntimeError, match="has ended"):
            use(stream, event)
        torch.ones(1, device="cuda").item()
    assert (1, 1, 0) == (cost.launches, cost.syncs, cost.hazards)
    with pytest.raises(RuntimeError, match="has ended"):
        event.synchronize()
    assert "ended" in repr(stream)


def test_tensors_outlive_their_simulation_on_the_cpu() -> None:
    """A tensor of a simulation that has ended is a CPU tensor with its values, also in the next one."""
    with simcuda.device():
        x = torch.ones(3, device="cuda", requires_grad=True)
        loss = (x * 2).sum()
    assert ("cpu", [1.0] * 3) == (x.device.type, x.tolist())
    torch.autograd.backward(loss)
    with simcuda.device() as gpu:
        assert "cpu" == x.device.type
        with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
            x + torch.ones(3, device="cuda")
        with gpu.measure() as cost:
            assert [2.0] * 3 == (x.detach().to("cuda") * 2).tolist()
    assert (1, 1, 1, 2) == (cost.launches, cost.h2d, cost.d2h, cost.syncs)


def test_data_parallel_on_one_device_copies_what_it_is_given(gpu: SimulatedCuda) -> None:
    """On a stream of its own, which the device's own waits for: 8 bytes, for which the host does not wait."""
    model = torch.nn.DataParallel(torch.nn.Linear(2, 1), device_ids=[0]).cuda()
    model(torch.ones(1, 2))
    with gpu.measure() as cost:
        result = model(torch.ones(1, 2))
    assert (torch.device("cuda:0"), 1, 8) == (result.device, cost.h2d, cost.h2d_bytes)
    assert (0, 0) == (cost.syncs, cost.hazards)


def test_what_is_scattered_over_devices_is_gathered_again(gpu: SimulatedCuda) -> None:
    """The part for the device that has it stays; each other one is copied there, and back."""
    comm: Any = importlib.import_module("torch.cuda.comm")
    x = torch.arange(6.0, device="cuda:0")
    with gpu.measure() as cost:
        parts = comm.scatter(x, [0, 1], chunk_sizes=[2, 4])
        together = comm.gather(parts, destination=torch.device("cuda:0"))
    assert [[0.0, 1.0], [2.0, 3.0, 4.0, 5.0]] == [part.tolist() for part in parts]
    assert ["cuda:0", "cuda:1"] == [str(part.device) for part in parts]
    assert torch.equal(x, together)
    # Four floats there and back; the two others within their device.
    assert (2, 32, 1, 8, 0) == (cost.p2p, cost.p2p_bytes, cost.d2d, cost.d2d_bytes, cost.syncs)
    assert "cpu" == comm.gather(parts, destination=torch.device("cpu")).device.type


@pytest.mark.filterwarnings("ignore:.torch.jit.* is deprecated")
def test_a_script_is_loaded_onto_a_device(gpu: SimulatedCuda) -> None:
    """Each of its two tensors is copied there, and waited for: 2 floats of weights, and 1."""
    script: Any = torch.jit
    file, layer = io.BytesIO(), torch.nn.Linear(2, 1)
    script.save(script.trace(layer, torch.ones(1, 2)), file)
    file.seek(0)
    with gpu.measure() as cost:
        loaded = script.load(file, map_location="cuda:1")
    assert (2, 2, 12) == (cost.syncs, cost.h2d, cost.h2d_bytes)
    assert torch.equal(layer(torch.ones(1, 2)), loaded(torch.ones(1, 2, device="cuda:1")).cpu())
    file.seek(0)
    assert {"cpu"} == {each.device.type for each in script.load(file).parameters()}


def test_a_raw_stream_is_the_handle_of_the_current_one(gpu: SimulatedCuda) -> None:
    """Launchers of other libraries pass it on; it is 0 for a default stream."""
    assert gpu
    raw: Any = torch._C._cuda_getCurrentRawStream
    stream = cuda.Stream(1)
    with cuda.stream(stream):
        assert (0, stream.cuda_stream) == (raw(0), raw(1))
