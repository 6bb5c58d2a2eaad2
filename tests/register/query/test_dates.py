"""Days in documents, and dates and ages in queries."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from finding_tickets.register.query import date_in, date_test

TODAY = date(2024, 3, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29", date(2024, 2, 29)),
        ("on 2024-02-03, again 2024-02-04", date(2024, 2, 3)),
        ("2024-02-03T10:00:00Z", date(2024, 2, 3)),
        ("2023-02-29", None),
        ("12024-02-03", None),
        ("2024-02", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_the_day_that_a_document_states(text: str | None, expected: date | None) -> None:
    """The first one of the calendar that is written out."""
    assert expected == date_in(text)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        # Tried are 2023-12-31, 2024-01-31, 2024-02-16 (14 days ago), 2024-02-29, 2024-03-01 and 2024-03-02.
        ("2024-02-29", [3]),
        ("=2024-02-29", [3]),
        (">2024-02-29", [4, 5]),
        (">=2024-02-29", [3, 4, 5]),
        ("<2024-02-29", [0, 1, 2]),
        ("<=2024-02-29", [0, 1, 2, 3]),
        ("2024-02", [2, 3]),
        (">2024-02", [4, 5]),
        (">=2024-02", [2, 3, 4, 5]),
        ("<2024-02", [0, 1]),
        ("<=2024-02", [0, 1, 2, 3]),
        ("2023-12", [0]),
        ("2024", [1, 2, 3, 4, 5]),
        (">2023", [1, 2, 3, 4, 5]),
        ("<=2023", [0]),
        ("today", [4]),
        (">today", [5]),
        # An age compares how long ago a day was; what lies ahead is not a day old.
        ("2w", [2, 3, 4, 5]),
        ("<2w", [3, 4, 5]),
        ("<=2w", [2, 3, 4, 5]),
        ("=2w", [2]),
        (">2w", [0, 1]),
        (">=2w", [0, 1, 2]),
        ("14D", [2, 3, 4, 5]),
        # 31 January is 30 days ago, 31 December 61.
        (">1m", [0]),
        ("<=1m", [1, 2, 3, 4, 5]),
        ("<1y", [0, 1, 2, 3, 4, 5]),
        (">0d", [0, 1, 2, 3]),
        ("<999y", [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_condition_on_a_day(condition: str, expected: list[int]) -> None:
    """Months and years are all of their days."""
    days = [date(2023, 12, 31), date(2024, 1, 31), TODAY - timedelta(days=14), date(2024, 2, 29), TODAY]
    days.append(date(2024, 3, 2))
    value = condition.lstrip("<>=")
    test = date_test(condition.removesuffix(value), value, TODAY)
    assert test is not None
    assert expected == [number for number, day in enumerate(days) if test(day.isoformat())]


@pytest.mark.parametrize(
    "value",
    ["soon", "2024-13", "2024-00", "2024-02-30", "0000", "24-01-01", "2w3d", "w", "-2w", "2024-1-1", "2 w"],
)
def test_what_is_neither(value: str) -> None:
    """A value that is no date of the calendar and no age has no test."""
    assert date_test("", value, TODAY) is None
