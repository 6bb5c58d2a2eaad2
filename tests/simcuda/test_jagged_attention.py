"""Attention on jagged tensors: the kernels that CUDA takes, computed on the host."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from simcuda import SimulatedCuda

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
attend: Any = torch.nn.functional.scaled_dot_product_attention
HEADS, WIDTH = 2, 8
LENGTHS = (3, 5)


def heads_of(packed: Tensor, *, chunked: bool) -> list[Tensor]:
    """Query, key and value of what has all three side by side, as views or as memory of their own."""
    parts: Any = packed.chunk(3, -1)
    own = parts if chunked else [part.contiguous() for part in parts]
    return [part.unflatten(-1, [HEADS, WIDTH]).transpose(-2, -3) for part in own]


def packed_sequences(dtype: torch.dtype) -> list[Tensor]:
    """One tensor for each sequence, on the host."""
    torch.manual_seed(0)
    return [torch.randn(length, 3 * HEADS * WIDTH).to(dtype) for length in LENGTHS]


def jagged(dtype: torch.dtype) -> Tensor:
    """The sequences on the device, as one tensor that knows its lengths."""
    return torch.nested.nested_tensor(
        packed_sequences(dtype), layout=torch.jagged, device="cuda", requires_grad=True
    )


@pytest.mark.parametrize(
    ("dtype", "causal", "chunked"),
    list(product((torch.float32, torch.float16, torch.bfloat16), (False, True), (False, True))),
)
def test_values_and_gradients_are_those_of_each_sequence(
    gpu: SimulatedCuda, dtype: torch.dtype, causal: bool, chunked: bool
) -> None:
    """As dense attention on the host has them, in single precision; by the kernels of CUDA, with no wait."""
    expected, gradients = [], []
    for part in packed_sequences(dtype):
        leaf = part.float().requires_grad_()
        out = attend(*(t[None] for t in heads_of(leaf, chunked=True)), is_causal=causal)[0].transpose(0, 1)
        out.square().sum().backward()
        assert leaf.grad is not None
        expected.append(out)
        gradients.append(leaf.grad)

    packed = jagged(dtype)
    query, key, value = heads_of(packed, chunked=chunked)
    with gpu.measure() as cost:
        out = attend(query, key, value, is_causal=causal).transpose(1, 2)
    # Made of a list, it has the shortest and the longest length on the host.
    assert (0, 0, ()) == (cost.syncs, cost.d2h, cost.unknown)
    kind = "efficient" if dtype == torch.float32 else "flash"
    assert f"aten._{kind}_attention_forward.default" in cost.approximate
    with gpu.measure() as cost:
        out.values().float().square().sum().backward()
    assert f"aten._{kind}_attention_backward.default" in cost.approximate
    assert (0, 0, ()) == (cost.syncs, cost.d2h, cost.unknown)
    assert packed.grad is not None
    # A few roundings of values up to 4, and of gradients up to 8.
    near = 20 * torch.finfo(dtype).eps
    torch.testing.assert_close(out.values().float().cpu(), torch.cat(expected), rtol=near, atol=near)
    made = packed.grad.values().float().cpu()
    torch.testing.assert_close(made, torch.cat(gradients), rtol=near, atol=near)


def test_the_lengths_are_read_once(gpu: SimulatedCuda) -> None:
    """Of offsets on the device: the shortest, then the longest, each with a wait; then they are known."""
    values, offsets = torch.randn(8, HEADS * WIDTH, device="cuda"), torch.tensor([0, 3, 8], device="cuda")
    made: Any = torch.nested.nested_tensor_from_jagged(values, offsets)
    heads = made.unflatten(-1, [HEADS, WIDTH]).transpose(1, 2)
    waits = []
    for _ in range(2):
        with gpu.measure() as cost:
            attend(heads, heads, heads)
        waits.append((cost.syncs, cost.d2h, cost.unknown))
    assert [(2, 2, ()), (0, 0, ())] == waits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.usefixtures("gpu")
def test_dropout_drops_the_same_scores_forward_and_backward(dtype: torch.dtype) -> None:
    """Seen by values that are 1: the gradient of their sum is what each of them was multiplied by."""
    parts = [torch.ones(length, HEADS, WIDTH, dtype=dtype) for length in LENGTHS]
    heads = torch.nested.nested_tensor(parts, layout=torch.jagged, device="cuda").transpose(1, 2)
    value = heads.detach().requires_grad_()
    torch.manual_seed(0)
    out = attend(heads, heads, value, dropout_p=0.5)
    out.values().sum().backward()
    assert value.grad is not None
    forward, backward = out.values().float().sum().item(), value.grad.values().float().sum().item()
    assert forward == pytest.approx(backward, rel=0.01)
    # Without dropout each of 8 x 2 x 8 results is 1.
    assert forward != pytest.approx(sum(LENGTHS) * HEADS * WIDTH, rel=0.001)


@pytest.mark.parametrize(
    ("dtype", "width", "answers"),
    [
        (torch.float16, 8, (True, True)),
        (torch.float16, 256, (True, True)),
        (torch.float16, 264, (False, True)),
        (torch.float16, 4, (True, False)),
        (torch.float32, 4, (False, True)),
        (torch.float32, 2, (False, False)),
        (torch.float64, 8, (False, False)),
    ],
)
@pytest.mark.usefixtures("gpu")
def test_which_kernels_can_be_used(dtype: torch.dtype, width: int, answers: tuple[bool, bool]) -> None:
    """ATen/native/transformers/cuda/sdp_utils.cpp: flash takes halves, up to 256 wide; the other 16 bytes."""
    parts = [torch.ones(length, HEADS, width, dtype=dtype) for length in LENGTHS]
    cuda = torch.backends.cuda

    def ask(device: str) -> tuple[bool, bool]:
        heads = torch.nested.nested_tensor(parts, layout=torch.jagged, device=device).transpose(1, 2)
        params = cuda.SDPAParams(heads, heads, heads, None, 0.0, False, False)
        return cuda.can_use_flash_attention(params), cuda.can_use_efficient_attention(params)

    assert (answers, (False, False)) == (ask("cuda"), ask("cpu"))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert (False, False) == ask("cuda")


@pytest.mark.usefixtures("gpu")
def test_what_the_host_cannot_compute_is_refused_by_torch() -> None:
    """Attention to a window, and that of host tensors, fail as without a simulation."""
    starts, x = torch.tensor([0, 3, 8], dtype=torch.int32), torch.ones(8, HEADS, WIDTH)
    flash = torch.ops.aten._flash_attention_forward
    for where, how in (("cuda", {"window_size_left": 1}), ("cpu", {})):
        q, at = x.to(where), starts.to(where)
        with pytest.raises(NotImplementedError, match="_flash_attention_forward"):
            flash(q, q, q, at, at, 5, 5, 0.0, False, False, **how)


@pytest.mark.usefixtures("gpu")
def test_where_a_causal_mask_lies() -> None:
    """With 2 queries of 4 keys: for flash the last sees all of them, for the other kernel the first sees one.

    flash_attn/mask.h: the limit moves by what there are more of keys; mem_eff_attention/kernel_forward.h:
    CausalFromTopLeft. All scores are 0, so a row is the mean of what it sees of 0, 1, 2, 3.
    """
    aten: Any = torch.ops.aten
    query = torch.zeros(2, 1, WIDTH, device="cuda", dtype=torch.float16)
    key = torch.zeros(4, 1, WIDTH, device="cuda", dtype=torch.float16)
    value = key + torch.arange(4, device="cuda").view(4, 1, 1)
    starts = [torch.tensor([0, n], dtype=torch.int32, device="cuda") for n in (2, 4)]
    flash = aten._flash_attention_forward(query, key, value, *starts, 2, 4, 0.0, True, False)
    one = (query[None], key[None], value[None], None)
    other = aten._efficient_attention_forward(*one, *starts, 2, 4, 0.0, 1, True)
    # It sees 3 keys and 4, or 1 and 2: (0 + 1 + 2) / 3 and so on.
    assert [1.0, 1.5] == flash[0][:, 0, 0].tolist()
    assert [0.0, 0.5] == other[0][0, :, 0, 0].tolist()
    torch.testing.assert_close(flash[1].cpu(), torch.tensor([[3.0, 4.0]]).log())
    torch.testing.assert_close(other[1][0, :, :2].cpu(), torch.tensor([[1.0, 2.0]]).log())


@pytest.mark.usefixtures("gpu")
def test_gradients_with_dropout_are_slopes() -> None:
    """Of queries and keys: with one seed, a step to both sides changes the sum by twice the gradient."""

    def total(shift: float, part: int) -> tuple[Tensor, Tensor]:
        packed = jagged(torch.float32)
        heads = heads_of(packed, chunked=True)
        heads[part] = heads[part] + shift
        torch.manual_seed(0)
        out = attend(heads[0], heads[1].sin(), heads[2], dropout_p=0.5).values().square().sum()
        return out, packed

    for part in (0, 1):
        out, packed = total(0.0, part)
        out.backward()  # type: ignore[no-untyped-call]
        assert packed.grad is not None
        gradient = packed.grad.values().chunk(3, -1)[part].sum().item()
        step = 0.01
        slope = (total(step, part)[0].item() - total(-step, part)[0].item()) / (2 * step)
        # The step's square is 1e-4 of it, and so are roundings of a sum near 100 by it.
        assert gradient == pytest.approx(slope, rel=0.01)
