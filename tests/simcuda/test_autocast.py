"""Autocast for ``cuda`` on the simulated device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from simcuda import SimulatedCuda
from simcuda.torch_api import autocast

HALF, SINGLE, DOUBLE = torch.float16, torch.float32, torch.float64
variable_functions: Any = torch._VF
custom_fwd: Any = torch.amp.custom_fwd  # torch has no annotations for these two
custom_bwd: Any = torch.amp.custom_bwd


def treated_by_torch() -> set[str]:
    """The operations for which this build of PyTorch has a kernel under CUDA's autocast key."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    return {name.removeprefix("aten::") for name in names if name.startswith("aten::")}


def test_every_operation_that_autocast_treats_has_a_policy() -> None:
    """The policies name what PyTorch's kernels are registered for, and nothing else."""
    policies = autocast
    named = (policies.LOWER, policies.SINGLE, policies.SINGLE_RESULT, policies.WITH_TYPE, policies.WIDEST)
    # Entries to cuDNN, for real devices.
    unreachable = {"cudnn_convolution", "cudnn_convolution_transpose", "_cudnn_rnn"}
    assert treated_by_torch() - unreachable == set().union(*named, policies.UNSAFE)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("function", "dtypes"),
    [
        # What comes of half, single and double precision.
        (lambda x: x @ x, (HALF, HALF, DOUBLE)),
        (lambda x: functional.linear(x, x), (HALF, HALF, DOUBLE)),
        (lambda x: torch.einsum("ij,jk->ik", x, x), (HALF, HALF, DOUBLE)),
        (lambda x: torch.linalg.multi_dot([x, x, x]), (HALF, HALF, DOUBLE)),
        (lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]), (HALF, HALF, DOUBLE)),
        (lambda x: x.exp(), (SINGLE, SINGLE, DOUBLE)),
        (lambda x: functional.mse_loss(x, x), (SINGLE, SINGLE, DOUBLE)),
        (lambda x: functional.layer_norm(x, (2,)), (SINGLE, SINGLE, DOUBLE)),
        (lambda x: x.sum(), (SINGLE, SINGLE, DOUBLE)),
        (lambda x: x.softmax(0), (SINGLE, SINGLE, DOUBLE)),
        (lambda x: x.softmax(0, dtype=HALF), (HALF, HALF, HALF)),
        (lambda x: variable_functions.norm(x, 2), (SINGLE, SINGLE, DOUBLE)),
        (lambda x: variable_functions.norm(x, 2, [0], False), (SINGLE, SINGLE, DOUBLE)),
        (lambda x: x + x, (HALF, SINGLE, DOUBLE)),
        (lambda x: x.relu(), (HALF, SINGLE, DOUBLE)),
        (lambda x: torch.addcmul(x, x, x), (HALF, SINGLE, DOUBLE)),
    ],
)
def test_operations_run_in_the_type_of_their_policy(
    function: Callable[[torch.Tensor], torch.Tensor], dtypes: tuple[torch.dtype, ...]
) -> None:
    """Products run in half precision, losses and sums in single, and the rest as it comes."""
    with torch.autocast("cuda"):
        found = [function(torch.eye(2, dtype=dtype, device="cuda")).dtype for dtype in (HALF, SINGLE, DOUBLE)]
    assert list(dtypes) == found


@pytest.mark.usefixtures("gpu")
def test_the_widest_type_wins_where_the_policy_says_so() -> None:
    """``addcmul`` of half and single precision runs in single precision."""
    half, single = torch.ones(2, dtype=HALF, device="cuda"), torch.ones(2, device="cuda")
    with torch.autocast("cuda"):
        assert SINGLE == torch.addcmul(half, half, single).dtype


@pytest.mark.usefixtures("gpu")
def test_regions_nest() -> None:
    """A region may turn autocast off or choose another type; outside nothing is cast."""
    x = torch.ones(2, 2, device="cuda")
    with torch.autocast("cuda"):
        found = [(x @ x).dtype]
        with torch.autocast("cuda", enabled=False):
            found.append((x @ x).dtype)
        with torch.autocast("cuda", torch.bfloat16):
            found.append((x @ x).dtype)
        found.append((x @ x).dtype)
    found.append((x @ x).dtype)
    assert [HALF, SINGLE, torch.bfloat16, HALF, SINGLE] == found


@pytest.mark.usefixtures("gpu")
def test_host_tensors_are_left_alone() -> None:
    """Autocast for CUDA casts nothing on the host."""
    with torch.autocast("cuda"):
        assert SINGLE == (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


def test_parameters_are_cast_once_a_region(gpu: SimulatedCuda) -> None:
    """The cast of a parameter is kept until the region ends, unless the cache is off."""
    layer, x = torch.nn.Linear(4, 4, device="cuda"), torch.ones(2, 4, device="cuda")
    launches = []
    for cached in (True, False):
        with torch.autocast("cuda", cache_enabled=cached):
            for _ in range(2):
                with gpu.measure() as cost:
                    layer(x)
                launches.append(cost.launches)
    # The input, the weight and the bias are cast and multiplied; the second time the input alone is cast.
    assert [4, 2, 4, 4] == launches


@pytest.mark.usefixtures("gpu")
def test_a_parameter_that_is_gone_is_not_taken_for_another() -> None:
    """A new parameter is cast anew, though it may have the address of an old one."""
    x = torch.ones(1, 1, device="cuda")
    with torch.autocast("cuda"):
        for value in range(50):
            weight = torch.full((1, 1), float(value), device="cuda", requires_grad=True)
            assert value == functional.linear(x, weight).item()
            del weight


@pytest.mark.usefixtures("gpu")
def test_gradients_have_the_type_of_their_parameters() -> None:
    """A parameter in single precision gets its gradient in single precision."""
    layer = torch.nn.Linear(4, 4, device="cuda")
    with torch.autocast("cuda"):
        loss = layer(torch.ones(2, 4, device="cuda")).sum()
    torch.autograd.backward(loss)
    assert layer.weight.grad is not None
    assert (SINGLE, "cuda") == (layer.weight.grad.dtype, layer.weight.grad.device.type)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers_run_in_the_type_of_autocast(layer: Callable[..., torch.nn.RNNBase]) -> None:
    """As cuDNN's, in all of their results."""
    with torch.autocast("cuda"):
        result, state = layer(4, 4, device="cuda")(torch.ones(1, 3, 4, device="cuda"))
    states = state if isinstance(state, tuple) else (state,)
    assert {HALF} == {result.dtype, *(each.dtype for each in states)}


@pytest.mark.usefixtures("gpu")
def test_an_unsafe_loss_is_refused() -> None:
    """PyTorch refuses the cross entropy of probabilities in half precision."""
    x = torch.full((2,), 0.5, device="cuda")
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        functional.binary_cross_entropy(x, x)


@pytest.mark.usefixtures("gpu")
def test_custom_functions_choose_their_type() -> None:
    """``custom_fwd`` casts the arguments and turns autocast off; ``custom_bwd`` runs as the forward did."""
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cuda", cast_inputs=SINGLE)  # type: ignore[untyped-decorator]  # see above
        def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
            seen.append((x.dtype, (x @ x).dtype))
            return x @ x

        @staticmethod
        @custom_bwd(device_type="cuda")  # type: ignore[untyped-decorator]  # see above
        def backward(_: Any, *gradients: torch.Tensor) -> torch.Tensor:
            seen.append((gradients[0].dtype, (gradients[0] @ gradients[0]).dtype))
            return gradients[0]

    apply: Any = Product.apply
    x = torch.ones(2, 2, dtype=HALF, device="cuda", requires_grad=True)
    with torch.autocast("cuda"):
        loss = apply(x).sum()
        torch.autograd.backward(loss)
    assert [(SINGLE, SINGLE), (SINGLE, SINGLE)] == seen


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_recompute_under_autocast(reentrant: bool) -> None:
    """A checkpointed layer is recomputed in the type of its first pass."""
    layer, x = torch.nn.Linear(4, 4, device="cuda"), torch.ones(2, 4, device="cuda", requires_grad=True)
    types = []
    layer.register_forward_hook(lambda _, __, result: types.append(result.dtype))
    with torch.autocast("cuda", torch.bfloat16):
        y = checkpoint(torch.nn.Sequential(layer, torch.nn.Tanh()), x, use_reentrant=reentrant)
    torch.autograd.backward(y.float().sum())
    assert [torch.bfloat16] * 2 == types
    assert x.grad is not None
    assert torch.device("cuda", 0) == x.grad.device
