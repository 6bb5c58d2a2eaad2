import torch

from simcuda import SimulatedCuda


def test_equality_is_two_kernels_and_one_read(gpu: SimulatedCuda) -> None:
    """100 comparisons, all of them, one byte read: 100 + 1 bytes."""
    x, y = torch.rand(100, device="cuda"), torch.rand(100, device="cuda")
    with gpu.measure() as m:
        torch.equal(x, y)
    assert (1, 1, 1, 2, 101, ()) == (m.syncs, m.d2h, m.d2h_bytes, m.launches, m.peak_bytes, m.approximate)


def test_equality_of_many_elements_needs_a_workspace(gpu: SimulatedCuda) -> None:
    """200000 truth values are 391 a thread, so 25 blocks share the work: 25 bytes and a counter of 4."""
    x = torch.zeros(200_000, device="cuda")
    with gpu.measure() as m:
        torch.equal(x, x + 0)
    # The sum, the comparisons, the answer, the workspace.
    assert 800_000 + 200_000 + 1 + 25 + 4 == m.peak_bytes


def test_equality_of_single_values_copies_the_comparison(gpu: SimulatedCuda) -> None:
    """All of one truth value is that value: a copy instead of a kernel."""
    x, y = torch.rand(1, device="cuda"), torch.rand(1, device="cuda")
    with gpu.measure() as m:
        torch.equal(x, y)
    assert (1, 1, 1) == (m.syncs, m.launches, m.d2d)


def test_equality_that_shapes_or_memory_decide_reads_nothing(gpu: SimulatedCuda) -> None:
    """Other shapes, no elements, and the same memory in the same order need no comparison."""
    x = torch.rand(3, 3, device="cuda")
    with gpu.measure() as m:
        torch.equal(x, x[0])
        torch.equal(x[:0], x[:0] + 1)
        torch.equal(x, x.view(3, 3))
    assert (0, 0) == (m.syncs, m.launches)
    with gpu.measure() as m:
        torch.equal(x, x.t())
    assert 1 == m.syncs


def test_closeness_is_fourteen_kernels_and_one_read(gpu: SimulatedCuda) -> None:
    """Isclose is 13 operations, all() one more; 16 bytes an element where infinities are looked for.

    100 elements: 1600 bytes, gone before the answer. Without tolerances a comparison and all() are enough.
    """
    x, y = torch.rand(100, device="cuda"), torch.rand(100, device="cuda")
    with gpu.measure() as m:
        torch.allclose(x, y)
    assert (1, 14, 1600) == (m.syncs, m.launches, m.peak_bytes)
    with gpu.measure() as m:
        torch.allclose(x, y, rtol=0, atol=0)
    assert (1, 2, 101) == (m.syncs, m.launches, m.peak_bytes)


def test_error_codes_of_one_and_of_several_matrices(gpu: SimulatedCuda) -> None:
    """One code is converted and copied, several are reduced; either way one byte is read."""
    one, several = torch.eye(3, device="cuda"), torch.eye(3, device="cuda").repeat(4, 1, 1)
    with gpu.measure() as m:
        torch.linalg.cholesky(one)
    assert (1, 1, 1, 1) == (m.syncs, m.d2h, m.d2h_bytes, m.d2d)
    with gpu.measure() as m:
        torch.linalg.cholesky(several)
    assert (1, 1, 0) == (m.syncs, m.d2h, m.d2d)
