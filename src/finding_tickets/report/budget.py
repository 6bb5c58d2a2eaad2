"""Budgets and what is spent of them: a table for people, data for machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from finding_tickets.budget.judge import AllowedSpender, JudgedBudget, law_of
from finding_tickets.budget.spending import LARGEST, Spender
from finding_tickets.claims.check import ONCE
from finding_tickets.claims.metrics import SYNCS
from finding_tickets.model.vocabulary import Level
from finding_tickets.report.text import INDENT, Styled, Styler, aligned, counted, fields_of, printable

MOST_ROWS = 12
"""Lines of code that are shown of a budget unless all are."""
# What is said of a line as a matter of course beside what is limited.
_BESIDE = {LARGEST, *SYNCS, "allocations"}
_COLOURS = {True: "green", False: "red", None: "magenta"}
_LEVELS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}


def budget_lines(
    judged: JudgedBudget, style: Styler, width: int = 0, *, verbose: bool = False
) -> Iterator[str]:
    """One budget for a reader: its limits with what is spent and left, its lines, its problems."""
    budget, spending = judged.budget, judged.spending
    points = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in budget.sweep.items())
    within = f", within {budget.within}" if budget.within else ""
    about = f"{budget.run}{within}{f' at {points}' if points else ''}"
    yield f"{style(printable(budget.name), 'bold')}  {printable(about)}"
    if judged.rows:
        rows: list[tuple[str | Styled, ...]] = [("metric", "spent", "limit", "left", "allowed apart")]
        for row in judged.rows:
            spent = Styled(row.law, _COLOURS[row.holds])
            rows.append((row.metric, spent, row.limit, row.left, row.allowed or "-"))
        yield from (INDENT + line for line in aligned(rows, style, max(width - 2, 0)))
    lines = list(_line_rows(judged, verbose=verbose))
    shown = lines if verbose else lines[:MOST_ROWS]
    yield from (INDENT + line for line in aligned(shown, style, max(width - 2, 0), cut=True))
    if len(lines) > len(shown):
        yield f"{INDENT}and {counted(len(lines) - len(shown), 'more line')} (-v lists them)"
    if verbose:
        yield from (printable(f"{INDENT}silent: {each}: {each.reason}") for each in judged.silent)
        yield printable(f"{INDENT}on {spending.device}")
    for problem in judged.problems:
        said = problem.message.removeprefix(f"budget {budget.name}: ")
        hint = f" ({problem.hint})" if problem.hint else ""
        place = f"{problem.file}:{problem.line}"
        yield INDENT + style(problem.level, _LEVELS[problem.level]) + printable(f" {place}: {said}{hint}")


def _line_rows(judged: JudgedBudget, *, verbose: bool) -> Iterator[tuple[str | Styled, ...]]:
    """The lines that spend: first those that count, then those that are allowed to."""
    limited = set(judged.budget.limits)
    for spender, spent in judged.others:
        if said := _spent(judged, spent, limited, verbose=verbose):
            yield str(spender), said, "counts", spender.source
    for each in judged.allowed:
        if said := _spent(judged, each.spent, {*limited, *each.allowance.what}, verbose=verbose):
            yield str(each.spender), said, _why_allowed(each) if verbose else "allowed", each.spender.source


def _why_allowed(each: AllowedSpender) -> str:
    by = f" by {each.allowance.owner}" if each.allowance.owner else ""
    return f"allowed{by}: {each.allowance.reason}"


def _spent(
    judged: JudgedBudget, spent: Mapping[str, tuple[int, ...]], wanted: set[str], *, verbose: bool
) -> str:
    """What a line spends of the metrics that matter, as laws."""
    return ", ".join(
        f"{metric} {law_of(values, judged.spending.points)}"
        for metric, values in spent.items()
        if any(values) and (metric in wanted or (verbose and metric not in _BESIDE))
    )


def budget_page(everything: Sequence[JudgedBudget]) -> str:
    """Budgets as Markdown, such as a summary of a workflow shows."""
    from finding_tickets.report.templates import render

    problems = [problem for judged in everything for problem in judged.problems]
    failed = any(problem.level is Level.ERROR for problem in problems)
    return render("budget.md.j2", {"budgets": everything, "problems": problems, "failed": failed})


def budget_item(judged: JudgedBudget) -> dict[str, object]:
    """One budget for JSON; what is not there is null or empty."""
    budget, spending = judged.budget, judged.spending
    points = [] if spending.points == (ONCE,) else list(spending.points)

    def line(spender: Spender, spent: Mapping[str, tuple[int, ...]]) -> dict[str, object]:
        place = fields_of(spender, "file", "line", "function", "text", "occurrence")
        return {**place, "spent": {metric: list(values) for metric, values in spent.items()}}

    return {
        "budget": budget.name,
        "run": budget.run,
        "within": budget.within or None,
        "device": spending.device or None,
        "points": points,
        "limits": [
            {**fields_of(row, "metric", "limit", "law"), "spent": list(row.values), "left": row.left or None}
            | {"allowed": row.allowed or None, "holds": row.holds}
            for row in judged.rows
        ],
        "counted": [line(spender, spent) for spender, spent in judged.others],
        "allowed": [
            {
                **line(each.spender, each.spent),
                **fields_of(each.allowance, "owner", "reason", "law", "until"),
                "moved": each.is_moved,
            }
            for each in judged.allowed
        ],
        "silent": [str(each) for each in judged.silent],
        "gone": [str(each) for each in judged.gone],
        "problems": [
            fields_of(each, "level", "rule", "file", "line", "message", "hint") for each in judged.problems
        ],
    }
