"""Documents as plain text, with what is known beside them and what was measured below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.query import Facts
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.text import MeasuredDocument, document_page, document_text, plainly

if TYPE_CHECKING:
    from tests.conftest import Repository

MEASURED = Verification(
    ticket="B1-PT-01",
    verdict=Verdict.INCONCLUSIVE,
    reason="it hung",
    meter="simulated",
    torch="2.13.0",
    device="h200",
    sweep=(),
    variants={},
    claims=(),
)
FINDING = """\
## Cross-Review (PyTorch)

| Field | Value |
|---|---|
| **Verdict** | `REFINE` |
| **Reviewer** | pytorch |

**Evaluation:** Almost.

## Related Findings

- B1-PT-02: the same

## Resolution

### Status: WONT-FIX

Too rare.

## Remediation

```yaml
unmeasured:
  - {claim: 10 us, why: no clock}
```
"""
REVIEW = """\
# Task 5 Implementation Review: Norms

**Reviewer:** drl

## Plan Alignment

1. ✅ Add a test

## Issues Found

#### Minor Suggestions

**Minor-1: Empty list (Informational)**
- **Location:** `code.py:1`

## Final Assessment

- **Correctness:** 10/10

**Overall Score:** 9.5/10
"""


def shown(repository: Repository, verdict: Verdict, **known: Any) -> list[str]:
    """The lines of the page of the only document."""
    register = repository.load()
    entry = MeasuredDocument(register.documents[0], CurrentVerdict(verdict, **known))
    return document_text(document_page(Facts.of(register), entry), plainly).split("\n")


def test_what_people_wrote_and_what_is_known_beside_it(repository: Repository) -> None:
    """The Markdown of the file as it is, then relations and what is not measured, each in a section."""
    path = repository.ticket(more=FINDING)
    lines = shown(repository, Verdict.UNVERIFIED)
    assert ["B1-PT-01: It waits", "P2 · wont-fix · unverified · tickets/B1-PT-01.md", ""] == lines[:3]
    written = path.read_text().strip().split("\n")
    assert written == lines[3 : 3 + len(written)]
    rest = [" ".join(line.split()) for line in lines[3 + len(written) :]]
    assert [
        *("", "Related", "ticket relation status verdict title"),
        "B1-PT-02 related not in the register (the same)",
        *("", "Not measured", "10 us: no clock"),
    ] == rest


def test_a_review_of_a_change(repository: Repository) -> None:
    """A review has no severity, status or outcome to name."""
    repository.write("tickets/task-5.md", REVIEW)
    lines = shown(repository, Verdict.UNVERIFIED)
    assert ["TASK-5: Norms", "unverified · tickets/task-5.md", "", *REVIEW.strip().split("\n")] == lines


def test_what_was_measured(repository: Repository) -> None:
    """The verification follows the document, with its reason."""
    repository.ticket()
    lines = shown(repository, Verdict.INCONCLUSIVE, loaded=MEASURED)
    assert "B1-PT-01  inconclusive: it hung" in lines


def test_old_evidence_and_meters_that_disagree_are_said(repository: Repository) -> None:
    """A stale verdict says what has changed; a disagreement names both verdicts."""
    repository.ticket()
    stale = shown(repository, Verdict.STALE, loaded=MEASURED, changed=("torch", "fix.py"))
    assert " · stale (changed since it was measured: torch, fix.py) · " in stale[1]
    both = shown(repository, Verdict.VERIFIED, disagreement="cuda: failed, simulated: verified")
    assert " · verified (meters disagree: cuda: failed, simulated: verified) · " in both[1]
