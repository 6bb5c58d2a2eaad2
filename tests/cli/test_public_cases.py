"""Registers and reports restated from public ones that were read wrongly, and others of their kind."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

from finding_tickets.importers.reports import findings_in
from finding_tickets.model.vocabulary import Vocabulary

CASES = Path(__file__).parents[2].parent / "shared" / "public-cases"
there = pytest.mark.skipif(not CASES.exists(), reason="there is no ../shared/public-cases")
CLOSED = "docs/bugs/closed"
WAITS = "# BUG-7: It waits\n\n**Severity:** P1\n**Status:** open\n\n## Notes\n\n"

# Of each register the ID, severity, status and places of its tickets, as a person reads them.
REGISTERS: dict[str, list[tuple[str, str | None, str | None, str]]] = {
    "11_labels_below_severity": [("P1-2026-02-14-MONITOR-WAITS", "P1", "closed", "src/monitor.py:50")],
    "12_closed_and_resolved": [("P1-2026-01-20-MONITOR-WAITS", "P1", "closed", "src/monitor.py:50")],
    "13_name_ends_in_id": [
        ("P2-2026-01-21-PROMPT-TEMPLATE-MISMATCH", "P2", "closed", ""),
        ("P2-2026-01-21-SPANS-LACK-THE-BATCH-ID", "P2", "closed", ""),
        ("P3-2026-02-02-FLUSHES-LACK-THE-BATCH-ID", "P1", "closed", "src/monitor.py:50"),
    ],
    "14_affected_code": [
        ("BUG-001", "P2", "open", "src/mask.py:10 src/step.py:30"),
        ("BUG-002", "P2", "open", "src/mask.py:10 src/step.py:30"),
        ("BUG-003", "P2", "open", "src/mask.py"),
    ],
    "15_tickets_found_none": [("TICKET-030", None, "open", "fleet/cli.py:12")],
    "16_finding_with_id": [("F-001", "P2", None, "src/manager.py:46")],
    "17_middle_dot": [("BUG-001", "P2", "fixed", "src/tags.py:12")],
}
REPORTS = {
    "21_findings_heading": [
        ("P1", "train/monitor.py:12", "The monitor waits"),
        ("P3", "train/mask.py:3", "The mask waits"),
    ],
    "22_level_in_heading": [
        ("P0", "train/eval.py:17", "File-level evaluation waits"),
        ("P0", "train/mask.py:5", "Token-level masks wait"),
        ("P0", "train/sampler.py:5", "The sampler waits"),
        ("P0", "train/eval.py:40", "Validation batch too large"),
        ("P0", "train/log.py:40", "Severity of warnings is lost"),
    ],
    "23_audit_with_linked_headings": [
        ("P1", "src/monitor.py:33", "The monitor waits at every parameter"),
        ("P1", "src/mask.py", "Masks wait"),
        ("P3", "sampler.py", "A name misleads in sampler.py"),
        ("P3", "", "A comment is missing"),
    ],
    "24_severity_at_the_end_of_heading": [
        ("P1", "train/loader.py:440", "Loader starves the GPU"),
        ("P2", "train/step.py:10", "Batch is too large"),
        ("P3", "train/metrics.py:8", "A division by zero"),
    ],
    "25_sign_and_word_in_heading": [
        ("P0", "train/monitor.py:12", "The monitor waits"),
        ("P1", "train/mask.py:3", "The mask waits"),
        ("P3", "train/sampler.py:9", "A name misleads"),
    ],
    "26_counts_and_notes": [("P1", "train/monitor.py:5", "the monitor waits")],
}


def read(tickets: Tickets, root: Path) -> list[dict[str, Any]]:
    """The tickets of a register that was just set up."""
    if not any((root / "tickets").iterdir()):
        (root / "tickets").rmdir()
    assert 0 == tickets("init", "--yes").code
    items: list[dict[str, Any]] = tickets("list", "--format", "json").data
    return items


def places(item: dict[str, Any]) -> str:
    """The files of a ticket, each with its first line."""
    return " ".join(
        f"{each['file']}:{each['lines'][0][0]}" if each["lines"] else each["file"]
        for each in item["locations"]
    )


@there
@pytest.mark.parametrize("case", REGISTERS)
def test_a_public_register(repository: Repository, tickets: Tickets, case: str) -> None:
    """Each ticket is found, with what it says and what its folder and its name say."""
    shutil.copytree(CASES / "registers" / case, repository.root, dirs_exist_ok=True)
    items = read(tickets, repository.root)
    assert REGISTERS[case] == [(it["id"], it["severity"], it["status"], places(it)) for it in items]
    assert not [it for it in items if it["related"] or it["title"].startswith("\u00b7")]


@there
@pytest.mark.parametrize("case", REPORTS)
def test_a_public_report(case: str) -> None:
    """Each finding has its title, severity and place, and what is no finding is none."""
    found = findings_in((CASES / f"reports/{case}.md").read_bytes(), "r.md", Vocabulary())
    taken = [(each.severity, str((*each.spots, "")[0]), each.text) for each in found if not each.left_out]
    assert REPORTS[case] == taken


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            f"{CLOSED}/P2-2026-03-01-loader-stalls.md",
            "# The loader stalls\n\n## Severity\n\n- **Severity:** minor\n- **Priority:** P2\n",
            ("P2-2026-03-01-LOADER-STALLS", "P2", "closed", ""),
        ),
        (
            f"{CLOSED}/P0-2026-03-05-hang.md",
            "# It hangs\n\n## Triage\n\n### Severity\n\nP0. Nothing trains until it is mended, anywhere.\n",
            ("P0-2026-03-05-HANG", "P0", "closed", ""),
        ),
        (
            f"{CLOSED}/P2-2026-04-02-render-template.md",
            "# Bug: It waits\n\n## Severity\n\n- Priority: P2\n\n## Fix\n\nIt is emptied.\n",
            ("P2-2026-04-02-RENDER-TEMPLATE", "P2", "closed", ""),
        ),
        (
            "tickets/BUG-7.md",
            f"{WAITS}### Code Location\n\nsrc/a.py (lines 3-5)\n",
            ("BUG-7", "P1", "open", "src/a.py:3"),
        ),
        ("tickets/BUG-7.md", f"{WAITS}See `src/a.py` line 9.\n", ("BUG-7", "P1", "open", "src/a.py:9")),
        (
            "tickets/BUG-7.md",
            f"{WAITS}In [it](https://github.com/a/b/blob/main/src/a.py#L4-L6), `b.py`.\n",
            ("BUG-7", "P1", "open", "src/a.py:4"),
        ),
        (
            "docs/bugs/BUG-2026-014.md",
            "# BUG-2026-014 [P1] Masks wait\n\nStatus: open\n\nSee [it](../../model/a.py#L10-L12).\n",
            ("BUG-2026-014", "P1", "open", "model/a.py:10"),
        ),
        (
            "findings/F-011.md",
            "# F-011 - It waits\n\nSeverity: \U0001f7e0\nStatus: \u23f3 In Progress\nWhere: a.py, line 30\n",
            ("F-011", "P1", "fix-in-progress", "a.py:30"),
        ),
        (
            "bugs/BUG-12.md",
            (
                "# BUG-12: It grows\n\n### What happened?\n\nSee a.py:41-44.\n\n### Priority\n\nP2\n\n"
                "### Current status\n\nInvestigating\n"
            ),
            ("BUG-12", "P2", "investigating", "a.py:41"),
        ),
        (
            "issues/PERF-55.md",
            "title:\tIt copies\nstate:\tCLOSED\nnumber:\t55\n--\n## Severity: high\n\nSee a.py:9.\n",
            ("PERF-55", "P1", "closed", "a.py:9"),
        ),
        (
            "defects/DEF-9.md",
            (
                "# Defect DEF-9: It syncs\n\nSeverity Level: Sev 2\nBug Status: New\nAffected File: a.py\n"
                "Line Number: 33\n"
            ),
            ("DEF-9", "P2", "open", "a.py:33"),
        ),
    ],
)
def test_others_of_the_kind(
    repository: Repository, tickets: Tickets, path: str, text: str, expected: tuple[str, ...]
) -> None:
    """Labels below Severity, a place in a deeper section or in the text, signs, heads of other tools."""
    repository.write(path, text)
    (item,) = read(tickets, repository.root)
    assert expected == (item["id"], item["severity"], item["status"], places(item))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Issues\n\n- \U0001f534 **It waits**: `a.py:1`\n", ("P0", "a.py:1", "It waits")),
        ("## Issues\n\n* P0 - **it waits** (`a.py:1`)\n", ("P0", "a.py:1", "it waits")),
        ("## Bugs\n\n### 1. It waits \u2014 **High Priority**\n\n`a.py:1`\n", ("P1", "a.py:1", "It waits")),
        ("## High\n\n### 2. Conclusion is late\n\n`a.py:1`\n", ("P1", "a.py:1", "Conclusion is late")),
        ("## P0 - later\n\n### It waits (`a.py:1`) \u274c\n\nSo.\n", ("P0", "a.py:1", "It waits")),
        ("- [ ] **[HIGH]** `a.py:1` It waits\n", ("P1", "a.py:1", "It waits")),
        ("## [H-1: It waits](https://example.org/1)\n\n`a.py` line 1\n", ("P1", "a.py:1", "It waits")),
        (
            "## Low Risk\n\n### 1\\. It waits\n\nhttps://x.y/a/blob/m/a.py#L1\n",
            ("P3", "a.py:1", "It waits"),
        ),
    ],
)
def test_others_of_the_kind_of_report(text: str, expected: tuple[str, ...]) -> None:
    """A sign or a word before or behind a title is its severity; a title may contain any word."""
    (found,) = findings_in(f"# R\n\n{text}".encode(), "r.md", Vocabulary())
    assert expected == (found.severity, str(found.spots[0]), found.text)


@pytest.mark.parametrize("below", ["TBD - pending a decision.", "<!-- later -->", "*To be determined.*", ""])
def test_a_heading_of_a_template_announces_no_fix(
    repository: Repository, tickets: Tickets, below: str
) -> None:
    """Nothing was fixed where a template has a heading for it and nothing yet below."""
    repository.write("tickets/BUG-7.md", f"{WAITS}So.\n\n## Resolution\n\n### Fix Description\n\n{below}\n")
    (item,) = read(tickets, repository.root)
    assert item["resolution"] is None


def test_headings_that_are_left_out_are_named() -> None:
    """With the line on which each stands: neither a number nor a severity or a place makes it a finding."""
    text = "# R\n\n## High\n\n### It waits\n\n`a.py:1`.\n\n## Strengths\n\nGood.\n\n## Loose ends\n\nSo.\n"
    left = [each for each in findings_in(text.encode(), "r.md", Vocabulary()) if each.left_out]
    assert [("r.md:9", "Strengths"), ("r.md:13", "Loose ends")] == [
        (str(each.spots[0]), each.text) for each in left
    ]
