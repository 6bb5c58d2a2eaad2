"""What variants return: copied to the host, checked for work left undone, compared, and saved.

A process of its own compares the results of two revisions. They are saved without the classes of the revision
that made them, and reading them runs no code.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from copy import copy
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from finding_tickets.measure.loading import load_workload
from finding_tickets.measure.tasks import CannotMeasureError, ResultPair
from finding_tickets.measure.workloads import Point, Workload

# Promises of work that has not run yet, and that nothing has counted.
LAZY: dict[str, type] = {
    "a generator": Generator,
    "a coroutine": Coroutine,
    "an awaitable": Awaitable,
    "an asynchronous iterator": AsyncIterator,
    "an iterator": Iterator,
}

PLAIN = (bool, int, float, complex, str, bytes, type(None))
# Names the class among saved fields: as a keyword of Python it is the name of no field.
KIND = "class"


class SavedFields(SimpleNamespace):
    """The fields of a dataclass or a named tuple, with the name of its class under ``KIND``."""


def parts_of(value: Any) -> dict[Any, Any] | None:
    """What a container or a dataclass holds, by key, place or name; None for anything else."""
    # By the class's own items() and __iter__: work that waits for being looked at runs here, and is counted.
    if isinstance(value, Mapping):
        return dict(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if isinstance(value, SavedFields):
        return {name: item for name, item in vars(value).items() if name != KIND}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


def with_parts(value: Any, parts: Mapping[Any, Any]) -> Any:
    """A value of the same kind with other parts; containers become plain ones."""
    if isinstance(value, Mapping):
        return dict(parts)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*parts.values())
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(parts.values())
    changed = copy(value)
    for name, item in parts.items():
        object.__setattr__(changed, name, item)  # a frozen dataclass refuses setattr
    return changed


def to_host(value: Any) -> Any:
    """The value with every tensor in containers and dataclasses copied to the host, detached."""
    return _map_tensors(value, lambda tensor: tensor.detach().cpu())


def detach(value: Any) -> Any:
    """The value in plain containers with detached tensors, so that looking at it again runs nothing."""
    return _map_tensors(value, lambda tensor: tensor.detach())


def _map_tensors(value: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    parts = parts_of(value)
    if parts is None:
        return value
    return with_parts(value, {key: _map_tensors(item, function) for key, item in parts.items()})


def find_lazy(result: Any) -> str | None:
    """The promise that a result is or holds, in containers and dataclasses too; None if there is none."""
    for kind, type_ in LAZY.items():
        if isinstance(result, type_):
            return kind
    return next(filter(None, map(find_lazy, (parts_of(result) or {}).values())), None)


def compare_results(
    workload: Workload, point: Point, pair: ResultPair, ended: Mapping[str, tuple[Any, str | None]]
) -> dict[str, Any]:
    """Compare two variants at a point, from the result or the error of each: what a ``ResultCheck`` holds.

    Raises:
        TypeError: The workload's own comparison returned something else than a text or None.
    """
    (expected, target_error), (actual, error) = ended[pair.target], ended[pair.variant]
    found = None
    if error and not target_error:
        found = f"raised {error}"
    elif not target_error:
        # A tolerance in the claim is for our comparison, so it takes the place of the workload's own.
        own = workload.same if pair.tolerance is None else None
        found = own(expected, actual) if own else difference(expected, actual, pair.tolerance)
        if found is not None and not isinstance(found, str):
            raise TypeError(f"same must return None or the difference in words, not {found!r}")
    return {**asdict(pair), "at": dict(point), "difference": found, "skipped": bool(target_error)}


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
    """The first place where two results differ, in words; None if they agree.

    Types, keys, lengths, dtypes and shapes must be the same. Numbers and elements of tensors are compared
    exactly or, with a tolerance ``t``, to ``|actual - expected| <= t * m``, where ``m`` is the largest finite
    magnitude in the two tensors, or of the two numbers; NaN equals NaN.
    """
    return next(_differences(expected, actual, tolerance, "result"), None)


def _differences(expected: Any, actual: Any, tolerance: float | None, path: str) -> Iterator[str]:
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        yield from _tensor_differences(expected, actual, tolerance, path)
        return
    kind, other_kind = _kind(expected), _kind(actual)
    if kind != other_kind:
        yield f"{path}: {other_kind.rpartition('.')[2]} instead of {kind.rpartition('.')[2]}"
        return
    parts, others = parts_of(expected), parts_of(actual)
    if parts is None or others is None:
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
                yield from _differences(parts[key], others[key], tolerance, f"{path}[{key!r}]")


def _kind(value: Any) -> str:
    """The full name of the class; a class that was imported from two revisions counts as the same."""
    if isinstance(value, SavedFields):
        return str(vars(value)[KIND])
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
    torch.save(_without_classes(result), _result_file(folder, variant, place))


def load_result(folder: Path, variant: str, place: int) -> Any:
    """What ``save_result`` has written; no code runs, even if something else wrote the file."""
    with torch.serialization.safe_globals([SavedFields]):
        return torch.load(_result_file(folder, variant, place), weights_only=True)


def _result_file(folder: Path, variant: str, place: int) -> Path:
    return folder / f"{place}-{variant.encode().hex()}.pt"


def _without_classes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    parts = parts_of(value)
    if parts is None:
        if type(value) not in PLAIN:
            raise CannotMeasureError(
                f"returned a {_kind(value)}, which cannot be compared with the result of another revision; "
                "give the workload a read that returns its tensors and numbers"
            )
        return value
    parts = {_without_classes(key): _without_classes(item) for key, item in parts.items()}
    if is_dataclass(value) or hasattr(value, "_fields"):
        return SavedFields(**parts, **{KIND: type(value).__qualname__})
    return with_parts(value, parts)
