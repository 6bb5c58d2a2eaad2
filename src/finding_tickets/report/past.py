"""The verdicts of a ticket over time, as rows of a table and as plain values for JSON."""

from __future__ import annotations

from finding_tickets.history.past import Step
from finding_tickets.report.history import SHORT_ID
from finding_tickets.report.measured import changes

HEADER = ("DATE", "COMMIT", "VERDICT", "LAW", "MEASURED ON", "SUBJECT")
UNCOMMITTED = "-"


def past_row(step: Step) -> tuple[str, ...]:
    """One step: when, which commit, the verdict, the law that the claims speak of first, and where."""
    commit, done = step.commit, step.verification
    date, name = (commit.date.partition("T")[0], commit.id[:SHORT_ID]) if commit else (UNCOMMITTED,) * 2
    subject = commit.subject if commit else "not committed"
    if done is None:
        return date, name, "-", f"{step.file} {step.problem}", "-", subject
    law = next((f"{change.metric}: {change.text}" for change in changes(done)), "-")
    return date, name, done.verdict, law, f"{done.meter} {done.device}, torch {done.torch}", subject


def past_item(step: Step) -> dict[str, object]:
    """One step for JSON; what is not known is null or empty."""
    done = step.verification
    return {
        "commit": step.commit.id if step.commit else None,
        "date": step.commit.date if step.commit else None,
        "author": step.commit.author if step.commit else None,
        "subject": step.commit.subject if step.commit else None,
        "file": step.file,
        "verdict": done.verdict if done else None,
        "reason": done.reason if done else None,
        "meter": done.meter if done else None,
        "torch": done.torch if done else None,
        "device": done.device if done else None,
        "laws": [change._asdict() for change in changes(done)] if done else [],
        "problem": step.problem,
    }
