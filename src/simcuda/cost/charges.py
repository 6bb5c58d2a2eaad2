"""What an operation is charged once it has run on the CPU: places for its results, and its cost."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from simcuda.cost.call import ONE_KERNEL, Call, Cost, tensors_in
from simcuda.cost.indexing import LARGEST_OFFSET
from simcuda.cost.launches import elementwise
from simcuda.cost.operations import Plan
from simcuda.device.machine import Machine
from simcuda.device.sparse import is_sparse, parts_of
from simcuda.device.storages import HOST, NO_STORAGE, Tag

Tags = Sequence[Tag | None]
Tensors = Sequence[torch.Tensor]


class Charges:
    """Charges operations to one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._storages = machine.storages

    def on_host(self, plan: Plan, call: Call, tags: Tags, *, pinned: bool, floating: bool) -> None:
        """Note what an operation on the host has made; see ``Tag`` for ``pinned`` and ``floating``."""
        if not call.outputs and not any(map(_is_watched, tags)):
            return
        self._touch(plan, call, tags)
        for tensor in call.outputs:
            if plan.hands_out or not any(tensor is other for other in call.inputs):
                self.place(tensor, HOST, pinned=pinned, floating=floating)
        if floating:
            self._owe(plan, call, tags)
        if plan.resizes:
            self._follow_sizes(call.inputs)
        device = next((tag.device for tag in tags if tag is not None and tag.device != HOST), HOST)
        if device != HOST:
            self._read_by_host(self._cost(plan, call), device)

    def _read_by_host(self, cost: Cost, device: int) -> None:
        """Charge what an operation that runs on the host reads from a device on its way."""
        for kind, size in cost.copies:
            if kind == "d2h":
                self._machine.ledger.copy(kind, size)
        self._wait(cost.waits, device)

    def on_device(self, plan: Plan, call: Call, tags: Tags, device: int) -> None:
        """Charge an operation on a device."""
        machine = self._machine
        cost = self._cost(plan, call)
        if plan.resizes:
            self._follow_sizes(call.inputs)
        if cost.passing:
            machine.free(device, machine.use_for_a_while(device, cost.passing))
        blocks = machine.use_for_a_while(device, cost.temporaries) if cost.temporaries else []
        try:
            written = self._placed(plan, call.inputs, call.outputs, tags, device)
            if cost.workspaces:
                blocks += machine.use_for_a_while(device, cost.workspaces)
        finally:
            if blocks:
                machine.free(device, blocks)
        for kind, size in cost.copies:
            machine.ledger.copy(kind, size)
        if cost.implicit_waits:
            machine.ledger.count("implicit_syncs", cost.implicit_waits)
        if cost.launches or cost.copies:
            if plan.written:
                written += self._written(plan, call, tags)
            read = tags if plan.reads else ()
            reads = [tag.serial for tag in read if tag is not None and tag.device != HOST]
            machine.run(device, cost.launches, reads, [tag.serial for tag in written if tag is not None])
        if cost.waits:
            self._wait(cost.waits, device)

    def one_kernel(self, plan: Plan, inputs: Tensors, outputs: Tensors, tags: Tags, device: int) -> None:
        """Charge an operation whose plan is plain, as most are: the same as ``on_device``, in less time."""
        written = self._placed(plan, inputs, outputs, tags, device)
        kernels = _elementwise(outputs).launches
        if kernels:
            reads = [tag.serial for tag in tags if tag is not None and tag.device != HOST]
            self._machine.run(device, kernels, reads, [tag.serial for tag in written if tag is not None])

    def _placed(
        self, plan: Plan, inputs: Tensors, outputs: Tensors, tags: Tags, device: int
    ) -> list[Tag | None]:
        """The tags of an operation's results; what is written in place has one."""
        if len(outputs) > 1:
            with self._machine.ledger.one_line():
                return [
                    self.place(tensor, HOST if place == plan.host_result else device)
                    for place, tensor in enumerate(outputs)
                ]
        if not outputs:
            return []
        if inputs and outputs[0] is inputs[0] and not is_sparse(outputs[0]):
            return [tags[0]]
        return [self.place(outputs[0], device)]

    def _wait(self, times: int, device: int) -> None:
        for _ in range(times):
            self._machine.wait_for_stream(self._machine.stream(device))

    def place(
        self, tensor: torch.Tensor, device: int, *, pinned: bool = False, floating: bool = False
    ) -> Tag | None:
        """The tag of a result, which is new unless it shares the storage of another tensor."""
        try:
            storage = tensor.untyped_storage()
        except NO_STORAGE:
            return self._place_parts(tensor, device, pinned=pinned, floating=floating)
        tag = self._storages.of_storage(storage)
        if tag is not None:
            return tag
        if device == HOST:
            if tensor.is_meta:
                return None
            return self._machine.place_on_host(storage, pinned=pinned, floating=floating)
        return self._machine.place(storage, device)

    def _place_parts(self, tensor: torch.Tensor, device: int, *, pinned: bool, floating: bool) -> Tag | None:
        """The tag of the values of a sparse tensor; None for any other without a storage."""
        tag = None
        for part in parts_of(tensor):
            tag = self.place(part, device, pinned=pinned, floating=floating)
        if tag is not None and tag.device != HOST:
            self._machine.has_sparse = True
        return tag

    def _owe(self, plan: Plan, call: Call, tags: Tags) -> None:
        """Note the kernels that what floats will have taken, once it is known on which device."""
        owed = self._cost(plan, call).launches
        for tag in tags:
            if tag is not None:
                owed, tag.owed = owed + tag.owed, 0
        for tensor in call.outputs[:1]:
            made = self._storages.of(tensor)
            if made is not None and made.floating:
                made.owed += owed

    def _touch(self, plan: Plan, call: Call, tags: Tags) -> None:
        """Let the host read and write pinned memory, which copies may still be using."""
        pinned = [tag for tag in tags if tag is not None and tag.pinned]
        if pinned:
            written = [tag.serial for tag in self._written(plan, call, tags) if tag is not None]
            for tag in pinned:
                self._machine.host_touches(tag.serial, writes=tag.serial in written)

    def _written(self, plan: Plan, call: Call, tags: Tags) -> Tags:
        """The tags of what an operation writes to besides its results."""
        if plan.writes_first and call.args:
            first = call.args[0]
            return tags[: len(first) if isinstance(first, list | tuple) else 1]
        tensors = tensors_in(call.argument(name) for name in plan.written)
        return [self._storages.of(tensor) for tensor in tensors]

    def _follow_sizes(self, tensors: Sequence[torch.Tensor]) -> None:
        for tensor in tensors:
            tag = None if is_sparse(tensor) else self._storages.of(tensor)
            if tag is not None and tag.nbytes != tensor.untyped_storage().nbytes():
                self._machine.resized(tag, tensor.untyped_storage().nbytes())

    def _cost(self, plan: Plan, call: Call) -> Cost:
        if self._machine.has_sparse and call.outputs and any(map(is_sparse, (*call.inputs, *call.outputs))):
            # Rules are those of dense tensors; what CUDA's operations on sparse ones wait for is not known.
            self._machine.ledger.unknown(plan.op)
            return _elementwise(call.outputs)
        for rule in plan.rules:
            if rule.when(call):
                if rule.approximate:
                    self._machine.ledger.approximate(plan.op)
                return rule.cost(call)
        if plan.is_unknown:
            self._machine.ledger.unknown(plan.op)
        elif not plan.is_one_kernel:
            self._machine.ledger.approximate(plan.op)
        return _elementwise(call.outputs)


def _is_watched(tag: Tag | None) -> bool:
    """Whether more than the host's own order is at stake."""
    return tag is not None and (tag.device != HOST or tag.pinned or tag.floating)


def _elementwise(outputs: Sequence[torch.Tensor]) -> Cost:
    # Sparse tensors have no bytes of their own.
    if len(outputs) == 1 and outputs[0].layout is torch.strided and 0 < outputs[0].nbytes < LARGEST_OFFSET:
        return ONE_KERNEL
    kernels = max([elementwise(t.numel(), t.element_size()) for t in outputs], default=0)
    return ONE_KERNEL if kernels == 1 else Cost(kernels)
