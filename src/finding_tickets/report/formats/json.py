"""Reports and documents as JSON. docs/report.schema.json is the schema of a report, which tests keep it to.

Keys are only added within a version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from finding_tickets.documents.reading import Document
from finding_tickets.register.entries import entry_of
from finding_tickets.report.document import MeasuredDocument
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.status import CrossTable, RegisterStatus, StatusReport
from finding_tickets.report.text import fields_of

VERSION = 1
Item = dict[str, object]
_NO_LINES = {"__all__": {"line"}}
_OF_A_RUN = {"sweep", "within", "place", "moved", "differs", "data"}
# Where the parts of a remediation stand, and what only some have.
_NOT_SHOWN: dict[str, Any] = {
    **dict.fromkeys(("path", "span", "digest", "run", *_OF_A_RUN), True),
    **dict.fromkeys(("claims", "unmeasured", "checklist"), _NO_LINES),
}


def write_report(report: StatusReport) -> Iterator[str]:
    """The envelope; each document on a line of its own, so that no more than one is in memory."""
    # The escapes of json keep the report in ASCII, and with them bytes of a path that are no text.
    head = json.dumps(_status_item(report.status))
    yield f'{{"schema_version": {VERSION}, "kind": "report", "status": {head},\n"data": ['
    for at, row in enumerate(report.status.rows):
        yield f"{',' if at else ''}\n{json.dumps(_row_item(row))}"
    yield "\n]}\n"


def _status_item(status: RegisterStatus) -> Item:
    """The tables and lists of a report; documents that are listed are named by their IDs."""
    return {
        **fields_of(status, "total", "query"),
        "tables": {
            "by_disposition": _table(status.by_disposition),
            "by_verdict": _table(status.by_verdict),
            "by_consensus": _table(status.by_consensus),
        },
        "by_reviewer": _table(status.by_reviewer),
        "unproven": [row.id for row in status.unproven],
        "refuted": [
            {
                "ticket": each.ticket,
                "claim": each.claim.id,
                **fields_of(each.claim, "claimed", "measured", "as_expected"),
            }
            for each in status.refuted
        ],
        "disagreements": [
            {"one": pair.one.id, "other": pair.other.id, "about": pair.about}
            for pair in status.disagreements
        ],
        "open_work": [
            {"id": work.row.id, "step": work.step} for work in status.open_work
        ],
    }


def _table(table: CrossTable) -> Item:
    rows = [{"name": name, "counts": counts} for name, counts in table.rows]
    return {"columns": table.columns, "rows": rows}


def _row_item(row: ReportRow) -> Item:
    """A document: what it states, what people decided, and what was measured."""
    stated, done = row.stated, row.verification
    return {
        **fields_of(
            stated, "id", "kind", "title", "path", "summary", "severity", "status"
        ),
        "resolution": stated.outcome,
        **fields_of(row, "disposition", "verdict"),
        "reason": row.reason or None,
        "disagreement": row.disagreement or None,
        **fields_of(
            stated, "batch", "agent", "assignee", "domains", "categories", "files"
        ),
        **fields_of(stated, "created", "updated", "done", "undone"),
        "consensus": row.consensus,
        "reviews": [
            {"reviewer": name, "verdict": said} for name, said in stated.reviews
        ],
        "related": [
            {"id": other, "relationship": how} for other, how in stated.related
        ],
        "claimed": [asdict(change) for change in row.claimed],
        "laws": [asdict(change) for change in row.changes],
        "claims": [claim.model_dump(mode="json") for claim in done.claims]
        if done
        else [],
        "unproven": row.is_unproven,
        "contradictions": [
            fields_of(each, "rule", "level", "line", "message")
            for each in row.contradictions
        ],
    }


def ticket_item(entry: MeasuredDocument) -> Item:
    """One document for ``kind: ticket-list``, with the same keys for every kind of document.

    What is not there is null or empty.
    """
    document, row = entry.document, entry_of(entry.document)
    remediation = document.remediation
    run = remediation and remediation.run
    reviews: list[Item] = []
    if document.kind == "finding":
        for review in document.reviews:
            who = review.reviewer.value if review.reviewer else None
            # The verdict is in the vocabulary's word where it is one of those.
            said = review.opinion or review.verdict.value
            reviews.append(
                {"reviewer": who, "verdict": said, "evaluation": review.words}
            )
    elif document.reviewer:
        # An implementation review is itself the one review there is.
        verdict = document.verdict.value if document.verdict else None
        reviews.append(
            {
                "reviewer": document.reviewer.value,
                "verdict": verdict,
                "evaluation": None,
            }
        )
    return {
        **fields_of(row, "id", "kind", "title", "path", "severity", "status"),
        "resolution": row.outcome,
        **fields_of(row, "batch", "agent", "domains"),
        "locations": [
            {
                **fields_of(each, "file", "symbol"),
                "lines": [[lines.first, lines.last] for lines in each.lines],
            }
            for each in document.locations
        ],
        "categories": row.categories,
        "reviews": reviews,
        "related": _items(document, "related"),
        "checklist": _items(document, "checklist"),
        "remediation": remediation
        and {
            **remediation.model_dump(exclude=_NOT_SHOWN),
            "variants": {
                name: variant.raw for name, variant in remediation.variants.items()
            },
            **(
                remediation.model_dump(include=_OF_A_RUN) | {"run": run.raw}
                if run
                else {}
            ),
        },
        "verdict": entry.measured.verdict,
    }


def full_item(entry: MeasuredDocument) -> Item:
    """One document with everything known of it; ``verification`` is as in ``kind: verification``, or null."""
    ticket = entry.document if entry.document.kind == "finding" else None
    resolution, done = ticket and ticket.resolution, entry.measured.verification
    return ticket_item(entry) | {
        "closed": ticket.closed.value if ticket and ticket.closed else None,
        "proposed": resolution.proposed if resolution else None,
        "duplicate_of": resolution.duplicate_of if resolution else None,
        "severity_changes": ticket and _items(ticket, "severity_changes"),
        "checked_claims": ticket and _items(ticket, "checked_claims"),
        "corrections": ticket
        and [
            {
                **fields_of(each, "title", "date"),
                "statement": each.statement.raw if each.statement else None,
            }
            for each in ticket.corrections
        ],
        "summary": ticket.summary.raw if ticket and ticket.summary else None,
        "verification": done.model_dump(mode="json") if done else None,
    }


def _items(document: Document, name: str) -> list[Item]:
    """Return a list of the document without the places that it was read from; empty without one."""
    return [
        each.model_dump(exclude={"raw", "span"}) for each in getattr(document, name, ())
    ]
