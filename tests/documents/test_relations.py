"""Related findings: tables, lists, and nothing."""

from __future__ import annotations

import pytest
from tests.documents.conftest import Finding, Reading

TABLE = "| Ticket ID | Relationship | Notes |\n|---|---|---|\n"


def relations(reading: Reading) -> list[tuple[str, str, str]]:
    """ID, relationship and note of every relation."""
    return [(each.id, each.relationship.value, each.note) for each in reading.ticket.related]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- B7-PT-03: the same trade\n", ("B7-PT-03", "related", "the same trade")),
        ("- `b7-pt-03` - the same trade\n", ("B7-PT-03", "related", "the same trade")),
        ("- **B7-PT-03** \u2014 the same trade\n", ("B7-PT-03", "related", "the same trade")),
        ("- B7-PT-03 (duplicate): the same trade\n", ("B7-PT-03", "duplicate", "the same trade")),
        ("- B7-PT-03 (kernels): the same trade\n", ("B7-PT-03", "related", "(kernels): the same trade")),
        ("- B7-PT-03\n", ("B7-PT-03", "related", "")),
        ("- [B7-PT-03](B7-PT-03.md): the same trade\n", ("B7-PT-03", "related", "the same trade")),
        ("B7-PT-03: the same trade\n", ("B7-PT-03", "related", "the same trade")),
        (f"{TABLE}| `B7-PT-03` | `blocks` | the same trade |\n", ("B7-PT-03", "blocks", "the same trade")),
        (f"{TABLE}| B7-PT-03 | Blocked by | |\n", ("B7-PT-03", "blocked-by", "")),
    ],
)
def test_relation(finding: Finding, text: str, expected: tuple[str, str, str]) -> None:
    """Every way to write a relation yields ID, relationship and note."""
    reading = finding(f"## Related Findings\n\n{text}")
    assert [expected] == relations(reading)
    assert [] == reading.rules


LINES = {
    "- A-01 through A-03: all": [("A-01", "related"), ("A-02", "related"), ("A-03", "related")],
    "- A-01, A-02 and B1-CR-07": [("A-01", "related"), ("A-02", "related"), ("B1-CR-07", "related")],
    "- B1-PT-01, 3 places": [("B1-PT-01", "related")],
    "- [B1-PT-02](B1-PT-02.md): why": [("B1-PT-02", "related")],
    "- **Blocks:** B1-PT-02": [("B1-PT-02", "blocks")],
    "- Duplicate of B1-PT-02": [("B1-PT-02", "duplicate")],
    "- Not a duplicate of B1-PT-02": [("B1-PT-02", "related")],
    "- B1-PT-02: as in B1-PT-03": [("B1-PT-02", "related")],
    "- B1-PT-01: itself": [("B1-PT-01", "related")],
    "- It waits; see B1-PT-02 and B1-PT-03": [("B1-PT-02", "related"), ("B1-PT-03", "related")],
    "- Report: `work/ALPHA-1.0-READINESS.md`": [],
    f"{TABLE}| `B1-PT-02`, `B1-PT-03` | related | why |": [("B1-PT-02", "related"), ("B1-PT-03", "related")],
    "| Relation | Finding |\n|---|---|\n| blocks | B-METRIC-02 |": [("B-METRIC-02", "blocks")],
    f"{TABLE}| None | - | - |": [],
    "_None_": [],
    "No related findings.": [],
}


@pytest.mark.parametrize("text", LINES)
def test_several_relations(finding: Finding, text: str) -> None:
    """Lists of IDs, text that names some, lines that say of which kind they are; paths name none."""
    reading = finding(f"## Related Findings\n\n{text}\n")
    assert LINES[text] == [(each.id, each.relationship) for each in reading.ticket.related]
    assert [] == reading.rules


def test_relations_in_the_metadata(finding: Finding) -> None:
    """A row of the metadata may name tickets; rows of other names do not."""
    ticket = finding(
        "## Metadata\n\n**Duplicate Of:** B1-PT-02\n**Blocks:** B1-PT-03\n**Notes:** B1-PT-04\n"
    ).ticket
    assert [("B1-PT-02", "duplicate"), ("B1-PT-03", "blocks")] == [
        (each.id, each.relationship) for each in ticket.related
    ]


@pytest.mark.parametrize("text", ["- the other one\n", f"{TABLE}| the other one | related | |\n"])
def test_a_relation_without_an_id(finding: Finding, text: str) -> None:
    """A relation in which no ID can be found is reported on its line."""
    reading = finding(f"## Related Findings\n\n{text}")
    assert [] == relations(reading)
    # The list's item is on line 7; the table's row on line 9.
    assert [("related-id", 9 if text.startswith("|") else 7)] == reading.rules


def test_an_unknown_relationship(finding: Finding) -> None:
    """A relationship outside the vocabulary becomes the general one, and is reported."""
    reading = finding(f"## Related Findings\n\n{TABLE}| B7-PT-03 | cousin | far |\n")
    assert [("B7-PT-03", "related", "far")] == relations(reading)
    assert [("unknown-word", 9)] == reading.rules
