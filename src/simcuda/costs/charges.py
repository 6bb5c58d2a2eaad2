"""Charge an operation after it ran on the CPU: place its results on devices and count its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import torch
from torch import Tensor

from simcuda.costs.call import (
    ANYTHING,
    ONE_KERNEL,
    TRIALS,
    OpCost,
    OperationCall,
    tensors_in,
)
from simcuda.costs.declared import WrongCostError, declared_cost, declared_name
from simcuda.costs.determinism import fills_memory
from simcuda.costs.launches import kernels_over
from simcuda.costs.rules.kernels import UNFILLED_OPS
from simcuda.costs.rules.rule import UNTRIED
from simcuda.costs.traits import OperationTraits
from simcuda.device.machine import Machine
from simcuda.device.ordering import Data
from simcuda.device.storages import HOST, NO_STORAGE, Tag, is_sparse, parts_of
from simcuda.ledger import WITHIN_OPERATION, Slack

FILLS = "torch.utils.deterministic.fill_uninitialized_memory"
Tags = Sequence[Tag | None]
Tensors = Sequence[Tensor]


@dataclass(frozen=True)
class Charges:
    """Charges operations to one machine."""

    _machine: Machine
    # Convolutions whose plans cuDNN has tried.
    _tried: set[str] = field(default_factory=set)

    def on_host(
        self,
        traits: OperationTraits,
        call: OperationCall,
        tags: Tags,
        *,
        pinned: bool,
        floating: bool,
    ) -> None:
        """Record the results of an operation on the host; ``Tag`` explains ``pinned`` and ``floating``."""
        machine = self._machine
        known = [tag for tag in tags if tag is not None]
        if not call.outputs and not any(
            tag.device != HOST or tag.pinned or tag.floating for tag in known
        ):
            return
        # The host reads and writes pinned memory, which copies may still be using.
        written = [*tensors_in(map(call.argument, traits.written))]
        for tensor, tag in zip(call.inputs, tags, strict=True):
            if tag is not None and tag.pinned:
                is_written = any(tensor is other for other in written)
                machine.host_touches(machine.touched(tensor, tag), writes=is_written)
        for tensor in call.outputs:
            if traits.hands_out or not any(tensor is other for other in call.inputs):
                placed = self.place(tensor, HOST, pinned=pinned, floating=floating)
                if traits.hands_out and placed is not None:
                    machine.unclaimed.add(placed.serial)
        if floating:
            self._owe(traits, call, known)
        if traits.resizes:
            self.follow_sizes(call.inputs)
        device = next((tag.device for tag in known if tag.device != HOST), HOST)
        if device != HOST:
            # An operation on the host may still read values from a device.
            cost = self._cost(traits, call)
            for kind, size in cost.copies:
                if kind == "d2h":
                    machine.ledger.count(kind, 1, size)
            for _ in range(cost.waits):
                machine.wait_for_stream(machine.current.streams[device])

    def on_device(
        self, traits: OperationTraits, call: OperationCall, tags: Tags, device: int
    ) -> None:
        """Charge an operation on a device, given the tags of its inputs.

        Raises:
            torch.OutOfMemoryError: The device has no room for results, temporaries or workspaces.
        """
        machine = self._machine
        cost = self._cost(traits, call)
        if traits.resizes:
            self.follow_sizes(call.inputs)
        # In the order of CUDA, on which the peak depends: what passes, temporaries, results, workspaces.
        if cost.passing:
            machine.free(device, machine.use_for_a_while(device, cost.passing))
        blocks = (
            machine.use_for_a_while(device, cost.temporaries)
            if cost.temporaries
            else []
        )
        if fills_memory() and traits.op.rpartition(".")[0] not in UNFILLED_OPS:
            # What of it ATen makes by ``at::empty`` is filled.
            made = (
                len(call.outputs)
                + len(cost.temporaries)
                + len(cost.workspaces)
                + len(cost.passing)
            )
            machine.ledger.doubt(
                FILLS, dict.fromkeys(("launches", "aten_launches"), (0, made))
            )
        try:
            written = self._placed(traits, call.inputs, call.outputs, tags, device)
            if cost.workspaces:
                blocks += machine.use_for_a_while(device, cost.workspaces)
        finally:
            if blocks:
                machine.free(device, blocks)
        for kind, size in cost.copies:
            machine.ledger.count(kind, 1, size)
        library = cost.library
        if library is not None and library.is_cublas:
            machine.use_cublas(device)
        if cost.launches or cost.copies or library is not None:
            writes = self._touched(call.outputs, written)
            # A list that is written comes first among the inputs.
            count = len(call.first) if traits.writes_first and traits.is_foreach else 0
            reads = (
                self._touched(call.inputs[count:], tags[count:]) if traits.reads else []
            )
            if count:
                writes += self._touched(call.inputs[:count], tags[:count])
            elif traits.written and not (traits.writes_first and call.outputs):
                others = [*tensors_in(map(call.argument, traits.written))]
                writes += self._touched(others, [*map(machine.storages.of, others)])
            machine.run(
                device,
                cost.launches,
                reads,
                writes,
                0 if library is None else library.usual,
            )
        for _ in range(cost.waits):
            machine.wait_for_stream(machine.current.streams[device])

    def place(
        self,
        tensor: Tensor,
        device: int,
        *,
        pinned: bool = False,
        floating: bool = False,
    ) -> Tag | None:
        """The tag of a result, which is new unless it shares the storage of another tensor.

        Of a sparse tensor it is the tag of its values; None for any other tensor without a storage.
        """
        try:
            storage = tensor.untyped_storage()
        except NO_STORAGE:
            tag = None
            for part in parts_of(tensor):
                tag = self.place(part, device, pinned=pinned, floating=floating)
            if tag is not None:
                self._machine.has_sparse = True
            return tag
        # A view, or the result of an operation in place, is on the device of its storage.
        tag = self._machine.storages.tags.get(storage._cdata)
        if tag is not None:
            return tag
        if tensor._is_zerotensor():
            # aten/src/ATen/EmptyTensor.h: nothing is allocated for zeros that are only known.
            return self._machine.storages.add(storage, device, 0)
        if device == HOST:
            # Tensors without data take no memory on the host.
            if tensor.is_meta:
                return None
            return self._machine.place_on_host(
                storage, pinned=pinned, floating=floating
            )
        return self._machine.place(storage, device, WITHIN_OPERATION)

    def _placed(
        self,
        traits: OperationTraits,
        inputs: Tensors,
        outputs: Tensors,
        tags: Tags,
        device: int,
    ) -> list[Tag | None]:
        """The tags of an operation's results; a tensor written in place already has one."""
        # Most operations in place write to their first argument, and its tag is known.
        if (
            inputs
            and len(outputs) == 1
            and outputs[0] is inputs[0]
            and not is_sparse(outputs[0])
        ):
            return [tags[0]]
        placed = []
        for position, tensor in enumerate(outputs):
            placed.append(
                self.place(tensor, HOST if position == traits.host_result else device)
            )
        return placed

    def _owe(
        self, traits: OperationTraits, call: OperationCall, tags: Sequence[Tag]
    ) -> None:
        """Remember the kernels of a floating tensor, to charge them once its device is known."""
        owed = self._cost(traits, call).launches
        for tag in tags:
            owed, tag.owed = owed + tag.owed, 0
        for tensor in call.outputs[:1]:
            made = self._machine.storages.of(tensor)
            if made is not None and made.floating:
                made.owed += owed

    def _touched(self, tensors: Tensors, tags: Tags) -> list[Data]:
        """Return the memory on devices that a kernel touches, for tensors with these tags."""
        touched = self._machine.touched
        if not self._machine.has_side_streams:
            # Parts do not matter.
            return [
                tag.serial for tag in tags if tag is not None and tag.device != HOST
            ]
        return [
            touched(tensor, tag)
            for tensor, tag in zip(tensors, tags, strict=True)
            if tag is not None and tag.device != HOST
        ]

    def follow_sizes(self, tensors: Tensors) -> None:
        """Charge what the storages of tensors have grown by while C++ code ran on the host."""
        for tensor in tensors:
            tag = None if is_sparse(tensor) else self._machine.storages.of(tensor)
            # ``out=`` and ``resize_`` may have grown the storage while the operation ran on the CPU.
            if tag is not None and tag.nbytes != tensor.untyped_storage().nbytes():
                self._machine.resized(tag, tensor.untyped_storage().nbytes())

    def _try_plans(self, call: OperationCall) -> None:
        """Mark the first convolution of these sizes, for which cuDNN tries every plan.

        Source: ATen/native/cudnn/Conv_v8.cpp.
        """
        sizes = [
            (tensor.shape, tensor.stride(), tensor.dtype) for tensor in call.inputs
        ]
        given = (*call.args, *call.kwargs.values())
        others = [value for value in given if not isinstance(value, Tensor)]
        tried = f"{call.op} {sizes} {others}"
        if tried not in self._tried:
            self._tried.add(tried)
            self._machine.ledger.doubt("torch.backends.cudnn.benchmark", TRIALS)

    def _cost(self, traits: OperationTraits, call: OperationCall) -> OpCost:
        ledger = self._machine.ledger
        has_sparse = self._machine.has_sparse and any(
            map(is_sparse, (*call.inputs, *call.outputs))
        )
        outputs = call.outputs
        has_nested = outputs and (
            outputs[0].is_nested or (call.inputs and call.inputs[0].is_nested)
        )
        is_dense = not has_sparse and not has_nested
        for rule in traits.rules:
            if (is_dense or rule.any_layout) and (rule.when is None or rule.when(call)):
                cost = rule.cost(call)
                if UNTRIED:
                    ledger.doubt(UNTRIED, {})
                    ledger.doubt(traits.op, {})
                if cost.library is not None:
                    ledger.doubt(traits.op, cost.library.slack)
                    if cost.library.is_convolution and torch._C._get_cudnn_benchmark():
                        self._try_plans(call)
                elif rule.approximate:
                    ledger.doubt(traits.op, _slack(cost))
                return cost
        if not is_dense and call.outputs:
            # Most rules describe dense tensors; whether CUDA's operations on others wait is unknown.
            ledger.doubt(traits.op)
            return _elementwise(call.outputs)
        cost = _elementwise(call.outputs)
        if traits.is_foreign and (name := declared_name(traits.op)):
            try:
                cost = declared_cost(call)
            except WrongCostError as error:
                ledger.doubt(f"{traits.op}, whose declared cost {error}")
                return cost
            ledger.doubt(name, {})
            return cost
        if traits.is_unknown:
            ledger.doubt(traits.op)
        elif not traits.is_one_kernel:
            ledger.doubt(traits.op, _slack(cost))
        return cost


def _slack(cost: OpCost) -> Slack:
    """Return the bounds of an estimate: none of its kernels and workspaces is sure, and there may be more."""
    blocks = len(cost.temporaries) + len(cost.workspaces) + len(cost.passing)
    kernels = dict.fromkeys(("launches", "aten_launches"), (cost.launches, inf))
    return {**ANYTHING, **kernels, "allocations": (blocks, inf)}


def _elementwise(outputs: Tensors) -> OpCost:
    kernels = max(map(kernels_over, outputs), default=0)
    return ONE_KERNEL if kernels == 1 else OpCost(kernels)
