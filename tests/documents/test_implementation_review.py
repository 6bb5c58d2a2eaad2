"""An implementation review: requirements, issues, scores, performance claims and artifacts."""

from __future__ import annotations

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import ImplementationReview, Problem

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

## Final Assessment

### Issues Summary
- **Critical:** 0
- **Minor:** 3 (two are cosmetic)

### Metrics
"""


def read(text: str = REVIEW) -> tuple[ImplementationReview, tuple[Problem, ...]]:
    """The review in ``text``."""
    document, problems = read_document(text.encode(), "reviews/task-12.md")
    assert isinstance(document, ImplementationReview)
    return document, problems


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


def test_issue_counts() -> None:
    """The issues of each severity are counted, whatever a summary of them says."""
    assert {"critical": 0, "minor": 2} == read()[0].issue_counts


def test_a_status_that_says_nothing() -> None:
    """A status from which it cannot be told whether a requirement is met is reported on its line."""
    review, problems = read(REVIEW.replace("| forgotten | \u274c |", "| forgotten | hm |"))
    assert review.requirements[-1].met is None
    # Line 1 is the title; the table's header is on line 20, its rule on 21, its second row on 23.
    assert [("requirement-status", 23)] == [(problem.rule, problem.line) for problem in problems]


def short(text: str, title: str = "# Task 7 Implementation Review: Faster") -> ImplementationReview:
    """A review that consists of its title and a text."""
    return read(f"{title}\n\n{text}")[0]


@pytest.mark.parametrize(
    ("written", "base", "head"),
    [
        ("abcdef1 -> 1234567", "abcdef1", "1234567"),
        ("`abcdef1..1234567`", "abcdef1", "1234567"),
        ("abcdef1...1234567 (2 commits)", "abcdef1", "1234567"),
        ("abcdef1 to 1234567", "abcdef1", "1234567"),
        ("`abcdef1` (first), `1234567` (last)", "abcdef1", "1234567"),
        ("1234567", None, "1234567"),
    ],
)
def test_notations_of_commits(written: str, base: str | None, head: str) -> None:
    """A range of commits in the notations of git and of prose."""
    commits = short(f"**Commit Range:** {written}\n").commits
    assert commits
    assert (base, head) == (commits.base, commits.head)


@pytest.mark.parametrize(
    "text",
    [
        "**Verdict:** \u2705 APPROVED\n",
        "**Final Assessment:** APPROVED\n",
        "**Recommendation:** Add a test.\n\n**Recommendation:** APPROVED\n",
        "**Recommendation:** APPROVED\n\n## End\n\n**Recommendation:** Merge at night.\n",
        "**Assessment:** rather good\n\n## End\n\n**Verdict:** APPROVED\n",
    ],
)
def test_verdict(text: str) -> None:
    """A verdict stands in a key or in a heading, or only at the end; advice on details is none."""
    verdict = short(text).verdict
    assert verdict
    assert "APPROVED" == verdict.value


def test_a_table_of_requirements_in_other_words() -> None:
    """Columns have other names and another order, and a mark is a word or a sign."""
    review = short(
        "## Compliance\n\n| # | Requirement | Met? | Notes |\n|---|---|---|---|\n| 1 | one | Yes | here |\n"
        "| 2 | two | \u2717 | |\n| 3 | three | \U0001f7e1 half | |\n| 4 | four | Satisfied | |\n"
        "| 5 | five | - | |\n"
    )
    assert [
        ("one", "here", True),
        ("two", "", False),
        ("three", "", None),
        ("four", "", True),
        ("five", "", None),
    ] == [(each.text, each.implementation, each.met) for each in review.requirements]


def test_artifacts_elsewhere() -> None:
    """A section of files is a group of artifacts."""
    review = short("## Files Modified\n\n- `a.py` - waits once\n")
    assert [("Files Modified", "a.py", "waits once")] == [
        (artifact.group, artifact.name, artifact.remark) for artifact in review.artifacts
    ]


@pytest.mark.parametrize(
    ("title", "document_id", "name"),
    [
        ("# Implementation Review: Task 7 - Faster", "TASK-7", "Task 7 - Faster"),
        ("# Task 7 Code Review \u2014 Faster", "TASK-7", "Faster"),
        ("# Review of Phase 2: Faster", "PHASE-2", "Faster"),
    ],
)
def test_titles(title: str, document_id: str, name: str) -> None:
    """The task may be named before or behind the words for the review."""
    review = short("**Plan:** plan.md\n", title)
    assert (document_id, name) == (review.id.value, review.title.value)


def test_a_table_of_requirements_elsewhere() -> None:
    """A column of requirements with their states is one in any section; a table of other things is not."""
    table = "## Details\n\n| {} | Status |\n|---|---|\n| one | \u2705 |\n"
    assert ["one"] == [each.text for each in short(table.format("Requirement")).requirements]
    assert () == short(table.format("Task")).requirements
