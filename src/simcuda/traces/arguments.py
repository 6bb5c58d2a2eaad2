"""The arguments of a recorded call, as they can be made again.

No trace says where a tensor was, and none has the types of tensors in lists. Recorded with
``record_shapes=True`` by a PyTorch that records strides and scalars too, a trace has everything else. A call
that lacks one of them is not made again.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from simcuda.basis import operations
from simcuda.traces.call import DTYPES, Argument, RecordedTensor

TYPES = {
    number: getattr(torch, name)
    for name, number in operations("numbers of types").items()
}

FORMATS = (
    torch.contiguous_format,
    torch.preserve_format,
    torch.channels_last,
    torch.channels_last_3d,
)

NUMBERED: dict[str, dict[int, Any]] = {
    "dtype": TYPES,
    "memory_format": dict(enumerate(FORMATS)),
    "layout": {0: torch.strided},
}
"""What the numbers of c10/core (ScalarType.h, MemoryFormat.h, Layout.h) mean, as traces write arguments."""

HOST_COPIES = frozenset({"aten::to", "aten::_to_copy", "aten::copy_"})
"""Ops that copy between host and device: on which side their tensors are shows in the copy."""

DEVICE = "device"
HOST = "host"
PINNED = "pinned"
NUMBER = "number"
"""Where a tensor is: on the device, in pageable or pinned memory of the host, or a number."""

LISTS = ("List[Tensor]", "List[Optional[Tensor]]")


class NotReplayableError(Exception):
    """The call cannot be made again; the message says why."""


@dataclass(frozen=True)
class TensorToMake:
    """A tensor to be made: sizes and strides in elements, and where it is."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    place: str = DEVICE


@dataclass(frozen=True)
class CallToMake:
    """A recorded call that can be made again.

    Attributes:
        overload: Its overload, such as ``Tensor``.
        values: The arguments in the order of the schema; tensors are still to be made.
        has_lists: Whether tensors stand in lists, whose types are taken to be single precision.
        may_have_numbers: Whether a tensor without dimensions may have been a number in Python code.
    """

    overload: str
    values: tuple[Any, ...]
    has_lists: bool
    may_have_numbers: bool


def call_to_make(
    op: str,
    arguments: Sequence[Argument] | None,
    direction: str = "",
    *,
    pinned: bool = False,
) -> CallToMake:
    """Find the overload of a recorded call, and the values of its arguments.

    Args:
        op: Name without overload, such as ``aten::add``.
        arguments: As recorded.
        direction: ``h2d`` or ``d2h`` where the recording shows such a copy: it tells on which side the
            tensors of a copying op were. Empty otherwise.
        pinned: Whether the host's side of that copy is pinned.

    Raises:
        NotReplayableError: No overload takes these arguments, or some were not recorded.
    """
    if arguments is None:
        raise NotReplayableError("shapes, types, strides or scalars were not recorded")
    tensors = [
        each for each in tree_leaves(arguments) if isinstance(each, RecordedTensor)
    ]
    _check_tensors(arguments, tensors)
    overloads = fitting_overloads(op, arguments)
    if not overloads:
        version = torch.__version__.split("+")[0]
        raise NotReplayableError(
            f"no overload in torch {version} takes these arguments"
        )
    overload = overloads[0]
    schema = overload._schema.arguments
    if len(overloads) > 1 and len(overloads[1]._schema.arguments) == len(schema):
        raise NotReplayableError("several overloads take these arguments")
    # A copy goes from the first tensor, or into it from the second.
    writes = bool(
        schema and schema[0].alias_info is not None and schema[0].alias_info.is_write
    )
    host_side = int((direction == "h2d") == writes)
    values = []
    may_have_numbers = False
    for position, (argument, value) in enumerate(zip(schema, arguments, strict=False)):
        if value is None:
            values.append(_unrecorded(argument, direction, has_tensors=bool(tensors)))
        elif isinstance(value, str):
            values.append(_scalar(argument, value))
        elif direction and position == host_side:
            values.append(_to_make(value, PINNED if pinned else HOST))
        # A number in Python code is recorded as a tensor without dimensions, and what comes first is none.
        elif position and isinstance(value, RecordedTensor) and _may_be_number(value):
            may_have_numbers = True
            values.append(_to_make(value, NUMBER))
        else:
            values.append(_to_make(value, DEVICE))
    has_lists = any(isinstance(each, tuple) for each in arguments)
    return CallToMake(
        overload._overloadname, tuple(values), has_lists, may_have_numbers
    )


def fitting_overloads(op: str, arguments: Sequence[Argument]) -> list[Any]:
    """Return the overloads that take the arguments, those with as many arguments first."""
    found: object = getattr(torch.ops.aten, op.removeprefix("aten::"), None)
    if not isinstance(found, torch._ops.OpOverloadPacket):
        return []
    packet: Any = found
    # A hacked twin is TorchScript's view of an overload.
    overloads = [
        getattr(packet, name)
        for name in packet.overloads()
        if "hacked_twin" not in name
    ]
    fitting = [each for each in overloads if _fits(each._schema.arguments, arguments)]
    return sorted(fitting, key=lambda each: len(each._schema.arguments))


def may_not_block(op: str, arguments: Sequence[Argument] | None) -> bool:
    """Return whether a call was recorded with ``non_blocking=True``."""
    for overload in fitting_overloads(op, arguments or ())[:1]:
        names = [argument.name for argument in overload._schema.arguments]
        given = dict(zip(names, arguments or (), strict=False))
        return given.get("non_blocking") == "True"
    return False


def _check_tensors(
    arguments: Sequence[Argument], tensors: Sequence[RecordedTensor]
) -> None:
    if any(isinstance(each, RecordedTensor) and not each.dtype for each in arguments):
        raise NotReplayableError("the type of a tensor was not recorded")
    for each in tensors:
        numbers = (*each.shape, *each.strides)
        are_whole = all(isinstance(number, int) and number >= 0 for number in numbers)
        if len(each.strides) != len(each.shape) or not are_whole:
            raise NotReplayableError("a tensor is not strided, or has no shape")


def _fits(schema: Sequence[Any], arguments: Sequence[Argument]) -> bool:
    kinds = [str(argument.type) for argument in schema]
    if any("Dimname" in kind for kind in kinds) or len(schema) < len(arguments):
        return False
    # What later versions added to an op has a default.
    if not all(argument.has_default_value() for argument in schema[len(arguments) :]):
        return False
    for kind, argument in zip(kinds, arguments, strict=False):
        plain = _plain(kind)
        if argument is None:
            takes = kind != "Tensor"
        elif plain == "Tensor" or plain in LISTS:
            takes = isinstance(argument, RecordedTensor if plain == "Tensor" else tuple)
        else:
            takes = isinstance(argument, str) and _parsed(plain, argument) is not None
        if not takes:
            return False
    return True


def _plain(kind: str) -> str:
    return kind.removeprefix("Optional[")[:-1] if kind.startswith("Optional[") else kind


def _parsed(kind: str, text: str) -> Any:
    """Return the value of a scalar's text; None if it is not of this kind."""
    if kind in ("Device", "str"):
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        try:
            value = float(text)
        except ValueError:
            return None
    if kind.startswith("List["):
        return value if isinstance(value, list) else None
    if isinstance(value, bool):
        return value if kind in ("bool", "number") else None
    return (
        value
        if isinstance(value, int) or (isinstance(value, float) and kind != "int")
        else None
    )


def _scalar(argument: Any, text: str) -> Any:
    """Return the value of a recorded scalar."""
    value = _parsed(_plain(str(argument.type)), text)
    # A number may stand for a type, a layout or a memory format.
    named = NUMBERED.get(argument.name)
    if named is None:
        return value
    if value not in named:
        raise NotReplayableError(f"the {argument.name} {value} is not known")
    return named[value]


def _unrecorded(argument: Any, direction: str, *, has_tensors: bool) -> Any:
    """Return the value of an argument that held nothing, or that is never recorded."""
    kind = str(argument.type)
    if _plain(kind) == "Device" and (direction or not has_tensors):
        return "cpu" if direction == "d2h" else "cuda"
    if _plain(kind) in LISTS:
        raise NotReplayableError("the tensors of a list were not recorded")
    if argument.has_default_value():
        return argument.default_value
    if kind.startswith("Optional["):
        return None
    raise NotReplayableError(f"{argument.name} was not recorded")


def _to_make(value: Argument, place: str) -> Any:
    if isinstance(value, tuple):
        return [_to_make(each, place) for each in value]
    if not isinstance(value, RecordedTensor):
        return value
    dtype = DTYPES.get(value.dtype) if value.dtype else torch.float
    if dtype is None:
        raise NotReplayableError(f"the type {value.dtype} is not known")
    return TensorToMake(value.shape, value.strides, dtype, place)


def _may_be_number(tensor: RecordedTensor) -> bool:
    return not tensor.shape and DTYPES.get(tensor.dtype) in (
        torch.double,
        torch.int64,
        torch.bool,
    )
