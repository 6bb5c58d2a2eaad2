"""What a report says of one document, by what is in it and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import pytest

from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Evidence, Verification
from finding_tickets.register.listing import list_rows
from finding_tickets.register.particulars import Claimed, Particulars
from finding_tickets.register.query import Facts, Measured
from finding_tickets.register.row import Row as Stated
from finding_tickets.report.measured import Change
from finding_tickets.report.rows import Row, row_of, rows_of
from finding_tickets.verify.intoto import written

if TYPE_CHECKING:
    from tests.conftest import Repository

FIXED = "## Resolution\n\n**Status:** Fixed\n"
TICKED = f"- [x] Count the waits\n\n{FIXED}"


def verified(verdict: Verdict, holds: Sequence[bool | None], variant: str = "found") -> Measured:
    """A verdict from claims about a variant with these outcomes."""
    expect: Literal["holds"] = "holds"
    claims = tuple(
        ClaimResult(
            id=f"{variant}.syncs[{number}]",
            variant=variant,
            metric="syncs",
            claimed="1",
            measured="2",
            holds=each,
            expect=expect,
        )
        for number, each in enumerate(holds)
    )
    return Measured(
        verdict,
        Verification(
            ticket="A-1",
            verdict=verdict,
            reason="because",
            meter="simulated",
            torch="2.13.0",
            device="h200",
            sweep=({"n": 1},),
            variants={},
            claims=claims,
        ),
    )


def stated(*reviews: tuple[str | None, str], kind: str = "finding") -> Stated:
    """A document with these reviews."""
    return Stated(kind, "tickets/a.md", "A-1", "It waits", reviews=reviews)


@pytest.mark.parametrize(
    ("opinions", "expected"),
    [
        ((), "not reviewed"),
        (("NEUTRAL", "PENDING"), "no side"),
        (("ENDORSE", "REFINE", "NEUTRAL"), "endorsed"),
        (("OBJECT", "NEUTRAL"), "objected"),
        (("REFINE", "OBJECT"), "split"),
    ],
)
def test_consensus(opinions: tuple[str, ...], expected: str) -> None:
    """Those who take no side do not count where somebody does."""
    reviews = tuple((str(number), said) for number, said in enumerate(opinions))
    assert expected == row_of(stated(*reviews), Measured()).consensus


def test_an_implementation_review_has_no_reviews() -> None:
    """It is one: who wrote it is no reviewer of a finding."""
    row = row_of(stated(("drl", "ENDORSE"), kind="review"), Measured())
    assert ("review", {}) == (row.consensus, row.opinions)


def test_the_last_opinion_of_a_reviewer_counts() -> None:
    """Reviewers who are not named are one."""
    row = row_of(
        stated(("drl", "OBJECT"), (None, "ENDORSE"), ("drl", "REFINE"), (None, "OBJECT")), Measured()
    )
    assert {"drl": "REFINE", "not named": "OBJECT"} == row.opinions


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (Measured(), None),
        (verified(Verdict.VERIFIED, [True, True]), True),
        (verified(Verdict.REPRODUCED, [True]), True),
        (verified(Verdict.FAILED, [True]), True),
        (verified(Verdict.FAILED, [False]), False),
        (verified(Verdict.REFUTED, [True, False]), False),
        (verified(Verdict.VERIFIED, [True], variant="fix"), None),
        (verified(Verdict.STALE, [True]), None),
        (verified(Verdict.INCONCLUSIVE, [True, None]), None),
        (verified(Verdict.INCONCLUSIVE, [False]), None),
    ],
)
def test_whether_a_finding_holds(measured: Measured, expected: bool | None) -> None:
    """Claims about the code as found decide, where the measurement still says something of it."""
    assert expected is row_of(stated(), measured).holds


def test_claims_of_one_metric_stand_together() -> None:
    """Those made at every point; where there are none, all of them; other variants are left out."""
    claims = (
        Claimed("found", "syncs", "4*n"),
        Claimed("found", "syncs", "<= 9", "n 2"),
        Claimed("found", "syncs", "O(n)"),
        Claimed("recommended", "h2d", "1"),
        Claimed("fix", "peak_bytes", "8", "n 1"),
        Claimed("fix", "peak_bytes", "16", "n 2"),
        Claimed("fix", "syncs", "1"),
    )
    row = row_of(stated(), Measured(), Particulars(claims=claims))
    assert (
        Change("syncs", "4*n and O(n)", "1"),
        Change("peak_bytes", None, "8 where n 1; 16 where n 2"),
    ) == row.claimed


def rows(repository: Repository) -> list[Row]:
    """The rows of a report on all documents."""
    listing = list_rows(repository.root, whole=True)
    facts = Facts(listing.root, listing.config, listing.rows)
    return list(rows_of(facts, facts.rows, listing.particulars))


def test_closed_without_evidence(repository: Repository) -> None:
    """Fixed by status, outcome or folder with nothing ticked, as lint has it with comments and settings."""
    repository.ticket("A-1", status="fixed")
    repository.ticket("A-2", status="closed", more=FIXED)
    repository.ticket("A-3", path="tickets/fixed/A-3.md", status="closed")
    repository.ticket("A-4", status="closed", more=TICKED)
    repository.ticket("A-5", status="wont-fix")
    comment = "<!-- lint-ignore closed-without-evidence: it was measured elsewhere -->\n"
    repository.ticket("A-6", status="fixed", more=comment)
    assert ["A-1", "A-2", "A-3"] == [row.id for row in rows(repository) if row.is_unproven]
    repository.write("tickets.toml", 'lint_ignore = ["closed-without-evidence"]\n')
    assert [] == [row.id for row in rows(repository) if row.is_unproven]


def test_contradictions_follow_the_settings_of_lint(repository: Repository) -> None:
    """What lint is to ignore in a register, reports do not say either."""
    repository.ticket("A-1", more=FIXED)
    assert ["contradiction"] == [each.rule for row in rows(repository) for each in row.contradictions]
    repository.write("tickets.toml", 'lint_select = ["folder"]\n')
    assert [] == [each.rule for row in rows(repository) for each in row.contradictions]


def test_closed_against_its_own_measurement(repository: Repository) -> None:
    """Lint's rule about evidence is among the contradictions, with the line of the status."""
    repository.ticket("A-1", status="fixed")
    repository.ticket("A-2", status="fixed", more="<!-- lint-ignore fixed-but-refuted: on purpose -->\n")
    for name in ("A-1", "A-2"):
        done = verified(Verdict.FAILED, [True]).verification
        assert done
        repository.write(f"evidence/{name}/simulated.json", written(Evidence(inputs=(), verification=done)))
    first, second = rows(repository)
    # The fixture's ticket has its status in line 9.
    assert [("fixed-but-refuted", 9)] == [(each.rule, each.line) for each in first.contradictions]
    assert () == second.contradictions
    assert (False, False) == (first.is_unproven, second.is_unproven)
