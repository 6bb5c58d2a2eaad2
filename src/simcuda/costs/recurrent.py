"""Values of recurrent layers and cells, for which CUDA has kernels that the host lacks.

cuDNN computes a whole layer, and its gradients, in one call. Here the host's own code computes the layer, and
autograd its gradients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from simcuda.costs.stand_ins import StandIn, gradients
from simcuda.device.dispatch_key import recording_gradients

LAYERS: Mapping[int, Any] = dict(
    enumerate(
        (
            torch.ops.aten.rnn_relu,
            torch.ops.aten.rnn_tanh,
            torch.ops.aten.lstm,
            torch.ops.aten.gru,
        )
    )
)
"""Layers by cuDNN's number for them, ``cudnnRNNMode_t``."""
WEIGHTS = 2
"""How many weights a layer has in each direction without biases and projections."""


def _run(
    how: Mapping[str, Any],
    tensor: Tensor,
    states: Sequence[Tensor],
    weights: list[Tensor],
) -> Any:
    """Compute a layer: its output and its last states."""
    layer = LAYERS[how["mode"]]
    first = list(states) if len(states) > 1 else states[0]
    has_biases = how["weight_stride0"] - int(how["proj_size"] > 0) > WEIGHTS
    rest = (
        weights,
        has_biases,
        *(how[name] for name in ("num_layers", "dropout", "train", "bidirectional")),
    )
    if how["batch_sizes"]:
        return layer.data(tensor, torch.tensor(how["batch_sizes"]), first, *rest)
    return layer.input(tensor, first, *rest, how["batch_first"])


def _states(how: Mapping[str, Any]) -> list[Tensor]:
    return [state for state in (how["hx"], how["cx"]) if state is not None]


@dataclass(frozen=True)
class Layer(StandIn):
    """``_cudnn_rnn``: what it keeps for the backward pass is the seed of its dropout."""

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        how = self.named(args, kwargs)
        states, weights = _states(how), list(how["weight"])
        draws = how["train"] and how["dropout"] > 0
        seed = torch.randint(2**62, ()) if draws else torch.zeros((), dtype=torch.int64)
        with torch.random.fork_rng((), enabled=draws):
            if draws:
                torch.default_generator.manual_seed(int(seed))
            output, *last = _run(how, how["input"], states, weights)
        if len(last) == 1:
            last.append(output.new_empty(0))
        kept = (
            seed.reshape(1).view(torch.uint8)
            if how["train"]
            else torch.empty(0, dtype=torch.uint8)
        )
        buffer = how["weight_buf"]
        if buffer is None:
            buffer = torch.cat([weight.flatten() for weight in weights])
        # An output may be a view; what it shares memory with is no result.
        return output.contiguous(), *last, kept, buffer.detach()


@dataclass(frozen=True)
class LayerGradients(StandIn):
    """``_cudnn_rnn_backward``: the layer is computed again, and autograd goes back through it."""

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        how = self.named(args, kwargs)
        states, weights = _states(how), list(how["weight"])
        with (
            recording_gradients(),
            torch.random.fork_rng((), enabled=how["dropout"] > 0),
        ):
            if how["dropout"] > 0:
                torch.default_generator.manual_seed(
                    how["reserve"].view(torch.int64).tolist()[0]
                )
            leaves = [
                each.detach().requires_grad_()
                for each in (how["input"], *states, *weights)
            ]
            made = _run(
                how, leaves[0], leaves[1 : 1 + len(states)], leaves[1 + len(states) :]
            )
            above = [how[name] for name in ("grad_output", "grad_hy", "grad_cy")]
            of_input, *others = gradients(made, above, leaves)
        of_states, of_weights = others[: len(states)], others[len(states) :]
        # Those of the weights are parts of one buffer.
        flat = torch.cat([each.flatten() for each in of_weights])
        pieces = torch.split_with_sizes(flat, [weight.numel() for weight in weights])
        parts = [
            part.view_as(weight) for part, weight in zip(pieces, weights, strict=True)
        ]
        of_cell = of_states[1] if len(states) > 1 else None
        return of_input, of_states[0], of_cell, parts if how["output_mask"][3] else []


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _gates(gates: Tensor, bias: Tensor | None) -> Tensor:
    """Return what an input or a state adds to the gates, in at least single precision."""
    return _wide(gates) if bias is None else _wide(gates) + bias


def _next_states(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Return hidden state and cell of an LSTM, given the sums of its gates."""
    entering, forgotten, written, leaving = gates.chunk(4, 1)
    now = forgotten.sigmoid() * cell + entering.sigmoid() * written.tanh()
    return leaving.sigmoid() * now.tanh(), now


@dataclass(frozen=True)
class LongCell(StandIn):
    """``_thnn_fused_lstm_cell``: it keeps the sums of its gates."""

    def _op(
        self,
        of_input: Tensor,
        of_state: Tensor,
        cell: Tensor,
        bias: Tensor | None = None,
        other: Tensor | None = None,
    ) -> Any:
        kept = _gates(of_input, bias) + _gates(of_state, other)
        return tuple(
            each.to(cell.dtype) for each in (*_next_states(kept, _wide(cell)), kept)
        )


@dataclass(frozen=True)
class LongCellGradients(StandIn):
    """``_thnn_fused_lstm_cell_backward_impl``."""

    def _op(
        self,
        of_state: Tensor | None,
        of_cell: Tensor | None,
        cell: Tensor,
        _: Tensor,
        kept: Tensor,
        has_bias: bool,
    ) -> Any:
        wide = _wide(cell)
        # PyTorch's own formula adds what state and input give to the gates.
        found = torch.ops.aten._thnn_differentiable_lstm_cell_backward(
            of_state,
            of_cell,
            kept,
            torch.zeros_like(kept),
            None,
            None,
            wide,
            _next_states(kept, wide)[1],
        )
        of_gates = found[0].to(kept.dtype)
        return of_gates, found[2].to(cell.dtype), of_gates.sum(0) if has_bias else None


def _next_state(
    reset: Tensor, update: Tensor, new: Tensor, of_new: Tensor, state: Tensor
) -> Tensor:
    """Return the state of a GRU, given the sums of its gates and what the state adds to the new one."""
    new = (new + reset.sigmoid() * of_new).tanh()
    return new + update.sigmoid() * (state - new)


@dataclass(frozen=True)
class GatedCell(StandIn):
    """``_thnn_fused_gru_cell``: it keeps what ``_next_state`` takes."""

    def _op(
        self,
        of_input: Tensor,
        of_state: Tensor,
        state: Tensor,
        bias: Tensor | None = None,
        other: Tensor | None = None,
    ) -> Any:
        reset, update, new = _gates(of_input, bias).chunk(3, 1)
        of_reset, of_update, of_new = _gates(of_state, other).chunk(3, 1)
        kept = (reset + of_reset, update + of_update, new, of_new, _wide(state))
        return _next_state(*kept).to(state.dtype), torch.cat(kept, 1).to(state.dtype)


@dataclass(frozen=True)
class GatedCellGradients(StandIn):
    """``_thnn_fused_gru_cell_backward``."""

    def _op(self, gradient: Tensor, kept: Tensor, has_bias: bool) -> Any:
        reset, update, new, of_new, state = _wide(kept).chunk(5, 1)
        # PyTorch's own formula; the last gate alone has parts.
        gates = (
            torch.cat([reset, update, new], 1),
            torch.cat([reset * 0, update * 0, of_new], 1),
        )
        found = torch.ops.aten._thnn_differentiable_gru_cell_backward(
            _wide(gradient), *gates, state, None, None
        )
        of_input, of_state, of_hidden = (each.to(gradient.dtype) for each in found[:3])
        return (
            of_input,
            of_state,
            of_hidden,
            *(each.sum(0) if has_bias else None for each in (of_input, of_state)),
        )


RECURRENT: Mapping[str, type[StandIn]] = {
    "aten._cudnn_rnn.default": Layer,
    "aten._cudnn_rnn_backward.default": LayerGradients,
    "aten._thnn_fused_lstm_cell.default": LongCell,
    "aten._thnn_fused_lstm_cell_backward_impl.default": LongCellGradients,
    "aten._thnn_fused_gru_cell.default": GatedCell,
    "aten._thnn_fused_gru_cell_backward.default": GatedCellGradients,
}
"""What computes the values of each operation."""
