"""Where variants live and which are to give the same results: what planning and the meters share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Where a function lives: a file below the root, or a module by its dotted name."""

    module: str
    function: str


@dataclass(frozen=True)
class Comparison:
    """A variant whose results are to equal another's, within ``tolerance`` where it is not None."""

    variant: str
    target: str
    tolerance: float | None = None
