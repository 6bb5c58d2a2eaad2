"""Memory that C++ code makes for itself belongs where the tensors are that it was made for."""

from __future__ import annotations

import pytest
import torch

from simcuda import SimulatedCuda

rnn = torch.nn.utils.rnn


def test_padded_sequences_are_where_their_parts_are(gpu: SimulatedCuda) -> None:
    """Padding fills one result on the device and copies each part within it, without a wait."""
    parts = [torch.ones(3, device="cuda"), torch.ones(4, device="cuda")]
    with gpu.measure() as cost:
        padded = rnn.pad_sequence(parts, batch_first=True)
    assert ("cuda", [[1, 1, 1, 0], [1, 1, 1, 1]]) == (padded.device.type, padded.tolist())
    # 2 x 4 floats are filled by one kernel; rows of 3 and 4 floats are copied as bytes.
    assert (1, 32, 1) == (cost.allocations, cost.peak_bytes, cost.launches)
    assert (2, 28, 0, 0) == (cost.d2d, cost.d2d_bytes, cost.d2h, cost.syncs)


def test_unpacked_sequences_are_where_the_packed_ones_are(gpu: SimulatedCuda) -> None:
    """What recurrent layers return is padded again on the device."""
    packed = rnn.pack_padded_sequence(torch.rand(3, 2, 4, device="cuda"), torch.tensor([3, 1]))
    with gpu.measure() as cost:
        padded, _ = rnn.pad_packed_sequence(packed)
    assert ("cuda", 0, 0) == (padded.device.type, cost.syncs, cost.d2h)


@pytest.mark.usefixtures("gpu")
def test_the_rank_of_nothing_is_where_nothing_is() -> None:
    """A result that no tensor was needed for lies where the arguments do."""
    assert "cuda" == torch.linalg.matrix_rank(torch.zeros(0, 3, device="cuda")).device.type
    assert "cpu" == torch.linalg.matrix_rank(torch.zeros(0, 3)).device.type
    assert "cuda" == torch.linalg.cond(torch.zeros(0, 3, 3, device="cuda")).device.type


def test_new_tensors_are_where_the_one_is_that_makes_them(gpu: SimulatedCuda) -> None:
    """The legacy ``new`` allocates on the tensor's device, and copies Python data there."""
    x = torch.ones(2, device="cuda")
    with gpu.measure() as cost:
        assert "cuda" == x.new(3).device.type
    assert (0, 1) == (cost.syncs, cost.allocations)
    with gpu.measure() as cost:
        assert ("cuda", [1.0]) == ((made := x.new([1.0])).device.type, made.cpu().tolist())
    # One float goes to the device and comes back.
    assert (1, 1, 2) == (cost.h2d, cost.d2h, cost.syncs)


def test_exchanged_tensors_share_device_memory(gpu: SimulatedCuda) -> None:
    """``from_dlpack`` copies nothing: what it returns is on the same device."""
    x = torch.ones(2, device="cuda")
    with gpu.measure() as cost:
        same = torch.utils.dlpack.from_dlpack(x)
    x.fill_(3)
    assert (0, 0, "cuda", [3.0, 3.0]) == (cost.syncs, cost.allocations, same.device.type, same.tolist())


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "code",
    [
        "rnn.pad_sequence([torch.ones(2), torch.ones(1)])",
        "torch.vander(torch.ones(2))",
        "torch.linalg.matrix_rank(torch.zeros(2, 0, 3))",
        "torch.nn.functional.one_hot(torch.arange(2))",
        "torch.Tensor(2)",
    ],
)
def test_what_was_made_for_the_host_does_not_meet_the_device(code: str) -> None:
    """C++ code's own memory for host tensors is host memory, which device tensors refuse."""
    made = eval(code, {"torch": torch, "rnn": rnn})  # noqa: S307 - the code is above
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        made + torch.ones(2, device="cuda")


@pytest.mark.parametrize("function", ["quantile", "nanquantile"])
@pytest.mark.parametrize("as_method", [False, True])
def test_probabilities_on_the_device_are_not_read(gpu: SimulatedCuda, function: str, as_method: bool) -> None:
    """PyTorch checks on the CPU alone that probabilities lie between 0 and 1, so nothing waits for them."""
    x, q = torch.rand(8, 8, device="cuda"), torch.tensor([0.25, 0.75], device="cuda")
    with gpu.measure() as cost:
        found = getattr(x, function)(q, dim=1) if as_method else getattr(torch, function)(x, q=q, dim=1)
    assert (0, 0, 0, ()) == (cost.syncs, cost.d2h, cost.h2d, cost.unknown)
    assert "cuda" == found.device.type
    assert torch.equal(getattr(x.cpu(), function)(q.cpu(), dim=1), found.cpu())


@pytest.mark.usefixtures("gpu")
def test_probabilities_keep_their_gradient() -> None:
    """Quantiles can be derived by their tensor as ever."""
    x = torch.rand(8, device="cuda", requires_grad=True)
    x.quantile(torch.tensor([0.0, 1.0], device="cuda")).sum().backward()  # type: ignore[no-untyped-call]  # not annotated
    # The least and the greatest of 8 elements are its minimum and maximum, each with the derivative 1.
    assert (2.0, "cuda") == (x.grad.sum().item(), x.grad.device.type)  # type: ignore[union-attr]  # there is one


def test_a_dropout_rate_on_the_device_is_read_three_times(gpu: SimulatedCuda) -> None:
    """Python compares the rate with 0 and with 1, then C++ code takes its value."""
    x, rate = torch.ones(8, device="cuda"), torch.tensor(0.5, device="cuda")
    with gpu.measure() as cost:
        torch.nn.functional.dropout(x, rate)  # type: ignore[arg-type]  # what some code does
    assert 3 == cost.syncs
