"""Results that are promises: code that has not run yet, and whose cost nothing has counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Coroutine, Generator, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

KINDS: dict[str, type] = {
    "a generator": Generator,
    "a coroutine": Coroutine,
    "an awaitable": Awaitable,
    "an asynchronous iterator": AsyncIterator,
    "an iterator": Iterator,
}


def unrun(result: Any) -> str | None:
    """What promise a result is or holds, in containers and dataclasses too; None where there is none."""
    kind = next((kind for kind, type_ in KINDS.items() if isinstance(result, type_)), None)
    return kind or next(filter(None, map(unrun, _parts(result))), None)


def _parts(result: Any) -> list[Any]:
    if isinstance(result, Mapping):
        return list(result.values())
    if isinstance(result, list | tuple):
        return list(result)
    if is_dataclass(result) and not isinstance(result, type):
        return [getattr(result, field.name) for field in fields(result)]
    return []
