"""Cross-reviews are read in every form in which people and agents write them."""

from __future__ import annotations

import pytest
from tests.documents.conftest import Finding

from finding_tickets.model.vocabulary import Vocabulary, Words

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
    "a heading that ends with the words": (
        "## DRL Specialist Cross-Review\n\n**Verdict:** REFINE\n\nNearly right.\n"
    ),
    "a bold line": "## Cross-Review (DRL)\n\n**Verdict: REFINE**\n\nNearly right.\n",
    "the reviewer as the table's header": (
        "## Cross-Review\n\n| Reviewer | DRL |\n|---|---|\n| Verdict | REFINE |\n"
        "| Evaluation | Nearly right. |\n"
    ),
    "a reason in the cell of the verdict": (
        "## Cross-Review\n\n| Reviewer | Verdict |\n|---|---|\n| DRL | REFINE - Nearly right. |\n"
    ),
    "no pipe at the end of a row": (
        "## Cross-Review: DRL\n\n| Verdict | **REFINE** |\n|---|---|\n| **Evaluation** | Nearly right.\n"
    ),
    "no pipes at the ends of rows": (
        "## Cross-Review\n\nAgent | Verdict | Evaluation\n---|---|---\nDRL | REFINE | Nearly right.\n"
    ),
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
        ("RL", "drl"),
        ("Deep Reinforcement Learning Expert", "drl"),
        ("PT", "pytorch"),
        ("PyTorch Expert (seconding DRL)", "pytorch"),
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


@pytest.mark.parametrize(("agents", "rules"), [({}, []), ({"kim": ()}, [("unknown-word", 10)])])
def test_an_unknown_reviewer(finding: Finding, agents: Words, rules: list[tuple[str, int]]) -> None:
    """A reviewer whom the register does not know keeps the name, which is reported if it names its agents."""
    reading = finding(
        f"## Cross-Review\n\n{FIELDS}| **Verdict** | OBJECT |\n| **Reviewer** | agent-7 |\n\nNo.\n",
        Vocabulary(agents=agents),
    )
    assert ["agent-7"] == [review.reviewer and review.reviewer.value for review in reading.ticket.reviews]
    # Heading 5, table header 7, rule 8, verdict 9, reviewer 10.
    assert rules == reading.rules


def test_nobody(finding: Finding) -> None:
    """A review that names nobody has no reviewer, which is reported."""
    reading = finding("## Cross-Review\n\n| Verdict | **ENDORSE** |\n|---|---|\n\n**Evaluation:** Yes.\n")
    assert [None] == [review.reviewer for review in reading.ticket.reviews]
    assert ["review-reviewer"] == [rule for rule, _ in reading.rules]


def test_a_section_without_a_verdict(finding: Finding) -> None:
    """A cross-review in which no verdict can be found is reported."""
    reading = finding("## Cross-Review\n\nWe talked about it.\n")
    assert () == reading.ticket.reviews
    assert [("review-form", 5)] == reading.rules


def test_a_reviewer_is_no_part_of_a_word(finding: Finding) -> None:
    """A short spelling is a word of its own: the letters of one inside another name mean nobody."""
    [review] = finding("## Cross-Review (Early Script Team)\n\n**Verdict:** OBJECT\n\nNo.\n").ticket.reviews
    assert review.reviewer
    assert "Early Script Team" == review.reviewer.value


@pytest.mark.parametrize(
    ("verdict", "opinion", "condition"),
    [
        ("`NEUTRAL` (with caveat)", "NEUTRAL", "with caveat"),
        ("ENDORSE - lower to P3", "ENDORSE", "lower to P3"),
        ("Endorsed", "ENDORSE", ""),
        ("Objection", "OBJECT", ""),
        ("Strongly ENDORSE", "ENDORSE", ""),
        ("NOT A BUG", None, ""),
        ("Cannot endorse", None, ""),
        ("does not OBJECT", None, ""),
    ],
)
def test_verdict(finding: Finding, verdict: str, opinion: str | None, condition: str) -> None:
    """An opinion in any form and with a remark is one; what negates it is none, and its text is kept."""
    reading = finding(
        f"## Cross-Review (DRL)\n\n{FIELDS}| **Verdict** | {verdict} |\n\n**Evaluation:** So.\n"
    )
    [review] = reading.ticket.reviews
    assert (opinion, condition, verdict.replace("`", "")) == (
        review.opinion,
        review.condition,
        review.verdict.value,
    )
    # Heading 5, table header 7, rule 8, verdict 9.
    assert ([] if opinion else [("unknown-word", 9)]) == reading.rules


def test_what_stands_beside_an_evaluation(finding: Finding) -> None:
    """Text below a row, and further cells, are remarks on the same review, with its date."""
    [review] = finding(
        "## Cross-Review: DRL\n\n| Verdict | Evaluation | Date | Confidence |\n|---|---|---|---|\n"
        "| ENDORSE | Right. | 2024-12-27 | high |\n\n**Recommendation:** Do it.\n\nSoon.\n"
    ).ticket.reviews
    assert review.date
    assert ("2024-12-27", "Right.\n\nhigh\n\n**Recommendation:** Do it.\n\nSoon.") == (
        review.date.value,
        review.words,
    )


def test_text_behind_several_rows(finding: Finding) -> None:
    """A paragraph below a table of several reviews is nobody's, unless a label says whose it is."""
    reading = finding(
        "## Cross-Review\n\n| Agent | Verdict |\n|---|---|\n| DRL | ENDORSE |\n| PyTorch | NEUTRAL |\n\n"
        "All agree.\n\n**PyTorch Specialist:** Rarely.\n\nVery rarely.\n\n**Evaluation (DRL):** Often.\n"
    )
    assert [("drl", "Often."), ("pytorch", "Rarely.\n\nVery rarely.")] == [
        (review.reviewer and review.reviewer.value, review.words) for review in reading.ticket.reviews
    ]


def test_reviews_one_after_the_other(finding: Finding) -> None:
    """Each further reviewer or verdict among labelled lines begins another review."""
    reading = finding(
        "## Cross-Review\n\n**Reviewer:** DRL\n**Verdict:** ENDORSE\n**Evaluation:** Yes.\n\n"
        "**Reviewer:** PyTorch\n**Verdict:** OBJECT\n\nNo.\n"
    )
    assert [("drl", "ENDORSE", "Yes."), ("pytorch", "OBJECT", "No.")] == [
        (review.reviewer and review.reviewer.value, review.opinion, review.words)
        for review in reading.ticket.reviews
    ]


def test_what_a_fence_quotes_is_text(finding: Finding) -> None:
    """A heading and a table inside a fence belong to the evaluation around them."""
    reading = finding(
        "## Cross-Review (DRL)\n\n**Verdict:** ENDORSE\n\nSee:\n\n```\n## Cross-Review\n"
        "| Verdict | OBJECT |\n"
        "|---|---|\n```\n\n- in a list:\n  ```\n  ### Verdict: OBJECT\n  ```\n"
    )
    assert ["ENDORSE"] == [review.opinion for review in reading.ticket.reviews]
    assert [] == reading.rules


def test_a_row_that_waits_for_its_review(finding: Finding) -> None:
    """A row with neither verdict nor evaluation is no review yet."""
    reading = finding(
        "## Cross-Review\n\n| Agent | Verdict | Evaluation |\n|---|---|---|\n| DRL | | |\n"
        "| PyTorch | OBJECT | No. |\n"
    )
    assert ["OBJECT"] == [review.opinion for review in reading.ticket.reviews]
    assert [] == reading.rules


@pytest.mark.parametrize(
    "text",
    [
        "### Final Verdict: OBJECT\n\nAll in all.\n",
        "**Final Verdict:** OBJECT\n",
        "### Consensus\n\nAll in all.\n",
        "## Cross-Review Summary\n\n| Agent | Verdict |\n|---|---|\n| DRL | OBJECT |\n",
        "## Response to Cross-Review\n\n- **DRL**: OBJECT - we do not see why.\n",
        "## Resolution\n\n**Status:** Fixed\n\n### Cross-Review Outcome\n\n- **DRL**: OBJECT - taken back.\n",
    ],
)
def test_what_sums_reviews_up(finding: Finding, text: str) -> None:
    """A verdict of all together, a summary and an answer are no further reviews."""
    reading = finding(
        "## Cross-Review\n\n| Agent | Verdict |\n|---|---|\n| DRL | ENDORSE |\n| PyTorch | NEUTRAL |\n\n"
        + text
    )
    assert ["ENDORSE", "NEUTRAL"] == [review.opinion for review in reading.ticket.reviews]
    assert [] == reading.rules


def test_rows_that_were_added_later(finding: Finding) -> None:
    """Several rows below a paragraph are rows of the table above it, reported as such and as no table."""
    reading = finding(
        "## Cross-Review\n\n| Agent | Verdict | Evaluation |\n|---|---|---|\n"
        "| DRL | ENDORSE | Yes. |\n\nThen:\n\n"
        "| PyTorch | OBJECT | No. |\n| CodeReview | NEUTRAL | Eh. |\n"
    )
    assert ["ENDORSE", "OBJECT", "NEUTRAL"] == [review.opinion for review in reading.ticket.reviews]
    # Heading 5, header 7, rule 8, row 9, paragraph 11, the rows 13 and 14.
    assert [("table-delimiter", 13), ("table-header", 13)] == reading.rules


def test_a_labelled_evaluation(finding: Finding) -> None:
    """What is labelled as the evaluation is it; what another label says, or text below, is a remark."""
    [review] = finding(
        "## Cross-Review: DRL\n\n**Verdict:** ENDORSE\n**Confidence:** High\n\n**Evaluation:** Yes.\n\n- so\n"
    ).ticket.reviews
    assert review.evaluation
    assert ("Yes.", ["**Confidence:** High", "- so"]) == (
        review.evaluation.raw,
        [remark.raw for remark in review.remarks],
    )
