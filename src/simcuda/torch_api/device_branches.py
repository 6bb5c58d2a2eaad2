"""Functions whose C++ code asks for the device's type and takes another way on CUDA.

C++ code calls every simulated tensor a CPU tensor, so these are done here as on CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils.dlpack
from torch import Tensor

from simcuda.device.dispatch_key import unwatched
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api.patches import Patches
from simcuda.torch_api.python_data import read_elements

CUDNN_VERSION = 91_300
MEAN = 1

FOREACH_BY_TENSOR = ("_foreach_mul", "_foreach_mul_", "_foreach_div", "_foreach_div_")
"""Operations on lists that take one host tensor without dimensions as a number."""

UNSEEN: tuple[tuple[Any, str], ...] = (
    (torch.linalg, "matrix_rank"),
    (torch.linalg, "cond"),
    (torch.Tensor, "new"),
)
"""Functions that may return memory of their own without having looked at any tensor."""


QUANTILES: tuple[tuple[Any, str], ...] = (
    *((torch, name) for name in ("quantile", "nanquantile")),
    *((torch.Tensor, name) for name in ("quantile", "nanquantile")),
)
"""Functions that check on the CPU alone whether their probabilities lie between 0 and 1."""


def install(patches: Patches, machine: Machine) -> None:
    """Put every repaired function in place."""
    one_hot = _one_hot(torch._C._nn.one_hot)
    patches.set(torch._C._nn, one_hot=one_hot)
    patches.set(torch.nn.functional, one_hot=one_hot)
    dropout = _dropout(torch.dropout)
    patches.set(torch, dropout=dropout)
    patches.set(torch._VF, dropout=dropout)
    attention = _attention(torch._C._nn.scaled_dot_product_attention, machine)
    patches.set(torch._C._nn, scaled_dot_product_attention=attention)
    patches.set(torch.nn.functional, scaled_dot_product_attention=attention)
    for owner, name in QUANTILES:
        patches.set(owner, **{name: _quantile(getattr(owner, name), machine)})
    patches.set(torch, ctc_loss=_ctc_loss(torch.ctc_loss, machine))
    for name in FOREACH_BY_TENSOR:
        patches.set(torch, **{name: _by_host_number(getattr(torch, name))})
    for owner, name in UNSEEN:
        patches.set(owner, **{name: _on_device_of_input(getattr(owner, name), machine)})
    from_dlpack = _from_dlpack(torch.utils.dlpack.from_dlpack)
    patches.set(torch, from_dlpack=from_dlpack)
    patches.set(torch.utils.dlpack, from_dlpack=from_dlpack)
    patches.set(torch.Tensor, __init__=_made_on_host(machine))
    # cuDNN would warn that it is missing; recurrent layers run without it.
    patches.set(torch.backends.cudnn, is_acceptable=lambda _: False)
    patches.set(torch.backends.cudnn, is_available=lambda: True, version=lambda: CUDNN_VERSION)
    patches.set(torch.cuda.nvtx, _nvtx=_Ranges)


def _one_hot(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
        if not tensor.is_cuda or not tensor.numel():
            return original(tensor, num_classes)
        # On CUDA nothing checks the values, and only an unknown number of classes is read.
        if num_classes < 0:
            num_classes = int(tensor.max().item()) + 1
        made = torch.zeros((*tensor.shape, num_classes), dtype=torch.int64, device=tensor.device)
        return made.scatter_(-1, tensor.unsqueeze(-1), 1)

    return one_hot


def _dropout(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def dropout(input: Tensor, p: float | Tensor, train: bool) -> Tensor:  # noqa: A002 - torch's name
        if isinstance(p, Tensor):
            p = p.item()  # as C++ code does, once
        if train and 0 < p < 1 and input.is_cuda and input.numel():
            return torch.native_dropout(input, p, train)[0]
        return original(input, p, train)

    return dropout


def _attention(original: Callable[..., Tensor], machine: Machine) -> Callable[..., Tensor]:
    def scaled_dot_product_attention(
        query: Tensor, key: Tensor, value: Tensor, *how: Any, **named: Any
    ) -> Tensor:
        if query.is_cuda:
            # Which kernels there are depends on the device: with dropout, the CPU has none that does it all.
            machine.ledger.approximate("aten.scaled_dot_product_attention.default")
        return original(query, key, value, *how, **named)

    return scaled_dot_product_attention


def _quantile(original: Callable[..., Tensor], machine: Machine) -> Callable[..., Tensor]:
    def quantile(input: Tensor, q: float | Tensor, *how: Any, **named: Any) -> Tensor:  # noqa: A002 - torch's name
        if isinstance(q, Tensor) and not q.requires_grad and _are_together(machine, input, q):
            # As if C++ code had made it of a number, which costs nothing until it meets the device.
            q = unwatched(torch.clone)(q)
            machine.place_on_host(q.untyped_storage(), floating=True)
        return original(input, q, *how, **named)

    return quantile


def _are_together(machine: Machine, first: Tensor, second: Tensor) -> bool:
    one, other = machine.storages.of(first), machine.storages.of(second)
    is_on_device = one is not None and other is not None and one.device == other.device != HOST
    return is_on_device and not torch._C._functorch.is_functorch_wrapped_tensor(second)


def _ctc_loss(original: Callable[..., Tensor], machine: Machine) -> Callable[..., Tensor]:
    def ctc_loss(
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Any,
        target_lengths: Any,
        blank: int = 0,
        reduction: int = MEAN,
        zero_infinity: bool = False,
    ) -> Tensor:
        # On CUDA the lengths are brought to the host, unless a dispatch mode is on.
        lengths = [
            n.reshape(-1).tolist() if isinstance(n, Tensor) else n for n in (input_lengths, target_lengths)
        ]
        if not log_probs.is_cuda:
            return original(log_probs, targets, *lengths, blank, reduction, zero_infinity)
        if not targets.is_cuda:
            if targets.dim() == 1 and targets.dtype == torch.int32 and blank == 0:
                # Given sequences of full length, cuDNN would do it.
                machine.ledger.unknown("aten._cudnn_ctc_loss.default")
            targets = targets.to(log_probs.device, torch.int64)
        if reduction != MEAN:
            return original(log_probs, targets, *lengths, blank, reduction, zero_infinity)
        losses = original(log_probs, targets, *lengths, blank, 0, zero_infinity)
        # The host's list is copied to the device, which C++ code would not do here.
        divisors = torch.tensor(lengths[1], dtype=losses.dtype, device=losses.device)
        return (losses / divisors.clamp_min(1)).mean()

    return ctc_loss


def _by_host_number(original: Callable[..., Any]) -> Callable[..., Any]:
    def function(self: Any, *others: Any, **named: Any) -> Any:
        first = others[0] if others else None
        if isinstance(first, Tensor) and not first.dim() and not first.is_cuda and self and self[0].is_cuda:
            others = (first.item(), *others[1:])
        return original(self, *others, **named)

    return function


def _on_device_of_input(original: Callable[..., Tensor], machine: Machine) -> Callable[..., Tensor]:
    def function(input: Tensor, *how: Any, **named: Any) -> Tensor:  # noqa: A002 - torch's name
        result = original(input, *how, **named)
        made, given = machine.storages.of(result), machine.storages.of(input)
        if given is None or given.device == HOST:
            machine.settle((made,))
        elif made is None or made.device == HOST:
            if made is None or not made.floating:
                # Python data, which is made on the host.
                return result.to(input.device)
            machine.adopt(made, given.device)
        return result

    return function


def _from_dlpack(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def from_dlpack(ext_tensor: Any, **how: Any) -> Tensor:
        # The capsule would hand over host memory.
        is_on_device = isinstance(ext_tensor, Tensor) and ext_tensor.is_cuda
        return ext_tensor.detach() if is_on_device else original(ext_tensor, **how)

    return from_dlpack


def _made_on_host(machine: Machine) -> Callable[..., None]:
    def __init__(tensor: Tensor, *data: Any, **_: Any) -> None:  # noqa: N807 - the name that is replaced
        # ``torch.Tensor(3)`` makes its memory as C++ code does within an operation.
        if data and type(tensor) is Tensor and isinstance(data[0], list | tuple):
            read_elements(data[0])
        machine.settle((machine.storages.of(tensor),))

    return __init__


class _Ranges:
    """Marks for NVIDIA's profilers, which do nothing here."""

    rangePushA = rangePop = rangeStartA = rangeEnd = markA = staticmethod(lambda *_: 0)  # noqa: N815 - C's names
