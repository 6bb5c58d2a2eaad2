"""The ways in which a recorded call may have been made: overloads, and values for what was not recorded.

A trace has no devices, most have no strides or scalars, and none has optional tensors in lists. What is
missing is not guessed: it is *open*, and the call is replayed in each of several ways. What all ways agree on
does not depend on it. Where a recording has everything, there is one way.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from simcuda.traces.call import DTYPES, Argument, RecordedTensor

MOST_WAYS = 16
"""Combinations of open values that are all tried; above that, each open value varies alone."""

TYPES = dict(
    enumerate((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.half, torch.float))
) | {
    7: torch.double,
    8: torch.complex32,
    9: torch.complex64,
    10: torch.complex128,
    11: torch.bool,
    15: torch.bfloat16,
    23: torch.float8_e5m2,
    24: torch.float8_e4m3fn,
}

FORMATS = torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d

NUMBERED: dict[str, dict[int, Any]] = {
    "dtype": TYPES,
    "memory_format": dict(enumerate(FORMATS)),
    "layout": {0: torch.strided},
}
"""What the numbers of c10/core (ScalarType.h, MemoryFormat.h, Layout.h) mean, as traces write arguments."""

HOST_COPIES = frozenset({"aten::to", "aten::_to_copy", "aten::copy_"})
"""Ops that copy between host and device: on which side their tensors are shows in the copy."""

DEVICE, HOST, PINNED, NUMBER = "device", "host", "pinned", "number"
"""Where a tensor is: on the device, in pageable or pinned memory of the host, or a number."""

UNBOUNDED = frozenset(
    ("dilation", "dims", "dtype", "fill_value", "indices", "input_sizes", "kernel_size", "output_size")
) | {"other", "padding", "self", "shape", "size", "split_sizes", "stride", "types in lists", "value"}
"""Open arguments of which only examples are tried."""

LISTS = ("List[Tensor]", "List[Optional[Tensor]]")

OPTIONAL_SCALARS = [
    f"Optional[{kind}]" for kind in ("int", "float", "bool", "number", "List[int]", "List[float]")
]

LIST_TYPES = (torch.float, torch.bfloat16, torch.int64)
"""Types that the tensors of a list may have: a trace does not tell."""


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of contiguous memory, in elements."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * max(size, 1))
    return tuple(strides[: len(shape)])


LAYOUTS: dict[str, Callable[[Sequence[int]], tuple[int, ...]]] = {
    "dense": dense_strides,
    "transposed": lambda shape: dense_strides(shape[::-1])[::-1],
    "sliced": lambda shape: (
        dense_strides((*shape[:-1], shape[-1] * 2)) if len(shape) > 1 else tuple(2 for _ in shape)
    ),
    "expanded": lambda shape: tuple(0 for _ in shape),
}
"""Memory layouts that are tried for all tensors of a call where strides were not recorded."""


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
class Way:
    """One way to make a call.

    Attributes:
        overload: Its overload, such as ``Tensor``.
        values: The arguments in the order of the schema; tensors are still to be made.
        chosen: What was open and how it was chosen here, such as ``("dim", "0")``.
    """

    overload: str
    values: tuple[Any, ...]
    chosen: tuple[tuple[str, str], ...]


def ways_to_call(
    op: str,
    arguments: Sequence[Argument],
    direction: str = "",
    *,
    pinned: bool = False,
    has_scalars: bool = False,
) -> Iterator[Way]:
    """The ways in which a call may have been made, the likeliest first.

    Args:
        op: Name without overload, such as ``aten::add``.
        arguments: As recorded.
        direction: ``h2d`` or ``d2h`` where the recording shows such a copy: it tells on which side the
            tensors of a copying op were. Empty otherwise.
        pinned: Whether the host's side of that copy is pinned.
        has_scalars: Whether scalars were recorded: an optional one that is missing then held nothing.

    Raises:
        NotReplayableError: No overload takes these arguments, or some were recorded in part.
    """
    packet: Any = getattr(torch.ops.aten, op.removeprefix("aten::"), None)
    # A hacked twin is TorchScript's view of an overload.
    is_op = isinstance(packet, torch._ops.OpOverloadPacket)
    overloads: list[str] = packet.overloads() if is_op else []
    names = [name for name in overloads if "hacked_twin" not in name]
    if any(isinstance(each, RecordedTensor) and not each.dtype for each in arguments):
        raise NotReplayableError("the type of a tensor was not recorded")
    for each in _tensors_in(arguments):
        numbers = (*each.shape, *(each.strides or ()))
        has_strides = each.strides is None or len(each.strides) == len(each.shape)
        if not has_strides or not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise NotReplayableError("a tensor is not strided, or has no shape")
    fitting = [name for name in names if _fits(getattr(packet, name)._schema.arguments, arguments)]
    if not fitting:
        raise NotReplayableError(
            f"no overload in torch {torch.__version__.split('+')[0]} takes these arguments"
        )
    # Traces without scalars cannot tell some overloads apart.
    for name in fitting:
        schema = getattr(packet, name)._schema.arguments
        overload = () if len(fitting) == 1 else (("overload", name),)
        for values, chosen in _ways(schema, arguments, direction, PINNED if pinned else HOST, has_scalars):
            yield Way(name, values, overload + chosen)


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
    """The value of a scalar's text; None if it is none of this kind."""
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
    return value if isinstance(value, int) or (isinstance(value, float) and kind != "int") else None


def _ways(
    schema: Sequence[Any], arguments: Sequence[Argument], direction: str, host: str, has_scalars: bool
) -> Iterator[tuple[tuple[Any, ...], tuple[tuple[str, str], ...]]]:
    tensors = _tensors_in(arguments)
    lacks_strides = any(each.strides is None and each.shape for each in tensors)
    lacks_types = not all(each.dtype for each in tensors)
    # A number in Python code is recorded as a tensor without dimensions.
    has_numbers = len(tensors) > 1 and any(map(_may_be_number, tensors))
    # Properties of all tensors and then the arguments, and the values each may have; open if several.
    slots: list[tuple[str, Sequence[tuple[str, Any]]]] = [
        ("strides", [*LAYOUTS.items()] if lacks_strides else [("", dense_strides)]),
        ("types in lists", [(str(each), each) for each in (LIST_TYPES if lacks_types else (None,))]),
        ("numbers", [(each, each) for each in ((NUMBER, DEVICE) if has_numbers else (DEVICE,))]),
    ]
    for argument, value in zip(schema, arguments, strict=False):
        options: Sequence[Any] = [value]
        if isinstance(value, str):
            given = _parsed(_plain(str(argument.type)), value)
            # A number may stand for a type, a layout or a memory format.
            if (named := NUMBERED.get(argument.name)) is None:
                options = [given]
            elif given in named:
                options = [named[given]]
            else:
                raise NotReplayableError(f"the {argument.name} {given} is not known")
        elif value is None and not (has_scalars and str(argument.type) in OPTIONAL_SCALARS):
            options = open_values(argument, tensors, direction)
        slots.append((argument.name, [(str(each), each) for each in options]))
    writes = bool(schema and schema[0].alias_info is not None and schema[0].alias_info.is_write)
    # A copy goes from the first tensor, or into it from the second.
    on_host = (0 if direction == "h2d" else 1) if not writes else (1 if direction == "h2d" else 0)
    for choice in _combinations([options for _, options in slots]):
        layout, list_type, place = (value for _, value in choice[:3])
        values = tuple(
            # What is written to, or comes first, is no number.
            _to_make(
                value,
                layout,
                list_type,
                host if direction and position == on_host else place if position else DEVICE,
            )
            for position, (_, value) in enumerate(choice[3:])
        )
        chosen = zip(slots, choice, strict=True)
        yield values, tuple((name, label) for (name, options), (label, _) in chosen if len(options) > 1)


def _to_make(value: Any, layout: Any, list_type: torch.dtype | None, place: str) -> Any:
    if isinstance(value, tuple):
        return [_to_make(each, layout, list_type, place) for each in value]
    if not isinstance(value, RecordedTensor):
        return value
    strides = layout(value.shape) if value.strides is None else value.strides
    dtype = DTYPES.get(value.dtype) if value.dtype else list_type
    if dtype is None:
        raise NotReplayableError(f"the type {value.dtype} is not known")
    where = DEVICE if place == NUMBER and not _may_be_number(value) else place
    return TensorToMake(value.shape, tuple(strides), dtype, where)


def _tensors_in(arguments: Sequence[Argument]) -> list[RecordedTensor]:
    return [each for each in tree_leaves(arguments) if isinstance(each, RecordedTensor)]


def _may_be_number(tensor: RecordedTensor) -> bool:
    return not tensor.shape and DTYPES.get(tensor.dtype) in (torch.double, torch.int64, torch.bool)


def _combinations(options: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    if math.prod(map(len, options)) <= MOST_WAYS:
        yield from product(*options)
        return
    base = tuple(each[0] for each in options)
    yield base
    for position, each in enumerate(options):
        for value in each[1:]:
            yield (*base[:position], value, *base[position + 1 :])


def open_values(argument: Any, tensors: Sequence[RecordedTensor], direction: str) -> Sequence[Any]:
    """Values to try for an argument that was not recorded, the likeliest first.

    Args:
        argument: The argument of the schema.
        tensors: The recorded tensors of the call.
        direction: As in ``ways_to_call``.

    Raises:
        NotReplayableError: It is a list of tensors.
    """
    kind, name = str(argument.type), argument.name
    plain = _plain(kind)
    shape = tensors[0].shape if tensors else ()
    default = [argument.default_value] if argument.has_default_value() else []
    if plain == "Device":
        if direction or not tensors:
            return [{"h2d": "cuda", "d2h": "cpu"}.get(direction, "cuda")]
        return [None if kind != plain else "cuda"]
    if plain == "List[Tensor]":
        raise NotReplayableError("the tensors of a list were not recorded")
    if plain == "List[Optional[Tensor]]":
        return list(_indices(shape, tensors[1].shape if len(tensors) > 1 else None))
    if name == "dtype":
        own = DTYPES.get(tensors[0].dtype) if tensors and kind == plain else None
        return list(dict.fromkeys([own, torch.float, torch.bfloat16, torch.int64]))
    if name == "memory_format":
        return [None, torch.contiguous_format] if kind != plain else [torch.contiguous_format]
    if plain in ("Tensor", "Generator", "str", "Stream") or name in ("layout", "pin_memory", "device"):
        return default or [None]
    if plain == "bool":
        return list(dict.fromkeys([*default, False, True]))
    if plain == "float":
        return list(dict.fromkeys([*default, 0.5, 0.0]))
    if plain == "number":
        return list(dict.fromkeys([*default, *([None] if kind != plain else []), 2, 0.5]))
    if plain == "List[bool]":
        return [[True] * 3, [True] * 2, [False, True, True]]
    return list(
        _integers(name, shape, [each.shape for each in tensors], default, is_list=plain == "List[int]")
    )


def _integers(
    name: str, shape: tuple[int, ...], shapes: Sequence[tuple[int, ...]], default: list[Any], *, is_list: bool
) -> Iterator[Any]:
    dims = range(len(shape))
    if "dim" in name and name != "dims":
        yield from default
        for dim in [dim for dim in dims if not default or dim != default[0] % max(len(shape), 1)]:
            yield [dim] if is_list else dim
        if is_list and len(shape) != 1:
            yield [*dims]
        elif not shape:
            yield 0
        return
    if not is_list:
        known = {
            "start": [0, 1],
            "end": [2**63 - 1, 1],
            "step": [1, 2],
            "length": [1],
            "index": [0],
            "groups": [1],
        }
        known |= {"size": [1], "chunks": [2], "k": [2, 1], "reduction": [1, 0, 2], "split_size": [1, 2]}
        yield from dict.fromkeys([*default, *known.get(name, [1, 0])])
    elif name == "normalized_shape":
        # As its weight, or as its last dimension.
        yield [*shapes[1]] if len(shapes) > 1 and shape[-len(shapes[1]) :] == shapes[1] else [*shape[-1:]]
    elif name == "split_sizes":
        for size in dict.fromkeys(shape):
            yield from ([size], [1, size - 1])
    elif name == "dims":
        yield from ([*dims], [*reversed(dims)])
    elif name in ("size", "shape"):
        yield from ([*shape], [-1], [2, *shape]) if shapes else ([7], [0], [1 << 20])
    elif name == "input_sizes":
        yield from ([*shape], [*(2 * size for size in shape)])
    elif name == "stride" and not default:
        yield from ([2, 2], [1, 1], [*dense_strides(shape)])
    else:
        known_lists = {"kernel_size": [[3, 3], [1, 1]], "output_size": [[1, 1]], "padding": [[1, 1], [0, 0]]}
        yield from known_lists.get(name, default or [[1, 1]])


def _indices(shape: tuple[int, ...], values: tuple[int, ...] | None) -> Iterator[Any]:
    """Lists of indices: numbers for neighbouring dimensions from any on, on the device or the host; masks."""
    for place in (DEVICE, HOST):
        for first in range(len(shape)):
            for count in range(1, len(shape) - first + 1):
                own = (7,) if values is None else values[first : len(values) - (len(shape) - first - count)]
                index = TensorToMake(own, dense_strides(own), torch.int64, place)
                yield [*[None] * first, *[index] * count]
        yield [TensorToMake(shape, dense_strides(shape), torch.bool, place)]
