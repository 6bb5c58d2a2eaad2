"""Which answer of a Remediation belongs to which item of the checklist."""

from __future__ import annotations

from finding_tickets.model.remediation import Answer, Remediation
from finding_tickets.model.vocabulary import squeeze


def answer_to(item: str, remediation: Remediation) -> Answer | None:
    """The answer to an item, compared without case, markup and punctuation; None where there is none."""
    wanted = squeeze(item)
    return next((answer for answer in remediation.checklist if squeeze(answer.item) == wanted), None)
