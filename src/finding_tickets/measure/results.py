"""Make results plain, check them for work left undone, save them, and compare them in another process.

Plain values are instances of Python's and torch's own classes. A class of the code under test could claim to
equal everything, so none is left when results are compared, and reading saved results runs no code.
"""

from __future__ import annotations

import filecmp
import math
import sys
from collections import deque, namedtuple
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.utils.serialization.config  # loaded here, it is loaded once for all workers that save results

from finding_tickets.claims.check import named_at
from finding_tickets.measure.loading import load_workload
from finding_tickets.measure.tasks import KEPT, CannotMeasureError, own_folder

# Promises of work that has not run yet, and that nothing has counted.
LAZY: dict[str, type] = {
    "a generator": Generator,
    "a coroutine": Coroutine,
    "an awaitable": Awaitable,
    "an asynchronous iterator": AsyncIterator,
    "an iterator": Iterator,
}

# Ends the name of the file with the tensors of the arguments, as a variant leaves them.
ARGUMENTS = "-arguments"

# Numbers and texts, and how to read what one of a subclass holds, without its own methods.
SCALARS: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    type(None): lambda value: value,
}
CONTAINERS: dict[type, type] = {
    list: list,
    tuple: tuple,
    deque: list,
    set: set,
    frozenset: frozenset,
}
OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)
# Names the class among saved fields: as a keyword of Python it is the name of no field.
KIND = "class"


class SavedFields(SimpleNamespace):
    """The fields of a dataclass, or the name of an enum's member; the name of its class is under ``KIND``."""

    def __hash__(self) -> int:  # type: ignore[override]
        """That of the class: members of enums are keys of dictionaries."""
        return hash(vars(self)[KIND])


@cache
def named_tuple(kind: str, names: tuple[str, ...]) -> Any:
    """A class of named tuples in the place of the one of this name."""
    made = namedtuple("Saved", names, rename=True)  # type: ignore[misc]
    made.__qualname__ = kind
    return made


def parts_of(value: Any) -> dict[Any, Any] | None:
    """Return what a container or a dataclass holds by key, place or name; None for anything else."""
    # By the class's own items() and __iter__: work that waits for being looked at runs here, and is counted.
    if isinstance(value, Mapping):
        return dict(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if isinstance(value, list | tuple | deque | set | frozenset):
        return dict(enumerate(value))
    if isinstance(value, SavedFields):
        return {name: item for name, item in vars(value).items() if name != KIND}
    if is_dataclass(value) and not isinstance(value, type):
        # A field may never have been set.
        every = {
            field.name: getattr(value, field.name, fields) for field in fields(value)
        }
        return {name: item for name, item in every.items() if item is not fields}
    return None


def tensors_in(value: Any, name: str = "argument") -> dict[str, torch.Tensor]:
    """Collect the tensors in a value, with their gradients: also in containers, dataclasses and modules."""
    if isinstance(value, torch.Tensor):
        found = {name: value}
        if value.is_leaf and value.grad is not None:
            found[f"{name}.grad"] = value.grad
        return found
    if isinstance(value, torch.nn.Module):
        parts: Mapping[Any, Any] = {
            **dict(value.named_parameters()),
            **dict(value.named_buffers()),
        }
    else:
        parts = parts_of(value) or {}
    found = {}
    for key, part in parts.items():
        found.update(tensors_in(part, f"{name}[{key!r}]"))
    return found


def tensors_on_host(arguments: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    """Copy the tensors of arguments to the host, without those that hold no plain data of their own."""
    copies = {}
    for name, tensor in tensors_in(arguments).items():
        data = _data_of(tensor)
        if type(data) is torch.Tensor and not (data.is_nested or data.is_meta):
            copies[name] = data.detach().cpu()
    return copies


def to_host(value: Any) -> Any:
    """The plain value with every tensor copied to the host, detached."""

    def copied(tensor: Any) -> Any:
        data = _data_of(tensor)
        return data.detach().cpu() if type(data) is torch.Tensor else data

    return plain(value, copied)


def plain(
    value: Any, of_tensor: Callable[[Any], Any] = lambda tensor: tensor.detach()
) -> Any:
    """The plain value with detached tensors, so that looking at it again runs no code of its classes.

    What is neither a tensor, a number, a text, nor a container or a dataclass of them, stays as it is.
    """
    kind = type(value)
    # Subclasses look at themselves first: that may be what their work waits for. Nobody asks them again.
    if isinstance(value, torch.Tensor):
        return _data_of(of_tensor(value))
    if issubclass(kind, Enum):
        return SavedFields(
            **{KIND: kind.__qualname__, "name": str.__str__(str(value.name))}
        )
    for scalar, read in SCALARS.items():
        if issubclass(kind, scalar):
            return read(value)
    parts = parts_of(value)
    if parts is None:
        return value
    made_plain = {
        plain(key, of_tensor): plain(item, of_tensor) for key, item in parts.items()
    }
    if isinstance(value, Mapping):
        return made_plain
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return named_tuple(kind.__qualname__, tuple(made_plain))(*made_plain.values())
    for container, made in CONTAINERS.items():
        if isinstance(value, container):
            return made(made_plain.values())
    return SavedFields(**made_plain, **{KIND: _kind(value)})


def _data_of(tensor: Any) -> Any:
    """Return the data of a tensor as a plain tensor; a wrapper without data of its own stays as it is."""
    kind = type(tensor)
    if kind is torch.Tensor or not issubclass(kind, torch.Tensor):
        return tensor
    own = type.mro(kind)
    if any(
        "__torch_dispatch__" in vars(each) for each in own[: own.index(torch.Tensor)]
    ):
        return tensor
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - there is no public name
        return torch.Tensor.as_subclass(tensor, torch.Tensor)


def find_lazy(result: Any) -> str | None:
    """The promise that a result is or holds, in containers and dataclasses too; None if there is none."""
    for kind, type_ in LAZY.items():
        if isinstance(result, type_):
            return kind
    return next(filter(None, map(find_lazy, (parts_of(result) or {}).values())), None)


def compare_saved(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare results that other processes have saved: what each ``ResultCheck`` holds.

    ``payload`` has the ``checks`` as far as they are known, each with the files of the results to compare,
    the expected one first, below this worker's ``KEPT``; or with none, where a variant raised. It names the
    verifier as a job does if that compares in its own way; else no code of the repository runs.

    Raises:
        CannotMeasureError: A result is missing, or is none that ``save_result`` writes.
        TypeError: The workload's own comparison returned something else than a text or None.
    """
    own = None
    if verifier := payload["verifier"]:
        own = load_workload(verifier, Path(payload["root"]), Path(payload["code"])).same
    for check, files in payload["checks"]:
        results: list[Any] = []
        for name, file in zip((check["target"], check["variant"]), files, strict=False):
            results += load_saved(
                [file], f"{named_at(name, check['at'])}: what it returned"
            )
        if results:
            expected, actual = results
            # A tolerance is for our comparison, so it takes the place of the workload's own.
            tolerance = check["tolerance"]
            own_way = own if tolerance is None else None
            if own_way:
                compared = own_way(expected, actual)
            else:
                compared = difference(expected, actual, tolerance)
                compared = compared or _argument_difference(files, tolerance)
            if compared is not None and not isinstance(compared, str):
                raise TypeError(
                    f"same must return None or the difference in words, not {compared!r}"
                )
            check["difference"] = compared
            check["empty"] = None if compared else shows_nothing(expected)
    return [check for check, _ in payload["checks"]]


def shows_nothing(value: Any) -> str | None:
    """Name a plain result that proves nothing by being equal: ``empty``, ``None`` or ``NaN``; else None."""
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        if not value.numel():
            return "empty"
        can_be_nan = value.is_floating_point() or value.is_complex()
        return "NaN" if can_be_nan and bool(_dense(value).isnan().all()) else None
    parts = parts_of(value)
    if parts is None:
        return "NaN" if isinstance(value, float) and math.isnan(value) else None
    kinds = {shows_nothing(part) for part in parts.values()}
    return (
        None if None in kinds else " or ".join(sorted(filter(None, kinds))) or "empty"
    )


def _argument_difference(files: list[str], tolerance: float | None) -> str | None:
    """Return the first tensor of the arguments that two variants leave with different values, in words.

    Raises:
        CannotMeasureError: A file is missing, or is none that ``save_result`` writes.
    """
    saved = [f"{file}{ARGUMENTS}" for file in files]
    # There may be thousands, and nearly always all are equal.
    one, other = [own_folder() / KEPT / each for each in saved]
    with suppress(OSError):
        if filecmp.cmp(one, other, shallow=False):
            return None
    expected, actual = load_saved(saved, "the arguments")
    for name in dict.fromkeys([*expected, *actual]):
        if name not in actual:
            return f"{name}: missing after the run"
        if name not in expected:
            return f"{name}: new after the run"
        found = difference(
            expected[name], actual[name], tolerance, f"{name} after the run"
        )
        if found:
            return found
    return None


def difference(
    expected: Any, actual: Any, tolerance: float | None = None, path: str = "result"
) -> str | None:
    """The first place where two results differ, in words; None if they agree.

    Types, keys, lengths, dtypes and shapes must be the same. Numbers and elements of tensors are compared
    exactly or, with a tolerance ``t``, to ``|actual - expected| <= t * m``, where ``m`` is the largest finite
    magnitude in the two tensors, or of the two numbers; NaN equals NaN.

    Raises:
        CannotMeasureError: There is a value in them that is not plain.
    """
    return next(_differences(plain(expected), plain(actual), tolerance, path), None)


def _differences(
    expected: Any, actual: Any, tolerance: float | None, path: str
) -> Iterator[str]:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        yield from _tensor_differences(expected, actual, tolerance, path)
        return
    kind, other_kind = _kind(expected), _kind(actual)
    if kind != other_kind:
        yield f"{path}: {other_kind.rpartition('.')[2]} instead of {kind.rpartition('.')[2]}"
        return
    parts, others = parts_of(expected), parts_of(actual)
    if isinstance(expected, set | frozenset):
        # 1 and True are equal, and not the same.
        if {(_kind(each), each) for each in expected} != {
            (_kind(each), each) for each in actual
        }:
            yield f"{path}: {actual!r} instead of {expected!r}"
    elif parts is None or others is None:
        if is_numpy(expected):
            both = encoded(expected, path)[-1], encoded(actual, path)[-1]
            yield from _tensor_differences(*both, tolerance, path)
            return
        encoded(expected, path), encoded(actual, path)  # refuses what is not plain
        is_same = expected == actual
        if isinstance(expected, float):
            is_same = math.isclose(expected, actual, rel_tol=tolerance or 0.0)
            is_same |= math.isnan(expected) and math.isnan(actual)
        if not is_same:
            yield f"{path}: {actual!r} instead of {expected!r}"
    elif isinstance(expected, list | tuple) and len(parts) != len(others):
        yield f"{path}: {len(others)} items instead of {len(parts)}"
    else:
        for key in dict.fromkeys([*parts, *others]):
            if key not in parts or key not in others:
                yield f"{path}[{key!r}]: {'missing' if key in parts else 'not expected'}"
            else:
                yield from _differences(
                    parts[key], others[key], tolerance, f"{path}[{key!r}]"
                )


def _kind(value: Any) -> str:
    """The name of the class; a class that was imported from two revisions counts as the same."""
    if isinstance(value, SavedFields):
        return str(vars(value)[KIND])
    return str(type(value).__qualname__)


def _tensor_differences(
    expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None, path: str
) -> Iterator[str]:
    if expected.dtype != actual.dtype:
        yield f"{path}: dtype {actual.dtype} instead of {expected.dtype}"
        return
    if expected.shape != actual.shape:
        yield f"{path}: shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
        return
    if expected.layout != actual.layout:
        yield f"{path}: layout {actual.layout} instead of {expected.layout}"
        return
    expected, actual = _dense(expected), _dense(actual)
    same = expected == actual
    if expected.is_floating_point() or expected.is_complex():
        same |= expected.isnan() & actual.isnan()
        if tolerance is not None:
            # Small elements beside large ones count as noise: the largest finite magnitude is the scale.
            both = torch.cat([expected.flatten(), actual.flatten()])
            largest = (
                float(torch.where(both.isfinite(), both.abs(), 0).max())
                if both.numel()
                else 0.0
            )
            near = (actual - expected).abs() <= tolerance * largest
            same |= near & expected.isfinite() & actual.isfinite()
    if text := first_wrong(~same, expected, actual, path):
        yield text


def first_wrong(
    wrong: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor, path: str
) -> str | None:
    """Say how many elements are wrong and what the first one is; None if none is."""
    if not wrong.any():
        return None
    place = tuple(wrong.nonzero()[0].tolist())
    values = f"{actual[place].item()!r} instead of {expected[place].item()!r}"
    return f"{path}: {int(wrong.sum())} of {wrong.numel()} elements differ, the first at {place}: {values}"


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor with all its elements: sparse ones have neither comparisons nor ``all``."""
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def is_numpy(value: Any) -> bool:
    """Return True for an array or a number of numpy, but not of a subclass."""
    numpy = sys.modules.get("numpy")
    kind = type(value)
    return numpy is not None and (
        kind is numpy.ndarray
        or (issubclass(kind, numpy.generic) and kind is numpy.dtype(kind).type)
    )


def save_result(file: Path, result: Any) -> None:
    """Write what a variant returned, which ``plain`` has made so.

    Raises:
        CannotMeasureError: It returned something other than tensors, numbers, texts, containers of them and
            dataclasses.
    """
    with file.open("wb") as opened:  # a path would become part of what is written
        torch.save(encoded(result), opened)


def load_result(file: Path) -> Any:
    """Read a file of ``save_result``. A forged file raises an error; it cannot run code."""
    return _decoded(torch.load(file, weights_only=True))


def load_saved(files: Iterable[str], what: str) -> list[Any]:
    """Return what ``save_result`` has written to files below this worker's ``KEPT``.

    Raises:
        CannotMeasureError: One is missing, or is not as it was saved; the message begins with ``what``.
    """
    try:
        return [load_result(own_folder() / KEPT / file) for file in files]
    except Exception as failure:  # a forged file may raise anything
        raise CannotMeasureError(
            f"{what} cannot be read: {type(failure).__name__}"
        ) from None


def encoded(value: Any, path: str = "result") -> Any:
    """A plain value in numbers, texts, tensors, and lists that begin with the kind of container.

    Raises:
        CannotMeasureError: It is or holds a value that is not plain; ``path`` leads to it.
    """
    kind, what = type(value), _kind(value)
    if kind in SCALARS:
        return value
    if kind is torch.Tensor and not (value.is_nested or value.is_meta):
        return value.detach().cpu().clone()
    if kind is dict:
        items = (
            [encoded(key, f"a key of {path}"), encoded(item, f"{path}[{key!r}]")]
            for key, item in value.items()
        )
        return ["dict", *items]
    if kind is SavedFields:
        return [
            "fields",
            *(
                [name, encoded(item, f"{path}[{name!r}]")]
                for name, item in vars(value).items()
            ),
        ]
    if kind in CONTAINERS or issubclass(kind, tuple):
        items = (encoded(item, f"{path}[{place}]") for place, item in enumerate(value))
        return [
            *(
                [kind.__name__]
                if kind in CONTAINERS
                else ["named", what, list(value._fields)]
            ),
            *items,
        ]
    if kind is range:
        return ["range", value.start, value.stop, value.step]
    if kind in OF_TORCH:
        return ["torch", str(value)]
    instead = "return its tensors and numbers, or give the workload a read that does"
    if kind is torch.Tensor:
        what, instead = "tensor without data", "return one that has data"
        if value.is_nested:
            what, instead = "nested tensor", "return its parts, as unbind() gives them"
    elif is_numpy(value):
        with suppress(TypeError):
            is_array = isinstance(value, sys.modules["numpy"].ndarray)
            return ["numpy", is_array, torch.as_tensor(value.copy()).clone()]
        what, instead = (
            f"numpy value of dtype {value.dtype}",
            "return numbers, texts or a list of them",
        )
    article = "an" if what[0] in "AEIOUaeiou" else "a"
    where = "" if path == "result" else f" in {path}"
    raise CannotMeasureError(
        f"returned {article} {what}{where}, which cannot be compared; {instead}"
    )


def _decoded(value: Any) -> Any:
    if type(value) is not list:
        if type(value) not in {*SCALARS, torch.Tensor}:
            raise TypeError(f"a {_kind(value)} was never saved")
        return value
    kind, *rest = value
    if kind == "dict":
        return {_decoded(key): _decoded(item) for key, item in rest}
    if kind == "fields":
        return SavedFields(**{name: _decoded(item) for name, item in rest})
    if kind == "named":
        name, names, *items = rest
        return named_tuple(name, tuple(names))(*map(_decoded, items))
    if kind == "range":
        return range(*rest)
    if kind == "torch":
        module, _, name = str(rest[0]).rpartition(".")
        return getattr(torch, name) if module else torch.device(name)
    if kind == "numpy":
        array = rest[1].numpy()
        return array if rest[0] else array[()]
    made = next(made for made in CONTAINERS if made.__name__ == kind)
    return made(map(_decoded, rest))
