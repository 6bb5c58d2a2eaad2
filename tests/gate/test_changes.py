"""What a branch changes in what decides about a ticket."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.conftest import Repository

from finding_tickets.gate.branch import ChangeKind, Side, changes, with_acceptance
from finding_tickets.model.verification import Evidence, Input

POINTS = [{"n": 1, "size": 7}, {"n": 4, "size": 9}]


def side(repository: Repository, claims: str) -> Side:
    """The one ticket with these claims about found."""
    more = f"## Remediation\n\n```yaml\nclaims: {{found: {{{claims}}}}}\n```\n"
    repository.ticket(more=more)
    repository.write("fixes/b1_pt_01/found.py", "def check(): ...\n")
    (document,) = repository.load().documents
    return Side(document, repository.root)


def compared(
    repository: Repository, before: str, after: str
) -> list[tuple[ChangeKind, str | None, str | None]]:
    """How claims about found have changed."""
    base, head = side(repository, before), side(repository, after)
    return [(each.kind, each.before, each.after) for each in changes(base, head, POINTS)]


CHANGED = {
    ("syncs: 1", "syncs: 1"): [],
    ("syncs: 1", ""): [(ChangeKind.REMOVED, "1", None)],
    ("", "syncs: 1"): [(ChangeKind.ADDED, None, "1")],
    ("syncs: 1", "syncs: <= 1"): [(ChangeKind.LOOSENED, "1", "<= 1")],
    ("syncs: <= 1", "syncs: 0..1"): [(ChangeKind.TIGHTENED, "<= 1", "0..1")],
    ("syncs: < n", "syncs: <= n - 1"): [(ChangeKind.TIGHTENED, "< n", "<= n - 1")],
    # 2*1 > 1 + 1 is false at the first point and 2*4 > 4 + 1 true at the second.
    ("syncs: <= n + 1", "syncs: <= 2*n"): [(ChangeKind.LOOSENED, "<= n + 1", "<= 2*n")],
    ("syncs: '>= 2'", "syncs: '> 1'"): [(ChangeKind.TIGHTENED, ">= 2", "> 1")],
    ("syncs: O(n)", "syncs: O(n*n)"): [(ChangeKind.CHANGED, "O(n)", "O(n*n)")],
    ("syncs: '!= 3'", "syncs: <= 2"): [(ChangeKind.CHANGED, "!= 3", "<= 2")],
    # One of several is gone, whatever its number was; the other one says nothing about it.
    ("syncs: [<= 9, O(n)]", "syncs: O(n)"): [(ChangeKind.REMOVED, "<= 9", None)],
    # What is still demanded by another claim is not lost.
    ("syncs: [<= 9, n]", "syncs: n"): [(ChangeKind.TIGHTENED, "<= 9", "n")],
    ("syncs: n", "syncs: {is: n, at: {n: '> 1'}}"): [(ChangeKind.LOOSENED, "n", "n where n > 1")],
    ("syncs: {is: n, at: {n: '> 1'}}", "syncs: n"): [(ChangeKind.TIGHTENED, "n where n > 1", "n")],
    ("syncs: n", "syncs: {is: n, expect: refuted, why: x}"): [
        (ChangeKind.LOOSENED, "n", "n (expected to be refuted)")
    ],
    ("syncs: {is: n, expect: refuted, why: x}", "syncs: {is: n, expect: refuted, why: y}"): [],
    ("same_result_as: fix", "same_result_as: {is: fix, tolerance: 0.1}"): [
        (ChangeKind.LOOSENED, "fix", "fix within 0.1")
    ],
    ("same_result_as: {is: fix, tolerance: 0.1}", "same_result_as: {is: fix, tolerance: 0.01}"): [
        (ChangeKind.TIGHTENED, "fix within 0.1", "fix within 0.01")
    ],
    ("same_result_as: fix", "same_result_as: recommended"): [(ChangeKind.CHANGED, "fix", "recommended")],
    ("syncs: m", "syncs: m + 1"): [(ChangeKind.CHANGED, "m", "m + 1")],
}


@pytest.mark.parametrize("texts", CHANGED, ids=" | ".join)
def test_claims_are_compared_text_by_text(repository: Repository, texts: tuple[str, str]) -> None:
    """What another text demands is decided at the points of the sweep, where it can be."""
    assert CHANGED[texts] == compared(repository, *texts)


def test_without_a_sweep_nobody_can_tell(repository: Repository) -> None:
    """Nothing is known of the values that the variables take."""
    base, head = side(repository, "syncs: <= n"), side(repository, "syncs: <= n - 1")
    assert [ChangeKind.CHANGED] == [each.kind for each in changes(base, head, ())]


@pytest.mark.parametrize(
    ("line", "who"),
    [
        ("**Accepted change:** found.syncs: as measured", "the ticket: as measured"),
        ("- **Accepted change:** verifier, found.syncs : as measured", "the ticket: as measured"),
        ("**Accepted change:** found: all of them", "the ticket: all of them"),
        ("**Accepted change:** found.syncs", None),
        ("**Accepted change:** found.sync: misspelt", None),
        ("**Accepted change:** fix.syncs: another one", None),
        ("found.syncs: no such mark", None),
    ],
)
def test_a_new_line_of_the_ticket_names_changes(repository: Repository, line: str, who: str | None) -> None:
    """It names them with a reason; a line that was there before names nothing."""
    found = changes(side(repository, "syncs: 1"), side(repository, "syncs: 2"), POINTS)
    (change,) = with_acceptance(found, b"text\n", f"text\n{line}\n".encode(), None)
    assert (who, who is None) == (change.accepted, change.is_open)
    (change,) = with_acceptance(found, f"{line}\n".encode(), f"text\n{line}\n".encode(), None)
    assert change.is_open


def test_a_decision_is_a_change(repository: Repository) -> None:
    """To keep the code turns what the claims mean around."""
    base = side(repository, "syncs: 1")
    repository.ticket(more="## Remediation\n\n```yaml\ndecision: keep\nclaims: {found: {syncs: 1}}\n```\n")
    (document,) = repository.load().documents
    (change,) = changes(base, Side(document, repository.root), POINTS)
    assert "changed decision: fix -> keep" == str(change)


def test_a_helper_beside_the_verifier_is_part_of_it(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Below its folder; what it imports from elsewhere is code."""
    base = Repository(tmp_path_factory.mktemp("base"))
    imported = ("verifiers/sizes.py", "verifiers/more/sizes.py", "pkg/sizes.py")
    for made, text in ((base, "1"), (repository, "2")):
        for file in imported:
            made.write(file, text)
        made.write("verifiers/b1_pt_01.py", "")
    given = tuple(Input(name=file, kind="file", value="") for file in imported)
    measured: Any = None
    evidence = Evidence.model_construct(inputs=given, verification=measured)
    sides = replace(side(base, "syncs: 1"), evidence=(evidence,)), side(repository, "syncs: 1")
    found = changes(*sides, POINTS)
    assert [("verifier", file) for file in sorted(imported[:2])] == [
        (each.name, each.before) for each in found
    ]
