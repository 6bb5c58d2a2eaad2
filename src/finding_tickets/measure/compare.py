"""Compare the results of two variants and say where they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import torch

from finding_tickets.measure.kept import Fields


def to_host(value: Any) -> Any:
    """The value with every tensor in containers and dataclasses copied to the host, detached."""
    return _map_tensors(value, lambda tensor: tensor.detach().cpu())


def settled(value: Any) -> Any:
    """The value in containers of ours, tensors detached: nothing in it runs when it is looked at again."""
    return _map_tensors(value, lambda tensor: tensor.detach())


def difference(expected: Any, actual: Any, tolerance: float | None = None) -> str | None:
    """The first place where two results differ, in words; None where they agree.

    Types, keys, lengths, dtypes and shapes must be the same. Numbers and elements of tensors are compared
    exactly or, with a tolerance ``t``, to ``|actual - expected| <= t * m``, where ``m`` is the largest finite
    magnitude in the two tensors, or of the two numbers; NaN equals NaN.
    """
    return next(_differences(expected, actual, tolerance, "result"), None)


def _map_tensors(value: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {key: _map_tensors(item, function) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map_tensors(item, function) for item in value))
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(_map_tensors(item, function) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return _with_fields(value, _map_tensors(_fields_of(value), function))
    return value


def _with_fields(value: Any, values: Mapping[str, Any]) -> Any:
    changed = copy(value)
    for name, item in values.items():
        object.__setattr__(changed, name, item)  # a frozen dataclass refuses setattr
    return changed


def _fields_of(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _differences(expected: Any, actual: Any, tolerance: float | None, path: str) -> Iterator[str]:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        yield from _tensors(expected, actual, tolerance, path)
    elif type(expected) is not type(actual) and not _of_other_revision(expected, actual):
        yield f"{path}: {type(actual).__name__} instead of {type(expected).__name__}"
    elif isinstance(expected, Fields):
        if expected.kind != actual.kind:
            yield f"{path}: {actual.kind} instead of {expected.kind}"
        else:
            yield from _mappings(expected.values, actual.values, tolerance, path)
    elif isinstance(expected, Mapping):
        yield from _mappings(expected, actual, tolerance, path)
    elif isinstance(expected, list | tuple):
        yield from _sequences(expected, actual, tolerance, path)
    elif is_dataclass(expected):
        yield from _mappings(_fields_of(expected), _fields_of(actual), tolerance, path)
    elif not _same_value(expected, actual, tolerance):
        yield f"{path}: {actual!r} instead of {expected!r}"


def _of_other_revision(expected: Any, actual: Any) -> bool:
    """Whether two dataclasses are the same but for the revision that their module was imported from."""
    kinds = [(type(value).__module__, type(value).__qualname__) for value in (expected, actual)]
    return is_dataclass(expected) and is_dataclass(actual) and kinds[0] == kinds[1]


def _mappings(
    expected: Mapping[Any, Any], actual: Mapping[Any, Any], tolerance: float | None, path: str
) -> Iterator[str]:
    for key in [*expected, *(key for key in actual if key not in expected)]:
        if key not in expected or key not in actual:
            yield f"{path}[{key!r}]: {'missing' if key in expected else 'not expected'}"
        else:
            yield from _differences(expected[key], actual[key], tolerance, f"{path}[{key!r}]")


def _sequences(expected: Any, actual: Any, tolerance: float | None, path: str) -> Iterator[str]:
    if len(expected) != len(actual):
        yield f"{path}: {len(actual)} items instead of {len(expected)}"
        return
    for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
        yield from _differences(one, other, tolerance, f"{path}[{index}]")


def _same_value(expected: Any, actual: Any, tolerance: float | None) -> bool:
    if not isinstance(expected, float):
        return bool(expected == actual)
    if expected == actual or (math.isnan(expected) and math.isnan(actual)):
        return True
    if tolerance is None or not (math.isfinite(expected) and math.isfinite(actual)):
        return False
    return bool(abs(actual - expected) <= tolerance * max(abs(actual), abs(expected)))


def _tensors(
    expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None, path: str
) -> Iterator[str]:
    if expected.dtype != actual.dtype:
        yield f"{path}: dtype {actual.dtype} instead of {expected.dtype}"
        return
    if expected.shape != actual.shape:
        yield f"{path}: shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
        return
    wrong = ~_close(expected, actual, tolerance)
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        values = f"{actual[place].item()!r} instead of {expected[place].item()!r}"
        yield f"{path}: {int(wrong.sum())} of {wrong.numel()} elements differ, the first at {place}: {values}"


def _close(expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None) -> torch.Tensor:
    same = expected == actual
    if expected.is_floating_point() or expected.is_complex():
        same |= expected.isnan() & actual.isnan()
        if tolerance is not None:
            near = (actual - expected).abs() <= tolerance * _magnitude(expected, actual)
            same |= near & expected.isfinite() & actual.isfinite()
    return same


def _magnitude(expected: torch.Tensor, actual: torch.Tensor) -> float:
    """The largest finite absolute value in two tensors: small elements beside large ones count as noise."""
    both = torch.cat([expected.flatten(), actual.flatten()])
    return float(torch.where(both.isfinite(), both.abs(), 0).max()) if both.numel() else 0.0
