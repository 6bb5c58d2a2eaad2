"""What templates may do: read the records that they are given, and neither run code nor touch a file."""

from __future__ import annotations

from pathlib import PurePath
from types import MethodType
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

OURS = __name__.partition(".")[0]
MADE_FOR_TEMPLATES = (__name__.rpartition(".")[0], "jinja2", "markupsafe")
"""The packages whose methods templates may call. Those of records can read any file and run what is in it."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, in which paths are only text.

    Whether a record of ours may be asked for a field is found out once for its class: a large report asks a
    million times.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._known: set[tuple[type, str]] = set()

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A field, as the base class gives it."""
        key = (type(obj), attribute)
        if key in self._known:
            return getattr(obj, attribute)
        value = super().getattr(obj, attribute)
        if _is_ours(type(obj)) and hasattr(obj, attribute) and self.is_safe_attribute(obj, attribute, value):
            self._known.add(key)
        return value

    def is_safe_callable(self, obj: Any) -> bool:
        """A function is there because a template was given it; of methods, those made for templates."""
        return super().is_safe_callable(obj) and (not isinstance(obj, MethodType) or _is_for_templates(obj))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """A path can read and write files."""
        return not isinstance(obj, PurePath) and super().is_safe_attribute(obj, attr, value)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == OURS


def _is_for_templates(method: MethodType) -> bool:
    module = getattr(method.__func__, "__module__", None) or ""
    return any(module == package or module.startswith(f"{package}.") for package in MADE_FOR_TEMPLATES)
