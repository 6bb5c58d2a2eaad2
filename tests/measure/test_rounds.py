"""The rounds in which variants are timed and the interval of a ratio, with times that are given."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median
from typing import Any

import pytest

from finding_tickets.measure.timing import (
    ROUNDS,
    Pair,
    RatioInterval,
    compare_times,
    confidence_interval,
)

PAIR = ("fix", "found")


@dataclass
class Given:
    """Runs that take given seconds, by a clock that only they advance."""

    seconds: dict[str, Callable[[int], float]]
    empty: float = 0.0
    now: float = 0.0
    runs: list[tuple[str, int]] = field(default_factory=list)

    def ask(self, method: str, *given: Any) -> Any:
        """What a timer answers."""
        if method != "run":
            return {"cannot_time": None, "empty": self.empty}[method]
        name, _, number = given
        self.runs.append((name, number))
        spent = self.seconds[name](number)
        self.now += spent
        return spent

    def compared(
        self, pairs: Sequence[Pair] = (PAIR,), deadline: float = 1e9
    ) -> dict[Pair, RatioInterval | str]:
        """The comparison of some pairs, where an interval may miss with a chance of 1 in 100."""
        timers = dict.fromkeys(self.seconds, self.ask)
        return compare_times(timers, {"n": 1}, pairs, doubt=0.01, deadline=deadline, clock=lambda: self.now)


def steady(seconds: float) -> Callable[[int], float]:
    """A run that always takes the same."""
    return lambda _: seconds


def swinging(*seconds: float) -> Callable[[int], float]:
    """Runs that take these seconds by turns."""
    turns = cycle(seconds)
    return lambda _: next(turns)


def test_variants_run_by_turns() -> None:
    """After two warm-ups each, on data of their own, every round has the opposite order of the one before."""
    given = Given({"found": steady(4), "fix": steady(1)})
    given.compared()
    warm = [("fix", -1), ("found", -1), ("fix", -2), ("found", -2)]
    assert warm == given.runs[:4]
    assert [("fix", 0), ("found", 0), ("found", 1), ("fix", 1), ("fix", 2), ("found", 2)] == given.runs[4:10]
    assert 4 + 2 * ROUNDS == len(given.runs)


def test_the_warm_up_is_not_timed() -> None:
    """What the first runs take longer has no part in the ratio."""
    given = Given({"found": lambda number: 100 if number < 0 else 4, "fix": steady(1)})
    assert RatioInterval(0.25, 0.25, 0.25, ROUNDS) == given.compared()[PAIR]


def test_a_spread_is_told() -> None:
    """Half of the ratios are 0.2 and half are 0.6: no number of rounds says on which side of 0.5 they are."""
    found = Given({"found": steady(1), "fix": swinging(0.2, 0.6)}).compared()[PAIR]
    assert isinstance(found, RatioInterval)
    assert (0.2, 0.6) == (found.low, found.high)


def test_an_outlier_decides_nothing() -> None:
    """Every eighth run is disturbed, which is 8 of 64; of these rounds 21 are left out on either side."""
    found = Given({"found": steady(1), "fix": swinging(*[0.2] * 7, 9.0)}).compared()[PAIR]
    assert isinstance(found, RatioInterval)
    assert (0.2, 0.2) == (found.low, found.high)


def test_a_variant_of_two_pairs_runs_once_in_a_round() -> None:
    """Both pairs have the same rounds."""
    given = Given({"found": steady(1), "fix": steady(0.1), "other": steady(0.2)})
    found = given.compared([PAIR, ("other", "found")])
    assert [0.1, 0.2] == [each.ratio for each in found.values() if isinstance(each, RatioInterval)]
    assert 3 * (2 + ROUNDS) == len(given.runs)


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
    assert expected == given.compared(deadline=deadline)[PAIR]


def test_the_rounds_there_was_time_for_count() -> None:
    """20 rounds of 2 s after 4 s of warm-up."""
    given = Given({"found": steady(1), "fix": steady(1)})
    assert RatioInterval(1.0, 1.0, 1.0, 20) == given.compared(deadline=43.0)[PAIR]


@pytest.mark.parametrize(("empty", "is_told"), [(0.05, True), (0.051, False)])
def test_a_run_that_is_hardly_longer_than_none_is_not_compared(empty: float, is_told: bool) -> None:
    """The longer of the two must take 20 times as long as an empty run; the shorter may take any time."""
    found = Given({"found": steady(1), "fix": steady(0.06)}, empty).compared()[PAIR]
    assert is_told is isinstance(found, RatioInterval)
    assert is_told or str(found).startswith("a run takes hardly longer than an empty one")


@pytest.mark.parametrize(
    ("count", "doubt", "ends"),
    [
        # All of 5 are on one side of the median in 2 of 32 cases: at 1/16 the interval is all of them.
        (5, 1 / 16, (1, 5)),
        (5, 1 / 17, None),
        # At most 1 of 8 on one side: 2*(1 + 8) of 256, and at most 2 of them: 2*(1 + 8 + 28) of 256.
        (8, 18 / 256, (2, 7)),
        (8, 73 / 256, (2, 7)),
        (8, 74 / 256, (3, 6)),
        (0, 0.5, None),
    ],
)
def test_an_interval_leaves_out_what_a_coin_seldom_does(
    count: int, doubt: float, ends: tuple[int, int] | None
) -> None:
    """Between two order statistics lies the median, unless that many throws fall on one side."""
    values = [float(value) for value in range(1, count + 1)]
    values.reverse()
    found = confidence_interval(values, doubt)
    assert ends == (found and (found.low, found.high))
    assert found is None or (median(values), count) == (found.ratio, found.rounds)


def test_the_interval_misses_the_median_as_seldom_as_it_may() -> None:
    """Samples of a skewed distribution, whose median is known, in 400 draws of 16."""
    # An exponential distribution with the mean 1 has the median log(2). With a doubt of 1 in 10, 16 values
    # leave out 4 on either side: 2*(1 + 16 + 120 + 560 + 1820) of 65536 is 1 in 13, with 4368 more 1 in 5.
    draw = random.Random(1)  # noqa: S311 - samples, no secrets
    found = [confidence_interval([draw.expovariate(1) for _ in range(16)], 0.1) for _ in range(400)]
    missed = [each for each in found if each and not each.low <= 0.6931 <= each.high]
    # 400/13 is 31, and a deviation is the root of 400*(1/13)*(12/13), which is 5.3: four of them each way.
    assert 10 <= len(missed) <= 52


def test_an_interval_is_told_with_its_spread() -> None:
    """Median, ends and rounds, to three digits."""
    assert "0.312 (0.29 to 0.341 over 40 rounds)" == str(RatioInterval(0.31234, 0.29, 0.34142, 40))
