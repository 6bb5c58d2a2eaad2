"""Reports and documents as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from jsonschema import Draft202012Validator
from tests.report.conftest import ROWS, report

from finding_tickets.model.verification import ClaimResult
from finding_tickets.report.formats.json import write_report
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.status import StatusReport

PUBLISHED = Path(__file__).parents[2] / "docs/report.schema.json"
SCHEMA = json.loads(PUBLISHED.read_text(encoding="utf-8"))
STRICT = Draft202012Validator(
    json.loads(
        json.dumps(SCHEMA).replace('"type": "object"', '"type": "object", "additionalProperties": false')
    )
)
"""The schema without room for further keys, which a later version may have and this one has not."""


def read(made: StatusReport) -> Any:
    """The report as JSON, which is valid."""
    value = json.loads("".join(write_report(made)))
    STRICT.validate(value)
    return value


def test_the_published_schema_describes_claims_as_they_are() -> None:
    """It is one of JSON Schema, and knows every field of what came of a claim."""
    Draft202012Validator.check_schema(SCHEMA)
    shown = {name for name, field in ClaimResult.model_fields.items() if not field.exclude}
    assert shown == set(SCHEMA["$defs"]["ClaimResult"]["properties"])


@given(ROWS)
def test_any_text_is_valid(rows: list[ReportRow]) -> None:
    """Whatever documents say, the report is valid, in ASCII, with every document and each text as it is."""
    made = report(rows)
    assert "".join(write_report(made)).isascii()
    assert [each.title for each in rows] == [item["title"] for item in read(made)["data"]]
