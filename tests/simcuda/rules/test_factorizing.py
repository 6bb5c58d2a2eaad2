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
