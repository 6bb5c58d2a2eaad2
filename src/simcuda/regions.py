"""Regions of code that are allowed to cost something; measurements set it apart, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from contextlib import _GeneratorContextManager

T = TypeVar("T")

# Each thread and each task has its own.
_reason: ContextVar[str] = ContextVar("simcuda_allowed", default="")
_listeners: list[Callable[[str], None]] = []

current_reason = _reason.get
"""Why this thread may wait now: the reason of the innermost region; empty outside of all."""


def allowed(reason: str) -> _GeneratorContextManager[None]:
    """Set apart what this thread makes the host wait for, copy and allocate in the block; also a decorator.

    Limits do not count it: those of ``assert_at_most``, of ``gpu_budget`` and of ``tickets budget``. They
    name the reason instead. Of nested regions the innermost counts. Peaks and launches are not set apart.

    Raises:
        TypeError: The reason is no text.
        ValueError: It is empty.
    """
    if not isinstance(reason, str):
        raise TypeError(f'say why: simcuda.allowed("logged every 100 steps"), not {reason!r}')
    if not reason.strip():
        raise ValueError("allowed() needs a reason")
    return _region(" ".join(reason.split()))


@contextmanager
def _region(reason: str) -> Iterator[None]:
    token = _reason.set(reason)
    _tell(reason)
    try:
        yield
    finally:
        _reason.reset(token)
        _tell(_reason.get())


def _tell(reason: str) -> None:
    for listener in _listeners:
        listener(reason)


@contextmanager
def following_regions(listener: Callable[[str], None]) -> Iterator[None]:
    """Tell ``listener`` the reason when a thread enters or leaves a region, and that of one around it."""
    if reason := current_reason():
        listener(reason)
    with listed(_listeners, listener):
        yield


@contextmanager
def listed(listeners: list[T], listener: T) -> Iterator[None]:
    """Keep a listener in a list during the block."""
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)
