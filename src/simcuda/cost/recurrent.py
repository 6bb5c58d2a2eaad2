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

from simcuda.cost.stand_ins import StandIn
from simcuda.device.dispatch_key import recording_gradients

LAYERS: Mapping[int, Any] = dict(
    enumerate((torch.ops.aten.rnn_relu, torch.ops.aten.rnn_tanh, torch.ops.aten.lstm, torch.ops.aten.gru))
)
"""Layers by cuDNN's number for them, ``cudnnRNNMode_t``."""
WEIGHTS = 2
"""How many weights a layer has in each direction without biases and projections."""
SEED_BYTES = 8


def flat_size(weights: Sequence[Tensor]) -> int:
    """Return how many elements the weights of a layer have together."""
    return sum(weight.numel() for weight in weights)


def _named(operation: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in operation._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _run(how: Mapping[str, Any], tensor: Tensor, states: Sequence[Tensor], weights: list[Tensor]) -> Any:
    """Compute a layer: its output and its last states."""
    layer = LAYERS[how["mode"]]
    first = list(states) if len(states) > 1 else states[0]
    has_biases = how["weight_stride0"] - int(how["proj_size"] > 0) > WEIGHTS
    rest = (weights, has_biases, *(how[name] for name in ("num_layers", "dropout", "train", "bidirectional")))
    if how["batch_sizes"]:
        return layer.data(tensor, torch.tensor(how["batch_sizes"]), first, *rest)
    return layer.input(tensor, first, *rest, how["batch_first"])


def _states(how: Mapping[str, Any]) -> list[Tensor]:
    return [state for state in (how["hx"], how["cx"]) if state is not None]


@dataclass(frozen=True)
class Layer(StandIn):
    """``_cudnn_rnn``: what it keeps for the backward pass is the seed of its dropout."""

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        how = _named(self.operation, args, kwargs)
        states, weights = _states(how), list(how["weight"])
        draws = how["train"] and how["dropout"] > 0
        seed = torch.randint(2**62, ()) if draws else torch.zeros((), dtype=torch.int64)
        with torch.random.fork_rng((), enabled=draws):
            if draws:
                torch.default_generator.manual_seed(int(seed))
            output, *last = _run(how, how["input"], states, weights)
        if len(last) == 1:
            last.append(output.new_empty(0))
        kept = seed.reshape(1).view(torch.uint8) if how["train"] else torch.empty(0, dtype=torch.uint8)
        buffer = how["weight_buf"]
        if buffer is None:
            buffer = torch.cat([weight.flatten() for weight in weights])
        # An output may be a view; what it shares memory with is no result.
        return output.contiguous(), *last, kept, buffer.detach()


@dataclass(frozen=True)
class LayerGradients(StandIn):
    """``_cudnn_rnn_backward``: the layer is computed again, and autograd goes back through it."""

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        how = _named(self.operation, args, kwargs)
        given = [how[name] for name in ("grad_output", "grad_hy", "grad_cy")]
        states = _states(how)
        with recording_gradients(), torch.random.fork_rng((), enabled=how["dropout"] > 0):
            if how["dropout"] > 0:
                torch.default_generator.manual_seed(how["reserve"].view(torch.int64).tolist()[0])
            leaves = [each.detach().requires_grad_() for each in (how["input"], *states, *how["weight"])]
            made = _run(how, leaves[0], leaves[1 : 1 + len(states)], leaves[1 + len(states) :])
            results, above = [], []
            for result, gradient in zip(made, given, strict=False):
                if gradient is not None:
                    results.append(result)
                    above.append(gradient)
            found = torch.autograd.grad(results, leaves, above, allow_unused=True)
        gradients = [
            torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found, strict=True)
        ]
        # Those of the weights are parts of one buffer.
        flat = torch.cat([each.flatten() for each in gradients[1 + len(states) :]])
        sizes = [weight.numel() for weight in how["weight"]]
        pieces = torch.split_with_sizes(flat, sizes)
        parts = [part.view_as(weight) for part, weight in zip(pieces, how["weight"], strict=True)]
        of_cell = gradients[2] if len(states) > 1 else None
        return gradients[0], gradients[1], of_cell, parts if how["output_mask"][3] else []


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _gates(given: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Return what input and state add to the gates, each with its bias, in at least single precision."""
    gates = []
    for side in ("input", "hidden"):
        wide = _wide(given[f"{side}_gates"])
        bias = given.get(f"{side}_bias")
        gates.append(wide if bias is None else wide + bias)
    return gates[0], gates[1]


@dataclass(frozen=True)
class LongCell(StandIn):
    """``_thnn_fused_lstm_cell``: what it keeps are the gates once they are activated."""

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        given = _named(self.operation, args, kwargs)
        entering, forgotten, written, leaving = sum(_gates(given)).chunk(4, 1)  # type: ignore[union-attr]
        entering, forgotten, leaving = entering.sigmoid(), forgotten.sigmoid(), leaving.sigmoid()
        written, cell = written.tanh(), given["cx"]
        now = forgotten * cell + entering * written
        kept = torch.cat([entering, forgotten, written, leaving], 1)
        return (leaving * now.tanh()).to(cell.dtype), now.to(cell.dtype), kept.to(cell.dtype)


@dataclass(frozen=True)
class LongCellGradients(StandIn):
    """``_thnn_fused_lstm_cell_backward_impl``."""

    def _op(
        self,
        of_state: Tensor | None,
        of_cell: Tensor | None,
        cell: Tensor,
        now: Tensor,
        kept: Tensor,
        has_bias: bool,
    ) -> Any:
        entering, forgotten, written, leaving = _wide(kept).chunk(4, 1)
        above = _wide(now).tanh()
        given = torch.zeros_like(above) if of_cell is None else _wide(of_cell)
        through = torch.zeros_like(above) if of_state is None else _wide(of_state)
        given = given + through * leaving * (1 - above * above)
        gates = [
            given * written * entering * (1 - entering),
            given * cell * forgotten * (1 - forgotten),
            given * entering * (1 - written * written),
            through * above * leaving * (1 - leaving),
        ]
        of_gates = torch.cat(gates, 1).to(kept.dtype)
        return of_gates, (given * forgotten).to(cell.dtype), of_gates.sum(0) if has_bias else None


@dataclass(frozen=True)
class GatedCell(StandIn):
    """``_thnn_fused_gru_cell``: what it keeps are three gates, the state, and what that adds to one."""

    def _op(self, *args: Any, **kwargs: Any) -> Any:
        given = _named(self.operation, args, kwargs)
        (reset, update, new), (of_reset, of_update, of_new) = (gates.chunk(3, 1) for gates in _gates(given))
        state = given["hx"]
        reset, update = (reset + of_reset).sigmoid(), (update + of_update).sigmoid()
        new = (new + reset * of_new).tanh()
        kept = torch.cat([reset, update, new, state, of_new], 1)
        return (new + update * (state - new)).to(state.dtype), kept.to(state.dtype)


@dataclass(frozen=True)
class GatedCellGradients(StandIn):
    """``_thnn_fused_gru_cell_backward``."""

    def _op(self, gradient: Tensor, kept: Tensor, has_bias: bool) -> Any:
        reset, update, new, state, of_new = _wide(kept).chunk(5, 1)
        given = _wide(gradient)
        into_new = given * (1 - update) * (1 - new * new)
        into_update = given * (state - new) * update * (1 - update)
        into_reset = into_new * of_new * reset * (1 - reset)
        both = torch.cat([into_reset, into_update], 1)
        gates = [torch.cat([both, last], 1).to(gradient.dtype) for last in (into_new, into_new * reset)]
        biases = [each.sum(0) if has_bias else None for each in gates]
        return *gates, (given * update).to(gradient.dtype), *biases


RECURRENT: Mapping[str, type[StandIn]] = {
    "aten._cudnn_rnn.default": Layer,
    "aten._cudnn_rnn_backward.default": LayerGradients,
    "aten._thnn_fused_lstm_cell.default": LongCell,
    "aten._thnn_fused_lstm_cell_backward_impl.default": LongCellGradients,
    "aten._thnn_fused_gru_cell.default": GatedCell,
    "aten._thnn_fused_gru_cell_backward.default": GatedCellGradients,
}
"""What computes the values of each operation."""
