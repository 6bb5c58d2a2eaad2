"""Derive what the dispatcher needs to know of each operation, once, from its schema and tags."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from simcuda.basis import in_aten, operations
from simcuda.costs.determinism import REFUSED
from simcuda.costs.made_of import MADE_OF
from simcuda.costs.recurrent import RECURRENT
from simcuda.costs.rules import rules_for
from simcuda.costs.rules.layouts import SHARED
from simcuda.costs.rules.without_rule import (
    HOST_ONLY,
    PRODUCT_KERNELS,
    TAKEN_APART_NAMES,
    never_waits,
)
from simcuda.costs.stand_ins import FOR_CUDA_ALONE, WIDENED

COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
SHARED_CODE = (
    torch._C.DispatchKey.CompositeExplicitAutograd,
    torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional,
    torch._C.DispatchKey.CPU,
)
OWN_KERNELS = frozenset(
    {"aten.silu_backward", "aten.mish_backward", "aten._fused_rms_norm"}
)
"""Operations that could be made of others, but have a kernel in the dispatcher of a CUDA build."""
HANDS_OUT = frozenset({"aten.lift", "aten.lift_fresh"})
COPIES = frozenset({"aten._to_copy", "aten.copy_"})
RESIZING = frozenset(
    {
        "aten.resize_",
        "aten.resize_as_",
        "aten.set_",
        "aten._fused_moving_avg_obs_fq_helper",
    }
)
TAKE_HOST_TENSORS = frozenset(
    {"aten._pack_padded_sequence", "aten._pack_padded_sequence_backward"}
)
HOST_RESULTS = {
    "aten._pack_padded_sequence": 1,
    **dict.fromkeys(
        (
            f"aten._nested_tensor_{name}"
            for name in ("size", "strides", "storage_offsets")
        ),
        0,
    ),
}
TAKE_DEVICE_VALUES = in_aten(
    ("fill_", "fill", "index_fill_", "index_fill", "index_put_", "index_put")
)
TAKE_HOST_SCALARS = in_aten(operations("host scalars"))


class OperationTraits:
    """One operation with overload, such as ``torch.ops.aten.add.Tensor``.

    Attributes:
        op: Its name, such as ``aten.add.Tensor``.
        names: Names of its arguments.
        widening: How CUDA computes in a wider type than the host; None if it does not.
        stand_in: What computes its values on the host, where CUDA has a kernel that the host lacks.
        composite: What makes it of other operations; None where nothing does. Autograd would have
            taken most of them apart: in inference mode, and within custom operations, they arrive whole.
        on_cuda: The same on CUDA, where the host has a kernel of its own.
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
        is_unordered: Whether its results on CUDA may differ from run to run.
        may_be_refused: Whether to check for these, or for a lack of memory, before it runs on the host.
        is_plain: Whether it is one kernel that makes one result of tensors, or writes to its first argument,
            no more.
        call: The function that computes it.
        shared: The code for sparse tensors, or, where it is strided, for nested ones, if CUDA has the same.
    """

    def __init__(self, operation: Any) -> None:
        schema, tag = operation._schema, torch.Tag
        self.op = f"{operation.namespace}.{schema.name.partition('::')[2]}.{operation._overloadname}"
        packet = self.op.rpartition(".")[0]
        self.rules = rules_for(self.op)
        self.names = names = tuple(argument.name for argument in schema.arguments)
        self.written: tuple[str, ...] = tuple(
            a.name
            for a in schema.arguments
            if a.alias_info is not None and a.alias_info.is_write
        )
        self.writes_first = self.written == names[:1]
        self.widening = WIDENED.get(packet)
        self.stand_in = FOR_CUDA_ALONE.get(self.op) or RECURRENT.get(self.op)
        # The first of the kernels that make it of other operations.
        is_taken_apart = packet in TAKEN_APART_NAMES and not self.rules
        keys = (COMPOSITE, *SHARED_CODE) if is_taken_apart else (COMPOSITE,)
        registered = torch._C._dispatch_has_kernel_for_dispatch_key
        of_others = next(
            (key for key in keys if registered(operation.name(), key.name)), None
        )
        by_key = (
            None
            if of_others is None or packet in OWN_KERNELS
            else partial(operation._op_dk, of_others)
        )
        self.on_cuda = MADE_OF.get(self.op)
        self.composite = None if self.on_cuda else by_key
        self.hands_out = packet in HANDS_OUT
        # A view's results are aliases that nothing is written to.
        aliases = [result.alias_info for result in schema.returns]
        are_views = all(alias is not None and not alias.is_write for alias in aliases)
        self.is_view = bool(aliases) and are_views and not self.hands_out
        self.is_foreign = not self.op.startswith("aten.")
        self.is_copy = packet in COPIES
        self.joins_gradients = self.op == "aten.add.Tensor"
        # What has no tensor among its arguments makes tensors from nothing.
        self.makes = not any(
            "Tensor" in str(argument.type) for argument in schema.arguments
        )
        self.takes_device = "device" in names
        self.draws = tag.nondeterministic_seeded in operation.tags
        # ``empty_like`` and its kin look at sizes alone.
        self.reads = not packet.endswith("_like") and not packet.startswith("aten.new_")
        has_out = any(argument.is_out for argument in schema.arguments)
        self.resizes = has_out or packet in RESIZING
        self.is_foreach = packet.startswith("aten._foreach_")
        self.takes_host_scalars = (
            tag.pointwise in operation.tags or packet in TAKE_HOST_SCALARS
        )
        self.takes_host_tensors = packet in TAKE_HOST_TENSORS or any(
            rule.takes_host_tensors for rule in self.rules
        )
        value = next(
            (place for place, name in enumerate(names) if name in ("value", "values")),
            -1,
        )
        self.value = value if packet in TAKE_DEVICE_VALUES else -1
        self.host_result = HOST_RESULTS.get(packet, -1)
        # Any overload's tag counts: those that write to a given result have none.
        overloads = getattr(
            getattr(torch.ops, operation.namespace), packet.partition(".")[2]
        )
        tags = {
            tag
            for overload in overloads.overloads()
            for tag in getattr(overloads, overload).tags
        }
        self.is_one_kernel = tag.pointwise in tags or tag.reduction in tags
        self.is_unknown = not (self.is_one_kernel or never_waits(packet))
        self.is_host_only = packet in HOST_ONLY
        self.product_kernel = PRODUCT_KERNELS.get(packet)
        self.is_unordered = packet in REFUSED
        self.may_be_refused = (
            self.makes
            or self.is_host_only
            or self.is_unordered
            or self.product_kernel is not None
        )
        # The dispatcher takes a short way for these, which are most of what runs, while there is no tensor
        # of another layout.
        self.is_plain = (
            self.is_one_kernel
            and (self.composite, self.on_cuda, self.widening, self.stand_in)
            == (None,) * 4
            and [str(result.type) for result in schema.returns] == ["Tensor"]
            and all(rule.any_layout for rule in self.rules)
            and self.written in ((), names[:1])
            and self.host_result < 0
            and not (
                self.may_be_refused
                or self.draws
                or self.is_foreign
                or self.is_view
                or self.is_copy
            )
            and not self.resizes
        )
        self.call = operation._op
        if self.is_plain:
            # What Python code calls by name takes half as long as an overload.
            kind = torch._C.TensorBase if self.written else torch._C._VariableFunctions
            self.call = getattr(kind, schema.name.partition("::")[2], self.call)
        # One function for every layout is not registered for each.
        self.shared = {
            layout: key if registered(operation.name(), key.name) else SHARED_CODE[0]
            for layout, (key, names) in SHARED.items()
            if packet in names
        }


traits_of: Callable[[Any], OperationTraits] = cache(OperationTraits)
"""The traits of an operator overload."""
