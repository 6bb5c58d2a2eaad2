"""The order in which variants are timed, and when that ends, with times that are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle

import pytest

from finding_tickets.measure.timing import DOUBT, LOOKS, Pair, RatioInterval, compare_times

PAIR = ("fix", "found")


@dataclass
class Given:
    """Runs that take given seconds, by a clock that only they advance."""

    seconds: dict[str, Callable[[int], float]]
    now: float = 0.0
    runs: list[tuple[str, int]] = field(default_factory=list)

    def run(self, name: str, number: int) -> float:
        """One run."""
        self.runs.append((name, number))
        taken = self.seconds[name](number)
        self.now += taken
        return taken

    def compared(
        self, *edges: float, pairs: Sequence[Pair] = (PAIR,), deadline: float = 1e9, empty: float = 0.0
    ) -> dict[Pair, RatioInterval | str]:
        """The comparison of some pairs."""
        asked = dict.fromkeys(pairs, edges)
        return compare_times(
            self.run,
            asked,
            doubt=DOUBT / (len(LOOKS) * len(pairs)),
            empty=empty,
            deadline=deadline,
            clock=lambda: self.now,
        )


def steady(seconds: float) -> Callable[[int], float]:
    """A run that always takes the same."""
    return lambda _: seconds


def swinging(*seconds: float) -> Callable[[int], float]:
    """Runs that take these seconds by turns."""
    taken = cycle(seconds)
    return lambda _: next(taken)


def test_variants_run_by_turns() -> None:
    """After two warm-ups each, on data of their own, every round has the opposite order of the one before."""
    given = Given({"found": steady(4), "fix": steady(1)})
    given.compared(0.5)
    warm = [("fix", -1), ("found", -1), ("fix", -2), ("found", -2)]
    assert warm == given.runs[:4]
    assert [("fix", 0), ("found", 0), ("found", 1), ("fix", 1), ("fix", 2), ("found", 2)] == given.runs[4:10]
    # The first look decides.
    assert 4 + 2 * LOOKS[0] == len(given.runs)


def test_the_warm_up_is_not_timed() -> None:
    """What the first runs take longer has no part in the ratio."""
    given = Given({"found": lambda number: 100 if number < 0 else 4, "fix": steady(1)})
    assert RatioInterval(0.25, 0.25, 0.25, 16) == given.compared(0.5)[PAIR]


def test_rounds_go_on_until_the_spread_decides() -> None:
    """Half of the ratios are 0.2 and half are 0.6: no number of rounds says on which side of 0.5 they are."""
    given = Given({"found": steady(1), "fix": swinging(0.2, 0.6)})
    found = given.compared(0.5)[PAIR]
    assert isinstance(found, RatioInterval)
    assert (0.2, 0.6, LOOKS[-1]) == (found.low, found.high, found.rounds)


def test_an_outlier_needs_more_rounds_and_decides_nothing() -> None:
    """Every eighth run is disturbed, which is 2 of 16 and 4 of 32; the next look leaves those out."""
    given = Given({"found": steady(1), "fix": swinging(*[0.2] * 7, 9.0)})
    found = given.compared(0.5)[PAIR]
    assert isinstance(found, RatioInterval)
    # With 1/500 of doubt, 16 rounds leave out 1 on either side: 2*(1 + 16) of 65536, and 2*(1 + 16 + 120) are
    # too many. 32 rounds leave out 6: 2*(1 + 32 + 496 + 4960 + 35960 + 201376 + 906192) of 2**32.
    assert (0.2, 0.2, 32) == (found.low, found.high, found.rounds)


def test_all_pairs_are_decided_in_the_same_rounds() -> None:
    """A variant that is in two pairs runs once in a round, and the slower decision is waited for."""
    given = Given({"found": steady(1), "fix": steady(0.1), "other": swinging(*[0.2] * 7, 9.0)})
    pairs = [PAIR, ("other", "found")]
    found = given.compared(0.5, pairs=pairs)
    assert [32, 32] == [each.rounds for each in found.values() if isinstance(each, RatioInterval)]
    assert 3 * (2 + 32) == len(given.runs)


@pytest.mark.parametrize(
    ("deadline", "expected"),
    [
        # The warm-up takes 4 s, and each round 2 s.
        (3.0, "there was no time for a round"),
        (9.0, "there was time for 3 rounds alone"),
    ],
)
def test_without_time_nothing_is_decided(deadline: float, expected: str) -> None:
    """A budget that ends before there are enough rounds says how many there were."""
    given = Given({"found": steady(1), "fix": steady(1)})
    assert expected == given.compared(0.5, deadline=deadline)[PAIR]


def test_the_rounds_there_was_time_for_count() -> None:
    """Between two looks the deadline makes one more: 20 rounds of 2 s after 4 s of warm-up."""
    given = Given({"found": steady(1), "fix": steady(1)})
    assert RatioInterval(1.0, 1.0, 1.0, 20) == given.compared(1.0, deadline=43.0)[PAIR]


@pytest.mark.parametrize(("empty", "is_told"), [(0.05, True), (0.051, False)])
def test_a_run_that_is_hardly_longer_than_none_is_not_compared(empty: float, is_told: bool) -> None:
    """The longer of the two must take 20 times as long as an empty run; the shorter may take any time."""
    given = Given({"found": steady(1), "fix": steady(0.06)})
    found = given.compared(0.5, empty=empty)[PAIR]
    assert is_told is isinstance(found, RatioInterval)
    assert is_told or str(found).startswith("a run takes hardly longer than an empty one")
