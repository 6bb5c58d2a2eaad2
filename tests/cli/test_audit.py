"""``tickets audit`` from the command line."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository
from tests.verify.conftest import CLAIMS, FOUND
from tests.verify.conftest import add_with_few_points as add

from finding_tickets.errors import ExitCode

LOOSE = "claims: {found: {syncs: tensors}, fix: {syncs: 1}}"


def test_a_missed_cheat_fails_the_gate_and_says_why(repository: Repository, tickets: Tickets) -> None:
    """Of the two, the count catches the unfixed code; the wrong result goes through."""
    add(repository, "A-1", LOOSE)
    ran = tickets("audit", "a-1", "--cheat", "unfixed", "--cheat", "perturbed")
    assert ExitCode.GATE_FAILED == ran.code
    assert ran.out.split("\n")[:4] == [
        "A-1  1 of 2 cheats in the place of fix caught",
        "  unfixed    caught  fix.syncs",
        "  perturbed  missed",
        "    it is the fix with one value of the result changed: results are not compared",
    ]


def test_all_caught_is_fine(repository: Repository, tickets: Tickets) -> None:
    """The JSON names the claim that caught it; documents without a verifier are left out of ``--all``."""
    add(repository, "A-1", CLAIMS)
    repository.ticket("B-1")
    ran = tickets("audit", "--all", "--cheat", "perturbed", "--format", "json")
    assert ExitCode.OK == ran.code
    (item,) = ran.data
    assert ("A-1", "fix", None) == (item["ticket"], item["subject"], item["reason"])
    assert [("perturbed", "caught", ["fix.same_result_as"])] == [
        (one["cheat"], one["outcome"], one["by"]) for one in item["tried"]
    ]


@pytest.mark.parametrize(
    ("claims", "fix", "why"),
    [
        (CLAIMS, FOUND, "fix itself does not pass with seed 7: not as expected: fix.syncs"),
        (CLAIMS, f"import gone\n{FOUND}", "fix itself does not pass with seed 7: fixes/a_1/fix.py:1: Module"),
        ("claims: {found: {syncs: tensors}}", FOUND, "it needs the code as found, and a fix"),
    ],
)
def test_a_fix_that_does_not_pass_is_inconclusive(
    repository: Repository, tickets: Tickets, claims: str, fix: str, why: str
) -> None:
    """Nothing can be said of the verifier then."""
    add(repository, "A-1", claims, fix=fix)
    ran = tickets("audit", "A-1", "--cheat", "partial", "--seed", "7")
    assert ExitCode.INCONCLUSIVE == ran.code
    assert ran.out.startswith(f"A-1  not audited: {why}")


@pytest.mark.slow
def test_an_error_keeps_a_ticket_from_being_audited_only_where_it_says_what_to_measure(
    repository: Repository, tickets: Tickets
) -> None:
    """An error that keeps a ticket from it is named, another one counted; either ends in its code."""
    add(repository, "A-1", CLAIMS)
    file = repository.root / "tickets/A-1.md"
    file.write_text(f"{file.read_text()}\n<<<<<<< HEAD\n")
    add(repository, "B-1", "verifyer: x.py")
    ran = tickets("audit", "A-1", "B-1", "--cheat", "perturbed")
    assert ExitCode.BAD_DATA == ran.code
    assert "1 error in other parts of the register; tickets lint prints them\n" in ran.err
    assert "B-1: not measured: tickets/B-1.md:31:1: error [remediation-key]" in ran.err
    assert ["A-1  1 of 1 cheats in the place of fix caught"] == [
        line for line in ran.out.split("\n") if line.startswith(("A-1", "B-1"))
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the tickets to audit, or say --all"),
        (["A-1", "--all"], "name the tickets to audit, or say --all"),
        (["A-1", "--cheat", "kind"], "--cheat kind: no such cheat"),
        (["A-7"], "A-7"),
    ],
)
def test_wrong_usage_is_refused(
    repository: Repository, tickets: Tickets, arguments: list[str], message: str
) -> None:
    """The message says what to do."""
    add(repository, "A-1", CLAIMS)
    ran = tickets("audit", *arguments)
    assert ExitCode.USAGE == ran.code
    assert message in ran.err
