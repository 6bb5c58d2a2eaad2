"""What variants return: brought to the host, checked for work left undone, compared, and saved.

Results of another revision are compared in a process of their own. They are saved without the classes of the
revision that made them, and read without running any code.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from copy import copy
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch

from finding_tickets.measure.loading import load_workload
from finding_tickets.measure.tasks import CannotMeasureError, ResultPair
from finding_tickets.measure.workloads import Point, Workload

LAZY: dict[str, type] = {
    "a generator": Generator,
    "a coroutine": Coroutine,
    "an awaitable": Awaitable,
    "an asynchronous iterator": AsyncIterator,
    "an iterator": Iterator,
}
"""Promises of work that has not run yet, and whose cost nothing has counted."""

PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class SavedFields:
    """A dataclass or a named tuple: the name of its class, and its fields, which are attributes here too."""

    kind: str
    values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"{self.kind} has no field {name!r}") from None


def to_host(value: Any) -> Any:
    """The value with every tensor in containers and dataclasses copied to the host, detached."""
    return _map_tensors(value, lambda tensor: tensor.detach().cpu())


def detach(value: Any) -> Any:
    """The value in plain containers, tensors detached: nothing in it runs when it is looked at again."""
    return _map_tensors(value, lambda tensor: tensor.detach())


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
        changed = copy(value)
        for name, item in _map_tensors(_fields_of(value), function).items():
            object.__setattr__(changed, name, item)  # a frozen dataclass refuses setattr
        return changed
    return value


def _fields_of(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def find_lazy(result: Any) -> str | None:
    """What promise a result is or holds, in containers and dataclasses too; None where there is none."""
    for kind, type_ in LAZY.items():
        if isinstance(result, type_):
            return kind
    parts: list[Any] = []
    if isinstance(result, Mapping):
        parts = list(result.values())
    elif isinstance(result, list | tuple):
        parts = list(result)
    elif is_dataclass(result) and not isinstance(result, type):
        parts = list(_fields_of(result).values())
    return next(filter(None, map(find_lazy, parts)), None)


def compare_results(
    workload: Workload, point: Point, pair: ResultPair, ended: Mapping[str, tuple[Any, str | None]]
) -> dict[str, Any]:
    """Compare two variants at a point, given the result or the error of each variant there.

    Returns:
        What a ``ResultCheck`` is made of, as JSON can carry it.

    Raises:
        TypeError: The workload's own comparison returned something else than a text or None.
    """
    (expected, target_error), (actual, error) = ended[pair.target], ended[pair.variant]
    found: dict[str, Any] = {**asdict(pair), "at": dict(point), "difference": None, "skipped": False}
    if target_error:
        return {**found, "skipped": True}
    if error:
        return {**found, "difference": f"raised {error}"}
    # A tolerance in the claim is about our comparison, not about the workload's own.
    if workload.same is None or pair.tolerance is not None:
        return {**found, "difference": difference(expected, actual, pair.tolerance)}
    answer = workload.same(expected, actual)
    if answer is not None and not isinstance(answer, str):
        raise TypeError(f"same must return None or the difference in words, not {answer!r}")
    return {**found, "difference": answer}


def compare_saved(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare results that other processes have saved, in a process of its own.

    ``payload`` names the verifier as a job does, the ``comparisons``, the ``points`` that were measured by
    their place in the sweep, the ``errors`` of each variant there, and the folder of ``results``.
    """
    workload = load_workload(payload["verifier"], Path(payload["root"]), Path(payload["code"]))
    pairs = [ResultPair(**pair) for pair in payload["comparisons"]]
    folder = Path(payload["results"])
    checks = []
    for place, at in payload["points"]:
        errors = {name: of_variant[str(place)] for name, of_variant in payload["errors"].items()}
        ended = {
            name: (None if error else load_result(folder, name, place), error)
            for name, error in errors.items()
        }
        checks += [compare_results(workload, Point(**at), pair, ended) for pair in pairs]
    return checks


def difference(expected: Any, actual: Any, tolerance: float | None = None) -> str | None:
    """The first place where two results differ, in words; None where they agree.

    Types, keys, lengths, dtypes and shapes must be the same. Numbers and elements of tensors are compared
    exactly or, with a tolerance ``t``, to ``|actual - expected| <= t * m``, where ``m`` is the largest finite
    magnitude in the two tensors, or of the two numbers; NaN equals NaN.
    """
    return next(_differences(expected, actual, tolerance, "result"), None)


def _differences(expected: Any, actual: Any, tolerance: float | None, path: str) -> Iterator[str]:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        yield from _tensor_differences(expected, actual, tolerance, path)
    elif type(expected) is not type(actual) and not (
        # Two dataclasses may differ in nothing but the revision that their module was imported from.
        is_dataclass(expected) and is_dataclass(actual) and _class_name(expected) == _class_name(actual)
    ):
        yield f"{path}: {type(actual).__name__} instead of {type(expected).__name__}"
    elif isinstance(expected, SavedFields):
        if expected.kind != actual.kind:
            yield f"{path}: {actual.kind} instead of {expected.kind}"
        else:
            yield from _differences(expected.values, actual.values, tolerance, path)
    elif isinstance(expected, Mapping):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            if key not in expected or key not in actual:
                yield f"{path}[{key!r}]: {'missing' if key in expected else 'not expected'}"
            else:
                yield from _differences(expected[key], actual[key], tolerance, f"{path}[{key!r}]")
    elif isinstance(expected, list | tuple):
        if len(expected) != len(actual):
            yield f"{path}: {len(actual)} items instead of {len(expected)}"
            return
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(one, other, tolerance, f"{path}[{index}]")
    elif is_dataclass(expected):
        yield from _differences(_fields_of(expected), _fields_of(actual), tolerance, path)
    elif not _is_same_value(expected, actual, tolerance):
        yield f"{path}: {actual!r} instead of {expected!r}"


def _is_same_value(expected: Any, actual: Any, tolerance: float | None) -> bool:
    if not isinstance(expected, float):
        return bool(expected == actual)
    if expected == actual or (math.isnan(expected) and math.isnan(actual)):
        return True
    if tolerance is None or not (math.isfinite(expected) and math.isfinite(actual)):
        return False
    return bool(abs(actual - expected) <= tolerance * max(abs(actual), abs(expected)))


def _class_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _tensor_differences(
    expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None, path: str
) -> Iterator[str]:
    if expected.dtype != actual.dtype:
        yield f"{path}: dtype {actual.dtype} instead of {expected.dtype}"
        return
    if expected.shape != actual.shape:
        yield f"{path}: shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
        return
    same = expected == actual
    if expected.is_floating_point() or expected.is_complex():
        same |= expected.isnan() & actual.isnan()
        if tolerance is not None:
            # Small elements beside large ones count as noise: the largest finite magnitude is the scale.
            both = torch.cat([expected.flatten(), actual.flatten()])
            largest = float(torch.where(both.isfinite(), both.abs(), 0).max()) if both.numel() else 0.0
            near = (actual - expected).abs() <= tolerance * largest
            same |= near & expected.isfinite() & actual.isfinite()
    wrong = ~same
    if wrong.any():
        place = tuple(wrong.nonzero()[0].tolist())
        values = f"{actual[place].item()!r} instead of {expected[place].item()!r}"
        yield f"{path}: {int(wrong.sum())} of {wrong.numel()} elements differ, the first at {place}: {values}"


def save_result(folder: Path, variant: str, place: int, result: Any) -> None:
    """Write what a variant returned at the point with this place in the sweep.

    Raises:
        CannotMeasureError: It returned something other than tensors, numbers, texts, containers of them and
            dataclasses.
    """
    torch.save(_to_plain(result), _result_file(folder, variant, place))


def load_result(folder: Path, variant: str, place: int) -> Any:
    """What ``save_result`` has written."""
    return _from_plain(torch.load(_result_file(folder, variant, place), weights_only=True))


def _result_file(folder: Path, variant: str, place: int) -> Path:
    return folder / f"{place}-{variant.encode().hex()}.pt"


def _to_plain(value: Any) -> Any:
    """A value as pairs of a kind and its content, which ``torch.load`` reads without running any code."""
    if isinstance(value, torch.Tensor):
        return "plain", value.detach().cpu().clone()
    if is_dataclass(value) and not isinstance(value, type):
        return "fields", (type(value).__qualname__, _plain_items(_fields_of(value)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named = dict(zip(value._fields, value, strict=True))
        return "fields", (type(value).__qualname__, _plain_items(named))
    if isinstance(value, Mapping):
        return "dict", _plain_items(value)
    if isinstance(value, list | tuple):
        return "list" if isinstance(value, list) else "tuple", [_to_plain(item) for item in value]
    if type(value) in PLAIN:
        return "plain", value
    raise CannotMeasureError(
        f"returned a {_class_name(value)}, which cannot be compared with the result of another revision; "
        "give the workload a read that returns its tensors and numbers"
    )


def _plain_items(mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return [(_to_plain(key), _to_plain(value)) for key, value in mapping.items()]


def _from_plain(saved: Any) -> Any:
    kind, content = saved
    if kind == "fields":
        return SavedFields(content[0], {_from_plain(key): _from_plain(value) for key, value in content[1]})
    if kind == "dict":
        return {_from_plain(key): _from_plain(value) for key, value in content}
    if kind in ("list", "tuple"):
        items = [_from_plain(item) for item in content]
        return items if kind == "list" else tuple(items)
    return content
