"""Cross-reviews are read in every form in which people and agents write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.markdown.conftest import Finding

FIELDS = "| Field | Value |\n|---|---|\n"

FORMS = {
    "a heading for the reviewer, a table of fields, a labelled evaluation": (
        f"## Cross-Review (DRL Specialist)\n\n{FIELDS}| **Verdict** | `REFINE` |\n"
        "| **Reviewer** | DRL Specialist |\n\n**Evaluation:** Nearly right.\n"
    ),
    "a table of fields, a heading for the evaluation": (
        f"## Cross-Review: DRL\n\n{FIELDS}| **Reviewer** | DRL |\n| **Verdict** | **REFINE** (mostly) |\n\n"
        "### Evaluation\n\nNearly right.\n"
    ),
    "one row for each agent": (
        "## Cross-Review\n\n| Agent | Verdict | Evaluation |\n|---|---|---|\n"
        "| **DRL** | REFINE | Nearly right. |\n"
    ),
    "one row for each reviewer, in another order": (
        "## Cross-Review\n\n| Verdict | Evaluation | Reviewer |\n|---|---|---|\n"
        "| **REFINE** | Nearly right. | `drl` |\n"
    ),
    "a table of verdict and evaluation below the reviewer's heading": (
        "## Cross-Review: DRL Expert\n\n| Verdict | Evaluation |\n|---|---|\n| **REFINE** | Nearly right. |\n"
    ),
    "the verdict as the table's header": (
        "## Cross-Review: DRL\n\n| Verdict | **REFINE** |\n|---|---|\n| **Evaluation** | Nearly right. |\n"
    ),
    "the verdict as the table's header, below a nested heading": (
        "## Cross-Review\n\n### DRL Specialist\n\n| Verdict | REFINE |\n|---|---|\n"
        "| **Evaluation** | Nearly right. |\n"
    ),
    "a row with the domain, and a labelled evaluation": (
        "## Cross-Review\n\n| Verdict | Reviewer | Domain |\n|---|---|---|\n"
        "| **REFINE** | DRL Specialist | Deep RL |\n\n"
        "**DRL Evaluation:** Nearly right.\n"
    ),
    "a row with a date, and what follows": (
        "## Cross-Review (DRL)\n\n| Verdict | Reviewer | Date |\n|---|---|---|\n"
        "| REFINE | drl-expert | 2024-12-27 |\n\n"
        "Nearly right.\n"
    ),
    "a labelled verdict, and what follows": "## Cross-Review (DRL)\n\n**Verdict:** REFINE\n\nNearly right.\n",
    "an item of a list": "## Cross-Review\n\n- **DRL**: REFINE - Nearly right.\n",
    "a title with other marks": "## Cross Review \u2013 DRL\n\n**Verdict:** `REFINE`\n\nNearly right.\n\n---",
}


@pytest.mark.parametrize("form", FORMS)
def test_form(finding: Finding, form: str) -> None:
    """Each form says the same: DRL would refine it, since it is nearly right."""
    reading = finding(FORMS[form])
    [review] = reading.ticket.reviews
    assert review.reviewer
    assert review.evaluation
    assert ("drl", "REFINE", "Nearly right.") == (
        review.reviewer.value,
        review.opinion,
        review.evaluation.raw,
    )
    assert [] == reading.rules


@pytest.mark.parametrize("form", FORMS)
def test_every_piece_knows_its_bytes(finding: Finding, form: str) -> None:
    """The verdict's raw text is found on the line that its span names."""
    [review] = finding(FORMS[form]).ticket.reviews
    # The form's text begins on line 5.
    line = FORMS[form].split("\n")[review.verdict.span.line - 5]
    assert review.verdict.raw in line


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("DRL Specialist", "drl"),
        ("drl-expert", "drl"),
        ("PyTorch Engineering Specialist", "pytorch"),
        ("Code Review Specialist", "codereview"),
        ("CodeReview", "codereview"),
        ("`code-review`", "codereview"),
        ("feature-dev:code-reviewer", "codereview"),
        ("Code Quality", "codereview"),
    ],
)
def test_reviewer(finding: Finding, name: str, word: str) -> None:
    """Reviewers are called many names; the register has one word for each and keeps the name."""
    table = "## Cross-Review\n\n| Reviewer | Verdict | Evaluation |\n|---|---|---|\n"
    [review] = finding(f"{table}| {name} | NEUTRAL | - |\n").ticket.reviews
    assert review.reviewer
    assert (word, name) == (review.reviewer.value, review.reviewer.raw)


def test_the_heading_knows_better(finding: Finding) -> None:
    """Where the table names nobody the register knows, the heading counts."""
    reading = finding(
        f"## Cross-Review (PyTorch)\n\n{FIELDS}| **Verdict** | OBJECT |\n| **Reviewer** | agent-7 |\n\nNo.\n"
    )
    assert ["pytorch"] == [review.reviewer and review.reviewer.value for review in reading.ticket.reviews]


def test_an_unknown_reviewer(finding: Finding) -> None:
    """A reviewer whom the register does not know keeps the name, which is reported."""
    reading = finding(
        f"## Cross-Review\n\n{FIELDS}| **Verdict** | OBJECT |\n| **Reviewer** | agent-7 |\n\nNo.\n"
    )
    assert ["agent-7"] == [review.reviewer and review.reviewer.value for review in reading.ticket.reviews]
    # Heading 5, table header 7, rule 8, verdict 9, reviewer 10.
    assert [("unknown-word", 10)] == reading.rules


def test_nobody(finding: Finding) -> None:
    """A review that names nobody has no reviewer, which is reported."""
    reading = finding("## Cross-Review\n\n| Verdict | **ENDORSE** |\n|---|---|\n\n**Evaluation:** Yes.\n")
    assert [None] == [review.reviewer for review in reading.ticket.reviews]
    assert ["review-reviewer"] == [rule for rule, _ in reading.rules]


def test_an_unknown_verdict(finding: Finding) -> None:
    """A verdict outside the vocabulary has no opinion, keeps its text, and is reported."""
    reading = finding("## Cross-Review (DRL)\n\n**Verdict:** Perhaps\n\nWho knows.\n")
    assert [(None, "Perhaps")] == [
        (review.opinion, review.verdict.value) for review in reading.ticket.reviews
    ]
    assert [("unknown-word", 7)] == reading.rules


def test_a_section_without_a_verdict(finding: Finding) -> None:
    """A cross-review in which no verdict can be found is reported."""
    reading = finding("## Cross-Review\n\nWe talked about it.\n")
    assert () == reading.ticket.reviews
    assert [("review-form", 5)] == reading.rules


def test_several_reviewers_in_order(finding: Finding) -> None:
    """Sections, nested headings and rows yield their reviews in the order of the file."""
    reading = finding(
        "## Cross-Review: PyTorch\n\n**Verdict:** NEUTRAL\n\nEh.\n\n## Cross-Review\n\n### DRL\n\n"
        "**Verdict:** OBJECT\n\nNo.\n\n### Code Review\n\n**Verdict:** ENDORSE\n\nYes.\n"
    )
    assert [("pytorch", "NEUTRAL"), ("drl", "OBJECT"), ("codereview", "ENDORSE")] == [
        (review.reviewer and review.reviewer.value, review.opinion) for review in reading.ticket.reviews
    ]


def test_two_tables(finding: Finding) -> None:
    """Each table of verdicts in a section counts; other tables do not."""
    head = "| Agent | Verdict | Evaluation |\n|---|---|---|\n"
    reading = finding(
        f"## Cross-Review\n\n| a | b |\n|---|---|\n| c | d |\n\n{head}| DRL | OBJECT | No. |\n\nThen:\n\n"
        f"{head}| PyTorch | ENDORSE | Yes. |\n"
    )
    assert [("drl", "OBJECT"), ("pytorch", "ENDORSE")] == [
        (review.reviewer and review.reviewer.value, review.opinion) for review in reading.ticket.reviews
    ]
