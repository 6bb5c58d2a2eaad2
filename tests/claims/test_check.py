"""What a growth class says about a law, and a range of numbers about a claim."""

from __future__ import annotations

import pytest

from finding_tickets.claims.check import check_counts, outcome, undominated
from finding_tickets.claims.language import GROWTH, parse_condition


def beyond(law: str, growth: str) -> list[str]:
    """The terms of a law that a class does not bound."""
    condition = parse_condition(f"O({growth})")
    assert GROWTH == condition.relation
    return undominated(law, *condition.sides)


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
    assert expected is (beyond(law, growth) == [])


def test_variables_are_independent() -> None:
    """No sweep shows that one variable bounds another, so both terms must be in the class."""
    assert ["grads"] == beyond("2*params + 2*grads", "params")
    assert [] == beyond("2*params + 2*grads", "params + grads")


def test_a_product_of_sums_is_not_expanded_term_by_term() -> None:
    """Thirty factors of three terms have three to the power of thirty terms, of which few are different."""
    assert ["other"] == beyond("other", "*".join(["(n + m + 1)"] * 30))


@pytest.mark.parametrize(
    ("claim", "low", "high", "expected"),
    [
        ("4", 4, 4, True),
        ("4", 3, 5, None),
        ("4", 5, 6, False),
        ("!= 4", 3, 5, None),
        ("!= 4", 5, None, True),
        ("<= 4", 2, 4, True),
        ("<= 4", 2, 5, None),
        ("<= 4", 5, None, False),
        ("<= 4", 2, None, None),
        (">= 4", 4, None, True),
        ("> 4", 4, None, None),
        ("2..n", 3, 8, True),
        ("2..n", 1, 9, None),
        ("2..n", 9, None, False),
        ("2..n", 0, 1, False),
    ],
)
def test_a_range_meets_a_claim_whole_or_in_part_or_not(
    claim: str, low: int, high: int | None, expected: bool | None
) -> None:
    """All numbers of the range may meet it, none, or only some; n is 8."""
    assert expected is outcome(parse_condition(claim), low, high, {"n": 8})


@pytest.mark.parametrize(
    ("claim", "holds", "modelled"),
    [
        ("3*n", True, True),
        ("1..9*n", True, False),
        ("<= 5*n", True, True),
        ("2*n", False, True),
        ("> 10*n", False, False),
        ("O(n)", True, True),
    ],
)
def test_a_claim_says_where_a_modelled_number_decides(claim: str, holds: bool, modelled: bool) -> None:
    """The usual number of launches is 3*n, and at each point there may be n to 9*n."""
    points = [{"n": n} for n in (1, 2, 3, 5)]
    counts = [3 * at["n"] for at in points]
    ranges = [(at["n"], 9 * at["n"]) for at in points]
    checked = check_counts("launches", claim, points, counts, points, ranges)
    note = ", which rests on modelled numbers" if modelled else ""
    assert (holds, modelled) == (checked.holds, checked.modelled)
    assert f"~3*n (1..45){note}" == checked.measured


def test_one_point_of_which_no_number_meets_a_claim_makes_it_false_for_sure() -> None:
    """It does not matter then that numbers of other points are modelled."""
    points = [{"n": 1}, {"n": 2}]
    checked = check_counts("launches", "1", points, [2, 4], points, [(1, 3), None])
    assert (False, False) == (checked.holds, checked.modelled)


def test_a_special_case_does_not_change_a_growth() -> None:
    """No wait for one row and one for more is ``O(1)`` and ``O(rows)``; three rows prove none of both."""
    points = [{"rows": rows} for rows in (1, 2, 3, 5)]
    for growth in ("O(1)", "O(rows)"):
        assert check_counts("syncs", growth, points, [0, 1, 1, 1], points).holds is True
        assert check_counts("syncs", growth, points[:3], [0, 1, 1], points[:3]).holds is None
    linear = check_counts("syncs", "O(1)", [*points, {"rows": 9}], [0, 2, 3, 5, 9], [*points, {"rows": 9}])
    assert (False, "rows, but 0 at rows=1, in which rows is not bounded by the class") == (
        linear.holds,
        linear.measured,
    )


def test_a_counterexample_below_the_claim_is_told_apart() -> None:
    """To cost less than claimed is another matter than to cost more."""
    points = [{"rows": rows} for rows in (1, 2, 3)]
    checked = check_counts("syncs", "2", points, [1, 2, 3], points)
    assert (("rows=1: 1", "rows=3: 3"), ("rows=1: 1",)) == (checked.counterexamples, checked.below)
