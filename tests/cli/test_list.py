"""``tickets list``: what it lists, what it filters, and what it says of files that it cannot read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Repository

Tickets = Callable[..., "Ran"]
KEYS = [
    "id",
    "kind",
    "title",
    "path",
    "severity",
    "status",
    "resolution",
    "batch",
    "agent",
    "domains",
    "locations",
    "categories",
    "reviews",
    "related",
    "checklist",
    "remediation",
    "verdict",
]


@pytest.fixture
def three(repository: Repository) -> None:
    """Three tickets that differ in everything a filter looks at."""
    domain = "| **Domain** | `{0}` |\n| **Agent** | `{1}` |\n"
    repository.ticket("B1-PT-10", severity="P1", rows=domain.format("train/loop", "pytorch"))
    repository.ticket("B1-PT-09", severity="P3", rows=domain.format("train", "drl"))
    file = repository.ticket("B1-PT-02", status="open", rows=domain.format("trainer", "codereview"))
    file.write_text(file.read_text().replace("[ ] Numerical", "[x] Numerical"))


@pytest.mark.usefixtures("three")
def test_documents_are_listed_as_people_count(tickets: Tickets) -> None:
    """Ticket 9 comes before ticket 10, each with severity, status, verdict and title."""
    ran = tickets("list")
    assert [
        "ID        SEVERITY  STATUS    VERDICT     TITLE",
        "B1-PT-02  P2        open      unverified  It waits",
        "B1-PT-09  P3        wont-fix  unverified  It waits",
        "B1-PT-10  P1        wont-fix  unverified  It waits",
    ] == ran.out.splitlines()
    assert (0, "3 of 3 documents\n") == (ran.code, ran.err)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--severity p1", ["B1-PT-10"]),
        ("--severity P1 --severity P3", ["B1-PT-09", "B1-PT-10"]),
        ("--status OPEN", ["B1-PT-02"]),
        ("--status wontfix --severity P1", ["B1-PT-10"]),
        # A domain holds what lies below it, but not what merely begins alike.
        ("--domain Train", ["B1-PT-09", "B1-PT-10"]),
        ("--domain train/loop", ["B1-PT-10"]),
        ("--agent DRL", ["B1-PT-09"]),
        ("--category numerical", ["B1-PT-02"]),
        ("--category performance", ["B1-PT-02", "B1-PT-09", "B1-PT-10"]),
        ("--verdict unverified --agent drl", ["B1-PT-09"]),
        ("--verdict verified", []),
    ],
)
def test_filters(tickets: Tickets, options: str, expected: list[str]) -> None:
    """Values of one filter are alternatives, filters add up, and case does not matter."""
    ran = tickets("list", "--format", "json", *options.split())
    assert expected == [item["id"] for item in ran.data]


@pytest.mark.parametrize("option", ["--severity", "--status", "--verdict"])
def test_a_word_that_is_none_of_the_vocabulary_is_wrong_usage(tickets: Tickets, option: str) -> None:
    """A misspelt filter does not silently list nothing."""
    ran = tickets("list", option, "urgent")
    assert (2, "") == (ran.code, ran.out)
    assert f"{option} urgent" in ran.err
    assert "one of" in ran.err


def test_json_items_have_the_documented_keys(tickets: Tickets, repository: Repository) -> None:
    """Findings and reviews have the same keys; lines are pairs, words are normalised."""
    repository.ticket(
        file="code.py:3-4,9",
        more="## Cross-Review (PyTorch)\n\n| Field | Value |\n|---|---|\n| **Verdict** | endorse |\n"
        "| **Reviewer** | pytorch |\n\n**Evaluation:** Right.\n",
    )
    repository.write("tickets/task-1.md", "# Task 1 Implementation Review: Waits\n\n**Reviewer:** drl\n")
    finding, review = tickets("list", "--format", "json").data
    assert [KEYS, KEYS] == [list(finding), list(review)]
    assert [{"file": "code.py", "lines": [[3, 4], [9, 9]], "symbol": None}] == finding["locations"]
    assert [{"reviewer": "pytorch", "verdict": "ENDORSE", "evaluation": "Right."}] == finding["reviews"]
    assert ["Performance bottleneck"] == finding["categories"]
    assert [{"text": "Count the waits", "done": False}] == finding["checklist"]
    assert ("TASK-1", "review", None) == (review["id"], review["kind"], review["severity"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "the file is empty"), (b"# T\n\xff", "not UTF-8"), (b"# T\n\x00", "not a text file")],
)
def test_a_file_that_cannot_be_read_is_reported_and_the_rest_listed(
    tickets: Tickets, repository: Repository, content: bytes, reason: str
) -> None:
    """Nothing is skipped in silence: the file is named with its line, and the exit code says bad data."""
    repository.ticket()
    repository.write("tickets/B1-PT-02.md", content)
    ran = tickets("list")
    assert 4 == ran.code
    assert "B1-PT-01" in ran.out
    assert [
        line for line in ran.err.splitlines() if line.startswith("tickets/B1-PT-02.md:") and reason in line
    ]


def test_evidence_that_cannot_be_read_is_reported(tickets: Tickets, repository: Repository) -> None:
    """A damaged file of evidence leaves its ticket unverified, and the exit code says bad data."""
    repository.ticket()
    repository.write("evidence/B1-PT-01/simulated.json", "{")
    ran = tickets("list")
    assert 4 == ran.code
    assert "unverified" in ran.out
    assert "error: evidence/B1-PT-01/simulated.json" in ran.err


def test_a_register_that_is_not_there_is_wrong_usage(tickets: Tickets) -> None:
    """A mistyped --root is named."""
    ran = tickets("list", "--root", "/no/such/folder")
    assert (2, "") == (ran.code, ran.out)
    assert "/no/such/folder" in ran.err
