"""Records are pydantic models: frozen, validated, and exported as what their JSON Schema says."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import ImplementationReview, Ticket

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("tickets/**/*.md"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_exports_and_their_schema(file: Path) -> None:
    """What a record exports fits the schema of its model, and is read back as the same record."""
    document, _ = read_document(file.read_bytes(), file.name)
    assert isinstance(document, Ticket | ImplementationReview)
    jsonschema.validate(document.model_dump(mode="json"), type(document).model_json_schema())
    assert document == type(document).model_validate_json(document.model_dump_json())


def test_records_are_frozen_and_complete() -> None:
    """A field cannot be set, and one that the model does not know is refused."""
    document, _ = read_document(FILES[0].read_bytes(), FILES[0].name)
    assert document
    with pytest.raises(ValidationError, match="frozen"):
        document.path = "other.md"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        type(document).model_validate({**document.model_dump(), "verdict_of_nobody": "x"})
