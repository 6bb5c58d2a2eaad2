"""The interval of a ratio, on given numbers."""

from __future__ import annotations

import random
from statistics import median

import pytest

from finding_tickets.measure.timing import RatioInterval, confidence_interval, is_clear_of


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


@pytest.mark.parametrize(
    ("edges", "expected"),
    [((), True), ((0.5,), True), ((0.31,), False), ((0.5, 0.25), False), ((0.4,), False)],
)
def test_an_interval_is_clear_of_what_it_does_not_hold(edges: tuple[float, ...], expected: bool) -> None:
    """The ends belong to it."""
    assert expected is is_clear_of(RatioInterval(0.3, 0.25, 0.4, 16), edges)


def test_an_interval_is_told_with_its_spread() -> None:
    """Median, ends and rounds, to three digits."""
    assert "0.312 (0.29 to 0.341 over 40 rounds)" == str(RatioInterval(0.31234, 0.29, 0.34142, 40))
