"""Output of the gate: of a branch for `check`, and of verifiers and cheats for `audit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from finding_tickets.gate.audit import Audited, Fate
from finding_tickets.gate.check import CheckedTicket
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.report.text import (
    INDENT,
    LEVELS,
    Styled,
    Styler,
    aligned,
    counted,
    fields_of,
    printable,
)

FATES: Mapping[Fate, str] = {
    Fate.CAUGHT: "green",
    Fate.MISSED: "red",
    Fate.UNTRIED: "magenta",
    Fate.HARMLESS: "dim",
}
# Claims that are named for each cheat; the JSON has all.
SHOWN = 3


def gate_item(ticket: CheckedTicket) -> dict[str, object]:
    """Return a ticket that the branch affects as data for JSON."""
    now = ticket.now.verification if ticket.now else None
    return {
        "ticket": ticket.id,
        "path": ticket.document.path,
        "before": ticket.before.verdict if ticket.before else None,
        "now": now.verdict if now else None,
        "reason": now.reason if now else None,
        "changes": list(ticket.changes),
        "accepted": ticket.is_accepted,
    }


def problem_line(problem: Problem, style: Styler) -> str:
    """Return a problem with its place as a line for a reader."""
    place, said = f"{problem.file}:{problem.line}", f"[{problem.rule}] {problem.said}"
    return f"{printable(place)}: {style(problem.level, LEVELS[problem.level])} {printable(said)}"


def gate_page(
    base: str, tickets: Sequence[CheckedTicket], problems: Sequence[Problem]
) -> str:
    """Return the outcome for a branch as Markdown, such as the summary of a workflow shows."""
    from finding_tickets.report.templates import code

    failed = any(problem.level is Level.ERROR for problem in problems)
    lines = [f"## Tickets: {'the gate failed' if failed else 'the gate is open'}", ""]
    lines += [
        f"Compared with {code(base)}; {counted(len(tickets), 'ticket')} measured.",
        "",
    ]
    for problem in problems:
        place = code(f"{problem.file}:{problem.line}")
        lines.append(
            f"- {place} **{problem.level}** {code(problem.rule)}: {code(problem.said)}"
        )
    return "\n".join(lines).rstrip() + "\n"


def audit_item(audited: Audited) -> dict[str, object]:
    """Return the outcome of the cheats on one document, for JSON."""
    tried = [
        {
            "cheat": one.cheat.id,
            **fields_of(one.cheat, "does", "why"),
            "outcome": one.fate,
            "by": one.by,
        }
        | {"reason": one.reason or None}
        for one in audited.tried
    ]
    about = fields_of(audited, "subject", "reason")
    return {"ticket": audited.document.id.value, **about, "tried": tried}


def audit_lines(audited: Audited, style: Styler) -> Iterator[str]:
    """Yield the outcome of the cheats on one document, for a reader."""
    name = style(printable(audited.document.id.value), "bold")
    if audited.reason:
        yield f"{name}  {style('not audited', 'magenta')}: {printable(audited.reason)}"
        return
    caught = sum(one.fate is Fate.CAUGHT for one in audited.tried)
    yield f"{name}  {caught} of {len(audited.tried)} cheats in the place of {audited.subject} caught"
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
