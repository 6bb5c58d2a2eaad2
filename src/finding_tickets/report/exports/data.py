"""A report as JSON: the tables and lists of the status, and an item for each document.

The types are what the published schema is made from; keys are only added within a version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult
from finding_tickets.model.vocabulary import Outcome, Relationship, Severity, Status
from finding_tickets.report import contexts
from finding_tickets.report.contexts import Disagreement, Report, Since
from finding_tickets.report.matrix import MatrixItem
from finding_tickets.report.measured import Change
from finding_tickets.report.rows import Row
from finding_tickets.report.tables import CrossTable

VERSION = 1
KIND = "report"
Count = Annotated[int, Meta(ge=0)]
Words = Annotated[str | None, Meta(description="As it is written.")]


class Line(TypedDict):
    """A row of a table, with a count for each column."""

    name: str
    counts: list[Count]


class Table(TypedDict):
    """Counts of documents; the last row and the last column are sums."""

    columns: list[str]
    rows: list[Line]


class Law(TypedDict):
    """A metric before and after the fix, as claimed or as measured; null where nothing is."""

    metric: str
    before: str | None
    after: str | None


class Claim(TypedDict):
    """What came of a claim; `holds` is null where it could not be checked."""

    id: str
    variant: str
    metric: str
    claimed: str
    measured: str
    holds: bool | None
    expect: Literal["holds", "refuted"]
    why: str | None
    counterexamples: list[str]


class Contradiction(TypedDict):
    """Where a document contradicts itself or its measurement."""

    rule: str
    level: Level
    line: Annotated[int, Meta(ge=1)]
    message: str


class OpinionOf(TypedDict):
    """What a reviewer says; null for one who is not named."""

    reviewer: str | None
    verdict: str


class Related(TypedDict):
    """Another document, and what it is to this one."""

    id: str
    relationship: Relationship


class Document(TypedDict):
    """A document: what it states, what people decided, and what was measured."""

    id: str
    kind: Literal["finding", "review"]
    title: str
    path: Annotated[str, Meta(description="From the root of the register.")]
    summary: Words
    severity: Severity | None
    status: Status | None
    resolution: Outcome | None
    disposition: Annotated[str, Meta(description="The status, or of what is merely closed the resolution.")]
    verdict: Verdict
    reason: Annotated[str | None, Meta(description="Why the verdict is what it is.")]
    disagreement: Annotated[str | None, Meta(description="The verdicts of meters that differ.")]
    batch: int | None
    agent: str | None
    assignee: str | None
    domains: list[str]
    categories: list[str]
    files: list[str]
    created: Words
    updated: Words
    done: Annotated[int, Meta(ge=0, description="Items of the checklist that are ticked.")]
    undone: Annotated[int, Meta(ge=0, description="Items of the checklist that are not.")]
    consensus: Annotated[str, Meta(description="What the reviewers say together.")]
    reviews: list[OpinionOf]
    related: list[Related]
    claimed: Annotated[list[Law], Meta(description="What the remediation claims.")]
    laws: Annotated[list[Law], Meta(description="What was measured of the metrics that are claimed.")]
    claims: list[Claim]
    unproven: Annotated[bool, Meta(description="Closed as fixed, and nothing shows that it was.")]
    contradictions: list[Contradiction]


class Refuted(TypedDict):
    """A claim that is false, and whether the ticket expects it to be."""

    ticket: str
    claim: str
    claimed: str
    measured: str
    as_expected: bool


class Pair(TypedDict):
    """Duplicates that do not agree, in their `decisions` or in their `measurements`."""

    one: str
    other: str
    about: str


class Step(TypedDict):
    """A document that is not settled, and what would settle it."""

    id: str
    step: str


class Difference(TypedDict):
    """What a document stated before and states now."""

    id: str
    what: str
    before: str
    now: str


class Past(TypedDict):
    """What is different from a revision."""

    revision: str
    commit: str
    added: list[str]
    removed: list[str]
    changed: list[Difference]


class Tables(TypedDict):
    """Tables that count each document once; `by_fate` is there with a revision to compare with."""

    by_disposition: Table
    by_verdict: Table
    by_consensus: Table
    by_file: Table
    by_fate: Table | None


class Summary(TypedDict):
    """The status of the documents that the query means; an empty query means all."""

    total: Count
    query: str
    tables: Tables
    by_reviewer: Table
    unproven: list[str]
    refuted: list[Refuted]
    disagreements: list[Pair]
    open_work: list[Step]
    since: Past | None
    matrix: Annotated[MatrixItem | None, Meta(description="Where the configuration declares one.")]


class Envelope(TypedDict):
    """A report of `tickets report --format json`."""

    schema_version: Literal[1]
    kind: Literal["report"]
    status: Summary
    data: list[Document]


def write(report: Report) -> Iterator[str]:
    """The envelope; each document on a line of its own, so that no more than one is in memory."""
    status = json.dumps(_summary(report.status))
    yield f'{{"schema_version": {VERSION}, "kind": "{KIND}", "status": {status},\n"data": ['
    for at, row in enumerate(report.rows):
        yield f"{',' if at else ''}\n{json.dumps(_document(row))}"
    yield "\n]}\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    from msgspec.json import schema as made

    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "tickets report", **made(Envelope)}


def _summary(status: contexts.Status) -> Summary:
    return Summary(
        total=status.total,
        query=status.query,
        tables=Tables(
            by_disposition=_table(status.by_disposition),
            by_verdict=_table(status.by_verdict),
            by_consensus=_table(status.by_consensus),
            by_file=_table(status.hot_spots.table),
            by_fate=_table(status.by_fate) if status.by_fate else None,
        ),
        by_reviewer=_table(status.by_reviewer),
        unproven=[row.id for row in status.unproven],
        refuted=[
            Refuted(
                ticket=each.ticket,
                claim=each.claim.id,
                claimed=each.claim.claimed,
                measured=each.claim.measured,
                as_expected=each.claim.as_expected,
            )
            for each in status.refuted
        ],
        disagreements=[_pair(each) for each in status.disagreements],
        open_work=[Step(id=work.row.id, step=work.step) for work in status.open_work],
        since=_past(status.since) if status.since else None,
        matrix=status.matrix.item if status.matrix else None,
    )


def _table(table: CrossTable) -> Table:
    return Table(
        columns=list(table.columns),
        rows=[Line(name=name, counts=list(counts)) for name, counts in table.rows],
    )


def _pair(each: Disagreement) -> Pair:
    return Pair(one=each.one.id, other=each.other.id, about=each.about)


def _past(since: Since) -> Past:
    return Past(
        revision=since.revision,
        commit=since.commit,
        added=list(since.added),
        removed=list(since.removed),
        changed=[
            Difference(id=each.id, what=each.what, before=each.before, now=each.now) for each in since.changed
        ],
    )


def _document(row: Row) -> dict[str, Any]:
    stated = row.stated
    return {
        "id": row.id,
        "kind": stated.kind,
        "title": row.title,
        "path": row.path,
        "summary": stated.summary,
        "severity": stated.severity,
        "status": stated.status,
        "resolution": stated.outcome,
        "disposition": row.disposition,
        "verdict": row.verdict.value,
        "reason": row.reason or None,
        "disagreement": row.disagreement or None,
        "batch": stated.batch,
        "agent": stated.agent,
        "assignee": stated.assignee,
        "domains": list(stated.domains),
        "categories": list(stated.categories),
        "files": list(stated.files),
        "created": stated.created,
        "updated": stated.updated,
        "done": stated.done,
        "undone": stated.undone,
        "consensus": row.consensus,
        "reviews": [{"reviewer": name, "verdict": said} for name, said in stated.reviews],
        "related": [{"id": other, "relationship": how} for other, how in stated.related],
        "claimed": _laws(row.claimed),
        "laws": _laws(row.changes),
        "claims": [_claim(claim) for claim in row.verification.claims] if row.verification else [],
        "unproven": row.is_unproven,
        "contradictions": [_contradiction(problem) for problem in row.contradictions],
    }


def _laws(changes: Sequence[Change]) -> list[Law]:
    return [Law(metric=each.metric, before=each.before, after=each.after) for each in changes]


def _claim(claim: ClaimResult) -> Claim:
    return Claim(
        id=claim.id,
        variant=claim.variant,
        metric=claim.metric,
        claimed=claim.claimed,
        measured=claim.measured,
        holds=claim.holds,
        expect=claim.expect,
        why=claim.why,
        counterexamples=list(claim.counterexamples),
    )


def _contradiction(problem: Problem) -> Contradiction:
    return Contradiction(rule=problem.rule, level=problem.level, line=problem.line, message=problem.message)


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
