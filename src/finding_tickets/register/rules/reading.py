"""What the reader itself reports, for the page of rules; every command says it, not only lint."""

from __future__ import annotations

from typing import NamedTuple

from finding_tickets.model.problem import Level


class Reading(NamedTuple):
    """A message of the reader: its level, what it means, and text that causes it."""

    level: Level
    description: str
    example: str


READING = {
    "unreadable": Reading(
        Level.ERROR, "A file or folder of the register can be read.", "a file without permission"
    ),
    "no-folder": Reading(
        Level.WARNING, "The folders that the configuration names exist.", 'tickets = "tikets"'
    ),
    "linked-folder": Reading(
        Level.NOTE, "Folders behind links are not searched.", "tickets/more -> ../../more"
    ),
    "empty-file": Reading(Level.ERROR, "A document says something.", "a file of 0 bytes"),
    "binary-file": Reading(Level.ERROR, "A document is text.", "an image named B1-PT-01.md"),
    "invalid-utf8": Reading(Level.ERROR, "A document is UTF-8.", "a file saved as Latin-1"),
    "not-a-document": Reading(
        Level.NOTE,
        "A Markdown file in a folder of tickets is a finding ticket or a review.",
        "tickets/README.md",
    ),
    "title": Reading(Level.WARNING, "A document has a title.", "a file without a heading"),
    "id-missing": Reading(Level.WARNING, "A ticket states its ID.", "no row **Ticket ID**"),
    "duplicate-id": Reading(
        Level.ERROR,
        "An ID names one document. With two, nobody knows which one a relation or a commit message means.",
        "**Ticket ID** `B7-PT-02` in two files",
    ),
    "id-form": Reading(
        Level.WARNING, "An ID has the form that the register asks for.", "**Ticket ID** `seven`"
    ),
    "metadata-number": Reading(Level.WARNING, "A batch is a number.", "**Batch** seven"),
    "metadata-twice": Reading(Level.WARNING, "A metadata row is given once.", "two rows **Status**"),
    "unknown-word": Reading(
        Level.WARNING,
        "Severity, status, verdict, relationship and reviewer are words of the register.",
        "**Severity** `urgent`",
    ),
    "location-lines": Reading(
        Level.WARNING,
        "It is clear which lines of which file a location means.",
        "two files and one range of lines",
    ),
    "table-cells": Reading(
        Level.WARNING,
        "A row has as many cells as its header. A pipe ends a cell even within backticks.",
        "| syncs | `a | b` |",
    ),
    "table-delimiter": Reading(
        Level.WARNING,
        "Below its header a table has a delimiter row with as many cells; without it the rows are text, and "
        "nothing is read from them.",
        "| **Severity** | `P1` | with no |---|---| above",
    ),
    "table-header": Reading(Level.WARNING, "A table has a header.", "| **Verdict** | ENDORSE | by itself"),
    "table-text": Reading(Level.WARNING, "An empty line ends a table.", "text right below the last row"),
    "related-id": Reading(
        Level.WARNING, "A related finding begins with its ID.", "- the same trade-off elsewhere"
    ),
    "review-form": Reading(
        Level.WARNING, "A cross-review states a verdict.", "an empty section Cross-Review"
    ),
    "review-reviewer": Reading(Level.WARNING, "A cross-review names its reviewer.", "no row **Reviewer**"),
    "requirement-status": Reading(
        Level.WARNING, "A requirement is met or not.", "| Add a test | added | perhaps |"
    ),
    "resolution-outcome": Reading(
        Level.WARNING,
        "A resolution states its outcome; for a ticket still open this is a note.",
        "an empty Resolution",
    ),
    "commits": Reading(Level.WARNING, "Commits are named by their hashes.", "**Commits:** the last two"),
    "remediation-block": Reading(
        Level.ERROR, "A Remediation section holds one YAML block.", "no fence in it"
    ),
    "remediation-yaml": Reading(Level.ERROR, "The block is YAML.", "is: 1, expect: refuted, why: a: b"),
    "remediation-key": Reading(
        Level.ERROR, "The block has known keys only.", "verifyer: verifiers/b1_pt_01.py"
    ),
    "remediation-twice": Reading(Level.ERROR, "A key is given once.", "two keys claims"),
    "remediation-type": Reading(Level.ERROR, "A value has the type that its key needs.", "claims: 4"),
    "remediation-missing": Reading(Level.ERROR, "A mapping states what it must.", "syncs: {expect: refuted}"),
    "remediation-why": Reading(
        Level.ERROR, "An expected refutation gives a reason.", "{is: 1, expect: refuted}"
    ),
    "remediation-answer": Reading(
        Level.ERROR, "An answer names claims or a reason.", "- {item: Count the waits}"
    ),
    "remediation-variant": Reading(
        Level.ERROR, "A variant names a file and a function.", "found: fixes/found.py"
    ),
    "remediation-path": Reading(Level.ERROR, "A path stays in the repository.", "verifier: ../verifier.py"),
}
