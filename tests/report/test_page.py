"""Documents as plain text, with what was measured below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finding_tickets.model.verification import Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.text import MeasuredDocument, document_text

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


def plain(text: str, style: str) -> str:  # noqa: ARG001 - a styler's signature
    """The text without a style."""
    return text


def shown(repository: Repository, verdict: Verdict, **known: Any) -> list[str]:
    """The lines of the page of the only document."""
    (document,) = repository.load().documents
    return document_text(MeasuredDocument(document, CurrentVerdict(verdict, **known)), plain).splitlines()


def test_what_people_said(repository: Repository) -> None:
    """Reviews, relations, resolution and what is not measured each have their section."""
    repository.ticket(more=FINDING)
    lines = shown(repository, Verdict.UNVERIFIED)
    expected = [
        ["Reviews", "  pytorch: REFINE", "    Almost."],
        ["Related", "  B1-PT-02 (related): the same"],
        ["Resolution", "  ### Status: WONT-FIX", "  ", "  Too rare."],
        ["Not measured", "  10 us: no clock"],
    ]
    assert expected == [lines[lines.index(part[0]) :][: len(part)] for part in expected]


def test_a_review_of_a_change(repository: Repository) -> None:
    """Requirements, issues and scores, each in a line."""
    repository.write("tickets/task-5.md", REVIEW)
    lines = shown(repository, Verdict.UNVERIFIED)
    assert "TASK-5: Norms" == lines[0]
    assert "  met: Add a test" in lines
    assert "  minor Minor-1: Empty list (Informational)" in lines
    assert "  Correctness: 10/10" in lines
    assert "  overall: 9.5/10" in lines


def test_what_was_measured(repository: Repository) -> None:
    """The verification follows the document, with its reason."""
    repository.ticket()
    lines = shown(repository, Verdict.INCONCLUSIVE, loaded=MEASURED)
    assert "B1-PT-01  inconclusive: it hung" in lines


def test_old_evidence_and_meters_that_disagree_are_said(repository: Repository) -> None:
    """A stale verdict says what has changed; a disagreement names both verdicts."""
    repository.ticket()
    stale = shown(repository, Verdict.STALE, loaded=MEASURED, changed=("torch", "fix.py"))
    assert "  Verdict    stale (changed since it was measured: torch, fix.py)" in stale
    both = shown(repository, Verdict.VERIFIED, disagreement="cuda: failed, simulated: verified")
    assert "  Verdict    verified (meters disagree: cuda: failed, simulated: verified)" in both
