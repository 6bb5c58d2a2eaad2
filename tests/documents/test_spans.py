"""Whatever a record says of a file, its raw text is exactly the bytes of its span."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documents.fuzzing import texts

from finding_tickets.documents.reading import read_document

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
FILES = [*ROOT.glob("tickets/**/*.md"), *SHARED.glob("seeds/*.md"), *SHARED.glob("corpus/*/*.md")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_raw_text(file: Path, line_end: bytes) -> None:
    """True of each of the hundred and more texts of a document, and of the lines on which they start."""
    data = file.read_bytes().replace(b"\n", line_end)
    found = list(texts(read_document(data, file.name)[0]))
    assert [] == [text for text in found if data[text.span.start : text.span.end].decode() != text.raw]
    assert [] == [text for text in found if data[: text.span.start].count(b"\n") + 1 != text.span.line]
    # B-METRIC-01, the shortest of them, has 5 rows of metadata, 5 checks and 6 sections.
    assert len(found) > 5 + 5 + 6


def test_white_space_alone() -> None:
    """A value of nothing but white space is an empty range, not one that ends before it starts."""
    document, _ = read_document(b"# Finding Ticket: t\n\n**Severity:** \x0c \n", "A-1.md")
    assert document
    severity = document.metadata["Severity"]
    # 21 bytes of title and 14 of label, then a space, a form feed and a space.
    assert ("", 35 + 3, 35 + 3) == (severity.raw, severity.span.start, severity.span.end)
