import torch

from simcuda import SimulatedCuda


def test_looking_otherwise_costs_nothing(gpu: SimulatedCuda) -> None:
    """Views in place change sizes and strides alone."""
    x = torch.rand(3, 4, device="cuda")
    with gpu.measure() as m:
        x.unsqueeze_(0).squeeze_().t_().transpose_(0, 1).detach_()
        x.as_strided_((4,), (1,))
        torch.unsafe_split(x, 2)
    assert (0, 0, 0, (), ()) == (m.launches, m.d2d, m.allocations, m.unknown, m.approximate)


def test_the_product_of_batches_is_looked_at_otherwise(gpu: SimulatedCuda) -> None:
    """A batch times a matrix is one product of matrices, then a view."""
    x, matrix = torch.rand(2, 3, 4, device="cuda"), torch.rand(4, 5, device="cuda")
    # The first product takes the workspace of cuBLAS.
    x @ matrix
    with gpu.measure() as m:
        x @ matrix
    assert (1, 1) == (m.launches, m.allocations)


def test_the_gradient_of_a_row_is_zeros_with_that_row(gpu: SimulatedCuda) -> None:
    """One kernel for zeros of 48 bytes; a row of 16 bytes is copied as bytes, a column by a kernel."""
    x = torch.rand(3, 4, device="cuda", requires_grad=True)
    row, column = x[1], x[:, 1]
    of_row, of_column = torch.ones(4, device="cuda"), torch.ones(3, device="cuda")
    with gpu.measure() as m:
        torch.autograd.grad(row, x, of_row)
    assert (1, 1, 16, 48) == (m.launches, m.d2d, m.d2d_bytes, m.peak_bytes)
    with gpu.measure() as m:
        torch.autograd.grad(column, x, of_column)
    assert (2, 0) == (m.launches, m.d2d)


def test_the_gradients_of_slices_and_diagonals(gpu: SimulatedCuda) -> None:
    """Rows that follow each other are bytes, every other row and a diagonal are not."""
    x = torch.rand(4, 4, device="cuda", requires_grad=True)
    expected = [(x[1:3], (1, 1)), (x[::2], (2, 0)), (x.diagonal(), (2, 0))]
    for view, cost in expected:
        gradient = torch.ones(view.shape, device="cuda")
        with gpu.measure() as m:
            torch.autograd.grad(view, x, gradient)
        assert cost == (m.launches, m.d2d)


def test_writing_into_a_view_of_a_copy(gpu: SimulatedCuda) -> None:
    """The copy of 64 bytes first, then the part: a row as bytes, a diagonal by a kernel."""
    x, row = torch.zeros(4, 4, device="cuda"), torch.ones(4, device="cuda")
    with gpu.measure() as m:
        x.select_scatter(row, 0, 1)
    assert (0, 2, 80) == (m.launches, m.d2d, m.d2d_bytes)
    with gpu.measure() as m:
        x.diagonal_scatter(row)
        x.as_strided_scatter(row, (4,), (5,))
        x.slice_scatter(row.view(4, 1), 1, 0, 1)
    assert (3, 3, 192) == (m.launches, m.d2d, m.d2d_bytes)


def test_rearranging_is_one_kernel(gpu: SimulatedCuda) -> None:
    """A permuted view is made contiguous."""
    x = torch.rand(1, 4, 2, 2, device="cuda")
    with gpu.measure() as m:
        torch.pixel_shuffle(x, 2)
    assert (1, 1, ()) == (m.launches, m.allocations, m.approximate)
