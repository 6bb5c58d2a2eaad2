"""What became of cheats, as plain text and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finding_tickets.gate.audit import Audited, Fate, Tried
from finding_tickets.report.verification import INDENT, Styler, aligned

COLOURS: Mapping[Fate, str] = {Fate.CAUGHT: "green", Fate.MISSED: "red", Fate.UNTRIED: "magenta"}
SHOWN = 3
"""Claims that are named for each cheat; the JSON has all."""


def audit_item(audited: Audited) -> dict[str, object]:
    """One document for JSON; what is not there is null or empty."""
    return {
        "ticket": audited.document.id.value,
        "subject": audited.subject,
        "reason": audited.reason,
        "tried": [
            {
                "cheat": one.cheat.id,
                "does": one.cheat.does,
                "why": one.cheat.why,
                "outcome": one.fate,
                "by": list(one.by),
                "reason": one.reason or None,
            }
            for one in audited.tried
        ],
    }


def audit_lines(audited: Audited, style: Styler) -> Iterator[str]:
    """One document for a reader at a terminal; ``style`` colours a text."""
    name = style(audited.document.id.value, "bold")
    if audited.reason:
        yield f"{name}  {style('not audited', 'magenta')}: {audited.reason}"
        return
    caught = sum(one.fate is Fate.CAUGHT for one in audited.tried)
    yield f"{name}  {caught} of {len(audited.tried)} cheats in the place of {audited.subject} caught"
    rows = aligned((one.cheat.id, one.fate, _by(one)) for one in audited.tried)
    for one, row in zip(audited.tried, rows, strict=True):
        yield INDENT + row.replace(one.fate, style(one.fate, COLOURS[one.fate]), 1)
        if one.fate is Fate.MISSED:
            yield f"{INDENT * 2}it {one.cheat.does}: {one.cheat.why}"


def _by(one: Tried) -> str:
    more = f" and {len(one.by) - SHOWN} more" if len(one.by) > SHOWN else ""
    by = ", ".join(one.by[:SHOWN]) + more
    return ": ".join(filter(None, (by, one.reason)))
