"""An implementation review: requirements, issues, scores, performance claims and artifacts."""

from __future__ import annotations

from finding_tickets.markdown.reading import read_document
from finding_tickets.model.problem import Problem
from finding_tickets.model.review import ImplementationReview

REVIEW = """\
# Task 12 Implementation Review: Fewer Waits

**Reviewer:** Someone (senior)
**Date:** 2026-01-02
**Commits:** abcdef1 \u2192 1234567
**Plan Reference:** `docs/plan.md` (Task 12)

## Executive Summary

**Assessment:** \u2705 **READY**

**Quality Score:** 8.5/10

## Plan Alignment

1. \u2705 Use one kernel
2. \u274c Write a test
3. \u26a0\ufe0f Measure it

| Plan Requirement | Implementation | Status |
|------------------|----------------|--------|
| Use one kernel | lines 3-9 | \u2705 |
| Write a test | forgotten | \u274c |

## Code Quality

### Issues Found

#### Critical Issues
**NONE**

#### Minor Suggestions

**Minor-1: No test for nothing (cosmetic)**
- **Location:** `src/a.py:3`
- **Suggestion:** test
  - an empty list
  - None

**Minor-2: A name**
- **Impact:** LOW

## Performance Analysis

**Before:**
```python
for each in all:  # N waits
    each.item()
# Total: O(N) waits
```

- **After:** 1-2 waits per call
- **Speedup:** 25-50x

## Verification

- [x] Count the waits

## Final Assessment

### Issues Summary
- **Critical:** 0
- **Minor:** 3 (two are cosmetic)

### Metrics
- **Correctness:** 10/10
- **Tests:** 7/10 (none for nothing)

## Artifacts

### Files Modified
- `src/a.py` (14 lines)

### Tests Passing
- All 11 in `tests/a/`
- Every other one (100%)

### Commit
- `1234567`: "faster"
"""


def read(text: str = REVIEW) -> tuple[ImplementationReview, tuple[Problem, ...]]:
    """The review in ``text``."""
    document, problems = read_document(text.encode(), "reviews/task-12.md")
    assert isinstance(document, ImplementationReview)
    return document, problems


def test_a_whole_review_has_no_problem() -> None:
    """All of it is understood."""
    assert () == read()[1]


def test_header() -> None:
    """The labelled lines below the title, and the ID that the title implies."""
    review, _ = read()
    fields = (review.id, review.title, review.reviewer, review.date, review.plan, review.verdict)
    assert [
        "TASK-12",
        "Fewer Waits",
        "Someone (senior)",
        "2026-01-02",
        "docs/plan.md (Task 12)",
        "READY",
    ] == [field.value for field in fields if field]


def test_commits() -> None:
    """A range has a base; a single commit has none; a name is reported."""
    commits = read()[0].commits
    single = read(REVIEW.replace("abcdef1 \u2192 1234567", "`1234567`"))[0].commits
    assert commits
    assert single
    assert [("abcdef1", "1234567"), (None, "1234567")] == [
        (each.base, each.head) for each in (commits, single)
    ]
    without, problems = read(REVIEW.replace("abcdef1 \u2192 1234567", "the last ones"))
    assert without.commits is None
    assert [("commits", 5)] == [(problem.rule, problem.line) for problem in problems]


def test_an_id_in_the_metadata() -> None:
    """A stated ID outranks the one that the title implies."""
    assert "REVIEW-3" == read(REVIEW.replace("**Date:**", "**Ticket ID:** REVIEW-3\n**Date:**"))[0].id.value


def test_requirements() -> None:
    """Marked items and rows of the plan's table, each met, not met or left open."""
    assert [
        ("Use one kernel", "", True),
        ("Write a test", "", False),
        ("Measure it", "", None),
        ("Use one kernel", "lines 3-9", True),
        ("Write a test", "forgotten", False),
    ] == [(each.text, each.implementation, each.met) for each in read()[0].requirements]


def test_issues() -> None:
    """An issue has the severity of its heading and all its details; NONE is no issue."""
    assert [
        (
            "minor",
            "Minor-1",
            "No test for nothing (cosmetic)",
            {"Location": "src/a.py:3", "Suggestion": "test - an empty list - None"},
        ),
        ("minor", "Minor-2", "A name", {"Impact": "LOW"}),
    ] == [(issue.severity, issue.id, issue.title, issue.details) for issue in read()[0].issues]


def test_issues_under_headings() -> None:
    """An issue may be a heading instead of bold words."""
    text = REVIEW.replace("**Minor-2: A name**", "##### Minor-2: A name\n")
    assert ["Minor-1", "Minor-2"] == [issue.id for issue in read(text)[0].issues]


def test_issue_counts() -> None:
    """The stated counts are kept even where they are wrong; without them the issues are counted."""
    assert {"critical": 0, "minor": 3} == read()[0].issue_counts
    before, _, after = REVIEW.partition("### Issues Summary")
    assert {"critical": 0, "minor": 2} == read(before + after[after.index("### Metrics") :])[0].issue_counts


def test_scores() -> None:
    """Every labelled score, with what it is out of and what is remarked about it."""
    assert [
        ("overall", 8.5, 10.0, ""),
        ("Correctness", 10.0, 10.0, ""),
        ("Tests", 7.0, 10.0, "none for nothing"),
    ] == [(score.name, score.value, score.out_of, score.remark) for score in read()[0].scores]


def test_performance_claims() -> None:
    """Labelled values and the totals in code, in the order of the file; a label without a value is none."""
    assert ["Total: O(N) waits", "After: 1-2 waits per call", "Speedup: 25-50x"] == [
        claim.text for claim in read()[0].performance_claims
    ]
    assert "Total: O(N) waits" == read()[0].performance_claims[0].raw


def test_artifacts() -> None:
    """Code names an artifact where there is some; otherwise the words before a bracket do."""
    assert [
        ("Files Modified", "src/a.py", "14 lines"),
        ("Tests Passing", "tests/a/", "All 11 in tests/a/"),
        ("Tests Passing", "Every other one", "100%"),
        ("Commit", "1234567", '"faster"'),
    ] == [(artifact.group, artifact.name, artifact.remark) for artifact in read()[0].artifacts]


def test_locations() -> None:
    """The files that were changed are the places that a review speaks of."""
    assert ["src/a.py"] == [place.file for place in read()[0].locations]


def test_checklist_and_code() -> None:
    """A review has a checklist and code as a ticket has."""
    review, _ = read()
    assert [("Count the waits", True)] == [(item.text, item.done) for item in review.checklist]
    assert ["python"] == [block.language for block in review.evidence]


def test_another_table_is_no_requirement() -> None:
    """A table without a column of requirements says nothing about them."""
    text = REVIEW.replace("| Plan Requirement |", "| Phase |")
    assert 3 == len(read(text)[0].requirements)


def test_a_review_without_a_verdict() -> None:
    """A review that states no verdict and no commits has none."""
    review, _ = read("# Task 1 Implementation Review: t\n")
    assert (None, None) == (review.verdict, review.commits)


def test_a_status_that_says_nothing() -> None:
    """A status from which it cannot be told whether a requirement is met is reported on its line."""
    review, problems = read(REVIEW.replace("| forgotten | \u274c |", "| forgotten | hm |"))
    assert review.requirements[-1].met is None
    # Line 1 is the title; the table's header is on line 20, its rule on 21, its second row on 23.
    assert [("requirement-status", 23)] == [(problem.rule, problem.line) for problem in problems]
