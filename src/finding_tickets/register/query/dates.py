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
    span = _span(value, today)
    if span is None:
        return None
    first, last = span
    if relation in {"", "="}:
        return lambda day: first <= day <= last
    edge, compare = (last if relation in {"<=", ">"} else first), COMPARE[relation]
    return lambda day: compare(day, edge)


def _span(value: str, today: date) -> tuple[date, date] | None:
    """The first and the last day of what ``value`` names."""
    ago = _AGO.get(value.casefold())
    if ago is not None:
        that = today - timedelta(days=ago)
        return that, that
    match = _DATE.fullmatch(value)
    if match is None:
        return None
    year, month, day = (int(number) if number else None for number in match.groups())
    try:
        first = date(year or 0, 1 if month is None else month, 1 if day is None else day)
    except ValueError:
        return None
    if day is not None:
        return first, first
    if month is not None:
        return first, first.replace(day=monthrange(first.year, month)[1])
    return first, date(first.year, 12, 31)
