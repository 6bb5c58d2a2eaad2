"""Names of torch that the simulation replaces, and their return."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MISSING = object()


class Patches:
    """Attributes set on modules and classes, each to be put back as it was."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []
        self._is_suspended = False

    def set(self, owner: Any, **values: Any) -> None:
        """Give a module or class these attributes until ``restore``."""
        for name, value in values.items():
            self._replaced.append((owner, name, vars(owner).get(name, _MISSING)))
            setattr(owner, name, value)

    def replaced(self) -> list[tuple[Any, str, Any]]:
        """Every owner and name that is replaced, with what the name stood for before."""
        return list(self._replaced)

    def restore(self) -> None:
        """Put every attribute back, the last one first."""
        while self._replaced:
            _put(*self._replaced.pop())

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Put every attribute back for a while; within another ``suspended``, change nothing."""
        if self._is_suspended:
            yield
            return
        self._is_suspended = True
        simulated = [(owner, name, vars(owner)[name]) for owner, name, _ in self._replaced]
        for owner, name, original in reversed(self._replaced):
            _put(owner, name, original)
        try:
            yield
        finally:
            for owner, name, value in simulated:
                _put(owner, name, value)
            self._is_suspended = False


def _put(owner: Any, name: str, value: Any) -> None:
    if value is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
