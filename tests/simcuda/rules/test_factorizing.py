import pytest
import torch

from simcuda import SimulatedCuda

SINCE_2_14 = pytest.mark.skipif(
    not hasattr(torch.linalg, "polar"), reason="torch.linalg has it from torch 2.14 on"
)


@pytest.mark.parametrize(
    ("function", "waits"),
    [
        # What is taken apart waits for its eigenvalues or singular values.
        ("matrix_rank", 2),
        pytest.param("matrix_sqrth", 1, marks=SINCE_2_14),
        pytest.param("polar", 2, marks=SINCE_2_14),
    ],
)
def test_what_factorizes_waits_as_the_factorization(gpu: SimulatedCuda, function: str, waits: int) -> None:
    """It is modelled, and reads whether the iteration converged and the error code."""
    matrix = torch.eye(3, device="cuda")
    with gpu.measure() as m:
        getattr(torch.linalg, function)(matrix)
    assert (waits, waits, ()) == (m.syncs, m.d2h, m.unknown)
    assert m.approximate


@pytest.mark.parametrize(
    ("shape", "waits"),
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
    gpu: SimulatedCuda, shape: tuple[int, ...], waits: bool
) -> None:
    """MAGMA's queue is waited for at the end; what it does before nobody has modelled."""
    matrices = torch.eye(shape[-1], device="cuda").expand(shape).contiguous()
    with gpu.measure() as m:
        torch.linalg.inv_ex(matrices)
    assert ((1, None) if waits else None, ()) == (m.ranges.get("syncs"), m.unknown)
    with gpu.measure() as m:
        torch.linalg.lu_factor_ex(matrices[..., :-1])
    # Rectangular matrices are MAGMA's too.
    assert ((1, None), ()) == (m.ranges["syncs"], m.unknown)
