"""Whole training steps on simulated devices: optimizers, lists of tensors, scaling, dropout, lazy layers."""

from __future__ import annotations

import pytest
import torch

from simcuda import SimulatedCuda

DEVICES = 2


def backward(tensor: torch.Tensor) -> None:
    """The backward pass of a sum over all elements."""
    torch.autograd.backward(tensor.sum())


def test_a_step_gives_the_values_of_the_cpu(gpu: SimulatedCuda) -> None:
    """What the simulation computes is what plain CPU code computes."""
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Dropout(), torch.nn.Linear(3, 1)).to(
            device
        )
        stepper = torch.optim.AdamW(model.parameters(), lr=0.1, foreach=True)
        # Making the model drew from the host; now every generator starts from the same seed.
        torch.manual_seed(1)
        for _ in range(3):
            stepper.zero_grad()
            backward(model(torch.ones(4, 5, device=device)))
            stepper.step()
        results.append([parameter.detach().cpu() for parameter in model.parameters()])
    # Dropout draws from another operation than on the CPU, with the same seed and the same values.
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)
    assert gpu.live_bytes() > 0


def test_lists_over_several_devices_go_tensor_by_tensor(gpu: SimulatedCuda) -> None:
    """Lists that are spread over devices take the slow path; lists at odds with each other fail."""
    here, there = torch.full((3,), 2.0, device="cuda:0"), torch.full((4,), 1.0, device="cuda:1")
    with gpu.measure() as cost:
        norms = torch._foreach_norm([here, there])
    assert ["cuda:0", "cuda:1"] == [str(norm.device) for norm in norms]
    assert (2, 2.0) == (cost.launches, norms[1].item())
    with pytest.raises(RuntimeError, match="same device"):
        torch._foreach_add([here, there], [there, there])


def test_lists_are_copied_between_devices(gpu: SimulatedCuda) -> None:
    """``_foreach_copy_`` copies across devices one by one."""
    targets = [torch.zeros(3, device="cuda:1"), torch.zeros(3, device="cuda:1")]
    with gpu.measure() as cost:
        torch._foreach_copy_(targets, [torch.ones(3), torch.ones(3, device="cuda:0")])
    assert (1, 1, 1) == (cost.h2d, cost.p2p, cost.syncs)
    assert [[1.0] * 3] * 2 == [target.tolist() for target in targets]


def test_lazy_layers_move_before_their_first_use(gpu: SimulatedCuda) -> None:
    """A lazy layer can be moved to the device, and its parameters are made there."""
    layer = torch.nn.LazyLinear(3).to("cuda")
    layer(torch.ones(2, 5, device="cuda"))
    assert torch.device("cuda", 0) == layer.weight.device
    assert gpu.live_bytes() > 0


def test_recurrent_layers_keep_their_batch_sizes_on_the_host(gpu: SimulatedCuda) -> None:
    """A packed sequence has its data on the device and its batch sizes on the host, as on CUDA."""
    layer = torch.nn.GRU(4, 4, batch_first=True, device="cuda")
    padded = torch.rand(2, 3, 4, device="cuda")
    packed = torch.nn.utils.rnn.pack_padded_sequence(padded, torch.tensor([3, 2]), batch_first=True)
    result, _ = layer(packed)
    assert (torch.device("cuda", 0), torch.device("cpu")) == (result.data.device, result.batch_sizes.device)
    assert gpu.live_bytes() > 0


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_attention_is_approximate(gpu: SimulatedCuda, dropout: float) -> None:
    """It is named as such whether one kernel or products of matrices stand for CUDA's, on a device only."""
    attend = torch.nn.functional.scaled_dot_product_attention
    device, host = torch.rand(1, 2, 8, 4, device="cuda"), torch.rand(1, 2, 8, 4)
    named = []
    for x in (device, host):
        with gpu.measure() as by_place:
            attend(x, x, x, dropout_p=dropout)
        with gpu.measure() as by_name:
            attend(query=x, key=x, value=x, dropout_p=dropout)
        assert by_place.approximate == by_name.approximate
        named.append("aten.scaled_dot_product_attention.default" in by_name.approximate)
    assert [True, False] == named
