"""What a growth class says about a law."""

from __future__ import annotations

import pytest

from finding_tickets.claims.check import undominated
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
