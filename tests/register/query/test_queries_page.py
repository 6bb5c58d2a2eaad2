"""docs/queries.md says what queries can do, and its examples are true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from tests.conftest import Repository

from finding_tickets.register.load import Register
from finding_tickets.register.query import FIELDS, KEYS, SORTS, select
from finding_tickets.report.rows import DEFAULT_COLUMNS, LIST_COLUMNS

PAGE = (Path(__file__).parents[3] / "docs/queries.md").read_text(encoding="utf-8")
TODAY = date(2025, 3, 1)
TICKET = """\
# Finding Ticket: {Title}

| Field | Value |
|---|---|
| **Ticket ID** | {ID} |
| **Severity** | {Severity} |
| **Status** | {Status} |
| **Resolution** | {Resolution} |
| **Agent** | {Agent} |
| **Domain** | {Domain} |
| **Created** | {Created} |
| **Updated** | {Updated} |

## Location

| Field | Value |
|---|---|
| **File(s)** | `{File}` |

## Related Findings

{related}
"""
REVIEW = "## Cross-Review ({0})\n\n| Field | Value |\n|---|---|\n| **Verdict** | {1} |\n\n"


def section(title: str) -> str:
    """The text below a heading of the page."""
    return re.split(r"\n## ", PAGE.partition(f"\n## {title}\n")[2])[0]


def tables(text: str) -> Iterator[list[dict[str, str]]]:
    """Every table, as rows by the titles of their columns."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        titles, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in block.splitlines())
        yield [dict(zip(titles, row, strict=True)) for row in rows]


TICKETS, QUERIES = tables(section("Examples"))


@pytest.fixture
def facts(repository: Repository) -> Register:
    """A register with the tickets of the page, on its day."""
    for ticket in TICKETS:
        related = f"- {ticket['Related']}" if ticket["Related"] else "None."
        reviews = (REVIEW.format(*said.split("=")) for said in ticket["Reviews"].split(", ") if said)
        text = TICKET.format(related=related, **ticket) + "\n" + "".join(reviews)
        repository.write(f"tickets/{ticket['ID']}.md", text)
    facts = repository.load()
    facts.today = TODAY
    return facts


@pytest.mark.parametrize("example", QUERIES, ids=lambda example: example["query"])
def test_an_example_is_true(facts: Register, example: dict[str, str]) -> None:
    """The query means the documents that the page says, in that order."""
    rows = select(example["query"].strip("`"), facts)
    assert example["documents"] == ", ".join(row.id for row in rows)


def test_every_key_is_documented() -> None:
    """The table of keys has each one, and no other."""
    (keys,) = tables(section("Conditions"))
    assert list(KEYS) == [name for row in keys for name in re.findall(r"`([a-z-]+)`", row["key"])]


def test_every_facet_and_every_sort_is_documented() -> None:
    """What ``has:`` and ``sort:`` know is listed."""
    (facets,) = (line for line in section("Conditions").split("\n- ") if line.startswith("`has` and"))
    assert sorted(FIELDS) == re.findall(r"`(\w+)`", facets)[2:]
    assert list(SORTS) == re.findall(r"`(\w+)`", section("Conditions").partition("`sort:`")[2])[: len(SORTS)]


def test_every_column_is_documented() -> None:
    """What a list can show is listed, in its order, and what it shows by default is so."""
    text = section("What is printed")
    named = re.findall(r"`([a-z-]+)`", text.partition("by default")[2].partition("Texts of")[0])
    assert list(LIST_COLUMNS) == [name for name in named if name in LIST_COLUMNS]
    assert f"`{','.join(DEFAULT_COLUMNS)}`" in text
