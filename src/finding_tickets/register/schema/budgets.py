"""The budgets of a configuration as pydantic models, and the lines on which they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import product
from math import prod
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

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
from finding_tickets.model.vocabulary import DATE, MOST_POINTS

# What lines of code spend: an allowance can set no other metric apart.
OF_LINES = (
    *("syncs", "stream_syncs", "event_syncs", "device_syncs", "drains", "implicit_syncs", "hazards"),
    *("d2h", "h2d", "d2d", "p2p", "allocations"),
)
_HEADER = re.compile(r"\s*\[\[\s*(?:tool\s*\.\s*tickets\s*\.\s*)?budget\s*(\.\s*allow\s*)?\]\]")
_WITHIN = re.compile(r"[^:@\s]+:[A-Za-z_][\w.]*")
_TICKET = re.compile(r"[^\s/]*\d[^\s/]*")


def _words(value: Any) -> Any:
    """One word is a list of one."""
    return [value] if isinstance(value, str) else value


def _law(value: Any) -> Any:
    """A number is a law, too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _day(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


Text = Annotated[str, Field(min_length=1)]
Law = Annotated[Text, BeforeValidator(_law)]


class AllowanceTable(BaseModel):
    """One ``[[budget.allow]]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Text
    function: str = ""
    text: str = ""
    occurrence: Annotated[int, Field(ge=1, strict=True)] | None = None
    what: Annotated[tuple[Text, ...], BeforeValidator(_words)] = ()
    law: Annotated[str, BeforeValidator(_law)] = ""
    owner: str = ""
    reason: Text
    until: Annotated[str, BeforeValidator(_day)] = ""


class BudgetTable(BaseModel):
    """One ``[[budget]]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    run: Text
    sweep: dict[Text, tuple[Annotated[int, Field(strict=True)], ...]] = Field(default_factory=dict)
    within: str = ""
    paths: Annotated[tuple[Text, ...], BeforeValidator(_words)] = ()
    limits: dict[Text, Law] = Field(default_factory=dict)
    allow: tuple[AllowanceTable, ...] = ()


def parse_budgets(tables: Any, text: str, file: str) -> list[dict[str, Any]]:
    """The attributes of each ``Budget`` in a configuration.

    Raises:
        BadDataError: One is wrong; the message names the file and the line.
    """
    lines = list(_lines(text))
    found: list[dict[str, Any]] = []
    if not isinstance(tables, list):
        raise BadDataError("budget: must be a list of tables", file=file, hint="write [[budget]]")
    for place, table in enumerate(tables):
        at, allowed = lines[place] if place < len(lines) else (1, [])
        try:
            budget = BudgetTable.model_validate(table)
        except ValidationError as error:
            raise _mistake(error, file, text, at, allowed) from None
        where = [allowed[each] if each < len(allowed) else at for each in range(len(budget.allow))]
        try:
            _check(budget, at, where)
        except BadDataError as error:
            line = _line_of(text, at, error.message.partition(":")[0]) if error.line is None else error.line
            raise error.in_file(file, line) from None
        name = budget.name or budget.run
        if any(name == other["name"] for other in found):
            raise BadDataError(f"budget {name!r} is there twice", file=file, line=at, hint="name one of them")
        values = budget.model_dump() | {"name": name, "line": at}
        values["allow"] = [
            each.model_dump() | {"line": line} for each, line in zip(budget.allow, where, strict=True)
        ]
        found.append(values)
    return found


def _check(budget: BudgetTable, at: int, lines: Sequence[int]) -> None:
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
        raise BadDataError("limits: none is stated", line=at, hint='limits = {syncs = "0"}')
    for path in budget.paths:
        if not inside_repository(path):
            raise BadDataError(f"paths: {path} leaves the repository")
    for metric, law in budget.limits.items():
        _check_metric(metric, COUNTS, None)
        _check_law(metric, law, budget.sweep, None)
    for allowance, line in zip(budget.allow, lines, strict=True):
        _check_allowance(allowance, budget.sweep, line)


def _check_allowance(allowance: AllowanceTable, sweep: Mapping[str, Sequence[int]], line: int) -> None:
    if not inside_repository(allowance.file):
        raise BadDataError(f"file: {allowance.file} leaves the repository", line=line)
    if allowance.text and not allowance.text.strip():
        raise BadDataError("text: is empty", line=line)
    if allowance.occurrence and not allowance.text:
        raise BadDataError("occurrence: needs a text", line=line)
    for metric in allowance.what:
        _check_metric(metric, OF_LINES, line)
    if allowance.law:
        _check_law("law", allowance.law, sweep, line)
        if not allowance.what:
            hint = 'what = ["syncs"]'
            raise BadDataError("law: needs the metrics that it bounds", line=line, hint=hint)
    until = allowance.until
    try:
        is_known = not until or (
            bool(date.fromisoformat(until)) if DATE.fullmatch(until) else bool(_TICKET.fullmatch(until))
        )
    except ValueError:
        is_known = False
    if not is_known:
        hint = "write a date such as 2030-01-31, or the ID of a ticket"
        raise BadDataError(f"until: {until!r} is neither a date nor a ticket", line=line, hint=hint)


def _check_metric(metric: str, known: Sequence[str], line: int | None) -> None:
    if metric not in known:
        hint = suggest(metric, known)
        raise BadDataError(f"{metric}: no metric that can be stated here", line=line, hint=hint)


def _check_law(key: str, law: str, sweep: Mapping[str, Sequence[int]], line: int | None) -> None:
    try:
        expression = parse_expression(law)
        check_variables(expression, sweep)
        # It has a value at every point, which nobody should learn after an hour of measuring.
        points = (dict(zip(sweep, row, strict=True)) for row in product(*sweep.values()))
        least = min(evaluate(expression, at) for at in points)
    except ExpressionError as error:
        raise BadDataError(f"{key}: {error.message}", line=line, hint=error.hint) from None
    if least < 0:
        raise BadDataError(f"{key}: {law} is below 0, and nothing spends less than that", line=line)


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


def _mistake(error: ValidationError, file: str, text: str, at: int, allowed: Sequence[int]) -> BadDataError:
    """The first mistake in a budget, in words of the configuration."""
    wrong = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    location = [each for each in wrong["loc"] if each != "allow"]
    line, table = at, cast("type[BaseModel]", BudgetTable)
    if location and isinstance(location[0], int):
        line, table = (allowed[location[0]] if location[0] < len(allowed) else at), AllowanceTable
        location = location[1:]
    name = ".".join(map(str, location[:2])) or "budget"
    if wrong["type"] == "extra_forbidden":
        hint = suggest(str(location[-1]), list(table.model_fields))
        return BadDataError(f"unknown key {name!r}", file=file, line=line, hint=hint)
    if wrong["type"] == "missing":
        what = "has no target: nothing says what runs" if name == "run" else f"has no {name}"
        kind = "a budget" if table is BudgetTable else "an allowance"
        return BadDataError(f"{kind} {what}", file=file, line=line, hint=f'{name} = "..."')
    given = wrong.get("input")
    line = line if table is AllowanceTable else _line_of(text, at, str(location[0]) if location else "")
    return BadDataError(f"{name}: {wrong['msg'].lower()}, not {given!r:.80}", file=file, line=line)
