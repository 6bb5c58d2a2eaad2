"""Functions whose C++ code has a separate branch for CUDA.

For C++ code every simulated tensor is a CPU tensor, so the CUDA branch is implemented here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf
from typing import Any

import torch
import torch.utils.dlpack
from torch import Tensor

from simcuda.costs.call import ANYTHING
from simcuda.costs.rules.rule import HALVES
from simcuda.device.dispatch_key import unwatched
from simcuda.device.machine import Machine
from simcuda.device.storages import HOST
from simcuda.torch_api import recurrent
from simcuda.torch_api.fake_tensors import is_fake
from simcuda.torch_api.patches import Patches

CUDNN_VERSION = 91_300
EXTREMES = ("max", "min", "median", "nanmedian")
MEAN = 1

FOREACH_BY_TENSOR = ("_foreach_mul", "_foreach_mul_", "_foreach_div", "_foreach_div_")
"""Operations on lists that take one host tensor without dimensions as a number."""

MAKING: tuple[tuple[Any, str], ...] = (
    *((torch.linalg, name) for name in ("matrix_rank", "cond")),
    *product((torch, Tensor), ("cov", "corrcoef")),
    (torch, "combinations"),
)
"""Functions that make tensors where their first argument is, and return or read what no other tensor met.

Source: ATen/native/LinearAlgebra.cpp; Correlation.cpp, of the number of observations;
Itertools.cpp, of the numbers of places.
"""

OTHER_WORK = ANYTHING | {"d2d": (inf, inf), "d2d_bytes": (inf, inf)}
"""The slack of what CUDA does by other kernels, which need other layouts."""
READS_OF_TARGETS = dict.fromkeys(
    ("syncs", "stream_syncs", "drains", "d2h", "d2h_bytes"), (0, inf)
)
SELECTS_QUANTILES = torch.__version__ >= "2.14"

QUANTILES = ("quantile", "nanquantile")
"""Functions that check on the CPU alone whether their probabilities lie between 0 and 1."""

SOFTMAX: dict[str, Callable[..., Tensor]] = {
    "softmax": torch._softmax,
    "log_softmax": torch._log_softmax,
}
"""Functions that take a type, and the kernel that may convert to it."""

# ATen/native/transformers/cuda/sdp_utils.cpp.
LARGEST_FLASH_HEAD = 256
ATTENTION = "aten.scaled_dot_product_attention.default"
FUSED = ("_can_use_flash_attention", "_can_use_mem_efficient_attention")
"""Questions about kernels of attention, to which a build for the host always says no."""


class _Ranges:
    """Marks for NVIDIA's profilers, which do nothing here."""

    rangePushA = rangePop = rangeStartA = rangeEnd = markA = staticmethod(lambda *_: 0)  # noqa: N815 - C's names


def _enter_marks(marks: Any) -> Any:
    """Enter ``torch.autograd.profiler.emit_nvtx``, which waits for the device at its start and its end."""
    _leave_marks(marks)
    return marks


def _leave_marks(marks: Any, *_: object) -> None:
    if marks.enabled:
        torch.cuda.synchronize()


FLASH_ON_HOST = 1
"""The answer of ``torch._fused_sdp_choice`` where one operation of the host does all attention."""


def _run_with_math(run: Callable[[], Tensor], params: Any) -> Tensor:
    """Run attention by any kernel, where one that is allowed would take the arguments on CUDA.

    The host has not all of CUDA's kernels; any gives the values.
    """
    is_by_cudnn = torch._C._get_cudnn_sdp_enabled() and params.query.dtype in HALVES
    if not (is_by_cudnn or any(getattr(torch._C, name)(params) for name in FUSED)):
        raise RuntimeError("No available kernel. Aborting execution.")
    torch._C._set_sdp_use_math(True)
    try:
        return run()
    finally:
        torch._C._set_sdp_use_math(False)


@dataclass(frozen=True)
class DeviceBranches:
    """Replaces these functions."""

    _machine: Machine

    def install(self, patches: Patches) -> None:
        """Install the replacements."""
        nn = (torch._C._nn, torch.nn.functional)
        tensor = (torch, Tensor)
        patches.wrap(_one_hot, *product(nn, ["one_hot"]))
        patches.wrap(self._attention, *product(nn, ["scaled_dot_product_attention"]))
        patches.wrap(_dropout, (torch, "dropout"), (torch._VF, "dropout"))
        # ATen/native/MaxPooling.cpp: CUDA has only the kernel that finds the places too.
        patches.wrap(
            lambda original, tensor, *how, **named: (
                torch.max_pool1d_with_indices(tensor, *how, **named)[0]
                if tensor.is_cuda
                else original(tensor, *how, **named)
            ),
            (torch, "max_pool1d"),
        )
        patches.wrap(
            _from_dlpack, (torch, "from_dlpack"), (torch.utils.dlpack, "from_dlpack")
        )
        patches.wrap(self._ctc_loss, (torch, "ctc_loss"))
        for name in FUSED:
            patches.wrap(partial(_can_use, is_flash="flash" in name), (torch._C, name))
        for name, kernel in SOFTMAX.items():
            patches.wrap(
                partial(_softmax, kernel), *product((*tensor, torch.special), [name])
            )
        patches.wrap(_share_evenly, *product(tensor, EXTREMES))
        patches.wrap(self._quantile, *product(tensor, QUANTILES))
        patches.wrap(_by_host_number, *product([torch], FOREACH_BY_TENSOR))
        patches.wrap(self._make_there, *MAKING)
        patches.wrap(self._new, (Tensor, "new"))
        patches.wrap(self._renorm, *product(tensor, ["renorm"]))
        patches.wrap(_split_by_host, *product(tensor, ["tensor_split"]))
        # ``torch.Tensor(3)`` makes its memory as C++ code does within an operation.
        settle = self._machine.settle
        tag_of = self._machine.storages.of
        patches.set(Tensor, __init__=lambda tensor, *_, **__: settle((tag_of(tensor),)))
        recurrent.install(self._machine, patches)
        patches.set(
            torch.backends.cudnn,
            is_available=lambda: True,
            version=lambda: CUDNN_VERSION,
        )
        patches.set(torch.cuda.nvtx, _nvtx=_Ranges)
        marks: Any = torch.autograd.profiler.emit_nvtx
        patches.set(marks, __enter__=_enter_marks, __exit__=_leave_marks)

    def _attention(
        self,
        original: Callable[..., Tensor],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        how: Any = (query, key, value, attn_mask, dropout_p, is_causal)
        run: Any = partial(original, *how, scale=scale, enable_gqa=enable_gqa)
        if not query.is_cuda or is_fake(query):
            return run()  # type: ignore[no-any-return]
        ledger = self._machine.ledger
        before, is_whole = ledger.totals(), False
        if query.is_nested:
            made: Tensor = run()
        elif torch._C._get_math_sdp_enabled():
            choice: Any = unwatched(torch._fused_sdp_choice)
            is_whole = choice(*how, scale=scale, enable_gqa=enable_gqa) == FLASH_ON_HOST
            made = run()
        else:
            params: Any = torch.backends.cuda.SDPAParams
            made = _run_with_math(run, params(*how, enable_gqa))
        # Which kernels there are depends on the device: with dropout, the CPU has none that does it all. Then
        # those of the gradient are others too.
        if is_whole:
            # That operation is marked by itself, and so is its gradient.
            ledger.doubt(ATTENTION, {})
            return made
        ledger.doubt_since(ATTENTION, before, OTHER_WORK)
        if not made.requires_grad:
            return made
        inputs: Any = [
            each for each in how[:4] if each is not None and each.requires_grad
        ]
        has_leaf = any(each.is_leaf for each in inputs)

        def begin(_: Tensor) -> None:
            before.update(ledger.totals())
            if has_leaf:
                # A leaf would keep the function: its gradient is done when the backward pass is.
                torch.autograd.Variable._execution_engine.queue_callback(end)

        def end(_: Tensor | None = None) -> None:
            ledger.doubt_since(ATTENTION, before, OTHER_WORK)

        made.register_hook(begin)  # type: ignore[no-untyped-call]
        for each in () if has_leaf else inputs:
            each.register_hook(end)
        return made

    def _ctc_loss(
        self,
        original: Callable[..., Tensor],
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
            n.reshape(-1).tolist() if isinstance(n, Tensor) else n
            for n in (input_lengths, target_lengths)
        ]
        if not log_probs.is_cuda:
            return original(
                log_probs, targets, *lengths, blank, reduction, zero_infinity
            )
        # Whether cuDNN could do it is asked by reading the targets: seen on an H100, and in no source.
        self._machine.ledger.doubt("aten._use_cudnn_ctc_loss.Tensor", READS_OF_TARGETS)
        if not targets.is_cuda:
            if targets.dim() == 1 and targets.dtype == torch.int32 and blank == 0:
                # Given sequences of full length, cuDNN would do it.
                self._machine.ledger.doubt("aten._cudnn_ctc_loss.default")
            targets = targets.to(log_probs.device, torch.int64)
        # The mean is taken here, because C++ would divide on the host.
        if reduction != MEAN:
            return original(
                log_probs, targets, *lengths, blank, reduction, zero_infinity
            )
        losses = original(log_probs, targets, *lengths, blank, 0, zero_infinity)
        # The host's list is copied to the device, which C++ code would not do here.
        divisors = torch.tensor(lengths[1], dtype=losses.dtype, device=losses.device)
        return (losses / divisors.clamp_min(1)).mean()

    def _quantile(
        self,
        original: Callable[..., Tensor],
        input: Tensor,  # noqa: A002 - torch's name
        q: float | Tensor,
        *how: Any,
        **named: Any,
    ) -> Tensor:
        machine = self._machine
        if SELECTS_QUANTILES and input.is_cuda:
            # On the host nothing is sorted: what is selected there has other kernels on a GPU.
            machine.ledger.doubt("aten.quantile.default", OTHER_WORK)
        if (
            input.is_cuda
            and input.is_floating_point()
            and isinstance(q, float | int)
            and 0 <= q <= 1
        ):
            # C++ makes it where it takes the input to be.
            q = torch.scalar_tensor(q, dtype=input.dtype, device=input.device)
        if isinstance(q, Tensor) and not q.requires_grad:
            one, other = machine.storages.of(input), machine.storages.of(q)
            are_together = (
                one is not None
                and other is not None
                and one.device == other.device != HOST
            )
            if are_together and not torch._C._functorch.is_functorch_wrapped_tensor(q):
                # As if C++ code had made it, of no bytes: it costs nothing, also where it meets the device.
                q = unwatched(torch.clone)(q)
                machine.storages.add(q.untyped_storage(), HOST, 0, floating=True)
        return original(input, q, *how, **named)

    def _renorm(
        self,
        original: Callable[..., Tensor],
        input: Tensor,  # noqa: A002 - torch's name
        *how: Any,
        **named: Any,
    ) -> Tensor:
        # FunctionsManual.cpp, renorm_backward: on the host it converts, to add up in double precision.
        result = original(input, *how, **named)
        if result.requires_grad and result.is_cuda:
            ledger: Any = self._machine.ledger
            result.register_hook(
                lambda _: ledger.doubt("aten.renorm.default", OTHER_WORK)
            )  # type: ignore[no-untyped-call]
        return result

    def _make_there(
        self,
        original: Callable[..., Any],
        input: Tensor,  # noqa: A002 - torch's name
        *how: Any,
        **named: Any,
    ) -> Any:
        current = self._machine.current
        device, before = self._machine.storages.device_of(input), current.maker
        current.maker = device
        try:
            result = original(input, *how, **named)
        finally:
            current.maker = before
        if device == HOST:
            self._machine.settle((self._machine.storages.of(result),))
        return result

    def _new(
        self, original: Callable[..., Tensor], tensor: Tensor, *how: Any, **named: Any
    ) -> Tensor:
        result: Tensor = self._make_there(original, tensor, *how, **named)
        # Python data becomes a tensor of the host.
        return result.to(tensor.device)


def _one_hot(
    original: Callable[..., Tensor], tensor: Tensor, num_classes: int = -1
) -> Tensor:
    if not tensor.is_cuda or not tensor.numel():
        return original(tensor, num_classes)
    # On CUDA nothing checks the values, and only an unknown number of classes is read. A tensor is read once.
    num_classes = int(num_classes)
    if num_classes < 0:
        num_classes = int(tensor.max().item()) + 1
    made = torch.zeros(
        (*tensor.shape, num_classes), dtype=torch.int64, device=tensor.device
    )
    return made.scatter_(-1, tensor.unsqueeze(-1), 1)


def _dropout(
    original: Callable[..., Tensor],
    input: Tensor,  # noqa: A002 - torch's name
    p: float | Tensor,
    train: bool,
) -> Tensor:
    # CUDA has a kernel of its own.
    if isinstance(p, Tensor):
        p = p.item()  # as C++ code does, once
    if train and 0 < p < 1 and input.is_cuda and input.numel():
        return torch.native_dropout(input, p, train)[0]
    return original(input, p, train)


def _softmax(
    kernel: Callable[..., Tensor],
    original: Callable[..., Tensor],
    input: Tensor,  # noqa: A002 - torch's name
    dim: Any,
    dtype: torch.dtype | None = None,
    **named: Any,
) -> Tensor:
    # ATen/native/SoftMax.cpp: on CUDA the kernel converts half precision as it reads.
    if (
        dtype is torch.float32
        and input.dtype is torch.float16
        and input.is_cuda
        and isinstance(dim, int)
    ):
        return kernel(input, dim, half_to_float=True)
    return original(input, dim, dtype=dtype, **named)


def _from_dlpack(
    original: Callable[..., Tensor], ext_tensor: Any, **how: Any
) -> Tensor:
    # A capsule would hand over host memory.
    is_on_device = isinstance(ext_tensor, Tensor) and ext_tensor.is_cuda
    return ext_tensor.detach() if is_on_device else original(ext_tensor, **how)


def _can_use(
    original: Callable[..., bool], params: Any, *how: Any, is_flash: bool
) -> bool:
    """Return whether CUDA has one of the ``FUSED`` kernels; sdpa.py checks the rest of jagged tensors."""
    tensors = (params.query, params.key, params.value)
    layouts = {each.layout for each in tensors}
    if (
        not all(each.is_cuda and not is_fake(each) for each in tensors)
        or len(layouts) > 1
    ):
        return original(params, *how)
    is_jagged = layouts == {torch.jagged}
    if tensors[0].is_nested and not is_jagged:
        return original(params, *how)
    dtype = params.query.dtype
    sizes = [each.shape[-1] for each in tensors]
    if not all((each.dim(), each.dtype) == (4, dtype) for each in tensors):
        return False
    if not (is_jagged or _is_dense_attention(params, is_flash=is_flash)):
        return False
    if is_flash:
        fits = (
            dtype in HALVES and len(set(sizes)) == 1 and sizes[0] <= LARGEST_FLASH_HEAD
        )
        return fits and torch._C._get_flash_sdp_enabled()
    # Tensor cores load 128 bits at once.
    fits = dtype in (*HALVES, torch.float32) and not any(
        size * dtype.itemsize % 16 for size in sizes[::2]
    )
    return fits and torch._C._get_mem_efficient_sdp_enabled()


def _is_dense_attention(params: Any, *, is_flash: bool) -> bool:
    """Return whether a fused kernel takes dense tensors of these sizes and strides."""
    query, key = params.query, params.key
    tensors = (query, key, params.value)
    mask = params.attn_mask
    if (
        not query.shape[-2]
        or not key.shape[-2]
        or len({each.shape[0] for each in tensors}) > 1
    ):
        return False
    heads = [each.shape[1] for each in tensors]
    are_grouped = (
        is_flash
        and params.enable_gqa
        and heads[1] == heads[2]
        and not heads[0] % heads[1]
    )
    if len(set(heads)) > 1 and not are_grouped:
        return False
    if is_flash:
        is_square = query.shape[-2] == key.shape[-2]
        are_dense = all(each.stride(-1) == 1 or each.shape[-1] == 1 for each in tensors)
        return mask is None and are_dense and (is_square or not params.is_causal)
    are_dense = all(each.stride(-1) == 1 and each.shape[-1] for each in tensors)
    return are_dense and (mask is None or mask.stride(-1) == 1)


def _by_host_number(
    original: Callable[..., Any], self: Any, *others: Any, **named: Any
) -> Any:
    first = others[0] if others else None
    if (
        isinstance(first, Tensor)
        and not first.dim()
        and not first.is_cuda
        and self
        and self[0].is_cuda
    ):
        others = (first.item(), *others[1:])
    return original(self, *others, **named)


def _split_by_host(original: Callable[..., Any], *args: Any, **named: Any) -> Any:
    given = args[1] if len(args) > 1 else named.get("tensor_indices_or_sections")
    if isinstance(given, Tensor) and given.is_cuda:
        # ATen/native/TensorShape.cpp.
        message = (
            "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on"
        )
        raise RuntimeError(f"{message} {given.device}")
    return original(*args, **named)


class _Extreme(torch.autograd.Function):
    """One element of a tensor, whose gradient is shared by all elements equal to it.

    By ``evenly_distribute_backward`` in torch/csrc/autograd/FunctionsManual.cpp: on CUDA nothing is read.
    """

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, original: Callable[[Tensor], Tensor]
    ) -> Tensor:
        value = original(tensor)
        ctx.save_for_backward(tensor, value)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        tensor, value = ctx.saved_tensors
        is_nan = value.isnan()
        both_nan = tensor.isnan().logical_and_(is_nan)
        mask = (tensor == value).logical_or_(both_nan)
        # All is held until the product is there.
        count = mask.sum()
        return mask * (gradients[0] / count), None


def _share_evenly(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """One of ``EXTREMES``, with the gradient that it has on CUDA."""
    if (
        len(args) == 1
        and not kwargs
        and isinstance(args[0], Tensor)
        and args[0].requires_grad
        and torch.is_grad_enabled()
        and args[0].is_cuda
        # Under vmap and its kin, and in forward mode, the formula is CUDA's already, or none is taken.
        and not torch._C._functorch.is_functorch_wrapped_tensor(args[0])
        and torch.autograd.forward_ad._current_level < 0
    ):
        extreme_with_gradient: Any = _Extreme.apply
        return extreme_with_gradient(args[0], original)
    return original(*args, **kwargs)
