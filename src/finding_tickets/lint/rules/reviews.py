"""Rules about cross-reviews."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import Remark, rule
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Review, Ticket
from finding_tickets.model.vocabulary import Opinion
from finding_tickets.register.disposition import UNSETTLED, status_of

_OBJECTED = """\
| **Status** | `{}` |

## Cross-Review

| Reviewer | Verdict | Evaluation |
|---|---|---|
| drl | OBJECT | It waits in the test alone. |

## Remediation

```yaml
checklist:
  - {{item: Count the waits, why: by hand}}
```
"""


@rule(
    "unanswered-objection",
    Level.NOTE,
    "An open ticket to which every reviewer who takes a side objects waits for a decision, not for a fix.",
    wrong=_OBJECTED.format("open"),
    right=_OBJECTED.format("invalid"),
)
def unanswered_objection(document: Document, context: Context) -> Iterator[Remark]:
    """Open tickets with objections and no endorsement."""
    if not isinstance(document, Ticket) or status_of(document) not in UNSETTLED:
        return
    objections = [review for review in document.reviews if review.opinion is Opinion.OBJECT]
    agreed = any(review.opinion in {Opinion.ENDORSE, Opinion.REFINE} for review in document.reviews)
    if objections and not agreed:
        names = ", ".join(map(_name, objections))
        yield Remark(
            objections[0].verdict.span, f"the ticket is open, and all who take a side object: {names}"
        )


@rule(
    "contrary-reviews",
    Level.NOTE,
    "One reviewer has one opinion of a finding; of two that differ, nobody knows which one is meant.",
    wrong="## Cross-Review\n\n| Reviewer | Verdict | Evaluation |\n|---|---|---|\n"
    "| drl | ENDORSE | It waits. |\n| DRL Specialist | OBJECT | It does not. |",
    right="## Cross-Review\n\n| Reviewer | Verdict | Evaluation |\n|---|---|---|\n"
    "| drl | ENDORSE | It waits. |\n| pytorch | OBJECT | It does not. |",
)
def contrary_reviews(document: Document, context: Context) -> Iterator[Remark]:
    """A second opinion of the same reviewer that differs from the first."""
    if not isinstance(document, Ticket):
        return
    first: dict[str, Review] = {}
    for review in document.reviews:
        if review.reviewer is None or review.opinion is None:
            continue
        before = first.setdefault(review.reviewer.value, review)
        if before.opinion is not review.opinion:
            message = (
                f"{_name(review)} says {review.opinion} here and {before.opinion} on line {before.span.line}"
            )
            yield Remark(review.verdict.span, message)


def _name(review: Review) -> str:
    return review.reviewer.value if review.reviewer else "somebody"
