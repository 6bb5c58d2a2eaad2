"""What the gate says of a branch: as plain text, as Markdown for a summary, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finding_tickets.gate.gate import Judged
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.verdict import Verdict
from finding_tickets.report.verification import COLOURS, INDENT, Styler

LEVELS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}
MARKS = {Level.ERROR: "**failed**", Level.WARNING: "accepted", Level.NOTE: "note"}
NOTHING = "Nothing that a ticket depends on has changed."


def gate_item(judged: Judged) -> dict[str, object]:
    """One ticket for JSON; what is not there is null or empty."""
    measured = judged.measured
    return {
        "ticket": judged.pair.id,
        "path": judged.pair.document.path,
        "why": list(judged.pair.why),
        "base": judged.base,
        "recorded": judged.recorded,
        "measured": measured.verdict if measured else None,
        "reason": measured.reason if measured else None,
        "changes": [
            {
                "name": change.name,
                "kind": change.kind,
                "before": change.before,
                "after": change.after,
                "accepted": change.accepted,
            }
            for change in judged.pair.changes
        ],
        "problems": [_problem_item(each) for each in judged.problems],
    }


def other_item(problem: Problem) -> dict[str, object]:
    """A problem that is no ticket's for JSON, with its place."""
    return {"file": problem.file, "line": problem.line, **_problem_item(problem)}


def _problem_item(problem: Problem) -> dict[str, object]:
    return {
        "level": problem.level,
        "rule": problem.rule,
        "message": problem.message,
        "hint": problem.hint,
    }


def gate_lines(judged: Judged, style: Styler) -> Iterator[str]:
    """One ticket for a reader at a terminal; ``style`` colours a text."""
    now = judged.measured.verdict if judged.measured else None
    shown = style(now or "not measured", COLOURS.get(now, "red") if now else "dim")
    yield f"{style(judged.pair.id, 'bold')}  {judged.base or 'new'} -> {shown}"
    yield f"{INDENT}changed: {', '.join(judged.pair.why)}"
    for change in judged.pair.changes:
        yield f"{INDENT}{change}{f' (accepted by {change.accepted})' if change.accepted else ''}"
    yield from (INDENT + problem_line(problem, style) for problem in judged.problems)


def problem_line(problem: Problem, style: Styler) -> str:
    """One thing that the gate has to say, for a reader at a terminal."""
    return f"{style(problem.level, LEVELS[problem.level])} {_told(problem)}"


def gate_page(base: str, everything: Sequence[Judged], others: Sequence[Problem]) -> str:
    """All of it as Markdown, such as a summary of a workflow shows."""
    failed = any(problem.level is Level.ERROR for problem in (*others, *_problems(everything)))
    title = "the gate failed" if failed else "the gate is open"
    parts = [f"## Tickets: {title}", "", f"Compared with `{base}`."]
    if not everything:
        parts += ["", NOTHING]
    else:
        parts += ["", "| ticket | base | now | changed |", "|---|---|---|---|", *map(_row, everything)]
    changes = [
        f"- `{judged.pair.id}` {_cell(str(change))}{_by(change.accepted)}"
        for judged in everything
        for change in judged.pair.changes
    ]
    parts += ["", "### Verifiers and claims", "", *changes] if changes else []
    told = [f"- {MARKS[each.level]} {_cell(f'{each.file}: {_told(each)}')}" for each in others]
    told += [f"- {MARKS[each.level]} {_cell(_told(each))}" for each in _problems(everything)]
    parts += ["", "### What the gate says", "", *told] if told else []
    return "\n".join(parts) + "\n"


def _problems(everything: Sequence[Judged]) -> Iterator[Problem]:
    return (problem for judged in everything for problem in judged.problems)


def _row(judged: Judged) -> str:
    now = judged.measured.verdict if judged.measured else Verdict.UNVERIFIED
    cells = [f"`{judged.pair.id}`", judged.base or "new", now, ", ".join(map(_cell, judged.pair.why))]
    return f"| {' | '.join(cells)} |"


def _by(accepted: str | None) -> str:
    return f" (accepted by {_cell(accepted)})" if accepted else ""


def _told(problem: Problem) -> str:
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"[{problem.rule}] {problem.message}{hint}"


def _cell(text: str) -> str:
    """One line that starts no other markup; what stands in backticks stays readable."""
    line = " ".join(text.split())
    return "".join(f"\\{char}" if char in "|*<>[]_" else char for char in line)
