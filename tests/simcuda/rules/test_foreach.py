import pytest
import torch

import simcuda
from simcuda import SimulatedCuda


@pytest.mark.parametrize("name", ["_foreach_mul", "_foreach_div", "_foreach_mul_", "_foreach_div_"])
def test_a_host_value_is_a_number_for_lists(gpu: SimulatedCuda, name: str) -> None:
    """One value on the host multiplies all tensors by one kernel, without a copy or a wait."""
    tensors = [torch.ones(3, device="cuda"), torch.ones(4, device="cuda")]
    with gpu.measure() as m:
        getattr(torch, name)(tensors, torch.tensor(2.0))
    assert (1, 0, 0, ()) == (m.launches, m.h2d, m.syncs, m.unknown)


def test_fused_optimizers_fill_kernels_by_their_lists() -> None:
    """Parameters and gradients, and a list for each state: the more lists, the fewer tensors a kernel takes.

    Momentum is a third list, Adam's two averages make four, and the largest of one of them five: of CUDA
    12 64, 48, 36 and 30 tensors (``test_launches`` has those of CUDA 13). Steps are counted by a kernel of
    one list before, which takes more than any of these.
    """
    cases = (
        (lambda p: torch.optim.SGD(p, lr=0.1, fused=True), 64, 0),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True), 48, 0),
        (lambda p: torch.optim.Adagrad(p, fused=True), 48, 1),
        (lambda p: torch.optim.Adam(p, fused=True), 36, 1),
        (lambda p: torch.optim.AdamW(p, amsgrad=True, fused=True), 30, 1),
    )
    for make, most, before in cases:
        for count, kernels in ((most, 1), (most + 1, 2)):
            with simcuda.device(profile="h200-cuda12") as gpu:
                parameters = [torch.nn.Parameter(torch.rand(3, device="cuda")) for _ in range(count)]
                stepper = make(parameters)
                for _ in range(2):
                    for parameter in parameters:
                        parameter.grad = torch.rand_like(parameter)
                    with gpu.measure() as m:
                        stepper.step()
                parameters.clear()
            assert before + kernels == m.launches


def test_lists_are_copied_side_by_side(gpu: SimulatedCuda) -> None:
    """Lists laid out alike are one kernel, also from one type to another; others are copied one by one."""
    to = [torch.zeros(4, 5, device="cuda") for _ in range(3)]
    with gpu.measure() as m:
        torch._foreach_copy_(to, [tensor + 1 for tensor in to])
    # Three additions before.
    assert (3 + 1, 0) == (m.launches, m.d2d)
    with gpu.measure() as m:
        torch._foreach_copy_(to, [tensor.half() for tensor in to])
    assert 3 + 1 == m.launches
    with gpu.measure() as m:
        torch._foreach_copy_(to, [to[0], to[1].t().contiguous().t(), to[2].half()])
    # A contiguous copy, a conversion, and then: 80 bytes as they are, two kernels.
    assert (2 + 2, 1, 80) == (m.launches, m.d2d, m.d2d_bytes)


def test_an_alpha_does_not_make_another_list(gpu: SimulatedCuda) -> None:
    """Adding lists with a factor is a walk over three lists, results included: 336 tensors a kernel."""
    tensors = [torch.ones(2, device="cuda") for _ in range(337)]
    with gpu.measure() as m:
        torch._foreach_add(tensors[:336], tensors[:336], alpha=2)
    assert 1 == m.launches
    with gpu.measure() as m:
        torch._foreach_add(tensors, tensors, alpha=2)
    assert 2 == m.launches
