"""Results that another process reads: written without the classes of the revision that made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch

from finding_tickets.measure.report import CannotMeasureError

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class Fields:
    """A dataclass or a named tuple: the name of its class, and its fields, which are attributes here too."""

    kind: str
    values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"{self.kind} has no field {name!r}") from None


def keep(folder: Path, variant: str, place: int, result: Any) -> None:
    """Write what a variant returned at the point with this place in the sweep.

    Raises:
        CannotMeasureError: It returned something other than tensors, numbers, texts, containers of them and
            dataclasses.
    """
    torch.save(_written(result), _file(folder, variant, place))


def kept(folder: Path, variant: str, place: int) -> Any:
    """What ``keep`` has written."""
    return _read(torch.load(_file(folder, variant, place), weights_only=True))


def _file(folder: Path, variant: str, place: int) -> Path:
    return folder / f"{place}-{variant.encode().hex()}.pt"


def _written(value: Any) -> Any:
    """A value as pairs of a kind and its content, which ``torch.load`` reads without running any code."""
    if isinstance(value, torch.Tensor):
        return "plain", value.detach().cpu().clone()
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return "fields", (type(value).__qualname__, _pairs(named))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "fields", (type(value).__qualname__, _pairs(dict(zip(value._fields, value, strict=True))))
    if isinstance(value, Mapping):
        return "dict", _pairs(value)
    if isinstance(value, list | tuple):
        return "list" if isinstance(value, list) else "tuple", [_written(item) for item in value]
    if type(value) in _PLAIN:
        return "plain", value
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise CannotMeasureError(
        f"returned a {kind}, which cannot be compared with the result of another revision; "
        "give the workload a read that returns its tensors and numbers"
    )


def _pairs(mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return [(_written(key), _written(value)) for key, value in mapping.items()]


def _read(written: Any) -> Any:
    kind, content = written
    if kind == "fields":
        return Fields(content[0], {_read(key): _read(value) for key, value in content[1]})
    if kind == "dict":
        return {_read(key): _read(value) for key, value in content}
    if kind in ("list", "tuple"):
        items = [_read(item) for item in content]
        return items if kind == "list" else tuple(items)
    return content
