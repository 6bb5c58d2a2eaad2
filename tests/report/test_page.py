"""Documents for a reader: what was decided and measured, the text, and what is known beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Repository
from tests.report.conftest import verification

from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.load import load
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.document import MeasuredDocument, document_text, measured_documents
from finding_tickets.report.text import cells, plainly
from finding_tickets.report.verification import verification_lines

ROOT = Path(__file__).parents[2]
FOUNDING = ["B1-PT-02", "B3-CR-05", "B7-PT-02", "B7-PT-03", "TASK-5"]
MEASURED = verification("it hung", Verdict.INCONCLUSIVE, [])
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


def shown(repository: Repository, verdict: Verdict, **known: Any) -> list[str]:
    """The lines of the page of the only document."""
    register = repository.load()
    entry = MeasuredDocument(register.documents[0], CurrentVerdict(verdict, **known))
    return document_text(register, entry, plainly).split("\n")


@pytest.mark.parametrize("name", FOUNDING)
@pytest.mark.parametrize("width", [0, 80])
def test_the_founding_tickets_are_answered_on_half_a_screen(name: str, width: int) -> None:
    """An answer has 20 lines, and the first 24 of a page say what it is, with its verdict and its laws."""
    facts = load(ROOT)
    (entry,) = measured_documents(facts, [row for row in facts.entries if row.id == name])
    done = entry.measured.verification
    assert done is not None
    variants = {}
    for variant, result in done.variants.items():
        sites = tuple(site.model_copy(update={"code": "code " * 30}) for site in result.sites)
        variants[variant] = result.model_copy(update={"sites": sites})
    done = done.model_copy(update={"variants": variants})
    answer = list(verification_lines(done, plainly, width, is_brief=True))
    assert len(answer) <= 20
    assert answer[0].startswith(f"{name}  ")
    page = document_text(facts, entry, plainly, width, ()).split("\n")
    head = "\n".join(page[:24])
    changed = "->" if "fix" in done.variants else ""
    for words in (entry.document.title.value[:20], done.verdict, changed, f"  {done.claims[0].metric}  "):
        assert words in head
    # Lines of code give way; what was measured stays whole.
    assert [] == [line for line in answer if width and "code " in line and cells(line) > width]


def test_what_people_wrote_and_what_is_known_beside_it(repository: Repository) -> None:
    """The Markdown as it stands, and nothing below it where nothing was measured."""
    path = repository.ticket(more=FINDING)
    lines = shown(repository, Verdict.UNVERIFIED)
    assert ["B1-PT-01: It waits", "P2 · wont-fix · tickets/B1-PT-01.md", "unverified", ""] == lines[:4]
    assert path.read_text().strip("\n").split("\n") == lines[4:]


def test_a_remediation_beside_the_document_is_named(repository: Repository) -> None:
    """Its block does not stand in the text."""
    repository.ticket()
    repository.write("tickets/B1-PT-01.remediation.yaml", "claims: {found: {syncs: 1}}\n")
    lines = shown(repository, Verdict.UNVERIFIED)
    assert ["Remediation", "  in tickets/B1-PT-01.remediation.yaml"] == lines[-2:]


def test_old_evidence_and_meters_that_disagree_are_said(repository: Repository) -> None:
    """A stale verdict says what has changed; a disagreement names both verdicts."""
    repository.ticket()
    stale = shown(repository, Verdict.STALE, loaded=MEASURED, changed=("torch", "fix.py"))
    assert "stale (changed since it was measured: torch, fix.py)" == stale[2]
    both = shown(repository, Verdict.VERIFIED, disagreement="cuda: failed, simulated: verified")
    assert "verified (meters disagree: cuda: failed, simulated: verified)" == both[2]
