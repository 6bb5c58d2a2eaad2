"""Functions of C++ that look at the device of their tensors do as on CUDA, though they see those of the host.

Each count is derived from PyTorch's source, which is named.
"""

# Many of torch's functions have no types, or others than they take; lists of arguments are spread here.
# mypy: disable-error-code="no-untyped-call, call-arg, arg-type, attr-defined, unused-ignore"

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import simcuda
from simcuda import SimulatedCuda


@pytest.fixture
def gpu() -> Iterator[SimulatedCuda]:
    """One simulated device, with the workspace of cuBLAS taken."""
    with simcuda.device() as simulated:
        square = torch.ones(2, 2, device="cuda")
        torch.mm(square, square)
        yield simulated


def test_weights_of_a_covariance_are_read_as_before(gpu: SimulatedCuda) -> None:
    """min().ge(0), sum().ne(0), and the degrees of freedom: each an is_scalar_tensor_true."""
    x, weights = torch.rand(3, 50, device="cuda"), torch.ones(50, dtype=torch.int64, device="cuda")
    with gpu.measure() as m:
        x.cov(fweights=weights)
    assert (3, 3) == (m.syncs, m.d2h)


def test_a_covariance_on_the_host_stays_there(gpu: SimulatedCuda) -> None:
    """A tensor of the host takes the branch of the host, and nothing is counted."""
    with gpu.measure() as m:
        assert torch.device("cpu") == torch.rand(3, 5).cov().device
    assert (0, 0) == (m.syncs, m.launches)


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        # Of one matrix: the error code is read.
        ("torch.linalg.eigh(square)", 1),
        ("torch.linalg.lstsq(square, square)", 1),
        # Whether the iteration converged, then the error code.
        ("torch.linalg.svd(square)", 2),
        ("torch.linalg.pinv(square)", 2),
        ("torch.linalg.matrix_norm(square, 2)", 2),
    ],
)
def test_what_cusolver_copies_by_itself_is_not_known(gpu: SimulatedCuda, code: str, waits: int) -> None:
    """What PyTorch reads is the least; cuSOLVER finds eigenvalues and singular values on the host, too.

    ATen/native/cuda/linalg/BatchLinearAlgebraLib.cpp calls syevd, gesvdj and gesvd, whose own copies no
    source shows.
    """
    names = {"torch": torch, "square": torch.eye(3, device="cuda")}
    with gpu.measure() as m:
        exec(code, names)  # noqa: S102 - the code is above
    for metric in ("syncs", "d2h", "h2d"):
        assert (getattr(m, metric), None) == m.ranges[metric]
    assert waits == m.syncs


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_of_such_a_norm_are_those_of_its_composite(dtype: torch.dtype) -> None:
    """The composite is: x * rsqrt(mean(x * x) + eps) * weight, in at least single precision."""
    x, weight = torch.rand(3, 5, 6, dtype=dtype), torch.rand(5, 6, dtype=dtype)
    found = []
    for device in ("cuda", "cpu"):
        leaves = [each.to(device).requires_grad_() for each in (x, weight)]
        if device == "cuda":
            result = torch.nn.functional.rms_norm(leaves[0], (5, 6), leaves[1], eps=1e-3)
        else:
            wide = leaves[0].to(torch.promote_types(dtype, torch.float32))
            scale = torch.rsqrt(wide.square().mean((1, 2), keepdim=True) + 1e-3)
            result = (wide * scale * leaves[1]).to(dtype)
        (result * torch.arange(6.0, device=device).to(dtype)).sum().backward()
        found.append([result.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves if leaf.grad is not None)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


LAYERS = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""Recurrent layers, and how many gates they have."""


@pytest.mark.parametrize("options", [{}, {"proj_size": 4}, {"batch_first": True, "num_layers": 2}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_recurrent_layer_is_one_call_of_cudnn(
    gpu: SimulatedCuda, options: dict[str, Any], dtype: torch.dtype
) -> None:
    """ATen/native/RNN.cpp takes lstm_cudnn_stub: kernels of cuDNN alone, whose number it chooses.

    With the batch first, the input is copied by one kernel of ATen.
    """
    module = torch.nn.LSTM(8, 16, device="cuda", dtype=dtype, **options)
    x = torch.rand(5, 3, 8, device="cuda", dtype=dtype)
    state = [
        torch.zeros(module.num_layers, 5 if module.batch_first else 3, size, device="cuda", dtype=dtype)
        for size in (module.proj_size or 16, 16)
    ]
    with gpu.measure() as m:
        module(x, state)
    assert (int(module.batch_first), 0, 0) == (m.aten_launches, m.syncs, m.d2d)
    assert ("aten._cudnn_rnn.default",) == m.approximate
    assert (m.launches, None) == m.ranges["launches"]
    assert (0, None) == m.ranges["d2d"]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False}])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_recurrent_layer_gives_the_values_of_the_host(
    layer: str, options: dict[str, Any], is_packed: bool
) -> None:
    """Outputs, states and gradients, of whole batches and of packed sequences."""
    module = getattr(torch.nn, layer)(4, 6, **options)
    x, found = torch.rand(5, 3, 4), []
    for device in ("cpu", "cuda"):
        moved = copy.deepcopy(module).to(device)
        leaf = x.detach().to(device).requires_grad_()
        given = torch.nn.utils.rnn.pack_padded_sequence(leaf, torch.tensor([5, 3, 2])) if is_packed else leaf
        output, states = moved(given)
        output = output.data if is_packed else output
        states = states if isinstance(states, tuple) else (states,)
        (output.sum() + sum(state.square().sum() for state in states)).backward()
        gradients = [each.grad.cpu() for each in (leaf, *moved.parameters()) if each.grad is not None]
        found.append([output.detach().cpu(), *(state.detach().cpu() for state in states), *gradients])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_cell_gives_the_values_of_the_host(name: str, bias: bool) -> None:
    """Results and gradients, of input, state and weights."""
    module, x, state = getattr(torch.nn, name)(4, 6, bias=bias), torch.rand(3, 4), torch.rand(2, 3, 6)
    found = []
    for device in ("cpu", "cuda"):
        moved = copy.deepcopy(module).to(device)
        leaves = [each.detach().to(device).requires_grad_() for each in (x, state)]
        hidden = tuple(leaves[1]) if name == "LSTMCell" else leaves[1][0]
        results = moved(leaves[0], hidden)
        results = results if isinstance(results, tuple) else (results,)
        sum(each.square().sum() for each in results).backward()
        gradients = [each.grad.cpu() for each in (*leaves, *moved.parameters()) if each.grad is not None]
        found.append([*(each.detach().cpu() for each in results), *gradients])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_autocast_flattens_weights_in_half_precision(gpu: SimulatedCuda) -> None:
    """ATen/cudnn/AutocastRNN.cpp: zeros, and each of 4 weights copied into them by a kernel that converts.

    Beside them the input is converted, and both states, which are zeros that one fill makes each.
    """
    module, x = torch.nn.LSTM(8, 16, device="cuda"), torch.rand(5, 3, 8, device="cuda")
    with torch.autocast("cuda"), torch.no_grad(), gpu.measure() as m:
        assert torch.float16 == module(x)[0].dtype
    assert (1 + 4 + 1 + 2 + 2, 0, 0) == (m.aten_launches, m.syncs, m.d2d)


@pytest.mark.parametrize(
    ("code", "kernels", "allocations"),
    [
        ("torch._chunk_cat([rows, rows[:2]], 0, 2, out=torch.empty(0).cuda())", 1, 2),
        ("torch._chunk_cat([rows, rows[:2]], 0, 2)", 1, 2),
        # From bfloat16 to single precision, as FSDP reduces gradients.
        ("torch._chunk_cat([rows.bfloat16()], 0, 2, out=wide)", 2, 2),
        ("torch.split_with_sizes_copy(rows, [2, 4], 1, out=[narrow, wider])", 1, 1),
    ],
)
def test_a_table_of_addresses_is_pinned_and_copied(
    gpu: SimulatedCuda, code: str, kernels: int, allocations: int
) -> None:
    """ATen/native/cuda/TensorShape.cu, pack_vecs: pinned memory, .to(device, non_blocking); one kernel.

    Of the bytes of the table only the addresses, 8 each, are sure.
    """
    names = {
        "torch": torch,
        "rows": torch.rand(4, 6, device="cuda"),
        "wide": torch.empty(2, 12, device="cuda"),
        "narrow": torch.empty(4, 2, device="cuda"),
        "wider": torch.empty(4, 4, device="cuda"),
    }
    with gpu.measure() as m:
        eval(code, names)  # noqa: S307 - the code is above
    assert (0, 1, 0, kernels, allocations) == (m.syncs, m.h2d, m.implicit_syncs, m.launches, m.allocations)
    least, most = m.ranges["h2d_bytes"]
    assert (m.h2d_bytes, None) == (least, most)
    assert least >= 8
    assert not {"h2d", "launches", "allocations", "syncs"} & m.ranges.keys()


def test_parts_with_gaps_are_copied_one_by_one(gpu: SimulatedCuda) -> None:
    """split_with_sizes_copy_out_cuda: not dense, so that each is copied by copy_, here by a kernel."""
    rows, into = torch.rand(4, 6, device="cuda"), torch.empty(4, 6, 2, device="cuda")
    with gpu.measure() as m:
        torch.split_with_sizes_copy(rows, [2, 4], 1, out=[into[:, :2, 0], into[:, 2:, 0]])
    assert (0, 0, 2) == (m.syncs, m.h2d, m.launches)
    assert torch.equal(rows, into[:, :, 0])


HALF, SINGLE, DOUBLE = torch.float16, torch.float32, torch.float64
HEADS = (2, 4, 8, 16)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("dtype", "query", "key", "how", "flash", "efficient"),
    [
        (HALF, HEADS, HEADS, {}, True, True),
        (SINGLE, HEADS, HEADS, {}, False, True),
        (DOUBLE, HEADS, HEADS, {}, False, False),
        # 24 bytes are no whole vectors of 16.
        (HALF, (2, 4, 8, 12), (2, 4, 8, 12), {}, True, False),
        (HALF, (2, 4, 8, 264), (2, 4, 8, 264), {}, False, True),
        (HALF, (4, 8, 16), (4, 8, 16), {}, False, False),
        (HALF, HEADS, HEADS, {"mask": True}, False, True),
        (HALF, (2, 4, 6, 16), HEADS, {"causal": True}, False, True),
        (HALF, HEADS, (2, 2, 8, 16), {}, False, False),
        (HALF, HEADS, (2, 2, 8, 16), {"grouped": True}, True, False),
        (HALF, HEADS, HEADS, {"turned": True}, False, False),
    ],
)
def test_fused_kernels_of_attention_are_those_of_the_gpu(
    dtype: torch.dtype,
    query: tuple[int, ...],
    key: tuple[int, ...],
    how: dict[str, bool],
    flash: bool,
    efficient: bool,
) -> None:
    """By what kernels take on compute capability 8.0 and later: ATen/native/transformers/cuda/sdp_utils.cpp.

    Flash: half precision, heads of up to 256 numbers, no mask, square if causal. Efficient: single precision,
    too, and rows of whole vectors. Both: four dimensions, rows without gaps, as many heads.
    """
    tensors = [torch.rand(size, device="cuda").to(dtype) for size in (query, key, key)]
    if how.get("turned"):
        tensors = [each.mT.contiguous().mT for each in tensors]
    mask = torch.ones(8, 8, device="cuda", dtype=dtype) if how.get("mask") else None
    causal, grouped = how.get("causal", False), how.get("grouped", False)
    params = torch.backends.cuda.SDPAParams(*tensors, mask, 0.0, causal, grouped)
    asked = torch.backends.cuda
    assert flash == asked.can_use_flash_attention(params)
    assert efficient == asked.can_use_efficient_attention(params)
    with sdpa_kernel(SDPBackend.MATH):
        assert not asked.can_use_flash_attention(params)
        assert not asked.can_use_efficient_attention(params)


def test_a_kernel_of_attention_that_is_chosen_runs(gpu: SimulatedCuda) -> None:
    """Where CUDA has it; it fails as CUDA does where no kernel that is allowed takes the tensors."""
    tensors = [torch.rand(HEADS, device="cuda").half() for _ in range(3)]
    expected = torch.nn.functional.scaled_dot_product_attention(*(each.cpu() for each in tensors))
    for backend in (SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend), gpu.measure() as m:
            result = torch.nn.functional.scaled_dot_product_attention(*tensors)
        torch.testing.assert_close(result.cpu(), expected, rtol=1e-2, atol=1e-2)
        assert "aten.scaled_dot_product_attention.default" in m.approximate
    wide = [each.double() for each in tensors]
    with (
        sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION),
        pytest.raises(RuntimeError, match="No available kernel"),
    ):
        torch.nn.functional.scaled_dot_product_attention(*wide)


@pytest.fixture
def deterministic() -> Iterator[None]:
    """Deterministic algorithms alone."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


# As the page of torch.use_deterministic_algorithms has them; ATen/native/cuda calls alertNotDeterministic.
REFUSED = {
    "avg_pool3d_backward_cuda": "F.avg_pool3d(leaf(1, 1, 4, 4, 4), 2)",
    "adaptive_avg_pool2d_backward_cuda": "F.adaptive_avg_pool2d(leaf(1, 1, 4, 4), 2)",
    "adaptive_avg_pool3d_backward_cuda": "F.adaptive_avg_pool3d(leaf(1, 1, 4, 4, 4), 2)",
    "adaptive_max_pool2d_backward_cuda": "F.adaptive_max_pool2d(leaf(1, 1, 4, 4), 2)",
    "fractional_max_pool2d_backward_cuda": "F.fractional_max_pool2d(leaf(1, 1, 4, 4), 2, output_size=2)",
    "fractional_max_pool3d_backward_cuda": "F.fractional_max_pool3d(leaf(1, 1, 4, 4, 4), 2, output_size=2)",
    "max_unpooling2d_forward_out": (
        "F.max_unpool2d(*F.max_pool2d(leaf(1, 1, 4, 4), 2, return_indices=True), 2)"
    ),
    "upsample_linear1d_backward_out_cuda": "F.interpolate(leaf(1, 1, 4), scale_factor=2, mode='linear')",
    "upsample_bicubic2d_backward_out_cuda": "F.interpolate(leaf(1, 1, 4, 4), scale_factor=2, mode='bicubic')",
    "reflection_pad1d_backward_out_cuda": "F.pad(leaf(1, 1, 4), (1, 1), mode='reflect')",
    "reflection_pad3d_backward_out_cuda": "F.pad(leaf(1, 1, 4, 4, 4), (1,) * 6, mode='reflect')",
    "nll_loss2d_forward_out_cuda_template": "F.nll_loss(leaf(1, 3, 4, 4), pair.new_zeros(1, 4, 4))",
    "ctc_loss_backward_gpu": "F.ctc_loss(leaf(5, 1, 3).log_softmax(2), pair[None] + 1, [5], [2])",
    "embedding_bag_backward_cuda_max": "F.embedding_bag(pair[None], leaf(3, 2), mode='max')",
    "put_": "eight.put_(pair, ones, accumulate=True)",
    "_histc_cuda with floating point input": "eight.histc(4)",
    "_bincount_cuda": "pair.bincount(ones)",
    "median CUDA with indices output": "eight.median(0)",
    "grid_sampler_2d_backward_cuda": (
        "F.grid_sample(leaf(1, 1, 4, 4), eight.view(1, 2, 2, 2), align_corners=False)"
    ),
    "scatter_reduce_cuda_prod_": "eight.scatter_reduce(0, pair, ones, 'prod')",
    "index_reduce_cuda": "eight.index_reduce(0, pair, ones, 'prod')",
}
if torch.__version__ < "2.14":
    REFUSED |= {
        "reflection_pad2d_backward_cuda": "F.pad(leaf(1, 1, 4, 4), (1,) * 4, mode='reflect')",
        "cumsum_cuda_kernel": "eight.cumsum(0)",
    }


@pytest.mark.usefixtures("gpu", "deterministic")
@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cuda_has_no_deterministic_kernel_for_is_refused(name: str) -> None:
    """By CUDA's own message, forward or backward."""
    names = {
        "F": functional,
        "leaf": lambda *shape: torch.rand(*shape, device="cuda", requires_grad=True),
        "pair": torch.tensor([0, 1], device="cuda"),
        "ones": torch.ones(2, device="cuda"),
        "eight": torch.zeros(8, device="cuda"),
    }
    with pytest.raises(RuntimeError, match=f"^{name} does not have a deterministic implementation"):
        eval(REFUSED[name], names).sum().backward()  # noqa: S307 - the code is above


@pytest.mark.usefixtures("gpu")
def test_where_results_need_not_be_equal_cuda_warns_or_runs() -> None:
    """With warn_only it warns; of whole numbers, without indices or without weights there is an order."""
    x = torch.ones(8, device="cuda")
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with pytest.warns(UserWarning, match="^_histc_cuda"):
            x.histc(4)
        torch.use_deterministic_algorithms(True)
        for run in (x.median, x.int().histc, x.int().bincount, lambda: x.int().cumsum(0)):
            run()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize(
    ("code", "waits"),
    [
        ("x.scatter_(0, index, y)", 0),
        ("x.index_add_(0, index, y)", 0),
        ("rows.index_copy_(0, index, rows[:3].clone())", 0),
        # Of several dimensions the strides are told, 8 bytes each.
        ("rows.scatter_add_(1, index[None], rows[:1, :3].clone())", 1),
        ("rows.scatter_(1, index[None], rows[:1, :3].clone())", 1),
        ("rows.scatter_(1, index[None], 1.0)", 0),
        ("rows.scatter_reduce_(1, index[None], rows[:1, :3].clone(), 'amax')", 0),
    ],
)
def test_what_is_scattered_in_order_is_told_the_strides(gpu: SimulatedCuda, code: str, waits: int) -> None:
    """ATen/native/TensorAdvancedIndexing.cpp, _scatter_via_index_put: coord_strides.to(device) waits."""
    names = {
        "x": torch.rand(8, device="cuda"),
        "y": torch.rand(3, device="cuda"),
        "rows": torch.rand(4, 6, device="cuda"),
        "index": torch.tensor([0, 2, 1], device="cuda"),
    }
    with gpu.measure() as m:
        eval(code, names)  # noqa: S307 - the code is above
    assert (waits, waits, waits * 2 * 8) == (m.syncs, m.h2d, m.h2d_bytes)
