"""What the dispatcher needs to know of each kind of operation, worked out once from its schema and tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from simcuda.cost.rules import CostRule, rules_for
from simcuda.cost.rules.layouts import SHARED
from simcuda.cost.rules.without_rule import HOST_ONLY, PRODUCT_KERNELS, TAKEN_APART_NAMES, never_waits
from simcuda.cost.stand_ins import FOR_CUDA_ALONE, WIDENED, Widening

COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
SHARED_CODE = (
    torch._C.DispatchKey.CompositeExplicitAutograd,
    torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional,
    torch._C.DispatchKey.CPU,
)
OWN_KERNELS = frozenset({"aten.silu_backward", "aten.mish_backward", "aten._fused_rms_norm"})
"""Operations that could be made of others, but have a kernel in the dispatcher of a CUDA build."""
HANDS_OUT = frozenset({"aten.lift", "aten.lift_fresh"})
COPIES = frozenset({"aten._to_copy", "aten.copy_"})
RESIZING = frozenset({"aten.resize_", "aten.resize_as_", "aten.set_", "aten._fused_moving_avg_obs_fq_helper"})
TAKE_HOST_TENSORS = frozenset({"aten._pack_padded_sequence", "aten._pack_padded_sequence_backward"})
HOST_RESULTS = {
    "aten._pack_padded_sequence": 1,
    **dict.fromkeys((f"aten._nested_tensor_{name}" for name in ("size", "strides", "storage_offsets")), 0),
}
TAKE_DEVICE_VALUES = frozenset(
    f"aten.{name}" for name in ("fill_", "fill", "index_fill_", "index_fill", "index_put_", "index_put")
)
TAKE_HOST_SCALARS = frozenset(
    f"aten.{name}"
    for name in (
        *("fill_", "fill", "masked_fill_", "masked_fill", "index_fill_", "index_fill", "where"),
        *("_fused_adam_", "_fused_adamw_", "_fused_sgd_", "_fused_adagrad_"),
    )
)


@dataclass(frozen=True, slots=True)
class OperationTraits:
    """One operation with overload.

    Attributes:
        op: Its name, such as ``aten.add.Tensor``.
        names: Names of its arguments.
        widening: How CUDA computes in a wider type than the host; None if it does not.
        composite: The code that makes it of other operations; None where there is none. Autograd would have
            taken most of them apart: in inference mode, and within custom operations, they arrive whole.
        is_view: Whether its results share the storage of an argument, and nothing runs.
        is_foreign: Whether it is not one of ATen's own, but made of them.
        is_copy: Whether it copies one tensor, perhaps between devices.
        hands_out: Whether C++ code uses it to return a tensor that it made on the host, unseen.
        joins_gradients: Whether the backward pass uses it to add up the gradients of one tensor.
        makes: Whether it makes tensors from none.
        takes_device: Whether it has an argument ``device``.
        reads: Whether it reads the data of its tensors; what makes a tensor like another one does not.
        draws: Whether it draws random numbers.
        written: Names of the arguments it writes to.
        writes_first: Whether that is the first one alone.
        resizes: Whether what it writes to may change size.
        is_foreach: Whether it takes lists of tensors that it walks side by side.
        takes_host_scalars: Whether 0-d host tensors may meet device tensors.
        takes_host_tensors: Whether any host tensors may.
        value: Position of a value without dimensions that is read where it is on a device and the first
            tensor is on the host; -1 for none.
        host_result: Position of a result that is on the host wherever the operation runs; -1 for none.
        rules: Its rules; the first that applies counts.
        is_unknown: Whether it might make the host wait if no rule applies.
        is_one_kernel: Whether it is one kernel if no rule applies.
        is_host_only: Whether it has no kernel for CUDA.
        product_kernel: What CUDA calls its kernel if it is a product of matrices, which takes no integers.
        may_be_refused: Whether to check for these, or for a lack of memory, before it runs on the host.
        is_plain: Whether it is one kernel that makes one result of tensors, or writes to its first argument,
            no more.
        is_special: Whether the dispatcher does more than run and charge it.
        shared: The code for sparse tensors, or, where it is strided, for nested ones, if CUDA has the same.
    """

    op: str
    names: tuple[str, ...]
    widening: Widening | None
    composite: Any
    is_view: bool
    is_foreign: bool
    is_copy: bool
    hands_out: bool
    joins_gradients: bool
    makes: bool
    takes_device: bool
    reads: bool
    draws: bool
    written: tuple[str, ...]
    writes_first: bool
    resizes: bool
    is_foreach: bool
    takes_host_scalars: bool
    takes_host_tensors: bool
    value: int
    host_result: int
    rules: tuple[CostRule, ...]
    is_unknown: bool
    is_one_kernel: bool
    is_host_only: bool
    product_kernel: str | None
    may_be_refused: bool
    is_plain: bool
    is_special: bool
    shared: Mapping[torch.layout, torch._C.DispatchKey]


@cache
def traits_of(operation: Any) -> OperationTraits:
    """The traits of an operator overload.

    Args:
        operation: An ``OpOverload``, such as ``torch.ops.aten.add.Tensor``.
    """
    schema, tag = operation._schema, torch.Tag
    op = f"{operation.namespace}.{schema.name.partition('::')[2]}.{operation._overloadname}"
    packet = op.rpartition(".")[0]
    rules = rules_for(op)
    names = tuple(argument.name for argument in schema.arguments)
    written = tuple(a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write)
    has_out = any(argument.is_out for argument in schema.arguments)
    # What has no tensor among its arguments makes tensors from nothing.
    makes = not any("Tensor" in str(argument.type) for argument in schema.arguments)
    # Any overload's tag counts: those that write to a given result have none.
    overloads = getattr(getattr(torch.ops, operation.namespace), packet.partition(".")[2])
    tags = {tag for overload in overloads.overloads() for tag in getattr(overloads, overload).tags}
    is_one_kernel = tag.pointwise in tags or tag.reduction in tags
    # The first of the kernels that make it of other operations.
    keys = (COMPOSITE, *SHARED_CODE) if packet in TAKEN_APART_NAMES else (COMPOSITE,)
    registered = torch._C._dispatch_has_kernel_for_dispatch_key
    composite = next((key for key in keys if registered(operation.name(), key.name)), None)
    if packet in OWN_KERNELS:
        composite = None
    # A view's results are aliases that nothing is written to.
    aliases = [result.alias_info for result in schema.returns]
    is_view = (
        bool(aliases)
        and all(alias is not None and not alias.is_write for alias in aliases)
        and packet not in HANDS_OUT
    )
    is_foreign = not op.startswith("aten.")
    joins_gradients = op == "aten.add.Tensor"
    value = next((place for place, name in enumerate(names) if name in ("value", "values")), -1)
    return OperationTraits(
        op=op,
        names=names,
        widening=WIDENED.get(packet),
        composite=composite,
        is_view=is_view,
        is_foreign=is_foreign,
        is_copy=packet in COPIES,
        hands_out=packet in HANDS_OUT,
        joins_gradients=joins_gradients,
        makes=makes,
        takes_device="device" in names,
        draws=tag.nondeterministic_seeded in operation.tags,
        # ``empty_like`` and its kin look at sizes alone.
        reads=not packet.endswith("_like") and not packet.startswith("aten.new_"),
        written=written,
        writes_first=written == names[:1],
        resizes=has_out or packet in RESIZING,
        is_foreach=packet.startswith("aten._foreach_"),
        takes_host_scalars=tag.pointwise in operation.tags or packet in TAKE_HOST_SCALARS,
        takes_host_tensors=packet in TAKE_HOST_TENSORS or any(rule.takes_host_tensors for rule in rules),
        value=value if packet in TAKE_DEVICE_VALUES else -1,
        host_result=HOST_RESULTS.get(packet, -1),
        rules=rules,
        is_unknown=not (is_one_kernel or never_waits(packet)),
        is_one_kernel=is_one_kernel,
        is_host_only=packet in HOST_ONLY,
        product_kernel=PRODUCT_KERNELS.get(packet),
        may_be_refused=makes or packet in HOST_ONLY or packet in PRODUCT_KERNELS,
        # The dispatcher takes a short way for these, which are most of what runs, while there is no tensor
        # of another layout.
        is_plain=is_one_kernel
        and [str(result.type) for result in schema.returns] == ["Tensor"]
        and not makes
        and tag.nondeterministic_seeded not in operation.tags
        and all(rule.any_layout for rule in rules)
        and not is_foreign
        and written in ((), names[:1])
        and not has_out
        and packet not in RESIZING | HOST_RESULTS.keys() | HOST_ONLY,
        is_special=composite is not None
        or packet in WIDENED
        or op in FOR_CUDA_ALONE
        or is_view
        or is_foreign
        or packet in COPIES,
        # One function for every layout is not registered for each.
        shared={
            layout: key if registered(operation.name(), key.name) else SHARED_CODE[0]
            for layout, (key, names) in SHARED.items()
            if packet in names
        },
    )
