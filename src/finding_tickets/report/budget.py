"""Print budgets: as a table for people, as data for machines."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.budget.rules import Judged, problems
from finding_tickets.report.text import (
    INDENT,
    LEVELS,
    Styled,
    Styler,
    TableCell,
    fields_of,
    printable,
    table_lines,
)

# Statements that are shown of a budget.
MOST_ROWS = 12


def budget_lines(
    judged: Judged, file: str, style: Styler, width: int = 0
) -> Iterator[str]:
    """Yield the lines about a budget: its limits, the statements that may wait, the problems."""
    budget = judged.budget
    about = [budget.run]
    if budget.within:
        about.append(f"in each call of {budget.within}")
    if budget.sweep:
        points = [
            f"{name}={','.join(map(str, values))}"
            for name, values in budget.sweep.items()
        ]
        about.append(f"at {', '.join(points)}")
    yield f"{style(printable(budget.name), 'bold')}  {printable(' '.join(about))}"
    rows: list[tuple[TableCell, ...]] = [("metric", "counted", "max")]
    for row in judged.rows:
        counted = Styled(row.law, "green" if row.holds else "red")
        if row.metric in budget.max or any(row.values):
            rows.append((row.metric, counted, row.limit))
    yield from table_lines(rows if judged.rows else (), style, width)
    lines = []
    for statement, allowance in judged.allowed.items():
        law = judged.law_of(judged.values("syncs", allowance.law or 0, statement))
        lines.append(
            (
                str(statement),
                f"waits {law}",
                f"allowed by {allowance.owner}",
                statement.code,
            )
        )
    for statement, reason in judged.spending.regions.items():
        lines.append(
            (str(statement), "waits", f"allowed there: {reason}", statement.code)
        )
    yield from table_lines(lines, style, width, most=MOST_ROWS)
    for problem in problems(judged, file):
        said = problem.said.removeprefix(f"budget {budget.name}: ")
        text = printable(f"{problem.file}:{problem.line}: {said}")
        yield f"{INDENT}{style(problem.level, LEVELS[problem.level])} {text}"


def budget_item(judged: Judged, file: str) -> dict[str, object]:
    """Return a budget as data for JSON."""
    lines = []
    for statement in judged.statements():
        allowance = judged.allowed.get(statement)
        line = fields_of(statement, "file", "line", "function", "code")
        law = allowance.law if allowance else None
        line["syncs"] = judged.values("syncs", law or 0, statement)
        line["counts"] = judged.counts(statement, "syncs")
        line["allowed"] = (
            fields_of(allowance, "owner", "reason", "law", "line")
            if allowance
            else None
        )
        lines.append(line)
    return {
        **fields_of(judged.budget, "name", "run", "within", "points"),
        "device": judged.spending.device or None,
        "reason": judged.spending.trouble or None,
        "limits": [
            fields_of(row, "metric", "limit", "values", "law", "holds")
            for row in judged.rows
        ],
        "lines": lines,
        "problems": [
            fields_of(each, "level", "rule", "file", "line", "message", "hint")
            for each in problems(judged, file)
        ],
    }
