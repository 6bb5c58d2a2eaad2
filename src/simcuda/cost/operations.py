"""What the dispatcher needs to know of each kind of operation, worked out once from its schema and tags."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from simcuda.cost.rules import RULES, Rule
from simcuda.cost.rules.composites import TAKEN_APART_NAMES
from simcuda.cost.rules.host_only import HOST_ONLY
from simcuda.cost.rules.never_waiting import never_waits

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
RESIZING = frozenset({"aten.resize_", "aten.resize_as_", "aten.set_"})
TAKE_HOST_TENSORS = frozenset({"aten._pack_padded_sequence", "aten._pack_padded_sequence_backward"})
HOST_RESULTS = {"aten._pack_padded_sequence": 1}
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
class Plan:
    """One operation with overload.

    Attributes:
        op: Its name, such as ``aten.add.Tensor``.
        names: Names of its arguments.
        composite: The code that makes it of other operations; None where there is none. Autograd would have
            taken most of them apart: in inference mode, and within custom operations, they arrive whole.
        is_view: Whether its results share the storage of an argument, and nothing runs.
        is_foreign: Whether it is not one of ATen's own, but made of them.
        is_copy: Whether it copies one tensor, perhaps between devices.
        hands_out: Whether C++ code hands out by it a tensor that it made on the host, unseen.
        joins_gradients: Whether the backward pass adds up by it the gradients that meet at one tensor.
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
        is_unknown: Whether it might make the host wait where no rule applies, for all that is known.
        is_one_kernel: Whether it is one kernel where no rule applies.
        is_host_only: Whether there is none for CUDA.
        may_be_refused: Whether that, or a lack of memory, is to be found out before it runs on the host.
        is_plain: Whether it is one kernel that makes its results or writes to its first argument, no more.
        is_special: Whether the dispatcher has something else to do than to run and charge it.
    """

    op: str
    names: tuple[str, ...]
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
    rules: tuple[Rule, ...]
    is_unknown: bool
    is_one_kernel: bool
    is_host_only: bool
    may_be_refused: bool
    is_plain: bool
    is_special: bool


@cache
def plan_of(operation: Any) -> Plan:
    """The plan of an operator overload."""
    schema = operation._schema
    op = f"{operation.namespace}.{schema.name.partition('::')[2]}.{operation._overloadname}"
    packet = op.rpartition(".")[0]
    rules = RULES.of(op)
    pointwise = torch.Tag.pointwise in operation.tags
    is_one_kernel = any(_is_tagged(packet, tag) for tag in (torch.Tag.pointwise, torch.Tag.reduction))
    names = tuple(argument.name for argument in schema.arguments)
    composite = _composite(operation.name(), packet)
    is_view = _is_view(schema) and packet not in HANDS_OUT
    is_foreign = not op.startswith("aten.")
    written = tuple(a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write)
    makes = not any("Tensor" in str(argument.type) for argument in schema.arguments)
    joins_gradients = op == "aten.add.Tensor"
    return Plan(
        op=op,
        names=names,
        composite=composite,
        is_view=is_view,
        is_foreign=is_foreign,
        is_copy=packet in COPIES,
        hands_out=packet in HANDS_OUT,
        joins_gradients=joins_gradients,
        makes=makes,
        takes_device=any(argument.name == "device" for argument in schema.arguments),
        draws=torch.Tag.nondeterministic_seeded in operation.tags,
        reads=not packet.endswith("_like") and not packet.startswith("aten.new_"),
        written=written,
        writes_first=written == names[:1],
        resizes=any(argument.is_out for argument in schema.arguments) or packet in RESIZING,
        is_foreach=packet.startswith("aten._foreach_"),
        takes_host_scalars=pointwise or packet in TAKE_HOST_SCALARS,
        takes_host_tensors=packet in TAKE_HOST_TENSORS or any(rule.takes_host_tensors for rule in rules),
        value=_position(names, "value", "values") if packet in TAKE_DEVICE_VALUES else -1,
        host_result=HOST_RESULTS.get(packet, -1),
        rules=rules,
        is_unknown=not (is_one_kernel or never_waits(packet)),
        is_one_kernel=is_one_kernel,
        is_host_only=packet in HOST_ONLY,
        may_be_refused=makes or packet in HOST_ONLY,
        is_plain=is_one_kernel
        and not rules
        and written in ((), names[:1])
        and not any(argument.is_out for argument in schema.arguments)
        and packet not in RESIZING
        and packet not in HOST_RESULTS,
        is_special=composite is not None or is_view or is_foreign or packet in COPIES or joins_gradients,
    )


def _composite(name: str, packet: str) -> Any:
    if packet in OWN_KERNELS:
        return None
    keys = (COMPOSITE, *SHARED_CODE) if packet in TAKEN_APART_NAMES else (COMPOSITE,)
    registered = torch._C._dispatch_has_kernel_for_dispatch_key
    return next((key for key in keys if registered(name, key.name)), None)


def _position(names: tuple[str, ...], *wanted: str) -> int:
    return next((place for place, name in enumerate(names) if name in wanted), -1)


def _is_view(schema: Any) -> bool:
    infos = [result.alias_info for result in schema.returns]
    return bool(infos) and all(info is not None and not info.is_write for info in infos)


@cache
def _is_tagged(packet: str, tag: torch.Tag) -> bool:
    """Whether any overload of an operation has a tag: those that write to a given result have none."""
    namespace, _, name = packet.partition(".")
    overloads = getattr(getattr(torch.ops, namespace), name)
    return any(tag in getattr(overloads, overload).tags for overload in overloads.overloads())
