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


@pytest.mark.filterwarnings("ignore:torch.searchsorted.*non-contiguous")
@pytest.mark.parametrize(
    ("code", "kernels", "nbytes"),
    [
        # A number becomes a tensor of 4 bytes, in the type of the result, by a fill; 4 results of 4 bytes.
        ("torch.where(mask, x, 1.0)", 1 + 1, 4 + 16),
        ("torch.where(mask, 1.0, 2.0)", 2 + 1, 4 + 4 + 16),
        # What is chosen from is converted first: 4 integers of 8 bytes to 4 floats.
        ("torch.where(mask, x, index)", 1 + 1, 16 + 16),
        # A number has 8 bytes, and 4 once it has the type of what is searched; one position of 8 bytes.
        ("torch.bucketize(0.5, x)", 1 + 1 + 1, 8 + 4 + 8),
        ("torch.searchsorted(x, 0.5)", 1 + 1 + 1, 8 + 4 + 8),
        ("torch.searchsorted(index, 1)", 1 + 1, 8 + 8),
        # Every second value is copied out: 2 floats, 2 positions.
        ("torch.bucketize(x[::2], x)", 1 + 1, 8 + 16),
        # A double of 8 bytes, and the result; any power of 1 is a fill.
        ("2.0 ** x", 1 + 1, 8 + 16),
        ("1.0 ** x", 1, 16),
        # Made of a number: 8 bytes; compared 4 times, any; the answer is copied to the result of 1 byte.
        ("torch.isin(1.0, x)", 1 + 3, 8 + 1 + 4 + 1),
    ],
)
def test_cpp_makes_tensors_of_numbers_on_the_device(
    gpu: SimulatedCuda, code: str, kernels: int, nbytes: int
) -> None:
    """A fill and an allocation for each number, and a copy of what is not dense or of another type."""
    names = {
        "x": torch.rand(4, device="cuda"),
        "mask": torch.ones(4, dtype=torch.bool, device="cuda"),
        "index": torch.arange(4, device="cuda"),
    }
    with gpu.measure() as m:
        result = eval(code, {"torch": torch}, names)  # noqa: S307 - the code is above
    assert (kernels, nbytes, 0) == (m.launches, m.peak_bytes, m.syncs), result


def test_choosing_from_a_host_tensor_copies_it(gpu: SimulatedCuda) -> None:
    """Each of them is copied to the device, 4 bytes, with a wait."""
    mask, value = torch.ones(4, dtype=torch.bool, device="cuda"), torch.tensor(1.0)
    with gpu.measure() as m:
        torch.where(mask, value, value)
    assert (1, 2, 2, 8) == (m.launches, m.syncs, m.h2d, m.h2d_bytes)


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


@pytest.mark.parametrize(
    ("code", "kernels", "copies", "nbytes"),
    [
        # Each dimension is rolled on its own, and the one before kept: 2 x 96 bytes; a view is copied first.
        ("x.roll((1, 1), (0, 1))", 2, 0, 192),
        ("x.mT.roll(1, 0)", 2, 0, 192),
        # 4 x 8 floats are filled, and 4 rows of 6 written into them.
        ("functional.pad(x, (1, 1))", 2, 0, 128),
        # 5 rows are filled, of which 4 are a run of bytes.
        ("functional.pad(x, (0, 0, 0, 1))", 1, 1, 120),
        ("functional.pad(x, (-1, -1))", 1, 0, 64),
        ("x.repeat(2, 1)", 1, 0, 192),
        ("x.repeat(1, 1)", 0, 1, 96),
        # 4 integers on the diagonal are widened to 8 bytes, and added up to 8.
        ("n.trace()", 2, 0, 32 + 8),
        ("x.argmax()", 1, 0, 8),
        ("x.mT.argmax()", 2, 0, 96 + 8),
        # Drawn, a sum for each of 4 rows, divided.
        ("torch._sample_dirichlet(x)", 3, 0, 96 + 16),
        # The losses, their product with the weights, the mean, which is copied; 4 bytes for it beside.
        ("functional.binary_cross_entropy(x, x, weight=x)", 3, 1, 96 + 4),
        ("torch.ops.aten.binary_cross_entropy_backward(x[0, 0], x, x, x)", 3, 0, 96),
    ],
)
def test_what_an_operation_is_made_of(
    gpu: SimulatedCuda, code: str, kernels: int, copies: int, nbytes: int
) -> None:
    """Sizes are those of 4 x 6 floats of 4 bytes."""
    names = {"x": torch.rand(4, 6, device="cuda"), "n": torch.ones(4, 4, dtype=torch.int32, device="cuda")}
    with gpu.measure() as m:
        result = eval(code, {"torch": torch, "functional": functional}, names)  # noqa: S307 - the code is above
    assert (kernels, copies, nbytes, ()) == (m.launches, m.d2d, m.peak_bytes, m.approximate), result


@pytest.mark.parametrize(("is_aligned", "marked"), [(True, ("aten.grid_sampler_2d.default",)), (False, ())])
def test_sampling_that_cudnn_may_do_is_marked(
    gpu: SimulatedCuda, is_aligned: bool, marked: tuple[str, ...]
) -> None:
    """Bilinear, padded with zeros and aligned."""
    image, grid = torch.rand(1, 2, 4, 4, device="cuda"), torch.zeros(1, 3, 3, 2, device="cuda")
    with gpu.measure() as m:
        functional.grid_sample(image, grid, align_corners=is_aligned)
    assert (1, marked) == (m.launches, m.approximate)
