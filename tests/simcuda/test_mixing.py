"""Tensors on several devices in one operation: CUDA's errors, and what CUDA allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from simcuda import SimulatedCuda

DEVICES = 2

Case = Callable[[torch.Tensor, torch.Tensor], Any]

TWO_DEVICES = "found at least two devices, cuda:0 and cpu!"
INDICES = r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)"

REFUSED: dict[str, tuple[Case, str]] = {
    "binary": (lambda d, h: d + h, TWO_DEVICES),
    "binary, host first": (lambda d, h: h * d, TWO_DEVICES),
    "in place": (lambda d, h: d.mul_(h), TWO_DEVICES),
    "in place on the host": (lambda d, h: h.mul_(d), TWO_DEVICES),
    "comparison": (lambda d, h: d < h, TWO_DEVICES),
    "into a given result": (lambda d, h: torch.add(d, d, out=h), TWO_DEVICES),
    "where": (lambda d, h: torch.where(d > 0, d, h), TWO_DEVICES),
    "clamp": (lambda d, h: d.clamp(h), TWO_DEVICES),
    "a scalar for the host": (lambda d, h: h + d[0, 0], TWO_DEVICES),
    "product": (lambda d, h: d @ h, "got mat2 is on cpu, .*wrapper_CUDA_mm"),
    "product into a given result": (lambda d, h: torch.mm(d, d, out=h), "wrapper_CUDA_mm_out"),
    "linear": (functional.linear, "wrapper_CUDA_mm"),
    "einsum": (lambda d, h: torch.einsum("ij,jk->ik", d, h), "wrapper_CUDA_bmm"),
    "cat": (lambda d, h: torch.cat([d, h]), "wrapper_CUDA_cat"),
    "stack": (lambda d, h: torch.stack([d, h]), "wrapper_CUDA_cat"),
    "index": (lambda d, h: h[d[0].long()], INDICES),
    "mask": (lambda d, h: h[d > 0], INDICES),
    "assignment by index": (lambda d, h: d.__setitem__(h[0].long(), h), TWO_DEVICES),
    "assignment by mask": (lambda d, h: d.__setitem__(d > 0, h.view(-1)), TWO_DEVICES),
    "gather": (lambda d, h: d.gather(0, h.long()), "got index is on cpu"),
    "index_select": (lambda d, h: d.index_select(0, h[0].long()), "got index is on cpu"),
    "scatter": (lambda d, h: d.scatter_add_(0, h.long(), d), "got index is on cpu"),
    "embedding": (lambda d, h: functional.embedding(h.long(), d), "got index is on cpu"),
    "loss": (functional.mse_loss, "got target is on cpu"),
    "cross entropy": (lambda d, h: functional.cross_entropy(d, h[0].long()), "got target is on cpu"),
    "normalization": (lambda d, h: functional.layer_norm(d, (2,), h[0]), "got weight is on cpu"),
    "lists": (lambda d, h: torch._foreach_add([d], [h]), "found at least two devices, cuda:0 and cpu"),
    "lists in place": (lambda d, h: torch._foreach_mul_([d, d], [d, h]), "found at least two devices"),
}

ALLOWED: dict[str, Case] = {
    "a host scalar": lambda d, h: d + h[0, 0],
    "a host scalar in a list": lambda d, h: torch._foreach_mul([d], h[0, 0])[0],
    "host scalars in a list": lambda d, h: torch._foreach_mul([d, d], [h[0, 0], d])[0],
    "host scalars in a list, in place": lambda d, h: (torch._foreach_div_([d, d], [h[0, 0], d]), d)[1],
    "an index from the host": lambda d, h: d[h[0].long()],
    "a mask from the host": lambda d, h: d[h > 0],
    "a copy": lambda d, h: d.copy_(h),
    "a slice": lambda d, h: d.__setitem__(slice(0, 1), h[0]),
}


@pytest.mark.parametrize(("case", "message"), REFUSED.values(), ids=REFUSED)
def test_mixing_fails_as_on_cuda_and_counts_stay_right(gpu: SimulatedCuda, case: Case, message: str) -> None:
    """The error is CUDA's, and the next operation costs what it costs."""
    device, host = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
    with pytest.raises(RuntimeError, match=message):
        case(device, host)
    with gpu.measure() as cost:
        (device + 1).sum().item()
    # Two kernels with a result each, of 16 and 4 bytes, and one read.
    assert (2, 1, 2, 20, 0) == (cost.launches, cost.syncs, cost.allocations, cost.peak_bytes, cost.hazards)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("case", ALLOWED.values(), ids=ALLOWED)
def test_what_cuda_allows_is_allowed(case: Case) -> None:
    """Values without dimensions and indices may come from the host, and copies may cross."""
    device, host = torch.zeros(2, 2, device="cuda"), torch.zeros(2, 2)
    result = case(device, host)
    assert "cuda" == (device if result is None else result).device.type


@pytest.mark.usefixtures("gpu")
def test_two_cuda_devices_do_not_mix_either() -> None:
    """Not even a value without dimensions may come from another CUDA device."""
    here, there = torch.ones(2, 2, device="cuda:0"), torch.ones(2, 2, device="cuda:1")
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cuda:1!"):
        here + there
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cuda:1!"):
        here + there[0, 0]
    with pytest.raises(RuntimeError, match="is on cuda:1, different from other tensors on cuda:0"):
        here @ there


@pytest.mark.usefixtures("gpu")
def test_meta_tensors_stay_without_memory() -> None:
    """A tensor on ``meta`` that is made of one on the device is on neither device nor host."""
    x = torch.ones(2, device="cuda")
    made = [x.to("meta"), torch.empty_like(x, device="meta"), torch.zeros(2, device="meta")]
    assert ["meta"] * 3 == [tensor.device.type for tensor in made]


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch uses it for these derivatives
def test_forward_derivatives_are_on_the_device() -> None:
    """Derivatives in forward mode, whose zeros torch works out on ``meta``, are as on the CPU."""
    x = torch.ones(3, device="cuda")
    jacobian, hessian = torch.func.jacfwd(lambda t: t * 2)(x), torch.func.hessian(lambda t: (t**3).sum())(x)
    assert torch.equal(2 * torch.eye(3, device="cuda"), jacobian)
    # The second derivative of t ** 3 at 1.
    assert torch.equal(6 * torch.eye(3, device="cuda"), hessian)


@pytest.mark.usefixtures("gpu")
def test_only_host_memory_is_pinned() -> None:
    """Pinned memory is memory of the host."""
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(3, device="cuda", pin_memory=True)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(3, device="cuda").pin_memory()
