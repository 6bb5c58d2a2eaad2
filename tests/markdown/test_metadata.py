"""Metadata is read from tables and labelled lines; what is not of the vocabulary stays raw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.markdown.conftest import Finding

from finding_tickets.markdown.reading import read_document
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Outcome, Severity, Status, Vocabulary

TABLE = "## Ticket Metadata\n\n| Field | Value |\n|-------|-------|\n"


def row(name: str, value: str) -> str:
    """A metadata section with one row, on line 9."""
    return f"{TABLE}| **{name}** | {value} |\n"


@pytest.mark.parametrize("written", ["`P2`", "P2", "**P2**", "p2"])
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
    ],
)
def test_status(finding: Finding, written: str, status: Status) -> None:
    """Spellings differ in case and punctuation."""
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


def test_further_spellings() -> None:
    """A register's own spelling of a word means that word."""
    vocabulary = Vocabulary(severities={"P0": ("blocker",)})
    data = "# Finding Ticket: t\n\n**Ticket ID:** A-1\n**Severity:** Blocker\n"
    ticket, problems = read_document(data.encode(), "a.md", vocabulary)
    assert isinstance(ticket, Ticket)
    assert ticket.severity
    assert (Severity.P0, ()) == (ticket.severity.value, problems)


@pytest.mark.parametrize(
    ("written", "domains"),
    [
        ("`tolaria` / `simic`", ["tolaria", "simic"]),
        ("`simic/agent`, `tamiyo/policy`", ["simic/agent", "tamiyo/policy"]),
        ("simic/agent", ["simic/agent"]),
        ("simic, tamiyo", ["simic", "tamiyo"]),
        ("", []),
    ],
)
def test_domains(finding: Finding, written: str, domains: list[str]) -> None:
    """Several domains are listed; a slash within one does not split it."""
    assert domains == [domain.value for domain in finding(row("Domain", written)).ticket.domains]


def test_batch(finding: Finding) -> None:
    """A batch is a number, or reported."""
    reading = finding(row("Batch", "7"))
    assert reading.ticket.batch
    assert 7 == reading.ticket.batch.value
    assert [("metadata-number", 9)] == finding(row("Batch", "seven")).rules


def test_code_repository(finding: Finding) -> None:
    """The row that says the code lives elsewhere."""
    field = finding(row("Code Repository", "`esper-lite`")).ticket.code_repository
    assert field
    assert "esper-lite" == field.value


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


def test_metadata_in_lines(finding: Finding) -> None:
    """Labelled lines and list items state the same as a table."""
    ticket = finding("## Metadata\n\n- **Severity:** P3\n- **Status**: open\n").ticket
    assert ticket.severity
    assert ticket.status
    assert (Severity.P3, Status.OPEN) == (ticket.severity.value, ticket.status.value)


def test_the_outcome_in_the_metadata(finding: Finding) -> None:
    """A row Resolution states the outcome, remarks in brackets aside."""
    outcome = finding(row("Resolution", "`won't fix (by design)`")).ticket.outcome
    assert outcome
    assert Outcome.WONT_FIX == outcome.value


def test_every_value_knows_its_bytes() -> None:
    """The span of a field is exactly its raw text."""
    data = f"# Finding Ticket: Größe\n\n**Ticket ID:** A-1\n\n{row('Severity', '`P2`')}".encode()
    ticket, _ = read_document(data, "a.md")
    assert isinstance(ticket, Ticket)
    assert ticket.severity
    span = ticket.severity.span
    assert b"`P2`" == data[span.start : span.end]
    assert 9 == span.line


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("# Finding Ticket: It waits", "It waits"),
        ("# Bug Ticket: It breaks: badly", "It breaks: badly"),
        ("# Fix: Penalty", "Penalty"),
        ("# NaN: how it spreads", "NaN: how it spreads"),
    ],
)
def test_title(written: str, title: str) -> None:
    """The title loses the words for its kind and nothing else."""
    ticket, _ = read_document(f"{written}\n\n**Ticket ID:** A-1\n".encode(), "a.md")
    assert ticket
    assert title == ticket.title.value


def test_an_id_from_the_file_name() -> None:
    """A ticket without an ID takes its file's name, which is reported."""
    ticket, problems = read_document(b"# Finding Ticket: t\n", "tickets/a-7.md")
    assert ticket
    assert "A-7" == ticket.id.value
    assert [("id-missing", 1)] == [(problem.rule, problem.line) for problem in problems]


def test_an_id_in_the_title() -> None:
    """A title may begin with the ID, if the file's name does too."""
    data = b"# BUG-025: Stages are not checked\n\n- **Status:** Resolved\n"
    ticket, problems = read_document(data, "BUG-025-P2-stages.md")
    assert isinstance(ticket, Ticket)
    assert ticket.status
    assert ("BUG-025", "Stages are not checked", Status.CLOSED, ()) == (
        ticket.id.value,
        ticket.title.value,
        ticket.status.value,
        problems,
    )


def test_a_title_that_only_looks_like_an_id() -> None:
    """Where the file's name says nothing of it, a title such as this makes no ticket."""
    assert read_document(b"# UTF-8: what it is\n", "notes.md")[0] is None


def test_an_id_before_the_title() -> None:
    """The title does not repeat the ID of its own ticket, but keeps what only resembles one."""
    own, _ = read_document(b"# A-1: It waits\n\n**Ticket ID:** A-1\n", "a.md")
    other, _ = read_document(b"# UTF-8: It waits\n\n**Ticket ID:** A-1\n", "a.md")
    assert own
    assert other
    assert ("It waits", "UTF-8: It waits") == (own.title.value, other.title.value)


def test_an_id_of_another_form() -> None:
    """An ID that does not match the register's pattern is kept and reported."""
    ticket, problems = read_document(b"# Finding Ticket: t\n\n**Ticket ID:** `seven`\n", "a.md")
    assert ticket
    assert "SEVEN" == ticket.id.value
    assert [("id-form", 3)] == [(problem.rule, problem.line) for problem in problems]
