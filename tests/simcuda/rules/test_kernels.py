import pytest
import torch
from torch.nn import functional

from simcuda import SimulatedCuda


@pytest.mark.parametrize(
    "code",
    [
        "x.fill_(1.0)",
        "x.eq_(0)",
        "x.abs_()",
        "x // 2",
        "torch.rsub(x, 1.0)",
        "functional.hardswish(x)",
        "functional.glu(x)",
        "functional.logsigmoid(x)",
        "functional.prelu(x, x[0, :1])",
        "functional.interpolate(image, scale_factor=2)",
        "functional.avg_pool2d(image, 2)",
        "functional.pad(image, (1, 1, 1, 1), mode='reflect')",
        "x.tril()",
        "x.trace()",
        "torch.normal(0.0, 1.0, (4,), device='cuda')",
        "torch.poisson(x)",
        "x.softmax(0)",
    ],
)
def test_one_kernel(gpu: SimulatedCuda, code: str) -> None:
    """Each of these is exactly one kernel, without a wait."""
    names = {"x": torch.rand(4, 4, device="cuda"), "image": torch.rand(1, 2, 4, 4, device="cuda")}
    with gpu.measure() as m:
        exec(code, {"torch": torch, "functional": functional}, names)  # noqa: S102 - the code is above
    assert (1, 0, (), ()) == (m.launches, m.syncs, m.unknown, m.approximate)


def test_searching_by_a_given_order_checks_it(gpu: SimulatedCuda) -> None:
    """The least and the largest of the positions, 8 bytes each, are read; otherwise nothing is."""
    x, order = torch.rand(4, device="cuda"), torch.arange(4, device="cuda")
    with gpu.measure() as m:
        torch.searchsorted(x, x, sorter=order)
    assert (2, 2, 16, 2) == (m.syncs, m.d2h, m.d2h_bytes, m.launches)
    with gpu.measure() as m:
        torch.searchsorted(x, x)
    assert (0, 1) == (m.syncs, m.launches)


def test_the_gradient_of_padding_is_filled_first(gpu: SimulatedCuda) -> None:
    """Zeros, then what belongs to each place is added up: 2 kernels, beside one for the padding."""
    x = torch.rand(1, 2, 4, 4, device="cuda", requires_grad=True)
    padded = functional.pad(x, (1, 1, 1, 1), mode="replicate")
    gradient = torch.ones(padded.shape, device="cuda")
    with gpu.measure() as m:
        torch.autograd.grad(padded, x, gradient)
    assert (2, ()) == (m.launches, m.approximate)


def test_an_assertion_on_the_device_does_not_wait(gpu: SimulatedCuda) -> None:
    """One kernel looks at the truth value."""
    truth = torch.ones((), dtype=torch.bool, device="cuda")
    with gpu.measure() as m:
        torch._assert_async(truth)
    assert (0, 1) == (m.syncs, m.launches)


def test_a_loss_is_computed_by_element_then_reduced(gpu: SimulatedCuda) -> None:
    """The mean of 16 losses: PyTorch makes room for 64 bytes in the result, and as much for the losses.

    Without a mean the losses are the result.
    """
    x, y = torch.rand(4, 4, device="cuda"), torch.rand(4, 4, device="cuda")
    with gpu.measure() as m:
        functional.mse_loss(x, y)
    assert (2, 128) == (m.launches, m.peak_bytes)
    with gpu.measure() as m:
        functional.mse_loss(x, y, reduction="none")
    assert (1, 64) == (m.launches, m.peak_bytes)
    with gpu.measure() as m:
        functional.mse_loss(x[:0], y[:0])
    assert 1 == m.launches


def test_the_loss_of_many_elements_needs_a_workspace(gpu: SimulatedCuda) -> None:
    """200000 losses of 4 bytes are reduced by 25 blocks: 100 bytes and a counter of 4."""
    x = torch.zeros(200_000, device="cuda")
    with gpu.measure() as m:
        functional.mse_loss(x, x)
    assert 2 * 800_000 + 104 == m.peak_bytes


def test_binary_cross_entropy_copies_its_mean(gpu: SimulatedCuda) -> None:
    """The mean of 4 bytes has memory of its own and is copied over the losses of 64 bytes."""
    x, y = torch.rand(4, 4, device="cuda"), torch.rand(4, 4, device="cuda")
    with gpu.measure() as m:
        functional.binary_cross_entropy(x, y)
    assert (2, 1, 4, 68) == (m.launches, m.d2d, m.d2d_bytes, m.peak_bytes)
    with gpu.measure() as m:
        functional.binary_cross_entropy(x, y, reduction="none")
    assert (1, 0) == (m.launches, m.d2d)


def test_gradients_are_unscaled_side_by_side(gpu: SimulatedCuda) -> None:
    """One kernel for all gradients of a type: the scale is known, infinities are noted on the device."""
    gradients = [torch.rand(10, device="cuda") for _ in range(50)]
    found, scale = torch.zeros(1, device="cuda"), torch.ones(1, device="cuda")
    with gpu.measure() as m:
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, scale)
    assert (1, 0, ()) == (m.launches, m.syncs, m.approximate)
    gradients[0] = torch.rand(4, 5, device="cuda").t()
    strided = torch.rand(10, 2, device="cuda")[:, 0]
    with gpu.measure() as m:
        torch._amp_foreach_non_finite_check_and_unscale_([*gradients[1:], strided], found, scale)
    # Strided memory is walked tensor by tensor.
    assert 50 == m.launches
