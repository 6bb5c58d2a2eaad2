"""What a growth class claims on the points of a sweep."""

from __future__ import annotations

from math import isqrt

import pytest

from finding_tickets.verify.grammar import parse_expression
from finding_tickets.verify.growth import bounded, growth_class, undominated

# Counts and sizes vary independently; the total is never smaller than the largest.
POINTS = [
    {"n": n, "largest": largest, "total": largest + 3 * n}
    for n, largest in [(1, 8), (900, 10), (4, 4096), (2, 100), (300, 50), (30, 2000), (2000, 300), (8, 65536)]
]


def holds(law: str, growth: str) -> bool | None:
    """Whether a metric with this law is bounded by the class on ``POINTS``."""
    return bounded(parse_expression(growth), POINTS, [], law)


@pytest.mark.parametrize(
    ("law", "growth", "expected"),
    [
        ("7", "1", True),
        ("7", "n", True),
        ("4*n + 2", "n", True),
        ("4*n + 2", "1", False),
        ("n*largest", "n*largest", True),
        ("n*n", "n", False),
        ("n", "n*n", True),
        ("5*largest + 64*n", "largest", False),
        ("5*largest + 64*n", "largest + n", True),
        ("max(5*largest, 4*n)", "max(largest, n)", True),
        ("ceil(n/110) + 2", "n", True),
        ("ceil(n/110) + 2", "1", False),
        ("min(1, n)", "1", True),
        ("3/2*n - 4", "2*n", True),
        ("n", "n*log2(n)", True),
    ],
)
def test_a_law_is_bounded_term_by_term(law: str, growth: str, expected: bool) -> None:
    """Each term of the law must be dominated by a term of the class; factors do not matter."""
    assert expected is holds(law, growth)


def test_a_variable_that_never_exceeds_another_is_bounded_by_it() -> None:
    """Totals bound their largest part: the sweep shows that they could have been exceeded and were not."""
    # total is 11 at the first point where largest is 65536 at the last: their ranges overlap.
    assert (True, False) == (holds("5*largest", "total"), holds("5*total", "largest"))


def test_ranges_that_do_not_overlap_prove_no_bound() -> None:
    """That all counts are below all sizes is how the sweep was chosen, not how they depend on each other."""
    points = [{"n": n, "size": 1000 * n} for n in (1, 2, 3, 4)]
    assert ["n"] == undominated("n + size", parse_expression("size"), points)


def test_without_a_law_the_ratio_must_level_off() -> None:
    """Values that wobble around a multiple of the class are bounded by it; a faster growth is not."""
    wobbling = [5 * point["n"] + point["n"] % 3 for point in POINTS]
    growing = [point["n"] * isqrt(point["n"]) for point in POINTS]
    class_n = parse_expression("n")
    assert (True, False) == tuple(bounded(class_n, POINTS, v, None) for v in (wobbling, growing))


def test_each_term_of_a_class_may_have_its_own_factor() -> None:
    """Six bytes for each of n and one for each element is bounded by their sum, a step faster is not."""
    # Where n is small the ratio to n + largest is near 1, where it is large near 6: more than twice as much.
    mixed = [6 * point["n"] + point["largest"] + point["n"] % 3 for point in POINTS]
    faster = [6 * point["n"] * isqrt(point["n"]) + point["largest"] for point in POINTS]
    both = parse_expression("n + largest")
    assert (True, False) == tuple(bounded(both, POINTS, values, None) for values in (mixed, faster))


def test_few_points_decide_nothing() -> None:
    """Three points without a law neither confirm nor refute a class."""
    assert None is bounded(parse_expression("n"), POINTS[:3], [1, 5, 9], None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7, 8, 7, 8, 7, 8, 7, 8], "O(1)"),
        ([3 * point["n"] + point["n"] % 2 for point in POINTS], "O(n)"),
        ([point["n"] * point["largest"] + 1 for point in POINTS], "O(n*largest)"),
    ],
)
def test_the_smallest_class_is_named(values: list[int], expected: str) -> None:
    """Among constants, variables and products the smallest class that bounds the values is shown."""
    assert expected == growth_class(POINTS, values)
