"""Read budgets from the tables of a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

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
from finding_tickets.register.budgets import CALLS, Budget, Law

# What became of keys that older versions had.
REMOVED_KEYS = {
    "limits": "write max",
    "paths": "write within, or allow the statements",
    "text": "write code",
    "occurrence": "write one allowance for each of several equal statements",
    "what": "an allowance is about waits",
    "until": "remove the allowance when it ends",
}
_HEADER = re.compile(
    r"\s*\[\[\s*(?:tool\s*\.\s*tickets\s*\.\s*)?budget\s*(\.\s*allow\s*)?\]\]"
)


def parse_budgets(tables: Any, text: str, file: str) -> list[Budget]:
    """Return the budgets of a configuration, whose text tells the lines.

    Raises:
        BadDataError: One is wrong; the message names the file, the line and the key.
    """
    headers, found = _headers(text), list[Budget]()
    for number, table in enumerate(tables if isinstance(tables, list) else [tables]):
        lines = headers[number] if number < len(headers) else [1]
        try:
            budget = _parse_budget(table, lines)
        except BadDataError as error:
            raise error.in_file(file, lines[0]) from None
        if any(budget.name == other.name for other in found):
            raise BadDataError(
                f"budget {budget.name!r} is there twice", file=file, line=budget.line
            )
        found.append(budget)
    return found


def _parse_budget(table: Any, lines: Sequence[int]) -> Budget:
    """Parse the table of a budget; ``lines`` has its header and the headers of its allowances."""
    tables = table.get("allow", []) if isinstance(table, dict) else []
    lines = [*lines, *([lines[0]] * len(tables))]
    for each, line in zip([table, *tables], lines, strict=False):
        for name in REMOVED_KEYS.keys() & set(each):
            raise BadDataError(
                f"the key {name!r} is gone", line=line, hint=REMOVED_KEYS[name]
            )
    try:
        budget = msgspec.convert(table, Budget)
        parse_command(budget.run, budget.sweep)
    except msgspec.ValidationError as error:
        match = re.search(r"allow\[(\d+)\]", str(error))
        line = lines[int(match[1]) + 1] if match else lines[0]
        raise BadDataError(
            f"budget: {error}", line=line, hint="see docs/budgets.md"
        ) from None
    except WrongCommandError as error:
        raise BadDataError(error.message, hint=error.hint) from None
    if len(budget.points) > MOST_POINTS:
        raise BadDataError(f"sweep: it has more than {MOST_POINTS} points")
    for metric in budget.max:
        if metric not in COUNTS:
            raise BadDataError(
                f"max: there is no metric {metric}", hint=suggest(metric, COUNTS)
            )
    _check_laws(budget.max.values(), budget, lines[0])
    allow = []
    for allowance, line in zip(budget.allow, lines[1:], strict=False):
        if not inside_repository(allowance.file):
            raise BadDataError(
                f"file: {allowance.file} leaves the repository", line=line
            )
        if allowance.law is not None:
            _check_laws([allowance.law], budget, line)
        allow.append(msgspec.structs.replace(allowance, line=line))
    name = budget.name or budget.run
    return msgspec.structs.replace(budget, name=name, allow=tuple(allow), line=lines[0])


def _check_laws(laws: Iterable[Law], budget: Budget, line: int) -> None:
    """Raise BadDataError unless each law has a value from 0 on at every point."""
    known = [*budget.sweep, CALLS] if budget.within else [*budget.sweep]
    for law in laws:
        try:
            expression = parse_expression(str(law))
            check_variables(expression, known)
            least = min(evaluate(expression, {**at, CALLS: 1}) for at in budget.points)
        except ExpressionError as error:
            raise BadDataError(
                f"{law}: {error.message}", line=line, hint=error.hint
            ) from None
        if least < 0:
            raise BadDataError(f"{law}: is below 0", line=line)


def _headers(text: str) -> list[list[int]]:
    """Return the lines of the headers of each budget: first its own, then its allowances."""
    found: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _HEADER.match(line)
        if match and not match[1]:
            found.append([number])
        elif match and found:
            found[-1].append(number)
    return found
