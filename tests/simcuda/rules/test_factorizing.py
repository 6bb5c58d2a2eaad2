import pytest
import torch

from simcuda import SimulatedCuda

SINCE_2_14 = pytest.mark.skipif(
    not hasattr(torch.linalg, "polar"), reason="torch.linalg has it from torch 2.14 on"
)


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
        ("ldl_factor", 1),
        ("qr", 0),
        # Taken apart: what eigenvalues and singular values wait for.
        pytest.param("matrix_sqrth", 1, marks=SINCE_2_14),
        pytest.param("polar", 2, marks=SINCE_2_14),
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


@pytest.mark.parametrize("function", ["inv_ex", "cholesky_ex", "lu_factor_ex", "ldl_factor_ex"])
@pytest.mark.parametrize(("shape", "kernels"), [((3, 3), 2), ((2, 3, 3), 2)])
def test_error_codes_that_are_asked_for_are_read(
    gpu: SimulatedCuda, function: str, shape: tuple[int, ...], kernels: int
) -> None:
    """``check_errors=True`` reads one truth value, which a second kernel converts or reduces."""
    matrices = torch.eye(3, device="cuda").expand(shape).contiguous()
    with gpu.measure() as m:
        getattr(torch.linalg, function)(matrices, check_errors=True)
    assert (1, 1, 1, kernels) == (m.syncs, m.d2h, m.d2h_bytes, m.launches)


def test_a_solver_reads_the_error_codes_that_are_asked_for(gpu: SimulatedCuda) -> None:
    """``solve_ex`` waits where errors are to be raised, and only there."""
    matrix, right = torch.eye(3, device="cuda"), torch.ones(3, device="cuda")
    with gpu.measure() as unchecked:
        torch.linalg.solve_ex(matrix, right)
    with gpu.measure() as checked:
        torch.linalg.solve_ex(matrix, right, check_errors=True)
    assert (0, 1) == (unchecked.syncs, checked.syncs)


@pytest.mark.parametrize(
    ("shape", "unknown"),
    [
        # cuSOLVER and cuBLAS take single matrices, up to 16 rows, and up to 16 matrices of up to 128 rows.
        ((300, 300), False),
        ((1, 300, 300), False),
        ((40, 16, 16), False),
        ((16, 17, 17), False),
        ((17, 17, 17), True),
        ((2, 129, 129), True),
    ],
)
def test_large_batches_are_left_to_a_library_that_waits(
    gpu: SimulatedCuda, shape: tuple[int, ...], unknown: bool
) -> None:
    """MAGMA waits in ways that nobody has modelled, so its inverses are reported as unknown."""
    matrices = torch.eye(shape[-1], device="cuda").expand(shape).contiguous()
    with gpu.measure() as m:
        torch.linalg.inv_ex(matrices)
    assert (unknown, 0) == (("aten.linalg_inv_ex.default",) == m.unknown, m.syncs)
    with gpu.measure() as m:
        torch.linalg.lu_factor_ex(matrices[..., :-1])
    # Rectangular matrices are MAGMA's too.
    assert ("aten.linalg_lu_factor_ex.default",) == m.unknown


@pytest.mark.parametrize("code", ["torch.linalg.eig(a)", "torch.linalg.ldl_solve(a, p, a)"])
def test_factorizations_without_a_rule_are_unknown(gpu: SimulatedCuda, code: str) -> None:
    """What waits a number of times that nobody worked out is never counted as no wait."""
    names = {"torch": torch, "a": torch.eye(3, device="cuda"), "p": torch.ones(3, dtype=torch.int32).cuda()}
    with gpu.measure() as m:
        exec(code, names)  # noqa: S102 - the code is above
    assert 1 == len(m.unknown)


def test_least_squares_read_their_error_codes(gpu: SimulatedCuda) -> None:
    """One truth value says whether any matrix of a batch failed."""
    matrices = torch.eye(3, device="cuda").repeat(2, 1, 1)
    with gpu.measure() as m:
        torch.linalg.lstsq(matrices, matrices)
    assert (1, 1, 1, ()) == (m.syncs, m.d2h, m.d2h_bytes, m.unknown)


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


def test_batches_of_singular_values_read_all_codes(gpu: SimulatedCuda) -> None:
    """Two codes of 4 bytes say whether the iterations converged, and one truth value whether any failed."""
    with gpu.measure() as m:
        torch.linalg.svd(torch.eye(3, device="cuda").repeat(2, 1, 1))
    assert (2, 2, 2 * 4 + 1, ()) == (m.syncs, m.d2h, m.d2h_bytes, m.unknown)


def test_a_cross_product_is_one_kernel(gpu: SimulatedCuda) -> None:
    """Its name begins with linalg, but no library is involved."""
    x = torch.ones(5, 3, device="cuda")
    with gpu.measure() as m:
        torch.linalg.cross(x, x)
        torch.linalg.cross(x[:0], x[:0])
    assert (0, 1, (), ()) == (m.syncs, m.launches, m.unknown, m.approximate)
