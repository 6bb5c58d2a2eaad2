"""Time variants by turns, so that what else the machine does falls on all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median

from finding_tickets.measure.report import Interval
from finding_tickets.measure.spread import LOOKS, interval, is_clear_of

WARM_UPS = 2
"""Runs of each variant before the rounds: the first ones load, compile and fill caches."""

EMPTY_RUNS = 20
"""How many times longer the longer of two variants must take than a run of nothing, so that what a run takes
besides moves a ratio by 1/20 at most."""

Pair = tuple[str, str]
"""The subject, whose time is divided, and the reference."""

Run = Callable[[str, int], float]
"""Runs a variant on the data of a round and returns the seconds that it took."""


def compared(
    run: Run,
    edges: Mapping[Pair, Collection[float]],
    *,
    doubt: float,
    empty: float,
    deadline: float,
    clock: Callable[[], float],
) -> dict[Pair, Interval | str]:
    """How the times of each pair compare, or why that is not known.

    Every round runs each variant once, on data of its own, and in the opposite order of the round before. It
    goes on until the interval of every pair is clear of its ``edges``, the ratios at which the outcome of a
    claim turns, or to the last look, or past the ``deadline`` by ``clock``. ``doubt`` is how likely an
    interval may miss at one look, and ``empty`` the seconds that a run of nothing takes.
    """
    names = list(dict.fromkeys(name for pair in edges for name in pair))
    for number in range(WARM_UPS):
        for name in names:
            run(name, -1 - number)
    taken: dict[str, list[float]] = {name: [] for name in names}
    found: dict[Pair, Interval | str] = {}
    for number in range(LOOKS[-1]):
        is_late = clock() > deadline
        if number in LOOKS or is_late:
            found = {pair: _interval(taken, pair, doubt, empty) for pair in edges}
            if is_late or all(_is_decided(found[pair], edges[pair]) for pair in edges):
                return found
        for name in names if number % 2 == 0 else reversed(names):
            taken[name].append(run(name, number))
    return {pair: _interval(taken, pair, doubt, empty) for pair in edges}


def _interval(taken: Mapping[str, Sequence[float]], pair: Pair, doubt: float, empty: float) -> Interval | str:
    subject, reference = (taken[name] for name in pair)
    if not subject:
        return "there was no time for a round"
    if max(median(subject), median(reference)) < EMPTY_RUNS * empty or min(reference) <= 0:
        return "a run takes hardly longer than an empty one: give this point more work"
    found = interval([one / other for one, other in zip(subject, reference, strict=True)], doubt)
    return found or f"there was time for {len(subject)} rounds alone"


def _is_decided(found: Interval | str, edges: Collection[float]) -> bool:
    return isinstance(found, str) or is_clear_of(found, edges)
