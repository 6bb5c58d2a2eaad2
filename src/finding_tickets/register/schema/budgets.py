"""The budgets of a configuration: what may be wrong with one, and the lines on which they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from datetime import date
from itertools import product
from math import prod
from typing import Any, TypeVar

import msgspec

from finding_tickets.claims.language import (
    ExpressionError,
    check_variables,
    evaluate,
    parse_expression,
    suggest,
)
from finding_tickets.claims.metrics import COUNTS
from finding_tickets.documents.run_command import WrongCommandError, parse_command
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import inside_repository
from finding_tickets.model.vocabulary import MOST_POINTS
from finding_tickets.register.config import Allowance, Budget

# What lines of code spend: an allowance can set no other metric apart.
OF_LINES = (
    *("syncs", "stream_syncs", "event_syncs", "device_syncs", "drains", "implicit_syncs", "hazards"),
    *("d2h", "h2d", "d2d", "p2p", "allocations"),
)
_HEADER = re.compile(r"\s*\[\[\s*(?:tool\s*\.\s*tickets\s*\.\s*)?budget\s*(\.\s*allow\s*)?\]\]")
_WITHIN = re.compile(r"[^:@\s]+:[A-Za-z_][\w.]*")
_TICKET = re.compile(r"[^\s/]*\d[^\s/]*")
_LINE = "line"
T = TypeVar("T", Budget, Allowance)


def parse_budgets(tables: Any, text: str, file: str) -> list[Budget]:
    """The budgets in a configuration.

    Raises:
        BadDataError: One is wrong; the message names the file and the line.
    """
    lines = list(_lines(text))
    found: list[Budget] = []
    if not isinstance(tables, list):
        raise BadDataError("budget: must be a list of tables", file=file, hint="write [[budget]]")
    for place, table in enumerate(tables):
        at, allowed = lines[place] if place < len(lines) else (1, [])
        try:
            budget = _budget(table, at, allowed)
        except BadDataError as error:
            line = _line_of(text, at, error.message.partition(":")[0]) if error.line is None else error.line
            raise error.in_file(file, line) from None
        if any(budget.name == other.name for other in found):
            message = f"budget {budget.name!r} is there twice"
            raise BadDataError(message, file=file, line=at, hint="name one of them")
        found.append(budget)
    return found


def _budget(table: Any, at: int, lines: Sequence[int]) -> Budget:
    """The budget in a table; the message of an error begins with the key, unless it has a line."""
    tables = table.get("allow") if isinstance(table, dict) else None
    without = {**table, "allow": ()} if isinstance(tables, list) else table
    budget = _converted(Budget, without, "a budget")
    _check(budget)
    allow = []
    for place, each in enumerate(tables or ()):
        line = lines[place] if place < len(lines) else at
        try:
            allowance = _converted(Allowance, each, "an allowance")
            _check_allowance(allowance, budget.sweep)
        except BadDataError as error:
            raise error.in_file("", line) from None
        allow.append(replace(allowance, line=line))
    return replace(budget, name=budget.name or budget.run, allow=tuple(allow), line=at)


def _converted(kind: type[T], table: Any, what: str) -> T:
    """What a table states, if it has the keys and types of what it stands for."""
    if not isinstance(table, dict):
        raise BadDataError(f"{what} must be a table, not {table!r:.80}")
    known = {each.name: each.default for each in fields(kind) if each.name != _LINE}
    for name in table:
        if name not in known:
            raise BadDataError(f"unknown key {name!r}", hint=suggest(name, list(known)))
    for each in fields(kind):
        if each.default is each.default_factory is MISSING and each.name not in table:
            lacks = "target: nothing says what runs" if each.name == "run" else each.name
            raise BadDataError(f"{what} has no {lacks}", hint=f'{each.name} = "..."')
    given = table | {name: _as_text(table[name]) for name in ("law", "until") if name in table}
    # One word is a list of one.
    given |= {name: [table[name]] for name in ("what", "paths") if isinstance(table.get(name), str)}
    if isinstance(table.get("limits"), dict):
        given["limits"] = {metric: _as_text(law) for metric, law in table["limits"].items()}
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        why, _, path = str(error).partition(" - at `$.")
        name = re.split(r"\W", path)[0]
        raise BadDataError(f"{name}: {why.lower()}, not {table[name]!r:.80}") from None


def _as_text(value: Any) -> Any:
    """A number is a law, too, and a date an end."""
    return str(value) if isinstance(value, int | date) and not isinstance(value, bool) else value


def _check(budget: Budget) -> None:
    """Raise ``BadDataError`` for what is wrong in a budget; the message begins with the key."""
    if wrong := [name for name in budget.sweep if not name.isidentifier() or not budget.sweep[name]]:
        raise BadDataError(f"sweep: {wrong[0]} needs a name of Python and values")
    if prod(len(values) for values in budget.sweep.values()) > MOST_POINTS:
        raise BadDataError(f"sweep: it has more than {MOST_POINTS} points")
    try:
        parse_command(budget.run, budget.sweep)
    except WrongCommandError as error:
        raise BadDataError(error.message, hint=error.hint) from None
    if budget.within and not _WITHIN.fullmatch(budget.within):
        raise BadDataError(f"within: {budget.within!r} is no function", hint="write path.py:function")
    if not budget.limits:
        raise BadDataError("limits: none is stated", hint='limits = {syncs = "0"}')
    for path in budget.paths:
        if not inside_repository(path):
            raise BadDataError(f"paths: {path} leaves the repository")
    for metric, law in budget.limits.items():
        _check_metric(metric, COUNTS)
        _check_law(metric, law, budget.sweep)


def _check_allowance(allowance: Allowance, sweep: Mapping[str, Sequence[int]]) -> None:
    if not inside_repository(allowance.file):
        raise BadDataError(f"file: {allowance.file} leaves the repository")
    if allowance.text and not allowance.text.strip():
        raise BadDataError("text: is empty")
    if allowance.occurrence and not allowance.text:
        raise BadDataError("occurrence: needs a text")
    for metric in allowance.what:
        _check_metric(metric, OF_LINES)
    if allowance.law:
        _check_law("law", allowance.law, sweep)
        if not allowance.what:
            raise BadDataError("law: needs the metrics that it bounds", hint='what = ["syncs"]')
    try:
        is_known = bool(allowance.last_day or not allowance.until or _TICKET.fullmatch(allowance.until))
    except ValueError:
        is_known = False
    if not is_known:
        hint = "write a date such as 2030-01-31, or the ID of a ticket"
        raise BadDataError(f"until: {allowance.until!r} is neither a date nor a ticket", hint=hint)


def _check_metric(metric: str, known: Sequence[str]) -> None:
    if metric not in known:
        raise BadDataError(f"{metric}: no metric that can be stated here", hint=suggest(metric, known))


def _check_law(key: str, law: str, sweep: Mapping[str, Sequence[int]]) -> None:
    try:
        expression = parse_expression(law)
        check_variables(expression, sweep)
        # It has a value at every point, which nobody should learn after an hour of measuring.
        for row in product(*sweep.values()):
            evaluate(expression, dict(zip(sweep, row, strict=True)))
    except ExpressionError as error:
        raise BadDataError(f"{key}: {error.message}", hint=error.hint) from None


def _lines(text: str) -> Iterator[tuple[int, list[int]]]:
    """The line of each budget and those of its allowances, where each has a header of its own."""
    here: tuple[int, list[int]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.match(line):
            if match[1]:
                if here:
                    here[1].append(number)
                continue
            if here:
                yield here
            here = number, []
    if here:
        yield here


def _line_of(text: str, start: int, key: str) -> int:
    """The line below ``start`` that states a key; ``start`` where none does."""
    form = re.compile(rf"[^#]*\b{re.escape(key)}\b\s*=")
    for number, line in enumerate(text.splitlines()[start:], start + 1):
        if _HEADER.match(line) and not _HEADER.match(line)[1]:  # type: ignore[index]  # it has matched
            break
        if form.match(line):
            return number
    return start
