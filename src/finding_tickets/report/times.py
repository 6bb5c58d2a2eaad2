"""How times compare at every point, for a verification that claims something about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finding_tickets.model.verification import Timing

Row = tuple[str, str, str]

HEADER = ("ratio", "at", "median (interval)")


def times(timings: Sequence[Timing]) -> Iterator[tuple[str, list[Row]]]:
    """A title and a row for each timing, or nothing where there are none."""
    if timings:
        yield f"times on {timings[0].device}", [_row(timing) for timing in timings]


def _row(timing: Timing) -> Row:
    at = ", ".join(f"{name}={value}" for name, value in timing.at.items())
    return f"{timing.variant}/{timing.reference}", at, timing.text
