"""The commits that a defect came and went with, as rows of a table and as plain values for JSON."""

from __future__ import annotations

from finding_tickets.history.bisect import Bisected, Step
from finding_tickets.report.history import SHORT_ID

HEADER = ("DATE", "COMMIT", "STATE", "", "LAW", "SUBJECT")


def bisect_row(step: Step) -> tuple[str, ...]:
    """One step: when, which commit, the state, what it did, and the law that was claimed first or why not."""
    commit = step.commit
    law = next((f"{metric}: {law}" for metric, law in step.laws.items()), "-")
    shown = step.reason if not step.laws else law
    date = commit.date.partition("T")[0]
    return date, commit.id[:SHORT_ID], step.state, step.turn or "", shown, commit.subject


def bisect_item(done: Bisected) -> dict[str, object]:
    """The whole search for JSON; what is not known is null or empty."""
    return {
        "ticket": done.ticket,
        "variant": done.variant,
        "commits": done.commits,
        "measured": done.measured,
        "steps": [
            {
                "commit": step.commit.id,
                "date": step.commit.date,
                "author": step.commit.author,
                "subject": step.commit.subject,
                "place": step.place,
                "state": step.state,
                "turn": step.turn,
                "suspects": list(step.suspects),
                "laws": dict(step.laws),
                "reason": step.reason or None,
            }
            for step in done.steps
        ],
        "gaps": list(done.gaps),
    }
