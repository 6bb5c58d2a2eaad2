"""What a benchmark gives: a number beside its bound, and what else was measured for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Size(StrEnum):
    """How much a benchmark does. Bounds are about ``FULL``; ``LEAST`` does all of it once, on little."""

    FULL = "full"
    QUICK = "quick"
    LEAST = "least"


@dataclass(frozen=True)
class Bound:
    """What a number may be at most, or has to be at least."""

    limit: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number keeps to it."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        """As README.md writes it."""
        return f"at {'least' if self.at_least else 'most'} {self.limit:g}"


@dataclass(frozen=True)
class Number:
    """Something that was measured, and its unit."""

    what: str
    value: float
    unit: str

    def __str__(self) -> str:
        """In words: ``Backlog.md: 39.0 s``."""
        return f"{self.what}: {amount(self.value, self.unit)}"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A number and its bound, where something is claimed of it; ``beside`` is what it was made of.

    It is a ratio where it has no unit. Where there is no number, ``missing`` says why.
    """

    name: str
    what: str
    value: float | None = None
    unit: str = ""
    bound: Bound | None = None
    beside: tuple[Number, ...] = ()
    missing: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether it keeps to its bound; None where nothing is measured or nothing is claimed."""
        return None if self.value is None or self.bound is None else self.bound.holds(self.value)


Measure = Callable[[Size], Iterator[Result]]


def amount(value: float, unit: str) -> str:
    """A number with as many digits as say something: ``0.081``, ``1.42 s``, ``1,032 MB``."""
    digits = next((digits for digits, least in enumerate((100, 10, 0.1)) if abs(value) >= least), 3)
    return f"{value:,.{digits}f} {unit}".rstrip()
