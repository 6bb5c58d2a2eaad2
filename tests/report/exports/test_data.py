"""Reports as JSON: valid by the published schema, which is made of the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from jsonschema import Draft202012Validator
from tests.report.exports.reports import ROWS, claim, report, row

from finding_tickets.model.verdict import Verdict
from finding_tickets.report.json import report_schema, write_json
from finding_tickets.report.rows import ReportRow
from finding_tickets.report.status import Since, StatedChange, StatusReport, status_of_rows

PUBLISHED = Path(__file__).parents[3] / "docs/report.schema.json"
STRICT = Draft202012Validator(
    json.loads(
        json.dumps(report_schema()).replace(
            '"type": "object",', '"type": "object", "additionalProperties": false,'
        )
    )
)
"""The schema without room for further keys, which a later version may have and this one has not."""


def read(made: StatusReport) -> Any:
    """The report as JSON, which is valid."""
    value = json.loads("".join(write_json(made)))
    STRICT.validate(value)
    return value


def test_the_published_schema_is_current() -> None:
    """docs/report.schema.json is what ``python -m finding_tickets.report.json`` prints."""
    Draft202012Validator.check_schema(report_schema())
    made = "python -m finding_tickets.report.json > docs/report.schema.json"
    assert report_schema() == json.loads(PUBLISHED.read_text(encoding="utf-8")), f"make it with {made}"


def test_what_is_in_a_report() -> None:
    """Tables, lists, and an item for each document, in their order."""
    rows = [row("T-1", verdict=Verdict.REFUTED, claims=[claim("a", holds=False)]), row("T-2", status="fixed")]
    value = read(report(rows))
    assert (1, "report", 2) == (value["schema_version"], value["kind"], value["status"]["total"])
    assert ["T-1", "T-2"] == [item["id"] for item in value["data"]]
    first = value["data"][0]
    assert ("refuted", "open", "It waits") == (first["verdict"], first["disposition"], first["reason"])
    assert [("fix.a", False)] == [(each["id"], each["holds"]) for each in first["claims"]]
    assert [{"metric": "It waits", "before": "It waits", "after": None}] == first["laws"]
    refuted = {"ticket": "T-1", "claim": "fix.a", "claimed": "a", "measured": "a", "as_expected": False}
    assert [refuted] == value["status"]["refuted"]
    assert ["T-1"] == [step["id"] for step in value["status"]["open_work"]]
    assert {"name": "sum", "counts": [1, 1, 2]} == value["status"]["tables"]["by_disposition"]["rows"][-1]


def test_a_report_since_a_revision() -> None:
    """What is different is there, and what became of documents is counted."""
    rows = (row("T-1"),)
    facts = report(rows).facts
    since = Since("v1", "abc", ("T-1",), ("T-0",), (StatedChange("T-2", "severity", "P1", "P2"),))
    value = read(StatusReport(facts, status_of_rows(rows, facts, "", since)))["status"]
    assert {
        "revision": "v1",
        "commit": "abc",
        "added": ["T-1"],
        "removed": ["T-0"],
        "changed": [{"id": "T-2", "what": "severity", "before": "P1", "now": "P2"}],
    } == value["since"]
    assert ["added", "sum"] == value["tables"]["by_fate"]["columns"]


def test_no_documents() -> None:
    """A report on nothing has all tables, and no item."""
    value = read(report([]))
    assert (0, []) == (value["status"]["total"], value["data"])


@given(ROWS)
def test_any_text_is_valid(rows: list[ReportRow]) -> None:
    """Whatever documents say, the report is valid, in ASCII, with every document and each text as it is."""
    made = report(rows)
    assert "".join(write_json(made)).isascii()
    assert [each.title for each in rows] == [item["title"] for item in read(made)["data"]]


@given(ROWS)
def test_the_same_report_is_the_same_text(rows: list[ReportRow]) -> None:
    """Nothing but the rows decides what is written."""
    assert list(write_json(report(rows))) == list(write_json(report(rows)))
