"""Relations from both of their ends."""

from __future__ import annotations

from finding_tickets.register.entries import Entry
from finding_tickets.register.relations import relations


def row(document_id: str, *related: tuple[str, str]) -> Entry:
    """A document with these relations."""
    return Entry("finding", f"{document_id}.md", document_id, "It waits", related=related)


def test_what_each_end_would_say() -> None:
    """A document that states nothing itself is related as others say; also one that is missing."""
    seen = relations([row("A", ("B", "blocks"), ("C", "duplicate")), row("B")]).by_id
    assert [("b", "blocks"), ("c", "duplicate")] == list(seen["a"])
    assert [("a", "blocked-by")] == list(seen["b"])
    assert [("a", "duplicate")] == list(seen["c"])
