"""The index of the documentation leads to all of it."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_every_page_is_in_the_index() -> None:
    """docs/README.md links each page of its folder."""
    index = DOCS / "README.md"
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", index.read_text(encoding="utf-8")))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {index.name}
