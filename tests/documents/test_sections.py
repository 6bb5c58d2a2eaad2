"""Every byte of a document belongs to exactly one of its sections."""

from __future__ import annotations

import pytest
from tests.documents.fuzzing import faults

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Section

TICKET = b"# Finding Ticket: t\n\n**Ticket ID:** A-1\n\n## Summary\n\nWaits.\n\n### More\n\n## Own\n\nText\n"


def sections_of(data: bytes) -> tuple[Section, ...]:
    """The sections of the document in ``data``."""
    document, _ = read_document(data, "a.md")
    assert document is not None
    return document.sections


@pytest.mark.parametrize(
    "data",
    [
        TICKET,
        TICKET.replace(b"\n", b"\r\n"),
        TICKET.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + TICKET,
        b"words first\n\n" + TICKET,
        TICKET.rstrip(b"\n"),
        TICKET + b"```\n## not a heading\n",
        TICKET.replace(b"## ", b"### "),
    ],
)
def test_sections_make_up_the_file(data: bytes) -> None:
    """Headings and bodies in a row are the file, whatever its line ends and wherever its headings are."""
    assert [] == list(faults(data))


def test_unknown_sections_are_kept() -> None:
    """A section whose title means nothing to us is there, and is marked."""
    assert [("t", True), ("Summary", True), ("Own", False)] == [
        (section.title.removeprefix("Finding Ticket: "), section.known) for section in sections_of(TICKET)
    ]


def test_sections_of_level_three() -> None:
    """Where the title is followed by headings of level 3 alone, these are the sections."""
    assert ["Summary", "Own"] == [
        section.title
        for section in sections_of(TICKET.replace(b"### More\n\n", b"").replace(b"## ", b"### "))
    ][1:]
