"""Names of torch that the simulation replaces, and their return."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patches:
    """Attributes set on modules and classes, each to be put back as it was."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, **values: Any) -> None:
        """Give a module or class these attributes until ``restore``."""
        for name, value in values.items():
            self._originals.append((owner, name, vars(owner).get(name, _MISSING)))
            setattr(owner, name, value)

    def restore(self) -> None:
        """Put every attribute back, the last one first."""
        while self._originals:
            owner, name, original = self._originals.pop()
            if original is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
