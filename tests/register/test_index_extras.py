"""What reports need of documents beyond their rows: read once, remembered, and only on request."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.lint.conftest import lint

from finding_tickets.lint.contradictions import CONTRADICTIONS, contradictions_in
from finding_tickets.model.ticket import Problem
from finding_tickets.register.index import StatedClaim, list_rows

if TYPE_CHECKING:
    from tests.conftest import Repository

SECOND = 10**9
FIXED = "## Resolution\n\n### Status: FIXED\n\nIt asks once.\n"
BLOCK = """
## Remediation

```yaml
claims:
  found: {syncs: [4*params, {is: "<= 9", at: {params: 2}}]}
  fix: {syncs: 1}
```
"""
CLAIMS = (
    StatedClaim("found", "syncs", "4*params"),
    StatedClaim("found", "syncs", "<= 9 where params 2", is_everywhere=False),
    StatedClaim("fix", "syncs", "1"),
)
LIST = """
import json, sys
from pathlib import Path
opened = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)
from finding_tickets.register.index import list_rows
from finding_tickets.lint.contradictions import contradictions_in
found = list_rows(Path(sys.argv[1]), examine=contradictions_in)
print(json.dumps([len(found.extras), [name for name in opened if name.endswith(".md")]]))
"""


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files were written a while ago, so that what is read of them is remembered."""
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + 3 * SECOND)


@pytest.mark.usefixtures("settled")
def test_contradictions_are_those_of_lint(repository: Repository) -> None:
    """From files and from the index, a report gets what lint says of these rules, and where."""
    repository.ticket("A-1", more=FIXED)
    repository.ticket("A-2", path="tickets/fixed/A-2.md", status="open")
    repository.ticket("A-3", more=f"<!-- lint-ignore contradiction: the folder says it -->\n\n{FIXED}")
    repository.ticket("A-4")
    expected = [each for each in lint(repository.load()) if each.rule in CONTRADICTIONS]
    assert [("tickets/A-1.md", "contradiction"), ("tickets/fixed/A-2.md", "folder")] == [
        (each.file, each.rule) for each in expected
    ]
    for _ in range(2):
        told = list_rows(repository.root, examine=contradictions_in).extras
        assert expected == [Problem(**each) for path in sorted(told) for each in told[path].contradictions]
        assert ("contradiction",) == told["tickets/A-3.md"].ignored
        assert "tickets/A-4.md" not in told


@pytest.mark.usefixtures("settled")
def test_claims_of_a_block_and_of_a_file_beside(repository: Repository) -> None:
    """Claims are there as they are written, wherever the remediation stands."""
    repository.ticket("A-1", more=BLOCK)
    repository.ticket("A-2")
    repository.write("tickets/A-2.remediation.yaml", "claims: {fix: {syncs: 1}}\n")
    for _ in range(2):
        told = list_rows(repository.root, examine=contradictions_in).extras
        assert {"tickets/A-1.md": CLAIMS, "tickets/A-2.md": CLAIMS[2:]} == {
            path: each.claims for path, each in told.items()
        }


@pytest.mark.usefixtures("settled")
def test_extras_are_remembered(repository: Repository) -> None:
    """A second listing with extras opens no document."""
    repository.ticket("A-1", more=FIXED)
    list_rows(repository.root, examine=contradictions_in)
    line = [sys.executable, "-c", LIST, str(repository.root)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert [1, []] == json.loads(done.stdout)


@pytest.mark.usefixtures("settled")
def test_lists_do_without(repository: Repository) -> None:
    """A listing that was not asked for extras does not take them out of the index."""
    repository.ticket("A-1", more=FIXED)
    list_rows(repository.root, examine=contradictions_in)
    assert {} == list_rows(repository.root).extras
    assert 1 == len(list_rows(repository.root, examine=contradictions_in).extras)
