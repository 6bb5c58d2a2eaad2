"""Metadata is read from tables and labelled lines; what is not of the vocabulary stays raw."""

from __future__ import annotations

import pytest
from tests.documents.conftest import Finding

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Severity, Status, Vocabulary

TABLE = "## Ticket Metadata\n\n| Field | Value |\n|-------|-------|\n"


def row(name: str, value: str) -> str:
    """A metadata section with one row, on line 9."""
    return f"{TABLE}| **{name}** | {value} |\n"


@pytest.mark.parametrize(
    "written", ["`P2`", "P2", "**P2**", "p2", "P2 (was P1)", "P1 \u2192 P2", "~~P1~~ P2", "Medium (P2)"]
)
def test_severity(finding: Finding, written: str) -> None:
    """Any marking and case is the same severity; the raw text is kept."""
    severity = finding(row("Severity", written)).ticket.severity
    assert severity
    assert (Severity.P2, written) == (severity.value, severity.raw)


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("`open`", Status.OPEN),
        ("`Won't Fix`", Status.WONT_FIX),
        ("wont_fix", Status.WONT_FIX),
        ("FIXED", Status.FIXED),
        ("in-review", Status.IN_REVIEW),
        ("already-fixed", Status.FIXED),
        ("wontfix", Status.WONT_FIX),
        ("closed (2024-12-28)", Status.CLOSED),
        ("\u2705 Fixed in `abc1234`", Status.FIXED),
        ("`open` \u2192 `closed`", Status.CLOSED),
        ("Closed - Won't Fix", Status.CLOSED),
    ],
)
def test_status(finding: Finding, written: str, status: Status) -> None:
    """Spellings differ in case and punctuation; remarks and earlier states are left out."""
    field = finding(row("Status", written)).ticket.status
    assert field
    assert status == field.value


def test_an_unknown_word(finding: Finding) -> None:
    """A word that is not of the vocabulary has no value, keeps its text, and is reported on its line."""
    reading = finding(row("Status", "`limbo`"))
    assert reading.ticket.status
    assert (None, "`limbo`") == (reading.ticket.status.value, reading.ticket.status.raw)
    # Line 5 is the section's heading, 7 the table's header, 8 its rule, 9 the row.
    assert [("unknown-word", 9)] == reading.rules


@pytest.mark.parametrize(
    ("written", "domains"),
    [
        ("`tolaria` / `simic`", ["tolaria", "simic"]),
        ("`simic/agent`, `tamiyo/policy`", ["simic/agent", "tamiyo/policy"]),
        ("simic/agent", ["simic/agent"]),
        ("simic, tamiyo", ["simic", "tamiyo"]),
        ("simic / tamiyo", ["simic", "tamiyo"]),
        ("**simic** and tamiyo", ["simic", "tamiyo"]),
        ("", []),
    ],
)
def test_domains(finding: Finding, written: str, domains: list[str]) -> None:
    """Several domains are listed; a slash within one does not split it."""
    assert domains == [domain.value for domain in finding(row("Domain", written)).ticket.domains]


@pytest.mark.parametrize("written", ["7", "`7`", "Batch 7", "B7", "7 (telemetry)"])
def test_batch(finding: Finding, written: str) -> None:
    """A batch is a number, or reported."""
    reading = finding(row("Batch", written))
    assert reading.ticket.batch
    assert 7 == reading.ticket.batch.value
    assert [("metadata-number", 9)] == finding(row("Batch", "seven")).rules


def test_an_empty_value_is_absent(finding: Finding) -> None:
    """A row without a value is kept among the rows and states nothing."""
    reading = finding(row("Assignee", ""))
    assert reading.ticket.assignee is None
    assert "" == reading.ticket.metadata["Assignee"].raw


def test_a_row_given_twice(finding: Finding) -> None:
    """The first of two rows counts, the second is reported."""
    reading = finding(row("Severity", "P1") + "| **Severity** | P3 |\n")
    assert reading.ticket.severity
    assert Severity.P1 == reading.ticket.severity.value
    assert [("metadata-twice", 10)] == reading.rules


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("# Finding Ticket: It waits", "It waits"),
        ("# Bug Ticket: It breaks: badly", "It breaks: badly"),
        ("# Fix: Penalty", "Penalty"),
        ("# Finding Ticket: A-1: It waits", "It waits"),
        ("# Bug Ticket A-1 - It waits", "It waits"),
        ("# [A-1] It waits", "It waits"),
        ("# NaN: how it spreads", "NaN: how it spreads"),
    ],
)
def test_title(written: str, title: str) -> None:
    """The title loses the words for its kind and nothing else."""
    ticket, _ = read_document(f"{written}\n\n**Ticket ID:** A-1\n".encode(), "a.md")
    assert ticket
    assert title == ticket.title.value


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("bugs/BG042-a.md", "# BG042: It waits\n\n> **Status:** open\n", ("BG042", "It waits", None, "open")),
        ("issues/007.md", "# 007 \u2014 It waits\n\nIt does.\n", ("007", "It waits", None, None)),
        (
            "BUG-1.md",
            "# [P2] BUG-1\uff1aIt waits\n\n\u72b6\u6001\uff1aopen\nPlan: p.md\n",
            ("BUG-1", "It waits", "P2", "open"),
        ),
        (
            "BUG-1.md",
            "# BUG-1.md\n\n## Title\n**It waits \u2014 and copies**\n",
            ("BUG-1", "It waits \u2014 and copies", None, None),
        ),
        (
            "x.md",
            "# It waits\n\n## Bug report\n\n**Severity**: P1\n**Status**: open\n",
            ("X", "It waits", "P1", "open"),
        ),
        (
            "1.md",
            "---\nnumber: 1\ntitle: It waits\nlabels: [bug, P2]\nstate: open\n---\n",
            ("1", "It waits", "P2", "open"),
        ),
    ],
)
def test_forms_of_strangers(path: str, text: str, expected: tuple[str | None, ...]) -> None:
    """IDs of any form that names the file, signs of other languages, a title and labels in sections."""
    ticket, _ = read_document(text.encode(), path)
    assert isinstance(ticket, Ticket)
    fields = (ticket.id, ticket.title, ticket.severity, ticket.status)
    assert expected == tuple(field and field.value for field in fields)


def test_an_id_from_the_file_name() -> None:
    """A ticket without an ID takes its file's name, which is reported."""
    ticket, problems = read_document(b"# Finding Ticket: t\n", "tickets/a-7.md")
    assert ticket
    assert "A-7" == ticket.id.value
    assert [("id-missing", 1)] == [(problem.rule, problem.line) for problem in problems]


def test_a_title_that_only_looks_like_an_id() -> None:
    """Where the file's name says nothing of it, a title such as this makes no ticket."""
    assert read_document(b"# UTF-8: what it is\n", "notes.md")[0] is None


def test_an_id_of_another_form() -> None:
    """An ID that does not match the register's pattern is kept and reported."""
    ticket, problems = read_document(b"# Finding Ticket: t\n\n**Ticket ID:** `seven`\n", "a.md")
    assert ticket
    assert "SEVEN" == ticket.id.value
    assert [("id-form", 3)] == [(problem.rule, problem.line) for problem in problems]


@pytest.mark.parametrize(
    "text",
    [
        "**Ticket ID:** B11-TELEM-01 | **Severity:** P1 | **Status:** open\n",
        "Ticket ID: B11-TELEM-01\nSeverity: P1\nStatus: open\n",
        "> **Ticket ID:** B11-TELEM-01\n> **Severity:** P1\n> **Status:** open\n",
        (
            "| Field | Value | Note |\n|---|---|---|\n| ID | B11-TELEM-01 | |\n| Severity | P1 | hm |\n"
            "| Status | open | |\n"
        ),
        "__Ticket ID:__ B11-TELEM-01  \n__Severity:__ P1  \n__Status:__ open\n",
        "**Ticket ID: B11-TELEM-01**\n**Severity: P1**\n**Status: open**\n",
    ],
)
def test_without_a_table_of_fields(text: str) -> None:
    """Lines with and without bold labels, several on a line, or quoted, say the same."""
    ticket, problems = read_document(f"# Finding Ticket: t\n\n{text}".encode(), "a.md")
    assert isinstance(ticket, Ticket)
    assert ticket.severity
    assert ticket.status
    fields = (ticket.id.value, ticket.severity.value, ticket.status.value, problems)
    assert ("B11-TELEM-01", "P1", "open", ()) == fields


@pytest.mark.parametrize(
    ("written", "agent"),
    [
        ("`pytorch`", "pytorch"),
        ("DRL Specialist", "drl"),
        ("`ux-auditor`", "ux-auditor"),
        ("`cr`, `drl`", "codereview"),
    ],
)
def test_agent(finding: Finding, written: str, agent: str) -> None:
    """An agent has the register's word where there is one; the first of several counts."""
    field = finding(row("Agent", written)).ticket.agent
    assert field
    assert (agent, written) == (field.value, field.raw)


@pytest.mark.parametrize("written", ["B-METRIC-01", "`b11-telem-01`", "B1-PT-07 (was B1-PT-02)"])
def test_id(written: str) -> None:
    """An ID has any number of parts; its case and what is said behind it do not matter."""
    ticket, problems = read_document(f"# Finding Ticket: t\n\n**Ticket ID:** {written}\n".encode(), "a.md")
    assert ticket
    assert written.strip("`").split()[0].upper() == ticket.id.value
    assert () == problems


def test_a_pattern_of_the_register() -> None:
    """The register's own pattern says what an ID is."""
    vocabulary = Vocabulary(id_pattern=r"\d{4}")
    ticket, problems = read_document(b"# Finding Ticket: t\n\n**Ticket ID:** 0042\n", "a.md", vocabulary)
    assert ticket
    assert ("0042", ()) == (ticket.id.value, problems)


def test_a_title_is_no_section() -> None:
    """The words of a title do not make it the section of that name."""
    ticket, _ = read_document(b"# Fix: Decision heads\n\n**Ticket ID:** A-1\n**Status:** open\n", "a.md")
    assert isinstance(ticket, Ticket)
    assert (None, None) == (ticket.resolution, ticket.outcome)
