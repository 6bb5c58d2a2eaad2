"""The founding documents, read as they are; every expected value was taken from the files by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import ImplementationReview, Ticket
from finding_tickets.model.vocabulary import CATEGORIES, Outcome, Severity, Status

SEEDS = Path(__file__).parents[2].parent / "shared" / "seeds"
CODE = "/home/john/esper-lite/"

pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="there are no documents in ../shared/seeds")


def seed(name: str) -> Ticket:
    """A founding ticket, which must be understood completely."""
    document, problems = read_document((SEEDS / name).read_bytes(), name)
    assert isinstance(document, Ticket)
    assert () == tuple(problem for problem in problems if problem.rule != "resolution-outcome")
    return document


def review() -> ImplementationReview:
    """The founding review, which must be understood completely."""
    name = "task-5-implementation-review.md"
    document, problems = read_document((SEEDS / name).read_bytes(), name)
    assert isinstance(document, ImplementationReview)
    assert () == problems
    return document


@pytest.mark.parametrize(
    ("ticket_id", "status", "outcome", "batch", "agent", "domain"),
    [
        ("B1-PT-02", Status.CLOSED, Outcome.WONT_FIX, 1, "pytorch", "tolaria"),
        ("B3-CR-05", Status.OPEN, Outcome.ACCEPTABLE, 3, "codereview", "kasmina"),
        ("B7-PT-02", Status.CLOSED, Outcome.FIXED, 7, "pytorch", "simic/telemetry"),
        ("B7-PT-03", Status.OPEN, None, 7, "pytorch", "simic/telemetry"),
    ],
)
def test_metadata(
    ticket_id: str, status: Status, outcome: Outcome | None, batch: int, agent: str, domain: str
) -> None:
    """All four are P2 of the same day; the rest differs."""
    ticket = seed(f"{ticket_id}.md")
    assert ticket.severity
    assert ticket.status
    assert ticket.batch
    assert ticket.agent
    assert ticket.created
    assert ticket.updated
    assert (ticket_id, Severity.P2, status) == (ticket.id.value, ticket.severity.value, ticket.status.value)
    assert (batch, agent) == (ticket.batch.value, ticket.agent.value)
    assert [domain] == [field.value for field in ticket.domains]
    assert ("2024-12-27", "2024-12-27") == (ticket.created.value, ticket.updated.value)
    assert outcome == (ticket.outcome.value if ticket.outcome else None)
    assert ticket.assignee is None


@pytest.mark.parametrize(
    ("ticket_id", "file", "lines", "symbol"),
    [
        ("B1-PT-02", "src/esper/tolaria/governor.py", [(286, 294)], "TolariaGovernor.execute_rollback()"),
        (
            "B3-CR-05",
            "src/esper/kasmina/isolation.py",
            [(177, 178), (189, 190)],
            "GradientHealthMonitor async methods",
        ),
        (
            "B7-PT-02",
            "src/esper/simic/telemetry/debug_telemetry.py",
            [(196, 208)],
            "check_numerical_stability()",
        ),
        (
            "B7-PT-03",
            "src/esper/simic/telemetry/gradient_collector.py",
            [(299, 303)],
            "collect_seed_gradients()",
        ),
    ],
)
def test_location(ticket_id: str, file: str, lines: list[tuple[int, int]], symbol: str) -> None:
    """Each names one file, one or two ranges of lines, and a symbol."""
    assert [(CODE + file, lines, symbol)] == [
        (place.file, [(each.first, each.last) for each in place.lines], place.symbol)
        for place in seed(f"{ticket_id}.md").locations
    ]


@pytest.mark.parametrize(
    ("ticket_id", "ticked", "checks"),
    [
        ("B1-PT-02", {"Performance bottleneck"}, 2),
        ("B3-CR-05", {"Performance bottleneck"}, 2),
        ("B7-PT-02", {"Performance bottleneck"}, 3),
        ("B7-PT-03", {"Memory leak / resource issue", "Performance bottleneck"}, 3),
    ],
)
def test_check_boxes(ticket_id: str, ticked: set[str], checks: int) -> None:
    """All twelve categories in order, those that are ticked, and a checklist without a tick."""
    ticket = seed(f"{ticket_id}.md")
    assert list(CATEGORIES) == [category.name for category in ticket.categories]
    assert ticked == {category.name for category in ticket.categories if category.ticked}
    assert [False] * checks == [item.done for item in ticket.checklist]


@pytest.mark.parametrize(
    ("ticket_id", "reviews"),
    [
        ("B1-PT-02", [("drl", "NEUTRAL"), ("pytorch", "ENDORSE"), ("codereview", "NEUTRAL")]),
        ("B3-CR-05", [("pytorch", "NEUTRAL"), ("drl", "ENDORSE"), ("codereview", "NEUTRAL")]),
        ("B7-PT-02", [("drl", "REFINE"), ("pytorch", "REFINE"), ("codereview", "ENDORSE")]),
        ("B7-PT-03", [("drl", "ENDORSE"), ("pytorch", "ENDORSE"), ("codereview", "ENDORSE")]),
    ],
)
def test_reviews(ticket_id: str, reviews: list[tuple[str, str]]) -> None:
    """Three specialists reviewed each, in three different forms."""
    found = seed(f"{ticket_id}.md").reviews
    assert reviews == [(each.reviewer and each.reviewer.value, each.opinion) for each in found]
    assert [] == [each for each in found if each.evaluation is None or len(each.evaluation.raw) < 100]


@pytest.mark.parametrize(
    ("ticket_id", "related", "reports"),
    [
        ("B1-PT-02", ["B1-PT-05"], ["batch1-pytorch"]),
        ("B3-CR-05", [], ["batch3-codereview"]),
        ("B7-PT-02", ["B7-PT-03"], ["batch7-codereview", "batch7-pytorch"]),
        ("B7-PT-03", ["B7-PT-02"], ["batch7-pytorch", "batch7-drl", "batch7-codereview"]),
    ],
)
def test_links(ticket_id: str, related: list[str], reports: list[str]) -> None:
    """Related tickets, and every report that a finding came from."""
    ticket = seed(f"{ticket_id}.md")
    assert related == [relation.id for relation in ticket.related]
    assert [f"docs/temp/2712reports/{name}.md" for name in reports] == [link.file for link in ticket.reports]
    assert [] == [link for link in ticket.reports if not link.section]


@pytest.mark.parametrize(
    ("ticket_id", "line", "start"),
    [
        ("B1-PT-02", 34, "`torch.cuda.synchronize(device)` is more aggressive"),
        ("B3-CR-05", 33, "`norms_unified = [n.to(target_device)"),
        ("B7-PT-02", 33, "NaN/Inf checking triggers"),
        ("B7-PT-03", 33, "O(total_params) temporary tensor"),
    ],
)
def test_summary(ticket_id: str, line: int, start: str) -> None:
    """The one-line summary; B1-PT-02 has one more row of metadata, so that it stands a line lower."""
    summary = seed(f"{ticket_id}.md").summary
    assert summary
    assert (line, True) == (summary.span.line, summary.raw.startswith(start))


def test_code_names_its_place() -> None:
    """The first comment of a quoted code block says where it is from."""
    assert [f"{CODE}src/esper/kasmina/isolation.py:177-178,189-190"] == [
        block.location for block in seed("B3-CR-05.md").evidence
    ]


def test_the_review() -> None:
    """Header, verdict and counts of the implementation review."""
    found = review()
    assert found.commits
    assert found.date
    assert found.verdict
    assert ("TASK-5", "2025-12-07") == (found.id.value, found.date.value)
    assert ("6de1b57", "1bc9278", "READY FOR INTEGRATION") == (
        found.commits.base,
        found.commits.head,
        found.verdict.value,
    )
    # Five items in the list of planned changes, seven rows in the table that compares with the plan.
    assert [True] * (5 + 7) == [requirement.met for requirement in found.requirements]
    assert {"critical": 0, "important": 0, "minor": 2} == found.issue_counts
    assert [("minor", "Minor-1"), ("minor", "Minor-2")] == [(each.severity, each.id) for each in found.issues]


def test_the_scores_of_the_review() -> None:
    """The quality score at the top, six qualities, and the overall score."""
    scores = {
        "Correctness": 10,
        "Performance": 10,
        "Maintainability": 9,
        "Documentation": 10,
        "Test Coverage": 9,
        "Plan Adherence": 10,
    }
    assert [("overall", 9.5), *scores.items(), ("overall", 9.5)] == [
        (score.name, score.value) for score in review().scores
    ]


def test_the_performance_claims_of_the_review() -> None:
    """Two totals in code, three figures for a typical model, one for a large one, and a remark."""
    assert ["Total", "Total", "Before", "After", "Speedup", "Speedup", "Real-world impact"] == [
        claim.text.partition(":")[0] for claim in review().performance_claims
    ]


def test_the_artifacts_of_the_review() -> None:
    """One file modified, one created, one test added, two groups of tests passing, one commit."""
    assert [
        ("Files Modified", f"{CODE}src/esper/kasmina/isolation.py"),
        ("Files Created", f"{CODE}tests/kasmina/test_gradient_isolation.py"),
        ("Tests Added", "TestGradientIsolationPerformance::test_check_isolation_uses_foreach"),
        ("Tests Passing", "tests/kasmina/"),
        ("Tests Passing", "All gradient isolation tests"),
        ("Commit", "1bc9278"),
    ] == [(artifact.group, artifact.name) for artifact in review().artifacts]
