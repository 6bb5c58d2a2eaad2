"""Measuring on real devices, with a fake of CUDA under the real profiler."""

from __future__ import annotations

import sys

import pytest
import torch
from tests.simcuda.real.fake_cuda import MEMORY, FakeCuda
from torch.autograd.profiler import profile

from simcuda import Measurement, allowed
from simcuda.real import CannotCountError, real_device

BEFORE = 1000
"""Requested bytes in use before a block begins."""


def line() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def test_what_happens_in_the_block_is_counted(cuda: FakeCuda) -> None:
    """And nothing of what happens around it, in the warm-up or at the bounds."""
    with real_device() as gpu:
        cuda.item()
        with gpu.measure() as cost:
            cuda.launch()
            cuda.item()
            cuda.synchronize()
        cuda.launch()
    assert isinstance(cost, Measurement)
    assert (1, 1, 1) == (cost.launches, cost.stream_syncs, cost.device_syncs)
    assert (2, 1, 4, 0) == (cost.syncs, cost.d2h, cost.d2h_bytes, cost.h2d)


def test_sites_are_lines_of_user_code(cuda: FakeCuda) -> None:
    """A read, a wait, and an allocation."""
    with real_device() as gpu, gpu.measure() as cost:
        first = line()
        cuda.item()
        cuda.call("cudaStreamSynchronize")
        cuda.allocate(8)
    seen = [(site.line - first, site.what, site.count) for site in cost.sites]
    expected = [(1, "d2h", 1), (1, "stream_syncs", 1), (2, "stream_syncs", 1), (3, "allocations", 1)]
    assert (expected, {__file__}) == (seen, {site.file for site in cost.sites})


def test_a_region_sets_apart_what_it_does(cuda: FakeCuda) -> None:
    """Three reads, by reason; a region that is open when counting begins is one of them."""
    with real_device() as gpu, allowed("around"), gpu.measure() as cost:
        cuda.item()
        with allowed("within"):
            for _ in range(2):
                cuda.item()
    assert (3, 3) == (cost.syncs, cost.d2h)
    apart = {
        reason: {site.what: site.count for site in sites if site.file == __file__}
        for reason, sites in cost.allowed.items()
    }
    reads = {"d2h": 1, "d2h_bytes": 4, "stream_syncs": 1}
    assert {"around": reads, "within": {what: 2 * count for what, count in reads.items()}} == apart


def test_bytes_come_from_the_allocator(cuda: FakeCuda) -> None:
    """1000 are in use; 100 and 300 more, 100 less, 50 more: the peak is 400 above, 350 remain at the end."""
    cuda.allocate(BEFORE)
    with real_device() as gpu:
        assert gpu.live_bytes() == BEFORE
        with gpu.measure() as cost:
            cuda.allocate(100)
            cuda.allocate(300)
            cuda.free(100)
            cuda.allocate(50)
        cuda.free(350)
    assert (3, 300, 400) == (cost.allocations, cost.largest_allocation, cost.peak_bytes)
    # In blocks of 512 bytes 1000 take 1024 and the 1400 of the peak take 1536.
    assert 512 == cost.peak_allocated_bytes
    assert 0 == cost.retained_bytes


def test_a_measurement_knows_nothing_of_what_came_before(cuda: FakeCuda) -> None:
    """Neither the allocations of another one, nor a peak, nor a lack of memory of before."""
    cuda.ooms = 3
    with real_device() as gpu:
        for _ in range(2):
            cuda.allocate(5000)
            cuda.free(5000)
            with gpu.measure() as cost:
                cuda.allocate(100)
            cuda.free(100)
            assert (1, 100, 0) == (cost.allocations, cost.peak_bytes, cost.ooms)


def test_what_is_kept_is_retained(cuda: FakeCuda) -> None:
    """Requested bytes that are in use when one asks."""
    with real_device() as gpu, gpu.measure() as cost:
        cuda.allocate(100)
    assert 100 == cost.retained_bytes


def test_several_devices_peak_together(cuda: FakeCuda) -> None:
    """100 on one, given back before the other takes 50: 100 at most; blocks have no such record."""
    with real_device(2) as gpu, gpu.measure() as cost:
        cuda.allocate(100, place=0)
        cuda.free(100, place=0)
        cuda.allocate(50, place=1)
    assert 100 == cost.peak_bytes
    with pytest.raises(AttributeError, match="peak_allocated_bytes is not counted on a real device"):
        _ = cost.peak_allocated_bytes


def test_running_out_of_memory_is_counted(cuda: FakeCuda) -> None:
    """As the allocator tells, and the exception goes on."""

    def greedy() -> None:
        cuda.launch()
        cuda.ooms += 1
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError), real_device() as gpu, gpu.measure() as cost:
        greedy()
    assert (1, 1) == (cost.ooms, cost.launches)


@pytest.mark.parametrize("metric", ["hazards", "host_peak_bytes"])
def test_what_cannot_be_counted_is_not_0(cuda: FakeCuda, metric: str) -> None:
    """Asking for it is an error, and it is listed."""
    with real_device() as gpu, gpu.measure() as cost:
        cuda.item()
    assert metric in cost.not_counted
    assert not hasattr(cost, metric)
    assert "RealMeasurement(syncs=1, stream_syncs=1, d2h=1, d2h_bytes=4)" == repr(cost)


def test_events_that_get_lost_are_an_error(cuda: FakeCuda) -> None:
    """A profiler that drops kernels makes the measurement fail instead of counting less."""
    with real_device() as gpu:
        cuda.loses = lambda event: event.get("cat") == "kernel"
        with pytest.raises(CannotCountError, match="no record of 1 of 1 kernel launches"), gpu.measure():
            cuda.launch()


def test_a_profiler_that_sees_nothing_is_an_error(cuda: FakeCuda) -> None:
    """Before anything is measured: CUPTI gives nothing to a user who may not use it."""
    cuda.loses = lambda event: event.get("cat") in {"kernel", "cuda_runtime", "gpu_memcpy"}
    with pytest.raises(CannotCountError, match="no record of the begin"), real_device():
        pytest.fail("it was entered")
    cuda.loses = lambda event: event.get("name") in {"cudaLaunchKernel", "void kernel()"}
    with pytest.raises(CannotCountError, match="the profiler does not see"), real_device():
        pytest.fail("it was entered")


def test_another_profiler_is_refused(cuda: FakeCuda) -> None:
    """PyTorch has one at a time; a measurement within a measurement is the same."""
    del cuda
    with real_device() as gpu:
        with gpu.measure(), pytest.raises(CannotCountError, match="another measurement"), gpu.measure():
            pytest.fail("it was entered")
        with profile(), pytest.raises(CannotCountError, match="or profiler"), gpu.measure():
            pytest.fail("it was entered")


def test_nothing_runs_on_after_a_measurement(cuda: FakeCuda) -> None:
    """Neither the profiler nor the allocator's trace, and no line is followed."""
    with real_device() as gpu, gpu.measure():
        assert (True, True) == (cuda.recording, sys.gettrace() is not None)
    assert (False, None, False) == (cuda.recording, sys.gettrace(), torch._C._autograd._profiler_enabled())


# Of 9 MiB the quotient of floating point numbers misses a byte.
@pytest.mark.parametrize("capacity", [4 << 20, 9 << 20, 1, 12_345_678_901])
def test_memory_can_be_limited(cuda: FakeCuda, capacity: int) -> None:
    """To the byte, beyond the segment of 2 MiB that holds what stays in use; afterwards all is back."""
    cuda.allocate(BEFORE)
    with real_device(2, capacity=capacity):
        assert {0: capacity + (2 << 20), 1: capacity} == cuda.limits
    assert {0: MEMORY, 1: MEMORY} == cuda.limits
