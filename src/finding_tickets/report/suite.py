"""A suite of tests beside where it may wait: text for people, data for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.budget.suite import CONFIRMED, JudgedEntry, JudgedSuite
from finding_tickets.report.text import INDENT, aligned, counted, fields_of, printable

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem

MOST_ROWS = 10
"""Lines, entries and problems that are shown unless all are."""


def suite_lines(judged: JudgedSuite, *, verbose: bool = False) -> Iterator[str]:
    """What a session came to: first what ends it with a failure, then the entries."""
    if judged.refused:
        count = len(judged.refused)
        yield f"{counted(count, 'line')} {'wait' if count > 1 else 'waits'} and may not:"
        rows = [
            (f"{waits}x", str(spender), spender.source, f"in {_tests(tests)}")
            for spender, waits, tests in judged.refused
        ]
        yield from _rows(rows, verbose=verbose)
    problems = [(each.level, _place(each, judged), _said(each)) for each in judged.problems]
    yield from _rows(problems, verbose=verbose)
    statuses = Counter(each.status for each in judged.entries)
    found = ", ".join(f"{count} {status}" for status, count in statuses.items())
    yield f"{counted(len(judged.entries), 'allowance')}{': ' if found else ''}{found}"
    # What is as somebody said comes last.
    entries = sorted(judged.entries, key=lambda each: each.status == CONFIRMED)
    yield from _rows([_entry_row(each) for each in entries], verbose=verbose)
    if judged.regions:
        yield f"allowed in {counted(len(judged.regions), 'region')}:"
        regions = [(f"{waits}x", str(spender), reason) for reason, spender, waits in judged.regions]
        yield from _rows(regions, verbose=verbose)


def suite_item(judged: JudgedSuite) -> dict[str, object]:
    """The same for JSON; what is not there is empty."""
    place = ("file", "line", "function", "text")
    return {
        "file": judged.suite.file,
        "holds": judged.holds,
        "refused": [
            {**fields_of(spender, *place), "waits": waits, "tests": list(tests)}
            for spender, waits, tests in judged.refused
        ],
        "allowed": [
            {"name": each.entry.name, "line": each.entry.line}
            | {"owner": each.entry.allowances[0].owner, "reason": each.entry.allowances[0].reason}
            | {"status": each.status, "waits": each.waits, "tests": list(each.tests)}
            for each in judged.entries
        ],
        "regions": [
            {"reason": reason, **fields_of(spender, *place), "waits": waits}
            for reason, spender, waits in judged.regions
        ],
        "problems": [
            fields_of(each, "level", "rule", "file", "line", "message", "hint") for each in judged.problems
        ],
    }


def _rows(rows: Sequence[tuple[str, ...]], *, verbose: bool) -> Iterator[str]:
    shown = rows if verbose else rows[:MOST_ROWS]
    yield from (INDENT + line for line in aligned(shown))
    if len(rows) > len(shown):
        yield f"{INDENT}and {len(rows) - len(shown)} more (-v lists them)"


def _entry_row(each: JudgedEntry) -> tuple[str, ...]:
    said = f"{each.status} {each.waits}x" if each.waits else each.status
    return said, each.entry.name, f"in {_tests(each.tests)}" if each.tests else "-"


def _tests(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return f"{tests[0] or 'collecting tests'}{more}"


def _place(problem: Problem, judged: JudgedSuite) -> str:
    file = Path(problem.file)
    root = judged.suite.root
    return f"{file.relative_to(root) if file.is_relative_to(root) else file}:{problem.line}"


def _said(problem: Problem) -> str:
    hint = f" ({problem.hint})" if problem.hint else ""
    return printable(f"{problem.message.removeprefix(f'budget {Path(problem.file).name}: ')}{hint}")
