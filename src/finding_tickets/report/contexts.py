"""What a report is made of: tables and lists computed from rows, with no file and no clock read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.model.problem import Problem
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.vocabulary import Relationship
from finding_tickets.register.disposition import DISPOSITIONS, UNDECIDED, UNSETTLED, differ
from finding_tickets.register.query import Facts
from finding_tickets.report.hot_spots import HotSpots, hot_spots
from finding_tickets.report.measured import refuted
from finding_tickets.report.rows import CONSENSUS, REVIEW, SEVERITIES, SIDES, Row, row_of
from finding_tickets.report.tables import CrossTable, by_row, cross

if TYPE_CHECKING:
    from finding_tickets.model.verification import ClaimResult
    from finding_tickets.report.entries import Entry
    from finding_tickets.report.matrix import Matrix

BORNE_OUT, NOT_BORNE_OUT, NO_SIDE, NOT_MEASURED, DID_NOT_REVIEW = STANDINGS = (
    "borne out",
    "not borne out",
    "no side",
    "not measured",
    "did not review",
)
ADDED, CHANGED, UNCHANGED = FATES = ("added", "changed", "unchanged")
DECISIONS, MEASUREMENTS = "decisions", "measurements"
_SILENT = "duplicates-differ"
NEXT_STEP = {
    Verdict.VERIFIED: "close it: what it claims is measured",
    Verdict.REFUTED: "restate it: the code does not do what the finding says",
    Verdict.FAILED: "mend the fix: it does not do what is claimed",
    Verdict.REPRODUCED: "write a fix: the finding is measured",
    Verdict.INCONCLUSIVE: "make it measurable",
    Verdict.STALE: "measure it again: something it depends on has changed",
    Verdict.UNVERIFIED: "measure it",
}


class Profile(StrEnum):
    """What a report in SARIF is for: everything, or what GitHub is to show."""

    FULL = "full"
    GITHUB = "github"


@dataclass(frozen=True)
class RefutedClaim:
    """A claim that measuring has shown to be false."""

    ticket: str
    claim: ClaimResult


@dataclass(frozen=True)
class Work:
    """A document that is not settled, and what would settle it."""

    row: Row
    step: str


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that a document states, or its verdict, before and now; empty where it was not stated."""

    id: str
    what: str
    before: str
    now: str


@dataclass(frozen=True)
class Since:
    """What is different from a revision.

    Attributes:
        revision: As it was asked for.
        commit: Its whole id.
        added: IDs of documents that were not there.
        removed: IDs of documents that are not there any more.
        changed: Severities, dispositions and verdicts that were others.
    """

    revision: str
    commit: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[Changed, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two duplicates that ended differently, or of which one finding holds and the other does not.

    ``about`` is ``decisions`` or ``measurements``.
    """

    one: Row
    other: Row
    about: str


@dataclass(frozen=True, slots=True)
class Reviewer:
    """How often the measurements bore a reviewer out, of the reviews for which anybody can tell."""

    name: str
    borne_out: int
    decided: int


@dataclass(frozen=True)
class Status:
    """The status of a register; every table counts the same ``total`` documents.

    Attributes:
        total: The documents that the report is about.
        by_disposition: Severities and what people decided.
        by_verdict: Severities and what was measured.
        by_consensus: What reviewers say together, and what was measured.
        by_reviewer: For each reviewer, whether measurements bore out what they said; every row adds up to the
            total.
        reviewers: The shares of that.
        hot_spots: Files and severities.
        rows: All documents.
        unproven: Those that were closed as fixed and that nothing shows to be.
        contradictions: Where documents contradict themselves or their measurement, as lint has it.
        refuted: Claims that measuring has shown to be false.
        disagreements: Duplicates that do not agree.
        open_work: What is not settled.
        query: What chose the documents; empty where they are all there are.
        since: What is different from a revision, where it was asked for.
        by_fate: Severities and what became of documents since then, where it was asked for.
        matrix: Documents by the cells of a matrix, where the configuration declares one.
    """

    total: int
    by_disposition: CrossTable
    by_verdict: CrossTable
    by_consensus: CrossTable
    by_reviewer: CrossTable
    reviewers: tuple[Reviewer, ...]
    hot_spots: HotSpots
    rows: tuple[Row, ...]
    unproven: tuple[Row, ...]
    contradictions: tuple[Problem, ...]
    refuted: tuple[RefutedClaim, ...]
    disagreements: tuple[Disagreement, ...]
    open_work: tuple[Work, ...]
    query: str = ""
    since: Since | None = None
    by_fate: CrossTable | None = None
    matrix: Matrix | None = None


@dataclass(frozen=True)
class Report:
    """What a writer of a report is given.

    Attributes:
        facts: The register that the report is about.
        status: Its tables and lists.
        template: The name of the template to fill in, where the format has one.
        profile: What a report in SARIF is for.
    """

    facts: Facts
    status: Status
    template: str = ""
    profile: Profile = Profile.FULL

    @property
    def rows(self) -> tuple[Row, ...]:
        """One for each document, in the order of the query."""
        return self.status.rows

    @property
    def query(self) -> str:
        """What chose the documents; empty where they are all there are."""
        return self.status.query

    @property
    def since(self) -> Since | None:
        """What is different from the revision that was asked for, if one was."""
        return self.status.since

    @property
    def templates(self) -> Path:
        """The folder of the register's own templates, which come first."""
        return self.facts.root / self.facts.config.templates

    def entries(self) -> Iterator[Entry]:
        """Each document whole, read when it is asked for and not kept; those gone by now are left out."""
        from finding_tickets.report.entries import each_entry

        return each_entry(self.facts, (row.stated for row in self.rows))


def status(
    rows: Iterable[Row],
    facts: Facts,
    query: str = "",
    since: Since | None = None,
    matrix: Matrix | None = None,
) -> Status:
    """The status of the documents that are ``rows``, in their order; ``facts`` knows what they relate to."""
    rows = tuple(rows)
    standings = _standings(rows)
    reviewers = sorted({name for name, _ in standings})
    return Status(
        total=len(rows),
        by_disposition=cross(
            ((row.severity, row.disposition) for row in rows), SEVERITIES, [*DISPOSITIONS, UNDECIDED, REVIEW]
        ),
        by_verdict=cross(((row.severity, row.verdict) for row in rows), SEVERITIES, list(Verdict)),
        by_consensus=cross(((row.consensus, row.verdict) for row in rows), CONSENSUS, list(Verdict)),
        by_reviewer=by_row(standings, reviewers, STANDINGS),
        reviewers=tuple(_reviewer(name, standings) for name in reviewers),
        hot_spots=hot_spots(rows),
        rows=rows,
        unproven=tuple(row for row in rows if row.is_unproven),
        contradictions=tuple(problem for row in rows for problem in row.contradictions),
        refuted=tuple(RefutedClaim(row.id, claim) for row in rows for claim in _refuted(row)),
        disagreements=tuple(_disagreements(rows, facts)),
        open_work=tuple(_work(rows)),
        query=query,
        since=since,
        by_fate=cross(_fates(rows, since), SEVERITIES, FATES) if since else None,
        matrix=matrix,
    )


def _standings(rows: Sequence[Row]) -> Counter[tuple[str, str]]:
    """How many documents there are for each reviewer and each of ``STANDINGS``."""
    said = ((name, _standing(row, opinion)) for row in rows for name, opinion in row.opinions.items())
    counts = Counter(said)
    reviewed = Counter(name for name, _ in counts.elements())
    return counts + Counter({(name, DID_NOT_REVIEW): len(rows) - reviewed[name] for name in reviewed})


def _standing(row: Row, said: str) -> str:
    """Whether what was measured bears out what somebody said of a document."""
    if said not in SIDES:
        return NO_SIDE
    if row.holds is None:
        return NOT_MEASURED
    return BORNE_OUT if row.holds is SIDES[said] else NOT_BORNE_OUT


def _reviewer(name: str, standings: Mapping[tuple[str, str], int]) -> Reviewer:
    right, wrong = (standings.get((name, standing), 0) for standing in (BORNE_OUT, NOT_BORNE_OUT))
    return Reviewer(name, right, right + wrong)


def _disagreements(rows: Sequence[Row], facts: Facts) -> Iterator[Disagreement]:
    by_id = {row.id.casefold(): row for row in reversed(rows)}

    def row(key: str) -> Row | None:
        stated = facts.relations.rows.get(key)
        return by_id.get(key) or (row_of(stated, facts.measured(stated)) if stated else None)

    for edge in facts.relations.edges:
        ends = edge.source.casefold(), edge.target.casefold()
        if edge.relationship is not Relationship.DUPLICATE or not any(end in by_id for end in ends):
            continue
        one, other = map(row, ends)
        if one and other and one is not other and one.is_finding and other.is_finding:
            silent = all(_SILENT in each.ignored for each in (one, other) if each.id in edge.stated_by)
            if differ(_ended(one), _ended(other)) and not silent:
                yield Disagreement(one, other, DECISIONS)
            if None not in (one.holds, other.holds) and one.holds is not other.holds:
                yield Disagreement(one, other, MEASUREMENTS)


def _ended(row: Row) -> tuple[str | None, str | None]:
    return row.stated.status, row.stated.outcome


def _fates(rows: Sequence[Row], since: Since) -> Iterator[tuple[str, str]]:
    added, changed = set(since.added), {change.id for change in since.changed}
    for row in rows:
        yield row.severity, ADDED if row.id in added else CHANGED if row.id in changed else UNCHANGED


def _refuted(row: Row) -> Sequence[ClaimResult]:
    return refuted(row.verification) if row.verification else ()


def _work(rows: Sequence[Row]) -> list[Work]:
    """Unsettled documents, the worst first; a settled one only where its measurement speaks against it."""
    against = {Verdict.REFUTED, Verdict.FAILED, Verdict.STALE, Verdict.INCONCLUSIVE}
    work = [
        Work(row, NEXT_STEP[row.verdict])
        for row in rows
        if row.stated.status in UNSETTLED or row.verdict in against
    ]
    return sorted(work, key=lambda item: item.row.severity)
