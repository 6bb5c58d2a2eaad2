"""Output of the gate: of a branch for `check`, and of verifiers and cheats for `audit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from finding_tickets.gate.audit import Audited, Fate
from finding_tickets.gate.check import Judged
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.report.text import COLOURS, INDENT, LEVELS, Styled, Styler, aligned, fields_of, printable

FATES: Mapping[Fate, str] = {
    Fate.CAUGHT: "green",
    Fate.MISSED: "red",
    Fate.UNTRIED: "magenta",
    Fate.HARMLESS: "dim",
}
SHOWN = 3
"""Claims that are named for each cheat; the JSON has all."""


def gate_item(judged: Judged) -> dict[str, object]:
    """One ticket of a branch for JSON; what is not there is null or empty."""
    measured = judged.measured
    return {
        "ticket": judged.pair.id,
        "path": judged.pair.document.path,
        "why": judged.pair.why,
        **fields_of(judged, "base", "recorded"),
        "measured": measured.verdict if measured else None,
        "reason": measured.reason if measured else None,
        "changes": [
            fields_of(change, "name", "kind", "before", "after", "accepted") for change in judged.pair.changes
        ],
        "problems": [fields_of(each, "level", "rule", "message", "hint") for each in judged.problems],
    }


def gate_lines(judged: Judged, style: Styler) -> Iterator[str]:
    """One ticket of a branch for a reader; ``style`` colours a text."""
    now = judged.measured.verdict if judged.measured else None
    shown = style(now, COLOURS.get(now, "red")) if now else style("not measured", "dim")
    yield f"{style(printable(judged.pair.id), 'bold')}  {judged.base or 'new'} -> {shown}"
    yield printable(f"{INDENT}changed: {', '.join(judged.pair.why)}")
    for change in judged.pair.changes:
        yield printable(f"{INDENT}{change}{f' (accepted by {change.accepted})' if change.accepted else ''}")
    yield from (INDENT + problem_line(problem, style) for problem in judged.problems)


def problem_line(problem: Problem, style: Styler) -> str:
    """One thing that the gate has to say, for a reader."""
    return f"{style(problem.level, LEVELS[problem.level])} {printable(f'[{problem.rule}] {problem.said}')}"


def gate_page(
    base: str, everything: Sequence[Judged], others: Sequence[Problem], spent: Sequence[Problem] = ()
) -> str:
    """The outcome for a branch as Markdown, such as a summary of a workflow shows.

    ``spent`` is what its budgets say, of lines of its code.
    """
    from finding_tickets.report.templates import render

    said = [(problem.file, problem) for problem in others]
    said += [(f"{problem.file}:{problem.line}", problem) for problem in spent]
    said += [("", problem) for judged in everything for problem in judged.problems]
    context = {
        "base": base,
        # Warnings are changes that somebody has accepted.
        "failed": any(problem.level is Level.ERROR for _, problem in said),
        "tickets": everything,
        "changes": [(judged.pair.id, change) for judged in everything for change in judged.pair.changes],
        "said": said,
    }
    # A branch brings its own templates, and must not word what the gate says of it.
    return render("gate.md.j2", context)


def audit_item(audited: Audited) -> dict[str, object]:
    """Return the outcome of the cheats on one document, for JSON."""
    tried = [
        {"cheat": one.cheat.id, **fields_of(one.cheat, "does", "why"), "outcome": one.fate, "by": one.by}
        | {"reason": one.reason or None}
        for one in audited.tried
    ]
    about = fields_of(audited, "subject", "reason", "note")
    return {"ticket": audited.document.id.value, **about, "tried": tried}


def audit_lines(audited: Audited, style: Styler) -> Iterator[str]:
    """Yield the outcome of the cheats on one document, for a reader."""
    name = style(printable(audited.document.id.value), "bold")
    if audited.reason:
        yield f"{name}  {style('not audited', 'magenta')}: {printable(audited.reason)}"
        return
    caught = sum(one.fate is Fate.CAUGHT for one in audited.tried)
    yield f"{name}  {caught} of {len(audited.tried)} cheats in the place of {audited.subject} caught"
    if audited.note:
        yield f"{INDENT}{style('note', 'dim')} {printable(audited.note)}"
    rows = []
    for one in audited.tried:
        more = f" and {len(one.by) - SHOWN} more" if len(one.by) > SHOWN else ""
        said = filter(None, (", ".join(one.by[:SHOWN]) + more, one.reason))
        rows.append((one.cheat.id, Styled(one.fate, FATES[one.fate]), ": ".join(said)))
    for one, row in zip(audited.tried, aligned(rows, style), strict=True):
        yield INDENT + row
        # Who reads of a missed cheat needs to know how it cheats.
        if one.fate is Fate.MISSED:
            yield f"{INDENT * 2}it {one.cheat.does}: {one.cheat.why}"
