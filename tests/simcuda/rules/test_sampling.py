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
