"""``tickets show``: whole documents, IDs in any case, and what is said of those that are not there."""

from __future__ import annotations

from tests.cli.conftest import Tickets
from tests.conftest import Repository

REMEDIATION = """\
## Remediation

```yaml
claims:
  found:
    syncs: 1
    raised: {is: 0, at: {n: 1}}
    launches: {is: 2, expect: refuted, why: there are three}
checklist:
  - {item: Count the waits, claims: [found.syncs]}
```
"""


def test_a_document_is_shown_below_what_was_decided_and_measured(
    tickets: Tickets, repository: Repository
) -> None:
    """Title, severity, status, file and verdict, then the Markdown as it stands."""
    text = repository.ticket(more=REMEDIATION).read_text()
    ran = tickets("show", "b1-pt-01")
    assert (0, "") == (ran.code, ran.err)
    head = "B1-PT-01: It waits\nP2 · wont-fix · tickets/B1-PT-01.md\nunverified\n\n"
    assert head + text.rstrip("\n") + "\n" == ran.out


def test_an_unknown_id_names_candidates_and_the_others_are_shown(
    tickets: Tickets, repository: Repository
) -> None:
    """One misspelt ID does not hide the rest."""
    repository.ticket()
    ran = tickets("show", "B1-PT-1", "B1-PT-01")
    assert 2 == ran.code
    assert ran.out.startswith("B1-PT-01: It waits")
    assert "'B1-PT-1'" in ran.err
    assert "did you mean B1-PT-01?" in ran.err


def test_json_has_all_that_is_known(tickets: Tickets, repository: Repository) -> None:
    """The item of the list, with the summary and the verification; each document once."""
    repository.ticket()
    (item,) = tickets("show", "B1-PT-01", "b1-pt-01", "--format", "json").data
    assert ("It waits.", None) == (item["summary"], item["verification"])


def test_what_could_not_be_understood_of_it_is_said(tickets: Tickets, repository: Repository) -> None:
    """Problems of the documents shown are counted, with what prints them; those of others are not."""
    repository.ticket(severity="urgent")
    repository.ticket("B1-PT-02", severity="mild")
    ran = tickets("show", "B1-PT-01")
    line = ran.err.removesuffix(" prints it\n")
    assert f"1 problem; tickets lint --root {repository.root} B1-PT-01" == line
    assert "tickets/B1-PT-01.md:8:" in tickets("lint", "B1-PT-01").out
