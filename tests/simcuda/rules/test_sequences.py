"""Sizes are those of float32, 4 bytes, and of int64, 8 bytes."""

import pytest
import torch
from torch.nn import functional

from simcuda import SimulatedCuda

FULL, TWO, ONE = torch.tensor([5, 5]), torch.tensor([2, 3]), torch.tensor([1, 1])


@pytest.mark.parametrize(
    ("reduction", "lengths_on", "waits"),
    [
        # Both lengths and the offsets of the targets go to the device, with a wait each.
        ("sum", "cpu", 3),
        ("none", "cpu", 3),
        # The mean divides by the lengths of the targets, copied once more.
        ("mean", "cpu", 4),
        # Lengths on the device come to the host first.
        ("sum", "cuda", 5),
    ],
)
def test_alignments_copy_their_lengths(
    gpu: SimulatedCuda, reduction: str, lengths_on: str, waits: int
) -> None:
    """PyTorch's own kernel takes its lengths from the host, by one blocking copy for each list."""
    likely = torch.rand(5, 2, 4, device="cuda").log_softmax(2)
    labels = torch.ones(2, 1, dtype=torch.int64, device="cuda")
    lengths = (torch.tensor([5, 5], device=lengths_on), torch.tensor([1, 1], device=lengths_on))
    with gpu.measure() as m:
        functional.ctc_loss(likely, labels, *lengths, reduction=reduction)
    assert (waits, waits, ()) == (m.syncs, m.h2d + m.d2h, m.unknown)


def test_the_gradient_of_an_alignment_copies_its_lengths_again(gpu: SimulatedCuda) -> None:
    """Three lists of 2 lengths, 8 bytes each, go to the device, and nothing else."""
    likely = torch.rand(5, 2, 4, device="cuda", requires_grad=True)
    labels = torch.ones(2, 1, dtype=torch.int64, device="cuda")
    loss = functional.ctc_loss(likely, labels, FULL, ONE, reduction="sum")
    with gpu.measure() as m:
        torch.autograd.backward(loss)
    assert (3, 3, 3 * 16, ()) == (m.syncs, m.h2d, m.h2d_bytes, m.unknown)


def test_alignment_on_the_host_is_as_before(gpu: SimulatedCuda) -> None:
    """Host tensors are aligned on the host: the mean is the mean of losses over lengths."""
    likely = torch.rand(5, 2, 4).log_softmax(2)
    labels = torch.ones(2, 3, dtype=torch.int64)
    with gpu.measure() as m:
        mean = functional.ctc_loss(likely, labels, FULL, TWO)
    assert (0, 0) == (m.syncs, m.launches)
    there = functional.ctc_loss(likely.cuda(), labels.cuda(), FULL, TWO)
    torch.testing.assert_close(mean, there.cpu())


def test_lengths_to_pack_must_be_on_the_host(gpu: SimulatedCuda) -> None:
    """Lengths on the device are refused with CUDA's words; those on the host make nothing wait."""
    batch = torch.rand(5, 2, 4, device="cuda")
    with gpu.measure() as m:
        torch.nn.utils.rnn.pack_padded_sequence(batch, torch.tensor([5, 3]))
    assert (0, ()) == (m.syncs, m.unknown)
    with pytest.raises(RuntimeError, match="should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"):
        torch.nn.utils.rnn.pack_padded_sequence(batch, torch.tensor([5, 3], device="cuda"))
