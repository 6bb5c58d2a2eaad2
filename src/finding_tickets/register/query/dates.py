"""Dates in documents and queries: days, months and years of the calendar, and ages such as ``2w``."""

from __future__ import annotations

import operator
import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "": operator.eq,
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What the relations of a query mean of two values with an order."""
UNITS = {"d": 1, "w": 7, "m": 30, "y": 365}
"""Days of the units in which an age is stated."""

_DATE = re.compile(r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2}))?)?")
_IN_TEXT = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_AGE = re.compile(r"(?P<number>\d{1,9})(?P<unit>[dwmy])", re.IGNORECASE)
_AGO = {"today": 0, "yesterday": 1}


def date_in(text: str | None) -> date | None:
    """The first day that a text names as YYYY-MM-DD, if it is one of the calendar."""
    match = _IN_TEXT.search(text or "")
    try:
        return date.fromisoformat(match[0]) if match else None
    except ValueError:
        return None


def date_test(relation: str, value: str, today: date) -> Callable[[date], bool] | None:
    """Whether a day stands in ``relation`` to ``value``; None where that is neither a date nor an age.

    A month or a year is all of its days. An age is compared with that of the day: ``<2w`` is less than two
    weeks ago, and so is ``2w`` or exactly that long.
    """
    age = _AGE.fullmatch(value)
    if age:
        days = int(age["number"]) * UNITS[age["unit"].lower()]
        compare = COMPARE[relation or "<="]
        return lambda day: compare((today - day).days, days)
    if value.casefold() in _AGO:
        value = (today - timedelta(days=_AGO[value.casefold()])).isoformat()
    match = _DATE.fullmatch(value)
    try:
        # The calendar decides whether there is such a month or day.
        first = date.fromisoformat(f"{value}-01-01"[: len("YYYY-MM-DD")]) if match else None
    except ValueError:
        return None
    if match is None or first is None:
        return None
    last = first
    if not match["day"]:
        month = first.month if match["month"] else 12
        last = date(first.year, month, monthrange(first.year, month)[1])
    if relation in {"", "="}:
        return lambda day: first <= day <= last
    # After a month is after its last day, and up to a month is up to that day.
    edge, compare = (last if relation in {"<=", ">"} else first), COMPARE[relation]
    return lambda day: compare(day, edge)
