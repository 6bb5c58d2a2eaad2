"""Reports and documents as JSON, and the models that the published schema is made of.

Keys are only added within a version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from finding_tickets.documents.reading import Document
from finding_tickets.model.problem import Level
from finding_tickets.model.review import ImplementationReview
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.verification import ClaimResult
from finding_tickets.model.vocabulary import Outcome, Relationship, Severity, Status, Verdict
from finding_tickets.register.index import row_of
from finding_tickets.report.status import Since, StatusReport
from finding_tickets.report.text import LawChange, MeasuredDocument, fields_of

VERSION = 1
KIND = "report"
Count = Annotated[int, Field(ge=0)]
Item = dict[str, object]
_NO_LINES = {"__all__": {"line"}}
_NOT_SHOWN: dict[str, Any] = {
    **dict.fromkeys(("path", "span", "digest"), True),
    **dict.fromkeys(("claims", "unmeasured", "checklist"), _NO_LINES),
}
"""Where the parts of a remediation stand."""


class JsonItem(BaseModel):
    """An object of JSON, read from the attributes of a record, or from a tuple in the order of the fields."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @model_validator(mode="before")
    @classmethod
    def from_tuple(cls, value: Any) -> Any:
        """The fields by their names."""
        # Tables and pairs of names are tuples in the records.
        return dict(zip(cls.model_fields, value, strict=True)) if isinstance(value, tuple) else value


class CountsLine(JsonItem):
    """A row of a table, with a count for each column."""

    name: str
    counts: list[Count]


class CountsTable(JsonItem):
    """Counts of documents; the last row and the last column are sums."""

    columns: list[str]
    rows: list[CountsLine]


class ContradictionItem(JsonItem):
    """Where a document contradicts itself or its measurement."""

    rule: str
    level: Level
    line: int = Field(ge=1)
    message: str


class OpinionItem(JsonItem):
    """What a reviewer says; null for one who is not named."""

    reviewer: str | None
    verdict: str


class RelatedItem(JsonItem):
    """Another document, and what it is to this one."""

    id: str
    relationship: Relationship


def _stated(name: str, description: str | None = None) -> Any:
    """A field that is what the document states."""
    return Field(validation_alias=AliasPath("stated", name), description=description)


class DocumentItem(JsonItem):
    """A document: what it states, what people decided, and what was measured."""

    id: str
    kind: Literal["finding", "review"] = _stated("kind")
    title: str
    path: str = Field(description="From the root of the register.")
    summary: str | None = _stated("summary", "As it is written.")
    severity: Severity | None = _stated("severity")
    status: Status | None = _stated("status")
    resolution: Outcome | None = _stated("outcome")
    disposition: str = Field(description="The status, or of what is merely closed the resolution.")
    verdict: Verdict
    reason: Annotated[str | None, BeforeValidator(lambda text: text or None)] = Field(
        description="Why the verdict is what it is."
    )
    disagreement: Annotated[str | None, BeforeValidator(lambda text: text or None)] = Field(
        description="The verdicts of meters that differ."
    )
    batch: int | None = _stated("batch")
    agent: str | None = _stated("agent")
    assignee: str | None = _stated("assignee")
    domains: list[str] = _stated("domains")
    categories: list[str] = _stated("categories")
    files: list[str] = _stated("files")
    created: str | None = _stated("created", "As it is written.")
    updated: str | None = _stated("updated", "As it is written.")
    done: Count = _stated("done", "Items of the checklist that are ticked.")
    undone: Count = _stated("undone", "Items of the checklist that are not.")
    consensus: str = Field(description="What the reviewers say together.")
    reviews: list[OpinionItem] = _stated("reviews")
    related: list[RelatedItem] = _stated("related")
    claimed: list[LawChange] = Field(description="What the remediation claims.")
    laws: list[LawChange] = Field(
        validation_alias="changes", description="What was measured of the metrics that are claimed."
    )
    claims: Annotated[list[ClaimResult], BeforeValidator(lambda done: done.claims if done else [])] = Field(
        validation_alias="verification"
    )
    unproven: bool = Field(
        validation_alias="is_unproven", description="Closed as fixed, and nothing shows that it was."
    )
    contradictions: list[ContradictionItem]


class RefutedItem(JsonItem):
    """A claim that is false, and whether the ticket expects it to be."""

    ticket: str
    claim: str = Field(validation_alias=AliasPath("claim", "id"))
    claimed: str = Field(validation_alias=AliasPath("claim", "claimed"))
    measured: str = Field(validation_alias=AliasPath("claim", "measured"))
    as_expected: bool = Field(validation_alias=AliasPath("claim", "as_expected"))


class DisagreementItem(JsonItem):
    """Duplicates that do not agree, in their `decisions` or in their `measurements`."""

    one: str = Field(validation_alias=AliasPath("one", "id"))
    other: str = Field(validation_alias=AliasPath("other", "id"))
    about: str


class OpenWorkItem(JsonItem):
    """A document that is not settled, and what would settle it."""

    id: str = Field(validation_alias=AliasPath("row", "id"))
    step: str


class TablesItem(JsonItem):
    """Tables that count each document once; `by_fate` is there with a revision to compare with."""

    by_disposition: CountsTable
    by_verdict: CountsTable
    by_consensus: CountsTable
    by_file: CountsTable = Field(validation_alias=AliasPath("hot_spots", "table"))
    by_fate: CountsTable | None


class CellItem(JsonItem):
    """A column of the matrix; `revision` is null for the work tree."""

    name: str
    meter: Literal["simulated", "cuda"]
    torch: str
    device: str
    revision: str | None


class VerdictsItem(JsonItem):
    """A verdict for each cell: `stale`, `unverified` where nothing was measured, or `unreadable`."""

    id: str
    verdicts: list[str]


class ValueItem(JsonItem):
    """What was measured in some of the cells, by their names."""

    value: str
    cells: list[str]


class MatrixDifferenceItem(JsonItem):
    """What the cells do not agree on: the `verdict` of a document, or a claim by its ID."""

    id: str
    what: str
    values: list[ValueItem]


class MatrixItem(JsonItem):
    """Documents by cells; `compared` have a measurement that holds today in more than one."""

    cells: list[CellItem]
    documents: list[VerdictsItem]
    differences: list[MatrixDifferenceItem]
    compared: int


class StatusItem(JsonItem):
    """The status of the documents that the query means; an empty query means all."""

    total: Count
    query: str
    tables: TablesItem
    by_reviewer: CountsTable
    unproven: list[str]
    refuted: list[RefutedItem]
    disagreements: list[DisagreementItem]
    open_work: list[OpenWorkItem]
    since: Since | None
    matrix: MatrixItem | None = Field(description="Where the configuration declares one.")


class ReportItem(JsonItem):
    """A report of `tickets report --format json`."""

    schema_version: Literal[1]
    kind: Literal["report"]
    status: StatusItem
    data: list[DocumentItem]


def write_json(report: StatusReport) -> Iterator[str]:
    """The envelope; each document on a line of its own, so that no more than one is in memory."""
    status = report.status
    values = {
        **{name: getattr(status, name) for name in StatusItem.model_fields if hasattr(status, name)},
        "tables": status,
        "unproven": [row.id for row in status.unproven],
        "matrix": status.matrix.item if status.matrix else None,
    }
    # The escapes of json keep the report in ASCII.
    head = json.dumps(StatusItem.model_validate(values).model_dump(mode="json"))
    yield f'{{"schema_version": {VERSION}, "kind": "{KIND}", "status": {head},\n"data": ['
    for at, row in enumerate(report.rows):
        # Bytes of a path that are no text are escaped by json, where pydantic's own writer would refuse them.
        item = DocumentItem.model_validate(row).model_dump(mode="json")
        yield f"{',' if at else ''}\n{json.dumps(item)}"
    yield "\n]}\n"


def report_schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    # The names of the JSON, not those of the records that it is read from.
    made = ReportItem.model_json_schema(by_alias=False, mode="serialization")
    return {"$schema": dialect, **made, "title": "tickets report"}


def ticket_item(entry: MeasuredDocument) -> Item:
    """One document for ``kind: ticket-list``, with the same keys for every kind of document.

    What is not there is null or empty.
    """
    document, row = entry.document, row_of(entry.document)
    remediation = document.remediation
    return {
        **fields_of(row, "id", "kind", "title", "path", "severity", "status"),
        "resolution": row.outcome,
        **fields_of(row, "batch", "agent", "domains"),
        "locations": [
            {
                "file": each.file,
                "lines": [[lines.first, lines.last] for lines in each.lines],
                "symbol": each.symbol,
            }
            for each in document.locations
        ],
        "categories": row.categories,
        "reviews": list(_reviews(document)),
        "related": _items(document, "related"),
        "checklist": _items(document, "checklist"),
        "remediation": remediation
        and {
            **remediation.model_dump(exclude=_NOT_SHOWN),
            "variants": {name: variant.raw for name, variant in remediation.variants.items()},
        },
        "verdict": entry.measured.verdict,
    }


def full_item(entry: MeasuredDocument) -> Item:
    """One document with everything known of it; ``verification`` is as in ``kind: verification``, or null."""
    ticket = entry.document if isinstance(entry.document, Ticket) else None
    resolution, done = ticket and ticket.resolution, entry.measured.verification
    return ticket_item(entry) | {
        "closed": ticket.closed.value if ticket and ticket.closed else None,
        "proposed": resolution.proposed if resolution else None,
        "duplicate_of": resolution.duplicate_of if resolution else None,
        "severity_changes": ticket and _items(ticket, "severity_changes"),
        "checked_claims": ticket and _items(ticket, "checked_claims"),
        "corrections": ticket
        and [
            {**fields_of(each, "title", "date"), "statement": each.statement.raw if each.statement else None}
            for each in ticket.corrections
        ],
        "summary": ticket.summary.raw if ticket and ticket.summary else None,
        "verification": done.model_dump(mode="json") if done else None,
    }


def _items(document: Document, name: str) -> list[Item]:
    """What a document lists, without the places that it was read from; empty where it has no such list."""
    return [each.model_dump(exclude={"raw", "span"}) for each in getattr(document, name, ())]


def _reviews(document: Document) -> Iterator[Item]:
    """What reviewers say; an implementation review is itself the one review there is."""
    # It has no cross-reviews: who wrote it is its reviewer.
    if isinstance(document, ImplementationReview):
        if document.reviewer:
            verdict = document.verdict.value if document.verdict else None
            yield {"reviewer": document.reviewer.value, "verdict": verdict, "evaluation": None}
        return
    for review in document.reviews:
        yield {
            "reviewer": review.reviewer.value if review.reviewer else None,
            # In the vocabulary's word where it is one of those.
            "verdict": review.opinion or review.verdict.value,
            "evaluation": review.words,
        }


if __name__ == "__main__":
    print(json.dumps(report_schema(), indent=2))
