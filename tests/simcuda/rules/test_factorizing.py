import pytest
import torch

from simcuda import SimulatedCuda


@pytest.mark.parametrize(
    ("function", "waits"),
    [
        # Functions that may fail read one truth value, those with _ex leave the error codes be.
        ("inv", 1),
        ("inv_ex", 0),
        ("cholesky", 1),
        ("cholesky_ex", 0),
        ("lu_factor", 1),
        ("eigh", 1),
        # Whether the iteration converged is one more read.
        ("svd", 2),
        ("svdvals", 2),
        ("matrix_rank", 2),
        ("pinv", 2),
        ("det", 0),
        ("slogdet", 0),
        ("qr", 0),
    ],
)
def test_factorizations_of_one_matrix_wait_for_their_error_codes(
    gpu: SimulatedCuda, function: str, waits: int
) -> None:
    """A factorization is modelled, and waits once where it raises errors."""
    matrix = torch.eye(3, device="cuda")
    with gpu.measure() as m:
        getattr(torch.linalg, function)(matrix)
    assert (waits, waits, ()) == (m.syncs, m.d2h, m.unknown)
    assert m.approximate


def test_batches_whose_library_is_chosen_by_size_are_unknown(gpu: SimulatedCuda) -> None:
    """Nobody can say whether the inverse of a batch waits, so the measurement says it does not know."""
    matrices = torch.eye(3, device="cuda").expand(4, 3, 3).contiguous()
    with gpu.measure() as m:
        torch.linalg.inv_ex(matrices)
    assert ("aten.linalg_inv_ex.default",) == m.unknown


@pytest.mark.parametrize("function", ["eig", "matrix_exp"])
def test_factorizations_without_a_rule_are_unknown(gpu: SimulatedCuda, function: str) -> None:
    """What waits a number of times that nobody worked out is never counted as no wait."""
    matrix = torch.eye(3, device="cuda")
    with gpu.measure() as m:
        getattr(torch.linalg, function)(matrix)
    assert 1 == len(m.unknown)


def test_a_batch_of_cholesky_factors_is_known(gpu: SimulatedCuda) -> None:
    """Cholesky factors are computed by one library, whatever the batch."""
    matrices = torch.eye(3, device="cuda").expand(4, 3, 3).contiguous()
    with gpu.measure() as m:
        torch.linalg.cholesky(matrices)
    assert (1, ()) == (m.syncs, m.unknown)


def test_older_names_wait_too(gpu: SimulatedCuda) -> None:
    """The Cholesky factor and the inverse from it each read their error codes within one operation."""
    matrix = torch.eye(3, device="cuda")
    with gpu.measure() as m:
        torch.cholesky_inverse(torch.linalg.cholesky_ex(matrix).L)
    assert (1, ()) == (m.syncs, m.unknown)


def test_a_hermitian_pseudo_inverse_needs_eigenvalues(gpu: SimulatedCuda) -> None:
    """Eigenvalues are checked once, singular values twice; of nothing there is nothing to check."""
    matrix = torch.eye(3, device="cuda")
    with gpu.measure() as m:
        torch.linalg.pinv(matrix, hermitian=True)
    assert (1, ()) == (m.syncs, m.unknown)
    with gpu.measure() as m:
        torch.linalg.pinv(matrix[:0])
    assert 0 == m.syncs


def test_batches_of_singular_values_are_unknown(gpu: SimulatedCuda) -> None:
    """For batches another algorithm may be chosen, and with a driver given it is."""
    matrix = torch.eye(3, device="cuda")
    with gpu.measure() as m:
        torch.linalg.svd(matrix.repeat(2, 1, 1))
    assert ("aten._linalg_svd.default",) == m.unknown


def test_a_cross_product_is_one_kernel(gpu: SimulatedCuda) -> None:
    """Its name begins with linalg, but no library is involved."""
    x = torch.ones(5, 3, device="cuda")
    with gpu.measure() as m:
        torch.linalg.cross(x, x)
        torch.linalg.cross(x[:0], x[:0])
    assert (0, 1, (), ()) == (m.syncs, m.launches, m.unknown, m.approximate)
