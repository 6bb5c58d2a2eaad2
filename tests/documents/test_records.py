"""Records are pydantic models: frozen and validated."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from finding_tickets.documents.reading import read_document

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("tickets/**/*.md"))


def test_records_are_frozen_and_complete() -> None:
    """A field cannot be set, and one that the model does not know is refused."""
    document, _ = read_document(FILES[0].read_bytes(), FILES[0].name)
    assert document
    with pytest.raises(ValidationError, match="frozen"):
        document.path = "other.md"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        type(document).model_validate({**document.model_dump(), "verdict_of_nobody": "x"})
