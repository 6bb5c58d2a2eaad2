import pytest
import torch

from simcuda import SimulatedCuda


def test_counting_integers_reads_both_ends(gpu: SimulatedCuda) -> None:
    """The least and the largest of 8 bytes each are found and read."""
    n = torch.arange(10, device="cuda")
    with gpu.measure() as m:
        n.bincount()
    assert (2, 2, 16) == (m.syncs, m.d2h, m.d2h_bytes)


def test_counting_bytes_reads_the_largest(gpu: SimulatedCuda) -> None:
    """Bytes are never negative."""
    n = torch.arange(10, dtype=torch.uint8, device="cuda")
    with gpu.measure() as m:
        n.bincount()
    assert (1, 1, 1) == (m.syncs, m.d2h, m.d2h_bytes)


def test_counting_nothing_fills_the_bins(gpu: SimulatedCuda) -> None:
    """Without values there is nothing to read."""
    n = torch.zeros(0, dtype=torch.long, device="cuda")
    with gpu.measure() as m:
        n.bincount(minlength=5)
    assert (0, 1) == (m.syncs, m.launches)


def test_a_histogram_without_bounds_reads_them(gpu: SimulatedCuda) -> None:
    """The least and the largest of 4 bytes each; with bounds there is nothing to read."""
    x = torch.rand(10, device="cuda")
    with gpu.measure() as m:
        x.histc(4)
    assert (2, 8) == (m.syncs, m.d2h_bytes)
    with gpu.measure() as m:
        x.histc(4, min=0, max=1)
    assert 0 == m.syncs


@pytest.mark.usefixtures("gpu")
def test_a_histogram_of_integers_exists_on_cuda_alone() -> None:
    """It counts in the type of its input, as on CUDA, where the host raises."""
    n = torch.tensor([0, 1, 1, 3, 3, 3])
    with pytest.raises(NotImplementedError):
        n.histc(4, 0, 3)
    result = n.cuda().histc(4, 0, 3)
    # Each bin is 3 / 4 wide: 0; 1, 1; nothing from 1.5 to 2.25; the largest belongs to the last.
    assert ([1, 2, 0, 3], torch.int64, True) == (result.tolist(), result.dtype, result.is_cuda)
