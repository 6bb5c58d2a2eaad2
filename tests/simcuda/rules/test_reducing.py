import torch

from simcuda import SimulatedCuda


def test_counting_what_is_not_zero_widens_truth_values(gpu: SimulatedCuda) -> None:
    """100 comparisons of a byte each become 800 bytes of integers to be added up: 3 kernels, 908 bytes."""
    x = torch.rand(100, device="cuda")
    with gpu.measure() as m:
        torch.count_nonzero(x)
    assert (0, 3, 100 + 800 + 8, ()) == (m.syncs, m.launches, m.peak_bytes, m.approximate)
    with gpu.measure() as spelt_out:
        (x != 0).sum()
    assert (m.launches, m.peak_bytes) == (spelt_out.launches, spelt_out.peak_bytes)


def test_counting_along_a_dimension(gpu: SimulatedCuda) -> None:
    """The same for each of 5 columns: 20 + 160 + 40 bytes."""
    x = torch.rand(4, 5, device="cuda")
    with gpu.measure() as m:
        torch.count_nonzero(x, dim=0)
    assert (3, 220) == (m.launches, m.peak_bytes)


def test_the_logarithm_of_a_sum_of_exponentials(gpu: SimulatedCuda) -> None:
    """9 kernels over a 4 x 5 matrix: amax; abs, eq, masked_fill; sub, exp; sum; log, add.

    While it adds up there are 5 maxima, 20 exponentials and 5 results of 4 bytes.
    """
    x = torch.rand(4, 5, device="cuda")
    with gpu.measure() as m:
        x.logsumexp(0)
    assert (0, 9, 120) == (m.syncs, m.launches, m.peak_bytes)
    with gpu.measure() as m:
        x[:0].logsumexp(0)
    assert 2 == m.launches
