"""Budgets and what is spent of them, suites and where they wait: text for people, data for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.budget.judge import JudgedBudget, law_of
from finding_tickets.budget.spending import LARGEST, Spender
from finding_tickets.claims.check import ONCE
from finding_tickets.claims.metrics import SYNCS
from finding_tickets.model.vocabulary import Level
from finding_tickets.report.text import (
    INDENT,
    LEVELS,
    Styled,
    Styler,
    TableCell,
    counted,
    fields_of,
    printable,
    table_lines,
)

if TYPE_CHECKING:
    from finding_tickets.budget.suite import JudgedSuite

MOST_ROWS, MOST_OF_A_SUITE = 12, 10
"""Lines of code, entries and problems that are shown of a budget, and of a suite, unless all are."""
# What is said of a line as a matter of course beside what is limited.
_BESIDE = {LARGEST, *SYNCS, "allocations"}
_COLOURS = {True: "green", False: "red", None: "magenta"}


def budget_lines(
    judged: JudgedBudget, style: Styler, width: int = 0, *, verbose: bool = False
) -> Iterator[str]:
    """One budget for a reader: its limits with what is spent and left, its lines, its problems."""
    budget, spending = judged.budget, judged.spending
    points = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in budget.sweep.items())
    within = f", within {budget.within}" if budget.within else ""
    about = f"{budget.run}{within}{f' at {points}' if points else ''}"
    yield f"{style(printable(budget.name), 'bold')}  {printable(about)}"
    rows: list[tuple[TableCell, ...]] = [("metric", "spent", "limit", "left", "allowed apart")]
    for row in judged.rows:
        spent = Styled(row.law, _COLOURS[row.holds])
        rows.append((row.metric, spent, row.limit, row.left, row.allowed or "-"))
    yield from table_lines(rows if judged.rows else (), style, width)
    lines = list(_line_rows(judged, verbose=verbose))
    yield from table_lines(lines, style, width, cut=True, most=None if verbose else MOST_ROWS)
    if verbose:
        yield from (printable(f"{INDENT}silent: {each}: {each.reason}") for each in judged.silent)
        yield printable(f"{INDENT}on {spending.device}")
    for problem in judged.problems:
        said = problem.said.removeprefix(f"budget {budget.name}: ")
        text = printable(f"{problem.file}:{problem.line}: {said}")
        yield f"{INDENT}{style(problem.level, LEVELS[problem.level])} {text}"


def _line_rows(judged: JudgedBudget, *, verbose: bool) -> Iterator[tuple[TableCell, ...]]:
    """The lines that spend: first those that count, then those that are allowed to."""
    limited = set(judged.budget.limits)
    for spender, spent in judged.others:
        if said := _spent(judged, spent, limited, verbose=verbose):
            yield str(spender), said, "counts", spender.source
    for each in judged.allowed:
        if said := _spent(judged, each.spent, {*limited, *each.allowance.what}, verbose=verbose):
            by = f" by {each.allowance.owner}" if each.allowance.owner else ""
            why = f"allowed{by}: {each.allowance.reason}" if verbose else "allowed"
            yield str(each.spender), said, why, each.spender.source


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
        "problems": [each.model_dump(exclude={"column"}) for each in judged.problems],
    }


def suite_lines(judged: JudgedSuite, *, verbose: bool = False) -> Iterator[str]:
    """What a session came to: first what ends it with a failure, then the entries."""
    from finding_tickets.budget.suite import CONFIRMED

    most, root = None if verbose else MOST_OF_A_SUITE, judged.suite.root
    if judged.refused:
        count = len(judged.refused)
        yield f"{counted(count, 'line')} {'wait' if count > 1 else 'waits'} and may not:"
        refused = [
            (f"{waits}x", str(spender), spender.source, f"in {_tests(tests)}")
            for spender, waits, tests in judged.refused
        ]
        yield from table_lines(refused, most=most)
    problems = []
    for each in judged.problems:
        file = Path(each.file)
        place = file.relative_to(root) if file.is_relative_to(root) else file
        said = printable(each.said.removeprefix(f"budget {file.name}: "))
        problems.append((each.level, f"{place}:{each.line}", said))
    yield from table_lines(problems, most=most)
    statuses = Counter(each.status for each in judged.entries)
    found = ", ".join(f"{count} {status}" for status, count in statuses.items())
    yield f"{counted(len(judged.entries), 'allowance')}{': ' if found else ''}{found}"
    # What is as somebody said comes last.
    entries = [
        (
            f"{each.status} {each.waits}x" if each.waits else each.status,
            each.entry.name,
            f"in {_tests(each.tests)}" if each.tests else "-",
        )
        for each in sorted(judged.entries, key=lambda each: each.status == CONFIRMED)
    ]
    yield from table_lines(entries, most=most)
    if judged.regions:
        yield f"allowed in {counted(len(judged.regions), 'region')}:"
        regions = [(f"{waits}x", str(spender), reason) for reason, spender, waits in judged.regions]
        yield from table_lines(regions, most=most)


def suite_item(judged: JudgedSuite) -> dict[str, object]:
    """The same for JSON; what is not there is empty."""
    place = ("file", "line", "function", "text")
    return {
        "file": judged.suite.file,
        "holds": judged.holds,
        "refused": [
            {**fields_of(spender, *place), "waits": waits, "tests": tests}
            for spender, waits, tests in judged.refused
        ],
        "allowed": [
            {
                **fields_of(each.entry, "name", "line"),
                **fields_of(each.entry.allowances[0], "owner", "reason"),
                **fields_of(each, "status", "waits", "tests"),
            }
            for each in judged.entries
        ],
        "regions": [
            {"reason": reason, **fields_of(spender, *place), "waits": waits}
            for reason, spender, waits in judged.regions
        ],
        "problems": [each.model_dump(exclude={"column"}) for each in judged.problems],
    }


def _tests(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return f"{tests[0] or 'collecting tests'}{more}"
