"""The row of a document has its values in plain types."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from finding_tickets.register.entries import Entry, entry_of
from finding_tickets.register.staleness import CodeInputs

if TYPE_CHECKING:
    from tests.conftest import Repository

METADATA = """\
| **Resolution** | wont fix |
| **Batch** | 7 |
| **Agent** | `drl` |
| **Assignee** | Kim |
| **Domain** | `simic`, `tolaria` |
| **Created** | 2025-01-01 |
| **Updated** | 2025-02-01 |
"""
SECTIONS = """\
- [x] Look at it

## Related Findings

- B7-PT-03 (blocks): first this

## Cross-Review (DRL Specialist)

| Field | Value |
|---|---|
| **Verdict** | not sure |
| **Reviewer** | drl |

## Remediation

```yaml
verifier: verifiers/own.py
```
"""


def test_the_row_of_a_finding(repository: Repository) -> None:
    """Normalised values where there are some, the words of the document elsewhere."""
    repository.ticket("B7-PT-02", status="closed", rows=METADATA, file="a.py`, `b.py", more=SECTIONS)
    (document,) = repository.load().documents
    assert document.remediation
    expected = Entry(
        kind="finding",
        path="tickets/B7-PT-02.md",
        id="B7-PT-02",
        title="It waits",
        severity="P2",
        status="closed",
        outcome="wont-fix",
        batch=7,
        agent="drl",
        assignee="Kim",
        domains=("simic", "tolaria"),
        categories=("Performance bottleneck",),
        files=("a.py", "b.py"),
        reviews=(("drl", "not sure"),),
        related=(("B7-PT-03", "blocks"),),
        created="2025-01-01",
        updated="2025-02-01",
        done=1,
        undone=1,
        summary="It waits.",
        code=CodeInputs(document.remediation.digest, "verifiers/own.py"),
    )
    assert expected == entry_of(document)
    assert "verifiers/own.py" == expected.verifier


def test_the_row_of_a_review(repository: Repository) -> None:
    """A review is itself its one review, and its date is when it was created."""
    header = "**Reviewer:** drl\n**Date:** 2025-01-02\n**Verdict:** APPROVED\n"
    repository.write("tickets/task-1.md", f"# Task 1 Implementation Review: Waits\n\n{header}")
    (document,) = repository.load().documents
    row = entry_of(document)
    assert ("review", "TASK-1", "2025-01-02") == (row.kind, row.id, row.created)
    assert (("drl", "APPROVED"),) == row.reviews


def test_what_a_document_does_not_state(repository: Repository) -> None:
    """It is None, 0 or empty."""
    repository.write("tickets/A-1.md", "# Finding Ticket: It waits\n\n**Ticket ID:** A-1\n")
    (document,) = repository.load().documents
    assert Entry("finding", "tickets/A-1.md", "A-1", "It waits") == entry_of(document)


def test_values_are_plain(repository: Repository) -> None:
    """Any store can hold them: no value is of a class of ours, not even of one that is a text too."""
    repository.ticket("B7-PT-02", rows=METADATA, more=SECTIONS)
    (document,) = repository.load().documents

    def types(value: object) -> set[type]:
        return set.union({tuple}, *map(types, value)) if isinstance(value, tuple) else {type(value)}

    row = asdict(entry_of(document))
    # What verification depends on is for the index alone, which keeps it in its own way.
    del row["code"]
    assert {str, int, tuple, bool} == set.union(*(types(value) for value in row.values()))
    assert row["id"] == json.loads(json.dumps(row))["id"]


def test_rows_and_queries_need_no_pydantic() -> None:
    """What chooses among rows that are there already loads neither the records nor the reader of Markdown."""
    code = "import sys, finding_tickets.register.query; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert set() == {"pydantic", "pyromark", "yaml", "torch"} & loaded
    assert "finding_tickets.documents.reading" not in done.stdout.split()
