"""Types that CUDA has kernels for and the host has not, and the reverse."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from simcuda import SimulatedCuda

HALVES = [torch.float16, torch.bfloat16]
TARGETS = torch.tensor([[0, 2, -1], [1, -1, 0]])

IN_HALF_PRECISION: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "avg_pool3d": ((1, 2, 4, 4, 4), lambda x: functional.avg_pool3d(x, 3, 1)),
    "bilinear": (
        (1, 2, 6, 6),
        lambda x: functional.interpolate(x, size=(4, 3), mode="bilinear", antialias=True),
    ),
    "bicubic": (
        (1, 2, 6, 6),
        lambda x: functional.interpolate(x, size=(4, 3), mode="bicubic", antialias=True),
    ),
    "multi_margin_loss": ((2, 3), lambda x: functional.multi_margin_loss(x, TARGETS[:, 0].to(x.device))),
    "multilabel_margin_loss": ((2, 3), lambda x: functional.multilabel_margin_loss(x, TARGETS.to(x.device))),
}


def run(compute: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """The result and the gradient of its sum."""
    x = x.detach().requires_grad_()
    result = compute(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    return result.detach(), gradient


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("shape", "compute"), IN_HALF_PRECISION.values(), ids=IN_HALF_PRECISION)
def test_what_the_host_lacks_in_half_precision_is_rounded_once(
    gpu: SimulatedCuda, shape: tuple[int, ...], compute: Callable[[Tensor], Tensor], dtype: torch.dtype
) -> None:
    """Result and gradient are those of single precision, rounded; the host itself has no such kernel."""
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype)
    with pytest.raises(NotImplementedError):
        compute(x)
    wide, halves = run(compute, x.float()), run(compute, x.cuda())
    for expected, half in zip(wide, halves, strict=True):
        assert (dtype, True) == (half.dtype, half.is_cuda)
        assert torch.equal(expected.to(dtype), half.cpu())
    with gpu.measure() as m:
        compute(x.cuda())
    # The values are the host's, the cost is a GPU's: no copy of the converted tensors is counted.
    assert ((), 0) == (m.unknown, m.d2h)


@pytest.mark.usefixtures("gpu")
def test_noise_of_rrelu_is_written_in_half_precision() -> None:
    """What is negative is multiplied by its noise, between the bounds, and what is not by 1, in place too."""
    x = torch.tensor([-2.0, 3.0], dtype=torch.float16, device="cuda")
    noise = torch.zeros_like(x)
    result = torch.ops.aten.rrelu_with_noise(x, noise, 0.25, 0.25, True)
    # -2 * 0.25, and 3 * 1.
    assert ([-0.5, 3.0], [0.25, 1.0]) == (result.tolist(), noise.tolist())
    same = torch.ops.aten.rrelu_with_noise_(x, noise, 0.5, 0.5, True)
    assert same is x
    assert [-1.0, 3.0] == x.tolist()


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("multiply", "kernel"),
    {
        "mm": (lambda x: x @ x, "addmm_cuda"),
        "addmm": (lambda x: torch.addmm(x, x, x), "addmm_cuda"),
        "bmm": (lambda x: x[None] @ x[None], "baddbmm_cuda"),
        "einsum": (lambda x: torch.einsum("bij,bjk->bik", x[None], x[None]), "baddbmm_cuda"),
        "mv": (lambda x: x @ x[0], "addmv_impl_cuda"),
        "dot": (lambda x: x[0] @ x[0], "dot"),
    }.values(),
)
@pytest.mark.parametrize(
    ("dtype", "name"),
    [(torch.int64, "Long"), (torch.int32, "Int"), (torch.uint8, "Byte"), (torch.bool, "Bool")],
)
def test_cublas_multiplies_no_integers(
    multiply: Callable[[Tensor], Tensor], kernel: str, dtype: torch.dtype, name: str
) -> None:
    """The host has kernels for products of integers, CUDA has none, and says so by its kernel's name."""
    x = torch.ones(2, 2, dtype=dtype, device="cuda")
    with pytest.raises(NotImplementedError) as error:
        multiply(x)
    assert f"\"{kernel}\" not implemented for '{name}'" == str(error.value)
    # What has no elements is made without a kernel.
    assert (0, 2) == (x[:0] @ x).shape


@pytest.mark.usefixtures("gpu")
def test_the_host_multiplies_integers() -> None:
    """What is not on the device is the host's matter."""
    x = torch.ones(2, 2, dtype=torch.int64)
    # 1 * 1 + 1 * 1
    assert [[2, 2], [2, 2]] == (x @ x).tolist()
