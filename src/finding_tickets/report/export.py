"""Documents as plain values for JSON: the items of ``kind: ticket-list``."""

from __future__ import annotations

from finding_tickets.model.remediation import Claim, Remediation
from finding_tickets.model.review import ImplementationReview
from finding_tickets.model.ticket import Location, Relation, Review, Ticket
from finding_tickets.register.index import row_of
from finding_tickets.report.entries import Entry

Item = dict[str, object]

_SETTLED = ("closed", "proposed", "duplicate_of", "severity_changes", "checked_claims", "corrections")


def ticket_item(entry: Entry) -> Item:
    """One entry, with the same keys for every kind of document; what is not there is null or empty."""
    document, row = entry.document, row_of(entry.document)
    finding = document if isinstance(document, Ticket) else None
    return {
        "id": row.id,
        "kind": row.kind,
        "title": row.title,
        "path": row.path,
        "severity": row.severity,
        "status": row.status,
        "resolution": row.outcome,
        "batch": row.batch,
        "agent": row.agent,
        "domains": list(row.domains),
        "locations": [_location(location) for location in document.locations],
        "categories": list(row.categories),
        "reviews": [_review(review) for review in finding.reviews] if finding else _own_review(document),
        "related": [_relation(relation) for relation in finding.related] if finding else [],
        "checklist": [{"text": item.text, "done": item.done} for item in document.checklist],
        "remediation": _remediation(document.remediation) if document.remediation else None,
        "verdict": entry.verdict,
    }


def full_item(entry: Entry) -> Item:
    """One entry with everything known of it; ``verification`` is as in ``kind: verification``, or null."""
    document = entry.document
    summary = document.summary.raw if isinstance(document, Ticket) and document.summary else None
    verification = entry.verification.model_dump(mode="json") if entry.verification else None
    settled = _settled(document) if isinstance(document, Ticket) else dict.fromkeys(_SETTLED)
    return ticket_item(entry) | settled | {"summary": summary, "verification": verification}


def _settled(ticket: Ticket) -> Item:
    """What was done with a ticket, as far as it says."""
    resolution = ticket.resolution
    values = (
        ticket.closed.value if ticket.closed else None,
        resolution.proposed if resolution else None,
        resolution.duplicate_of if resolution else None,
        [{"original": each.original, "revised": each.revised} for each in ticket.severity_changes],
        [
            {"claim": each.claim, "holds": each.holds, "status": each.status, "evidence": each.evidence}
            for each in ticket.checked_claims
        ],
        [
            {
                "title": each.title,
                "date": each.date,
                "statement": each.statement.raw if each.statement else None,
            }
            for each in ticket.corrections
        ],
    )
    return dict(zip(_SETTLED, values, strict=True))


def _location(location: Location) -> Item:
    lines = [[lines.first, lines.last] for lines in location.lines]
    return {"file": location.file, "lines": lines, "symbol": location.symbol}


def _review(review: Review) -> Item:
    return {
        "reviewer": reviewer_of(review),
        "verdict": opinion_of(review),
        "evaluation": review.words,
    }


def opinion_of(review: Review) -> str:
    """A reviewer's verdict, in the vocabulary's word where it is one of those."""
    return review.opinion or review.verdict.value


def reviewer_of(review: Review) -> str | None:
    """Who wrote a cross-review, where it says so."""
    return review.reviewer.value if review.reviewer else None


def _own_review(document: Ticket | ImplementationReview) -> list[Item]:
    """An implementation review is itself the one review there is."""
    if not isinstance(document, ImplementationReview) or document.reviewer is None:
        return []
    verdict = document.verdict.value if document.verdict else None
    return [{"reviewer": document.reviewer.value, "verdict": verdict, "evaluation": None}]


def _relation(relation: Relation) -> Item:
    return {"id": relation.id, "relationship": relation.relationship, "note": relation.note}


def _remediation(remediation: Remediation) -> Item:
    return {
        "verifier": remediation.verifier,
        "variants": {name: variant.raw for name, variant in remediation.variants.items()},
        "decision": remediation.decision,
        "claims": [_claim(claim) for claim in remediation.claims],
        "unmeasured": [{"claim": item.claim, "why": item.why} for item in remediation.unmeasured],
        "checklist": [
            {"item": answer.item, "claims": list(answer.claims), "why": answer.why}
            for answer in remediation.checklist
        ],
    }


def _claim(claim: Claim) -> Item:
    wanted = ("id", "variant", "metric", "value", "at", "expect", "why", "tolerance")
    return {name: getattr(claim, name) for name in wanted}
