"""One JSON Schema of all records, docs/records.schema.json: ``python -m finding_tickets.model.schema``."""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic.json_schema import models_json_schema

from finding_tickets.model.ticket import ImplementationReview, Problem, Ticket
from finding_tickets.model.verification import Evidence, Verification


def json_schema() -> dict[str, Any]:
    """The schema of all records, as ``model_dump(mode="json")`` has them: documents, evidence, problems."""
    records = (Ticket, ImplementationReview, Verification, Evidence, Problem)
    references, schema = models_json_schema(
        [(record, "serialization") for record in records],
        title="Records of finding tickets",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [references[record, "serialization"] for record in records],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
