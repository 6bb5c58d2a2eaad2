"""Sizes are those of float32, 4 bytes."""

import pytest
import torch
from torch.nn import functional

import simcuda
from simcuda import SimulatedCuda

CALLS = {
    "functional.interpolate(x[0], scale_factor=2)": 2,
    "functional.interpolate(x[0], scale_factor=2, mode='nearest-exact')": 2,
    "functional.interpolate(x, scale_factor=2)": 2,
    "functional.interpolate(x[None], scale_factor=2)": 2,
    # These follow strides; the last two fill their result with zeros first.
    "functional.interpolate(x, scale_factor=2, mode='bilinear')": 1,
    "functional.interpolate(x, scale_factor=2, mode='bicubic')": 2,
    "functional.interpolate(x[0], scale_factor=2, mode='linear')": 2,
    "functional.grid_sample(x, torch.zeros(2, 3, 3, 2, device='cuda')[:, 1:], align_corners=False)": 1 + 1,
    "functional.avg_pool2d(x, 2)": 2,
    "functional.max_pool2d(x, 2)": 2,
    "functional.avg_pool3d(x, 2)": 2,
    "functional.max_pool3d(x, 2)": 2,
    "functional.adaptive_avg_pool2d(x, 2)": 2,
    "functional.adaptive_max_pool2d(x, 2)": 2,
    "functional.adaptive_avg_pool3d(x[None], 2)": 2,
    "functional.adaptive_max_pool3d(x[None], 2)": 2,
    # A single image is read as it lies.
    "functional.adaptive_avg_pool2d(x[0], 2)": 1,
    "functional.adaptive_max_pool2d(x[0], 2)": 1,
    "functional.adaptive_max_pool3d(x, 2)": 1,
    "functional.pad(x, (1, 1, 1, 1), mode='reflect')": 2,
    # ReplicationPadding.cu reads strided memory, as an H200 did.
    "functional.pad(x, (1, 1, 1, 1), mode='replicate')": 1,
    # A kernel for each of 2 images.
    "functional.unfold(x, 2)": 1 + 2,
}


@pytest.mark.parametrize("code", CALLS)
def test_a_kernel_that_needs_dense_memory_copies_its_input(gpu: SimulatedCuda, code: str) -> None:
    """Of an image that lies transposed; without that copy each of these takes one launch less."""
    names = {"torch": torch, "functional": functional}
    x = torch.rand(2, 3, 6, 4, device="cuda")
    with gpu.measure() as dense:
        eval(code, names, {"x": x})  # noqa: S307 - the code is above
    with gpu.measure() as m:
        eval(code, names, {"x": x.mT})  # noqa: S307 - the code is above
    copies = CALLS[code] - dense.launches
    assert (CALLS[code], copies in (0, 1), ()) == (m.launches, True, m.approximate)
    assert copies == m.allocations - dense.allocations


@pytest.mark.parametrize(
    ("code", "kernels"),
    [
        ("functional.max_pool2d(x, 2)", 1),
        ("functional.avg_pool2d(x, 2)", 1),
        ("functional.adaptive_avg_pool2d(x, 2)", 1),
        # Copied to lie with channels first, and values and places copied back.
        ("functional.adaptive_max_pool2d(x, 2)", 1 + 1 + 2),
        ("functional.interpolate(x, scale_factor=2)", 1),
        # With fewer than 4 channels it is done with channels first.
        ("functional.interpolate(x[:, :3].contiguous(memory_format=torch.channels_last), scale_factor=2)", 4),
    ],
)
def test_images_may_lie_with_channels_last(gpu: SimulatedCuda, code: str, kernels: int) -> None:
    """What has a kernel for that copies nothing."""
    x = torch.rand(2, 4, 6, 4, device="cuda").contiguous(memory_format=torch.channels_last)
    with gpu.measure() as m:
        eval(code, {"torch": torch, "functional": functional}, {"x": x})  # noqa: S307 - the code is above
    assert (kernels, ()) == (m.launches, m.approximate)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_of_half_precision_are_single_precision(gpu: SimulatedCuda, dtype: torch.dtype) -> None:
    """Means and deviations of layers and batches have 4 bytes each; on the host they have the input's 2."""
    x = torch.rand(4, 8, dtype=dtype, device="cuda", requires_grad=True)
    weight = torch.ones(8, dtype=dtype, device="cuda", requires_grad=True)
    mean = torch.zeros(8, dtype=dtype, device="cuda")
    with gpu.measure() as m:
        result = torch.native_layer_norm(x, (8,), weight, weight, 1e-5)
    assert [dtype, torch.float32, torch.float32] == [each.dtype for each in result]
    # 4 x 8 results of 2 bytes; 4 means and 4 deviations of 4.
    assert 64 + 16 + 16 == m.peak_bytes
    result[0].sum().backward()  # type: ignore[no-untyped-call]  # not annotated
    assert x.grad is not None
    assert weight.grad is not None
    assert (dtype, dtype) == (x.grad.dtype, weight.grad.dtype)
    batch = torch.native_batch_norm(x, weight, weight, mean, mean.clone(), True, 0.1, 1e-5)
    assert [dtype, torch.float32, torch.float32] == [each.dtype for each in batch]
    # A tenth of the mean of each column goes to the running mean.
    torch.testing.assert_close(mean.float(), 0.1 * x.float().mean(0), rtol=0.01, atol=0)


def test_statistics_on_the_host_stay_as_they_are() -> None:
    """A host tensor within a simulation is normalised as without one."""
    x = torch.rand(4, 8, dtype=torch.bfloat16)
    with simcuda.device():
        assert [x.dtype] * 3 == [each.dtype for each in torch.native_layer_norm(x, (8,), None, None, 1e-5)]


def test_positions_to_split_at_have_to_be_on_the_host(gpu: SimulatedCuda) -> None:
    """CUDA's error, where a read would have been counted."""
    x = torch.rand(8, device="cuda")
    for place in (torch.tensor(3), torch.tensor([3, 5])):
        with gpu.measure() as m:
            parts = torch.tensor_split(x, place)
        assert (1 + max(1, place.numel()), 0) == (len(parts) if place.dim() else 2, m.syncs)
        with pytest.raises(RuntimeError, match="to be on cpu, but it's on cuda:0"):
            x.tensor_split(place.cuda())
