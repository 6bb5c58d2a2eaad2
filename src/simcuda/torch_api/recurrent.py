"""Recurrent layers and cells, for which C++ takes cuDNN or a fused kernel where tensors are on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.backends.cudnn.rnn
from torch import Tensor

from simcuda.costs.call import ANYTHING
from simcuda.device.machine import Machine
from simcuda.torch_api.autocast import is_pending
from simcuda.torch_api.fake_tensors import is_fake
from simcuda.torch_api.patches import Patches

MODES = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}
"""cuDNN's numbers of layers, ``cudnnRNNMode_t``."""
LAYERS = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
CELLS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "lstm_cell": torch.ops.aten._thnn_fused_lstm_cell.default,
    "gru_cell": torch.ops.aten._thnn_fused_gru_cell.default,
}
ACCEPTABLE = (torch.float16, torch.float32, torch.float64, torch.bfloat16)


class _Flattened(torch.autograd.Function):
    """Weights in another type, as parts of one buffer; gradients return in the type of each.

    Source: _cudnn_rnn_cast_reflatten in ATen/cudnn/AutocastRNN.cpp.
    """

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.dtypes = [weight.dtype for weight in weights]
        return tuple(_in_one_buffer(weights, dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, *(
            each.to(dtype) for each, dtype in zip(gradients, ctx.dtypes, strict=True)
        )


def install(machine: Machine, patches: Patches) -> None:
    """Install the replacements."""
    for name, mode in LAYERS.items():
        patches.wrap(partial(_run_layer, machine, mode), (torch, name))
    for name, fused in CELLS.items():
        patches.wrap(partial(_run_cell, fused), (torch, name))
    patches.set(torch.backends.cudnn, is_acceptable=is_acceptable)
    patches.set(torch.backends.cudnn.rnn, get_cudnn_mode=MODES.__getitem__)
    patches.set(
        torch,
        _use_cudnn_rnn_flatten_weight=lambda: True,
        _cudnn_rnn_flatten_weight=_flatten,
    )


def is_acceptable(tensor: Tensor) -> bool:
    """Return whether cuDNN takes a tensor, as ``torch.backends.cudnn`` has it."""
    is_on_device = tensor.is_cuda and not is_fake(tensor)
    return (
        torch.backends.cudnn.enabled and is_on_device and tensor.dtype in ACCEPTABLE[:3]
    )


def _in_one_buffer(weights: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    sizes = [weight.numel() for weight in weights]
    flat = torch.zeros(sum(sizes), dtype=dtype, device=weights[0].device)
    parts = [
        part.view_as(weight)
        for part, weight in zip(
            torch.split_with_sizes(flat, sizes), weights, strict=True
        )
    ]
    for part, weight in zip(parts, weights, strict=True):
        part.copy_(weight)
    return parts


def _flatten(weights: Sequence[Tensor], *_: Any) -> Tensor:
    """Let weights be parts of one buffer, which is returned."""
    for part, weight in zip(
        _in_one_buffer(weights, weights[0].dtype), weights, strict=True
    ):
        weight.set_(part)  # type: ignore[call-overload]  # a tensor may be given
    return (
        weights[0]
        .detach()
        .as_strided((sum(weight.numel() for weight in weights),), (1,), 0)
    )


def _buffer_of(weights: Sequence[Tensor]) -> Tensor | None:
    """The buffer that all weights are part of; None if they are not."""
    first = weights[0].detach()
    size = sum(weight.numel() for weight in weights)
    storages = {weight.untyped_storage()._cdata for weight in weights}
    if len(storages) > 1 or first.untyped_storage().nbytes() < size * first.itemsize:
        return None
    return first.as_strided((size,), (1,), 0)


def _run_layer(
    machine: Machine,
    mode: int,
    original: Callable[..., Any],
    tensor: Tensor,
    *args: Any,
) -> Any:
    if not tensor.is_cuda or is_fake(tensor) or tensor.dtype not in ACCEPTABLE:
        return original(tensor, *args)
    if not torch.backends.cudnn.enabled:
        machine.ledger.doubt("aten._cudnn_rnn.default", ANYTHING)
        return original(tensor, *args)
    # A packed sequence has the sizes of its batches next.
    is_packed = isinstance(args[0], Tensor) and isinstance(
        args[1], Tensor | list | tuple
    )
    sizes = args[0].tolist() if is_packed and isinstance(args[2], list | tuple) else []
    hidden, weights, has_biases, layers, dropout, trains, both_ways, *rest = args[
        bool(sizes) :
    ]
    states = list(hidden) if isinstance(hidden, list | tuple) else [hidden]
    weights = list(weights)
    if torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        tensor, states = tensor.to(dtype), [state.to(dtype) for state in states]
        if any(weight.dtype != dtype for weight in weights):
            in_buffer: Any = _Flattened.apply
            weights = list(in_buffer(dtype, *weights))
    size, projected = states[-1].shape[2], 0
    if len(states) > 1 and states[0].shape[2] != size:
        projected = states[0].shape[2]
    stride = (4 if has_biases else 2) + int(projected > 0)
    output, *last, _, _ = torch.ops.aten._cudnn_rnn.default(
        *(
            tensor,
            weights,
            stride,
            _buffer_of(weights),
            states[0],
            states[1] if len(states) > 1 else None,
        ),
        *(
            mode,
            size,
            projected,
            layers,
            bool(rest and rest[0]),
            dropout,
            trains,
            both_ways,
            sizes,
            None,
        ),
    )
    return (output, *last[: len(states)])


def _run_cell(
    fused: Callable[..., tuple[Tensor, ...]],
    original: Callable[..., Any],
    tensor: Tensor,
    hidden: Any,
    weight: Tensor,
    hidden_weight: Tensor,
    *biases: Any,
    **named: Any,
) -> Any:
    if not tensor.is_cuda or is_fake(tensor) or is_pending():
        return original(tensor, hidden, weight, hidden_weight, *biases, **named)
    state, last = (
        (hidden[0], hidden[1]) if isinstance(hidden, list | tuple) else (hidden, hidden)
    )
    gates = torch.matmul(tensor, weight.t()), torch.matmul(state, hidden_weight.t())
    bias = (*biases, *named.values())
    result, *rest = fused(*gates, last, *bias)
    return (result, rest[0]) if isinstance(hidden, list | tuple) else result
