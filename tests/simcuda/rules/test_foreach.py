import pytest
import torch

from simcuda import SimulatedCuda


def test_lists_of_other_shapes_are_walked_tensor_by_tensor(gpu: SimulatedCuda) -> None:
    """Scalars beside matrices, as ASGD has them, cannot be walked side by side: a kernel for each of 3."""
    matrices = [torch.rand(4, 4, device="cuda") for _ in range(3)]
    scalars = [torch.rand((), device="cuda") for _ in range(3)]
    with gpu.measure() as m:
        torch._foreach_mul_(matrices, scalars)
    assert 3 == m.launches


def test_every_optimizer_takes_a_step(gpu: SimulatedCuda) -> None:
    """The optimizers of torch.optim that follow gradients run unmodified, and only two of them wait.

    ASGD reads mu of each parameter and copies eta to it, Adafactor reads two norms: 2 for each of 3.
    """
    waits = {}
    for name in (
        "SGD",
        "Adam",
        "AdamW",
        "RMSprop",
        "Adagrad",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
        "Rprop",
    ):
        waits[name] = waits_of_a_step(gpu, name)
    assert dict.fromkeys(waits, 0) == waits
    assert (6, 6) == (waits_of_a_step(gpu, "ASGD"), waits_of_a_step(gpu, "Adafactor"))


def waits_of_a_step(gpu: SimulatedCuda, name: str) -> int:
    """How often the host waits in the second step over three matrices."""
    parameters = [torch.rand(4, 4, device="cuda", requires_grad=True) for _ in range(3)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = getattr(torch.optim, name)(parameters, lr=0.1)
    optimizer.step()
    with gpu.measure() as m:
        optimizer.step()
    assert () == m.unknown
    return m.syncs


@pytest.mark.parametrize("name", ["_foreach_mul", "_foreach_div", "_foreach_mul_", "_foreach_div_"])
def test_a_host_value_is_a_number_for_lists(gpu: SimulatedCuda, name: str) -> None:
    """One value on the host multiplies all tensors by one kernel, without a copy or a wait."""
    tensors = [torch.ones(3, device="cuda"), torch.ones(4, device="cuda")]
    with gpu.measure() as m:
        getattr(torch, name)(tensors, torch.tensor(2.0))
    assert (1, 0, 0, ()) == (m.launches, m.h2d, m.syncs, m.unknown)
