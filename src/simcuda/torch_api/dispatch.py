"""The dispatcher: every operation runs on the CPU, and is charged as CUDA would have run it.

For C++ code every simulated tensor is a CPU tensor. So a device ``cpu`` among the arguments of an operation
means "where the other tensors are", unless Python code asked for it: Python's factories say so by passing
``pin_memory`` too, and copies to the host arrive through ``Dispatcher.copy``.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from simcuda.costs import determinism
from simcuda.costs.call import OperationCall, all_tensors_in
from simcuda.costs.charges import Charges
from simcuda.costs.copies import charge_copy
from simcuda.costs.declared import python_kernel
from simcuda.costs.determinism import is_deterministic
from simcuda.costs.launches import LARGEST_OFFSET, kernels_over
from simcuda.costs.rules.layouts import OF_SPARSE_TENSORS
from simcuda.costs.stand_ins import WideOperation
from simcuda.costs.traits import OperationTraits, traits_of
from simcuda.device.dispatch_key import watched
from simcuda.device.machine import Machine, is_in_backward
from simcuda.device.storages import HOST, Tag, device_of_tag, is_sparse
from simcuda.ledger import WITHIN_OPERATION
from simcuda.torch_api.fake_tensors import is_fake
from simcuda.torch_api.operands import common_device, joins_gradients

CPU = torch.device("cpu")
_PYTHON = torch._C.DispatchKey.Python
HOST_LACKS_MEMORY = re.compile(
    r"DefaultCPUAllocator: .*you tried to allocate (\d+) bytes"
)
HOST_LACKS_KERNEL = "with arguments from the 'CPU' backend"
_TO_COPY = torch.ops.aten._to_copy.default._op
BY_EACH_TENSOR = torch._C.DispatchKey.CompositeExplicitAutograd
_ADD_IN_PLACE = torch.ops.aten.add_.Tensor
MAKING = (
    "aten.repeat.default",
    "aten.constant_pad_nd.default",
    "aten.diag_embed.default",
)
"""What makes its result where the first argument is, also if it copies nothing there."""
Arguments = Mapping[str, Any]
executing: list[Callable[[Any, Sequence[Any], Arguments], Any]] = []
"""What runs an operation in place of torch, the innermost last, as for a replay that needs shapes alone."""


class _Destination(threading.local):
    """The target of the copy that a thread is about to make, if Python code asked for it."""

    device: int | None = None


class Dispatcher:
    """Watches every operation for one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        # By the address of an operation, which torch never frees: hashing one is Python code.
        self._traits: dict[int, OperationTraits] = {}
        self._charges = Charges(machine)
        self._of = machine.storages.of
        self.destination = _Destination()
        self._last_device = HOST

    def run(self, func: Any, args: Sequence[Any], kwargs: Arguments) -> Any:
        """Run one operation, given an overload and its arguments, and place its results where CUDA would.

        Raises:
            RuntimeError: The tensors lie on several devices.
            NotImplementedError: CUDA has no kernel for it.
            torch.OutOfMemoryError: The device has no room.
        """
        traits = self._traits.get(id(func))
        if traits is None:
            traits = self._traits[id(func)] = traits_of(func)
            if "nested" in traits.op or "sparse" in traits.op:
                self._machine.has_sparse = True
        machine = self._machine
        adds = traits.joins_gradients and is_in_backward()
        has_others = machine.has_sparse or machine.has_side_streams
        # Most operations are plain.
        if traits.is_plain and not (
            kwargs or adds or has_others or executing or is_deterministic()
        ):
            result = self._run_plain(traits.call, args)
            if result is not None:
                return result
        if traits.shared and machine.has_sparse and (key := _shared_code(traits, args)):
            with watched():
                if traits.op.startswith("aten.add") and not args[0].is_nested:
                    return _join(*args, **kwargs, in_place=traits.writes_first)
                return func._op_dk(key, *args, **kwargs)
        if adds and joins_gradients(args, kwargs):
            return self._run(traits_of(_ADD_IN_PLACE), _ADD_IN_PLACE, args, kwargs)
        return self._run_in_its_way(traits, func, args, kwargs)

    def _run_in_its_way(
        self, traits: OperationTraits, func: Any, args: Sequence[Any], kwargs: Arguments
    ) -> Any:
        """Run an operation that may be one of other libraries, a view, a copy, or made of others."""
        if traits.composite is not None and not (
            args and getattr(args[0], "is_nested", False)
        ):
            if traits.op == "aten.result_type.Tensor":
                # A number stands for a tensor here, which the operation does not take.
                return torch.result_type(*args)
            current = self._machine.current
            before = current.maker
            if (
                traits.op in MAKING
                and (tag := self._of(args[0])) is not None
                and tag.device != HOST
            ):
                current.maker = tag.device
            try:
                with watched():
                    return traits.composite(*args, **kwargs)
            finally:
                current.maker = before
        if traits.on_cuda is not None and _is_dense_on_device(args):
            with watched():
                made = traits.on_cuda(*args, **kwargs)
            if made is not NotImplemented:
                return made
        if traits.is_view:
            result = func._op(*args, **kwargs)
            # A sparse tensor that is transposed has parts of its own.
            if (
                self._machine.has_sparse
                and isinstance(result, Tensor)
                and is_sparse(result)
            ):
                return self._run(traits, func, args, kwargs)
            return result
        if traits.widening is not None or traits.stand_in is not None:
            return self._run(traits, self._as_on_cuda(traits, func, args), args, kwargs)
        if traits.is_foreign:
            return self._run_foreign(traits, func, args, kwargs)
        if traits.is_copy:
            return self._copy(traits, func, args, kwargs)
        return self._run(traits, func, args, kwargs)

    def copy(self, tensor: Tensor, device: int, **how: Any) -> Tensor:
        """A copy of ``tensor`` on a device or on ``HOST``; ``how`` are arguments of ``aten._to_copy``."""
        is_dispatched = torch._C._len_torch_dispatch_stack() or torch._C._dispatch_keys(
            tensor
        ).has(_PYTHON)
        if is_dispatched or is_fake(tensor):
            # Code of others looks at the arguments, and comes back with them.
            if "dtype" not in how:
                how |= {"dtype": tensor.dtype, "layout": tensor.layout}
            how["device"] = CPU if device == HOST else self._machine.devices[device]
            if is_fake(tensor):
                how["pin_memory"] = False  # as Python code says what it means
            return _TO_COPY(tensor, **how)  # type: ignore[no-any-return]
        self.destination.device = device
        try:
            return torch.ops.aten._to_copy.default(tensor, **how)  # type: ignore[no-any-return]
        finally:
            self.destination.device = None

    def _as_on_cuda(
        self, traits: OperationTraits, func: Any, args: Sequence[Any]
    ) -> Any:
        """The operation as CUDA runs it, where the host has no kernel or computes in a narrower type."""
        # A gradient that comes first may be missing.
        widening = traits.widening
        if self._machine.storages.device_of(all_tensors_in(args, {})[0]) == HOST:
            return func
        if traits.stand_in is not None:
            return traits.stand_in(func)
        if widening is None or args[0].dtype not in widening.types:
            return func
        return WideOperation(func, widening)

    def _run_foreign(
        self, traits: OperationTraits, func: Any, args: Sequence[Any], kwargs: Arguments
    ) -> Any:
        """Run an operation that is not ATen's own; where it is Python code, charge what it is made of."""
        devices = {*map(self._machine.storages.device_of, all_tensors_in(args, kwargs))}
        is_on_host = devices == {HOST}
        kernel = python_kernel(func, "cpu" if is_on_host else "cuda")
        if kernel is not None:
            with watched():
                return kernel(*args, **kwargs)
        if func.has_kernel_for_dispatch_key(
            "CUDA"
        ) and not func.has_kernel_for_dispatch_key("CPU"):
            raise NotImplementedError(
                f"{_name(traits)} has a kernel for CUDA alone, which does not run on a simulated CUDA "
                "device; give it one for the CPU, by torch.library.impl or in Python"
            )
        return self._run(traits, func, args, kwargs)

    def _run_plain(self, call: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Run an operation that is one kernel on dense tensors of one device; None if it is not."""
        machine = self._machine
        tags = machine.storages.tags
        device: int | None = None
        reads: list[int] = []
        try:
            # None of these operations takes a list of tensors.
            for value in args:
                if isinstance(value, Tensor):
                    tag = tags.get(value.untyped_storage()._cdata)
                    where = HOST
                    if tag is not None:
                        where = tag.device
                        reads.append(tag.serial)
                        if where == HOST and (tag.pinned or tag.floating):
                            return None
                    if where != device and device is not None:
                        return None
                    device = where
            if device is None or machine.unclaimed:
                return None
            result = call(*args)
        except (RuntimeError, TypeError, ValueError):
            # It fails again on the way that knows what CUDA would say.
            return None
        self._last_device = device
        if result is args[0]:
            writes = reads[:1]
            del reads[:1]
        elif device == HOST:
            self._charges.place(result, HOST)
        else:
            storage = result.untyped_storage()
            tag = tags.get(storage._cdata) or machine.place(
                storage, device, WITHIN_OPERATION
            )
            writes = [tag.serial]
        if device == HOST:
            return result
        kernels = 1 if 0 < result.nbytes < LARGEST_OFFSET else kernels_over(result)
        if kernels:
            machine.ledger.launch(kernels)
            conflicts = machine.ordering.launch(
                machine.current.streams[device], reads, writes
            )
            if conflicts:
                machine.raced(conflicts)
        return result

    def _run(
        self, traits: OperationTraits, func: Any, args: Sequence[Any], kwargs: Arguments
    ) -> Any:
        machine = self._machine
        asked, pinned = None, False
        if kwargs and traits.takes_device:
            kwargs, asked, pinned = self._take_device(traits, kwargs)
        if traits.value >= 0:
            args = self._bring_value(traits.value, args)
        inputs = all_tensors_in(args, kwargs)
        tags = [*map(self._of, inputs)]
        if machine.unclaimed and not traits.hands_out:
            self._bring_sequences(traits, args, tags[0] if tags else None)
        if traits.is_foreach and len({*map(device_of_tag, tags)}) > 1:
            # Lists that are spread over devices are walked tensor by tensor, as on CUDA.
            with watched():
                return func._op_dk(BY_EACH_TENSOR, *args, **kwargs)
        device = (
            common_device(machine, traits, args, kwargs, inputs, tags)
            if asked is None
            else asked
        )
        if device != HOST and traits.may_be_refused:
            self._refuse(traits, args, kwargs, device)
        try:
            if traits.draws:
                result = machine.generators.draw(func._op, args, kwargs, device)
            else:
                result = (
                    executing[-1](func, args, kwargs)
                    if executing
                    else func._op(*args, **kwargs)
                )
        except RuntimeError as error:
            # Where the host lacks memory and the device has not as much either, it is the device that fails.
            if device != HOST and (lacking := HOST_LACKS_MEMORY.search(str(error))):
                machine.refuse_more_than_all(device, int(lacking[1]))
            if device != HOST and HOST_LACKS_KERNEL in str(error):
                raise NotImplementedError(
                    f"{_name(traits)} does not run on a simulated CUDA device, because there is no kernel "
                    "for the CPU that computes its values; call other operations"
                ) from None
            raise
        if isinstance(result, Tensor):
            outputs = [result]
        else:
            outputs = all_tensors_in(
                result if isinstance(result, tuple) else (result,), {}
            )
        # What C++ code makes, or makes of such tensors, may be for any device; see ``Tag``.
        floating = device == HOST and (
            traits.takes_device and "pin_memory" not in kwargs
            if traits.makes
            else bool(tags) and all(tag is not None and tag.floating for tag in tags)
        )
        # ``repeat`` finds the order of dimensions by ranges on the host.
        if (
            floating
            and traits.makes
            and (is_in_backward() or "arange" not in traits.op)
        ):
            # A formula makes its constants where it works.
            device = self._last_device if is_in_backward() else machine.current.maker
        # Remembered for what a formula makes from nothing.
        self._last_device = device
        if device != HOST and machine.has_side_streams and is_in_backward():
            machine.follow_forward(device, torch._C._current_graph_task_id())
        call = OperationCall(
            traits.op,
            traits.names,
            args,
            kwargs,
            inputs,
            outputs,
            machine.storages,
            machine.profile,
        )
        if device == HOST:
            self._charges.on_host(traits, call, tags, pinned=pinned, floating=floating)
        else:
            self._charges.on_device(traits, call, tags, device)
        return result

    def _refuse(
        self,
        traits: OperationTraits,
        args: Sequence[Any],
        kwargs: Arguments,
        device: int,
    ) -> None:
        """Fail like CUDA without a kernel or enough memory, before the host does the work."""
        if traits.is_host_only:
            raise NotImplementedError(
                f"Could not run '{_name(traits)}' with arguments from the 'CUDA' backend. "
                "PyTorch has this operation for other backends only."
            )
        if traits.is_unordered:
            given = {**dict(zip(traits.names, args, strict=False)), **kwargs}
            determinism.refuse(traits.op.rpartition(".")[0], given)
        if traits.product_kernel:
            first = args[0]
            # What has no elements needs no kernel.
            if not (first.is_floating_point() or first.is_complex()) and all(
                t.numel() for t in args[:2]
            ):
                kind = first.type().rpartition(".")[2].removesuffix("Tensor")
                raise NotImplementedError(
                    f"\"{traits.product_kernel}\" not implemented for '{kind}'"
                )
        if traits.makes:
            names = traits.names[: len(args)]
            size = args[names.index("size")] if "size" in names else ()
            dtype = kwargs.get("dtype") or torch.get_default_dtype()
            self._machine.refuse_more_than_all(device, math.prod(size) * dtype.itemsize)

    def _bring_value(self, place: int, args: Sequence[Any]) -> Sequence[Any]:
        """Read the value that is to be written into a host tensor, if it is on a device."""
        if (
            place >= len(args)
            or not isinstance(args[place], Tensor)
            or args[place].dim()
        ):
            return args
        to, value = self._of(args[0]), self._of(args[place])
        if (
            value is None
            or value.device == HOST
            or (to is not None and (to.device != HOST or to.floating))
        ):
            return args
        with watched():
            return (*args[:place], self.copy(args[place], HOST), *args[place + 1 :])

    def _bring_sequences(
        self, traits: OperationTraits, args: Sequence[Any], indexed: Tag | None
    ) -> None:
        """Copy what C++ has just made of the sequences in an index to where the indexed tensor is.

        CUDA's build makes them there, so that masks are searched, and gradients find them, on the device.
        Source: torch/csrc/autograd/python_variable_indexing.cpp, sequenceToVariable.
        """
        machine = self._machine
        if (
            indexed is not None
            and indexed.device != HOST
            and traits.names[1:2] == ("indices",)
        ):
            for index in args[1]:
                tag = None if index is None else self._of(index)
                if (
                    tag is not None
                    and tag.serial in machine.unclaimed
                    and index.numel()
                ):
                    machine.adopt(tag, indexed.device)
                    machine.ledger.count("h2d", 1, index.nbytes)
                    machine.run(indexed.device, 0, (), (tag.serial,))
                    machine.wait_for_stream(machine.current.streams[indexed.device])
        machine.unclaimed.clear()

    def _take_device(
        self, traits: OperationTraits, kwargs: Arguments
    ) -> tuple[Arguments, int | None, bool]:
        """The arguments for the CPU, the device that they ask for, and whether they ask for pinned memory."""
        pinned = bool(kwargs.get("pin_memory"))
        if pinned:
            kwargs = {**kwargs, "pin_memory": False}
        asked = kwargs.get("device")
        if asked is None:
            return kwargs, HOST if traits.makes else None, pinned
        index = self._machine.index(asked)
        if index == HOST and asked.type != "cpu":
            # Another kind of device, such as ``meta``, is as little simulated as the host.
            return kwargs, HOST, pinned
        # The check of C++ would not see a simulated device.
        if index != HOST and pinned:
            raise RuntimeError("Only dense CPU tensors can be pinned")
        is_from_python = "pin_memory" in kwargs
        meant = index != HOST or traits.makes or is_from_python
        return {**kwargs, "device": CPU}, index if meant else None, pinned

    def _copy(
        self, traits: OperationTraits, func: Any, args: Sequence[Any], kwargs: Arguments
    ) -> Any:
        makes_its_target = traits.op == "aten._to_copy.default"
        source = args[0] if makes_its_target else args[1]
        destination, self.destination.device = self.destination.device, None
        if traits.takes_device and destination is None:
            kwargs, destination, _ = self._take_device(traits, kwargs)
        target = kwargs.get("device", CPU)
        # A copy to ``meta`` moves nothing. A number stands for a tensor where ``vmap`` promotes its type.
        if not isinstance(source, Tensor) or (
            target is not None and target.type not in ("cpu", "cuda")
        ):
            return func._op(*args, **kwargs)
        non_blocking = bool(
            kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
        )
        result = (
            executing[-1](func, args, kwargs)
            if executing
            else func._op(*args, **kwargs)
        )
        if makes_its_target:
            tag = self._of(source)
            here = device_of_tag(tag)
            there = here if destination is None else destination
            if destination is not None:
                self._machine.settle((tag,))
            floating = tag is not None and tag.floating
            # A copy to the host that it need not wait for goes to pinned memory.
            self._charges.place(
                result, there, pinned=non_blocking and here != there, floating=floating
            )
        else:
            # A result that was given may have grown before.
            self._charges.follow_sizes((result,))
        charge_copy(self._machine, result, source, non_blocking=non_blocking)
        return result


def _is_dense_on_device(args: Sequence[Any]) -> bool:
    # A number may stand for a tensor.
    tensors = all_tensors_in(args, {})[:1]
    return any(
        each.is_cuda and each.layout is torch.strided and not each.is_nested
        for each in tensors
    )


def _name(traits: OperationTraits) -> str:
    """The name of an operation as errors give it, such as ``aten::mm``."""
    return traits.op.removesuffix(".default").replace(".", "::", 1)


def _join(one: Tensor, other: Tensor, *, alpha: Any = 1, in_place: bool) -> Tensor:
    """The sum of two sparse tensors, which CUDA joins; the host would merge them, and nothing had to wait."""
    # ATen/native/sparse/cuda/SparseCUDATensorMath.cu: add_out_sparse_cuda.
    added = other._values() if alpha == 1 else other._values() * alpha
    indices = torch.cat([one._indices(), other._indices()], 1)
    values = torch.cat([one._values(), added])
    made: Tensor = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors(
        one.sparse_dim(),
        one.dense_dim(),
        one.shape,
        indices,
        values,
        layout=one.layout,
        device=CPU,
    )
    if made._nnz() > made.numel():
        made = made.coalesce()
    if in_place:
        one.data = made
        return one
    return made


def _shared_code(traits: OperationTraits, args: Sequence[Any]) -> Any:
    """The code that CUDA has too for the layout of an operation's tensors; None for dense ones."""
    special = [
        t
        for t in all_tensors_in(args[:2], {})
        if t.is_nested or t.layout is not torch.strided
    ]
    expected = OF_SPARSE_TENSORS.get(traits.op.rpartition(".")[0], len(special))
    if not special or len(special) != expected:
        return None
    key = traits.shared.get(special[0].layout)
    is_sum = (
        key is not None
        and traits.op.startswith("aten.add")
        and not special[0].is_nested
    )
    if is_sum and (
        len({(t.dtype, t.device) for t in special}) > 1
        or not all(t._nnz() for t in special)
    ):
        return None
    return key
