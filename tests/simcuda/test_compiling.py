"""Code for torch.compile runs as it is, and says which of its counts a compiler would change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

import simcuda
from simcuda import SimulatedCuda
from simcuda.torch_api.compiling import EAGERLY, RUN_EAGERLY

# To load inductor, torch uses what it has deprecated; and it warns of attention that nothing compiles.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning"),
]
# Without annotations that mypy knows.
compiler: Any = torch.compile
set_stance: Any = torch.compiler.set_stance
flex: Any = flex_attention


@pytest.fixture
def before() -> Any:
    """What was compiled before there was a device."""
    return compiler(read, backend="eager")


@pytest.fixture
def gpu(before: Any) -> Iterator[SimulatedCuda]:
    """One simulated device, which is there after ``before``."""
    assert before
    with simcuda.device() as simulated:
        yield simulated


def read(x: torch.Tensor) -> float:
    """One addition, one sum, and one read by the host."""
    return (x + 1).sum().item()


def of_layer(x: torch.Tensor) -> float:
    """A module that is compiled in place, as ``read``."""
    module = torch.nn.Module()
    module.forward = read
    module.compile()
    result: float = module(x)
    return result


WAYS: dict[str, Callable[[], Callable[[torch.Tensor], float]]] = {
    "within": lambda: torch.compile(read),  # type: ignore[no-any-return, no-untyped-call, unused-ignore]
    "fullgraph": lambda: torch.compile(read, fullgraph=True, mode="reduce-overhead"),
    "module": lambda: of_layer,
}


@pytest.mark.parametrize("way", ["before", *WAYS])
def test_compiled_code_runs_eagerly_and_is_marked(gpu: SimulatedCuda, before: Any, way: str) -> None:
    """Waits are those of the source; what a compiler fuses or keeps is a range, with its reason."""
    x = torch.ones(3, device="cuda")
    compiled = before if way == "before" else WAYS[way]()
    with gpu.measure() as cost:
        assert 6.0 == compiled(x)
    # An addition, a sum and a read: the read ends a graph, and stays.
    assert (2, 1, 1) == (cost.aten_launches, cost.syncs, cost.d2h)
    assert (RUN_EAGERLY,) == cost.approximate
    assert {"aten_launches", "launches", "allocations", "peak_bytes"} <= set(cost.ranges)
    assert (0, None) == cost.ranges["launches"]
    assert not {"syncs", "d2h", "h2d", "drains"} & set(cost.ranges)


def test_a_constant_in_compiled_code_may_need_no_copy(gpu: SimulatedCuda) -> None:
    """A tensor of a host's number is compiled into the kernel: its copy and its wait may go, others stay."""

    def add(x: torch.Tensor) -> float:
        return (x + torch.tensor(2.0, device="cuda")).sum().item()

    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        assert 9.0 == torch.compile(add)(x)  # type: ignore[no-untyped-call, unused-ignore]
        torch.tensor(2.0, device="cuda")
    # Two constants, each copied and waited for, and one read; only the constant in compiled code may go.
    assert (3, 2, 8) == (cost.syncs, cost.h2d, cost.h2d_bytes)
    assert ((2, 3), (1, 2), (4, 8)) == tuple(cost.ranges[what] for what in ("syncs", "h2d", "h2d_bytes"))


@pytest.mark.parametrize("how", ["environment", "stance"])
def test_what_is_not_to_be_compiled_is_not_marked(before: Any, how: str) -> None:
    """Code compiled before and within runs eagerly where compiling is off, and counts exactly."""
    with ExitStack() as stack:
        if how == "stance":
            stack.enter_context(set_stance("force_eager"))
        else:
            # What the variable of the environment sets, as torch reads it once.
            stack.enter_context(torch._dynamo.config.patch(disable=True))
        gpu = stack.enter_context(simcuda.device(compile="refuse"))
        x = torch.ones(3, device="cuda")
        with gpu.measure() as cost:
            results = [before(x), compiler(read, backend="eager")(x)]
    # Each is one addition, one sum and one read.
    assert ([6.0, 6.0], 4, 2, {}) == (results, cost.launches, cost.syncs, cost.ranges)


def test_compiling_is_refused_on_request(before: Any) -> None:
    """Then code compiled before or within says what to do, and runs again afterwards."""
    with simcuda.device(compile="refuse"):
        for call in (
            lambda: torch.compile(read),
            lambda: before(torch.ones(3)),
            lambda: of_layer(torch.ones(3)),
        ):
            with pytest.raises(RuntimeError, match="does not run on a simulated CUDA device") as refused:
                call()
            assert EAGERLY in str(refused.value)
    assert 6.0 == before(torch.ones(3))
    with pytest.raises(ValueError, match="'never' is none of eager, refuse"), simcuda.device(compile="never"):  # type: ignore[arg-type]
        pass


def attend(attention: Any, query: torch.Tensor) -> torch.Tensor:
    """Attention with a causal score, and the gradient of its query."""
    causal = lambda score, _b, _h, q, k: torch.where(q >= k, score, -float("inf"))  # noqa: E731
    out = attention(query, query, query, score_mod=causal)
    total: Any = out.sum()
    total.backward()
    return torch.stack([out.detach(), query.grad])  # type: ignore[list-item]


@pytest.mark.parametrize("is_compiled", [True, False])
def test_flex_attention_runs_with_gradients(gpu: SimulatedCuda, is_compiled: bool) -> None:
    """Its values are those of attention; compiled, it waits for nothing, as its own kernel does."""
    torch.manual_seed(0)
    host = torch.randn(1, 2, 128, 16)
    expected = host.clone().requires_grad_()
    causal = torch.nn.functional.scaled_dot_product_attention(expected, expected, expected, is_causal=True)
    total: Any = causal.sum()
    total.backward()
    query = host.to("cuda").requires_grad_()
    with gpu.measure() as cost:
        result = attend(compiler(flex) if is_compiled else flex, query)
    torch.testing.assert_close(
        result.cpu(),
        torch.stack([causal.detach(), expected.grad]),  # type: ignore[list-item]
        rtol=1e-4,
        atol=1e-5,
    )
    # Uncompiled, torch makes a tensor of the number for what a mask leaves out, in sdpa_dense and again in
    # sdpa_dense_backward, which makes one more of the 0 for its gradient; the score's is an argument.
    assert (0 if is_compiled else 3) == cost.h2d == cost.syncs
    assert RUN_EAGERLY in cost.approximate


def test_queries_about_nccl_are_answered(gpu: SimulatedCuda) -> None:
    """Programs look at its version before they use it."""
    assert gpu
    nccl: Any = torch.cuda.nccl
    assert (2, 29, 7) == nccl.version()


@pytest.mark.parametrize("has_gradients", [False, True])
def test_kernels_around_compiled_code_stay_counted(gpu: SimulatedCuda, has_gradients: bool) -> None:
    """Three additions around it are the least, and the ones that a backward pass begins with."""
    x = torch.ones(4, device="cuda", requires_grad=has_gradients)
    compiled = torch.compile(lambda tensor: (tensor * 2).sum(), backend="eager")
    with torch.set_grad_enabled(has_gradients), gpu.measure() as m:
        result = compiled(x.detach() + 1 + x)
        if has_gradients:
            result.backward()
        x.detach().add_(1)
    assert 3 + has_gradients == m.ranges["launches"][0]
    assert (RUN_EAGERLY,) == m.approximate
