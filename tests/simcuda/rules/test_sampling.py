import torch

from simcuda import SimulatedCuda

# CHECK_NORMAL_TENSOR_STD in ATen/native/DistributionTemplates.h: torch 2.13 reads whether the least deviation
# is negative; from 2.14 on, on CUDA, one kernel more asserts that it is not.
READS, ASSERTS = (1, 0) if torch.__version__ < "2.14" else (0, 1)


def test_a_tensor_of_deviations_is_checked_twice(gpu: SimulatedCuda) -> None:
    """The least deviation, and its comparison: once in the function, once in the one it calls.

    2 x 2 kernels for the checks, with an assertion each, 3 to draw, multiply and add.
    """
    mean, deviations = torch.zeros(10, device="cuda"), torch.ones(10, device="cuda")
    for draw in (lambda: torch.normal(mean, deviations), torch.distributions.Normal(mean, deviations).sample):
        with gpu.measure() as m:
            draw()
        assert (2 * READS, 2 * READS, 2 * READS) == (m.syncs, m.d2h, m.d2h_bytes)
        assert 7 + 2 * ASSERTS == m.launches


def test_a_given_result_saves_one_check(gpu: SimulatedCuda) -> None:
    """With ``out`` the outer function is left out: 2 + 3 kernels, and an assertion."""
    mean, deviations = torch.zeros(10, device="cuda"), torch.ones(10, device="cuda")
    with gpu.measure() as m:
        torch.normal(mean, deviations, out=torch.empty(10, device="cuda"))
    assert (READS, 5 + ASSERTS) == (m.syncs, m.launches)


def test_a_mean_that_is_a_number_becomes_a_tensor(gpu: SimulatedCuda) -> None:
    """One kernel more fills it: 8, and two assertions."""
    deviations = torch.ones(10, device="cuda")
    with gpu.measure() as m:
        torch.normal(0.0, deviations)
    assert (2 * READS, 8 + 2 * ASSERTS) == (m.syncs, m.launches)


def test_no_deviations_need_no_check(gpu: SimulatedCuda) -> None:
    """Without elements nothing is read."""
    with gpu.measure() as m:
        torch.normal(torch.zeros(0, device="cuda"), torch.zeros(0, device="cuda"))
    assert 0 == m.syncs


def test_a_deviation_that_is_a_number_is_checked_on_the_host(gpu: SimulatedCuda) -> None:
    """No wait: draw and add; beside the result of 40 bytes, as much again for a tensor of its shape."""
    mean = torch.zeros(10, device="cuda")
    with gpu.measure() as m:
        torch.normal(mean, 2.0)
    assert (0, 2, 80) == (m.syncs, m.launches, m.peak_bytes)
