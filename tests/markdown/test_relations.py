"""Related findings: tables, lists, and nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.markdown.conftest import Finding, Reading

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


@pytest.mark.parametrize("text", ["None.", "None", "- None", "N/A", "\u2014", "None found so far."])
def test_none(finding: Finding, text: str) -> None:
    """A section that says that there are none has none."""
    reading = finding(f"## Related Findings\n\n{text}\n")
    assert [] == relations(reading)
    assert [] == reading.rules


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


def test_among_references(finding: Finding) -> None:
    """Of a list of references, those that say so are related tickets; the others are no mistake."""
    reading = finding("## References\n\n- A manual\n- Related ticket: `B10-PT-01` about inference\n")
    assert [("B10-PT-01", "related", "about inference")] == relations(reading)
    assert [] == reading.rules
