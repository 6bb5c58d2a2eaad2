"""Rows: what reviewers say together, what is claimed, and the columns of lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import Repository
from tests.report.conftest import claim, verification

from finding_tickets.ground import __version__
from finding_tickets.model.verification import Evidence, Input
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.config import Config
from finding_tickets.register.entries import Entry, StatedClaim
from finding_tickets.register.entries import Entry as Stated
from finding_tickets.register.load import Register, load
from finding_tickets.register.staleness import (
    OWN_PYTHON,
    PYTHON,
    TOOL,
    CodeInputs,
    CurrentVerdict,
)
from finding_tickets.report.rows import (
    ReportRow,
    list_cells,
    row_of,
    rows_of,
)
from finding_tickets.report.verification import LawChange
from finding_tickets.verify.evidence import dump

FIXED = "## Resolution\n\n**Status:** Fixed\n"
TICKED = f"- [x] Count the waits\n\n{FIXED}"


def verified(verdict: Verdict, holds: Sequence[bool | None], variant: str = "found") -> CurrentVerdict:
    """A verdict from claims about a variant with these outcomes."""
    claims = [claim(str(at), holds=each, variant=variant) for at, each in enumerate(holds)]
    return CurrentVerdict(verdict, verification("because", verdict, claims))


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
    assert expected == row_of(stated(*reviews), CurrentVerdict()).consensus


def test_the_last_opinion_of_a_reviewer_counts() -> None:
    """Reviewers who are not named are one."""
    row = row_of(
        stated(("drl", "OBJECT"), (None, "ENDORSE"), ("drl", "REFINE"), (None, "OBJECT")), CurrentVerdict()
    )
    assert {"drl": "REFINE", "not named": "OBJECT"} == row.opinions


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (CurrentVerdict(), None),
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
def test_whether_a_finding_holds(measured: CurrentVerdict, expected: bool | None) -> None:
    """Claims about the code as found decide, where the measurement still says something of it."""
    assert expected is row_of(stated(), measured).holds


def test_claims_of_one_metric_stand_together() -> None:
    """Those made at every point; where there are none, all of them; other variants are left out."""
    claims = (
        StatedClaim("found", "syncs", "4*n"),
        StatedClaim("found", "syncs", "<= 9 where n 2", is_everywhere=False),
        StatedClaim("found", "syncs", "O(n)"),
        StatedClaim("recommended", "h2d", "1"),
        StatedClaim("fix", "peak_bytes", "8 where n 1", is_everywhere=False),
        StatedClaim("fix", "peak_bytes", "16 where n 2", is_everywhere=False),
        StatedClaim("fix", "syncs", "1"),
    )
    row = row_of(replace(stated(), claims=claims), CurrentVerdict())
    assert (
        LawChange("syncs", "4*n and O(n)", "1"),
        LawChange("peak_bytes", None, "8 where n 1; 16 where n 2"),
    ) == row.claimed


def rows(repository: Repository) -> list[ReportRow]:
    """The rows of a report on all documents."""
    facts = load(repository.root)
    return list(rows_of(facts, facts.entries))


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


def current_inputs() -> tuple[Input, ...]:
    """The versions of now and the digest of a ticket without a Remediation: what keeps evidence fresh."""
    return (
        Input(name="Remediation", kind="remediation", value=CodeInputs().digest),
        Input(name=PYTHON, kind="version", value=OWN_PYTHON),
        Input(name=TOOL, kind="version", value=__version__),
    )


def test_closed_against_its_own_measurement(repository: Repository) -> None:
    """Lint's rule about evidence is among the contradictions, with the line of the status."""
    repository.ticket("A-1", status="fixed")
    repository.ticket("A-2", status="fixed", more="<!-- lint-ignore fixed-but-refuted: on purpose -->\n")
    for name in ("A-1", "A-2"):
        done = verified(Verdict.FAILED, [True]).verification
        assert done
        evidence = dump(Evidence(inputs=current_inputs(), verification=done))
        repository.write(f"evidence/{name}/simulated.json", evidence)
    first, second = rows(repository)
    # The fixture's ticket has its status in line 9.
    assert [("fixed-but-refuted", 9)] == [(each.rule, each.line) for each in first.contradictions]
    assert () == second.contradictions
    assert (False, False) == (first.is_unproven, second.is_unproven)


ROW = Entry(
    *("finding", "tickets/a.md", "A-1", "It waits"),
    batch=0,
    files=("a.py", "b.py"),
    reviews=(("drl", "OBJECT"), (None, "NEUTRAL")),
    related=(("A-2", "blocks"),),
    done=1,
    undone=2,
)


class Disputed(Register):
    """A register with two meters that disagree."""

    def measured(self, document: object) -> CurrentVerdict:  # noqa: ARG002 - the same for every one
        """The same for every row."""
        return CurrentVerdict(Verdict.FAILED, disagreement="cuda: failed, simulated: verified")


def test_columns_of_several_values() -> None:
    """They stand side by side, 0 is a value, and meters that disagree are named."""
    names = ("batch", "file", "reviewed-by", "related", "checklist", "verdict")
    assert [
        "0",
        "a.py, b.py",
        "drl=OBJECT, ?=NEUTRAL",
        "A-2=blocks",
        "1/3",
        "failed (cuda: failed, simulated: verified)",
    ] == list_cells(ROW, Disputed(Path(), Config(), [ROW]), names)
