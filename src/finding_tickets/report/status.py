"""The status of a register: the tables and lists that a report shows, and the formats that it is written in.

The classes of this module are what templates are given: docs/reports.md promises their names to users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.errors import RevisionError, UsageError
from finding_tickets.model.vocabulary import UNSETTLED, Relationship, Verdict
from finding_tickets.register.disposition import DISPOSITIONS, UNDECIDED, differ
from finding_tickets.register.index import Row
from finding_tickets.register.query import Facts
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.rows import CONSENSUS, REVIEW, SEVERITIES, SIDES, ReportRow, row_of
from finding_tickets.report.text import MeasuredDocument, measured_documents

if TYPE_CHECKING:
    from finding_tickets.model.problem import Problem
    from finding_tickets.model.verification import ClaimResult
    from finding_tickets.report.matrix import VerdictMatrix

BORNE_OUT, NOT_BORNE_OUT, NO_SIDE, NOT_MEASURED, DID_NOT_REVIEW = STANDINGS = (
    "borne out",
    "not borne out",
    "no side",
    "not measured",
    "did not review",
)
ADDED, CHANGED, UNCHANGED = FATES = ("added", "changed", "unchanged")
DECISIONS, MEASUREMENTS = "decisions", "measurements"
SUM = "sum"
NO_FILE = "no file"
OTHER_FILES = "other files"
MOST_FILES = 20
"""Files that are shown by themselves."""
NEXT_STEP = {
    Verdict.VERIFIED: "close it: what it claims is measured",
    Verdict.REFUTED: "restate it: the code does not do what the finding says",
    Verdict.FAILED: "mend the fix: it does not do what is claimed",
    Verdict.REPRODUCED: "write a fix: the finding is measured",
    Verdict.INCONCLUSIVE: "make it measurable",
    Verdict.STALE: "measure it again: something it depends on has changed",
    Verdict.UNVERIFIED: "measure it",
}


class ReportFormat(StrEnum):
    """What a report can be written as."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CSV = "csv"
    JUNIT = "junit"
    SARIF = "sarif"
    GITHUB = "github"


TEMPLATES = {ReportFormat.MARKDOWN: "report.md.j2", ReportFormat.HTML: "report.html.j2"}
"""The templates of the formats that have one."""
WITH_HISTORY = (ReportFormat.MARKDOWN, ReportFormat.HTML, ReportFormat.JSON)
"""The formats that show what is different from a revision, and the cells of a matrix."""


class Profile(StrEnum):
    """What a report in SARIF is for: everything, or what GitHub is to show."""

    FULL = "full"
    GITHUB = "github"


@dataclass(frozen=True, slots=True)
class CrossTable:
    """Counts by two properties: the last column is the sum of each row, the last row that of each column.

    A table without a row of sums is one of which every row adds up to the number of all documents.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class HotSpots:
    """The files that most documents name.

    ``table`` counts each document under the first file that it names, ``named`` how many name a file at all.
    """

    table: CrossTable
    named: Mapping[str, int]


@dataclass(frozen=True)
class RefutedClaim:
    """A claim that measuring has shown to be false."""

    ticket: str
    claim: ClaimResult


@dataclass(frozen=True)
class OpenWork:
    """A document that is not settled, and what would settle it."""

    row: ReportRow
    step: str


@dataclass(frozen=True, slots=True)
class StatedChange:
    """A severity, disposition or verdict before and now; empty where it was not stated."""

    id: str
    what: str
    before: str
    now: str


@dataclass(frozen=True)
class Since:
    """What is different from a ``revision``, whose whole ID is ``commit``: documents by their IDs."""

    revision: str
    commit: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[StatedChange, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two duplicates whose ``decisions`` or ``measurements`` differ."""

    one: ReportRow
    other: ReportRow
    about: str


@dataclass(frozen=True, slots=True)
class Reviewer:
    """How often the measurements bore a reviewer out, of the reviews for which anybody can tell."""

    name: str
    borne_out: int
    decided: int


@dataclass(frozen=True)
class RegisterStatus:
    """The status of a register; every table counts the same ``total`` documents.

    docs/reports.md tells the authors of templates what each field is.
    """

    total: int
    by_disposition: CrossTable
    by_verdict: CrossTable
    by_consensus: CrossTable
    by_reviewer: CrossTable
    reviewers: tuple[Reviewer, ...]
    hot_spots: HotSpots
    rows: tuple[ReportRow, ...]
    unproven: tuple[ReportRow, ...]
    contradictions: tuple[Problem, ...]
    refuted: tuple[RefutedClaim, ...]
    disagreements: tuple[Disagreement, ...]
    open_work: tuple[OpenWork, ...]
    query: str = ""
    since: Since | None = None
    by_fate: CrossTable | None = None
    matrix: VerdictMatrix | None = None

    @property
    def alerts(self) -> list[OpenWork]:
        """The open work that people are to be shown where they did not ask: without what is verified."""
        return [work for work in self.open_work if work.row.verdict is not Verdict.VERIFIED]


@dataclass(frozen=True)
class StatusReport:
    """What a writer of a report is given: the register, its status, and what was asked for on the way."""

    facts: Facts
    status: RegisterStatus
    template: str = ""
    profile: Profile = Profile.FULL

    @property
    def rows(self) -> tuple[ReportRow, ...]:
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

    def entries(self) -> Iterator[MeasuredDocument]:
        """Each document whole, read when it is asked for and not kept; those gone by now are left out."""
        return measured_documents(self.facts, (row.stated for row in self.rows))


def status_of_rows(
    rows: Iterable[ReportRow],
    facts: Facts,
    query: str = "",
    since: Since | None = None,
    matrix: VerdictMatrix | None = None,
) -> RegisterStatus:
    """The status of the documents that are ``rows``, in their order; ``facts`` knows what they relate to."""
    rows = tuple(rows)
    verdicts = list(Verdict)
    by_reviewer, reviewers = _reviewers(rows)
    by_fate = None
    if since:
        # A document that is new has no past to differ from.
        fates = {change.id: CHANGED for change in since.changed} | dict.fromkeys(since.added, ADDED)
        by_fate = cross(((row.severity, fates.get(row.id, UNCHANGED)) for row in rows), SEVERITIES, FATES)
    # A settled document is work only where its measurement speaks against it.
    against = {Verdict.REFUTED, Verdict.FAILED, Verdict.STALE, Verdict.INCONCLUSIVE}
    work = [
        OpenWork(row, NEXT_STEP[row.verdict])
        for row in rows
        if row.stated.status in UNSETTLED or row.verdict in against
    ]
    return RegisterStatus(
        total=len(rows),
        by_disposition=cross(
            ((row.severity, row.disposition) for row in rows), SEVERITIES, [*DISPOSITIONS, UNDECIDED, REVIEW]
        ),
        by_verdict=cross(((row.severity, row.verdict) for row in rows), SEVERITIES, verdicts),
        by_consensus=cross(((row.consensus, row.verdict) for row in rows), CONSENSUS, verdicts),
        by_reviewer=by_reviewer,
        reviewers=reviewers,
        hot_spots=hot_spots(rows),
        rows=rows,
        unproven=tuple(row for row in rows if row.is_unproven),
        contradictions=tuple(problem for row in rows for problem in row.contradictions),
        refuted=tuple(
            RefutedClaim(row.id, claim)
            for row in rows
            for claim in (row.verification.claims if row.verification else ())
            if claim.holds is False
        ),
        disagreements=tuple(_disagreements(rows, facts)),
        open_work=tuple(sorted(work, key=lambda item: item.row.severity)),
        query=query,
        since=since,
        by_fate=by_fate,
        matrix=matrix,
    )


def _reviewers(rows: Sequence[ReportRow]) -> tuple[CrossTable, tuple[Reviewer, ...]]:
    """Whether measurements bear out what each reviewer said of each document."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for name, said in row.opinions.items():
            if said not in SIDES:
                standing = NO_SIDE
            elif row.holds is None:
                standing = NOT_MEASURED
            else:
                standing = BORNE_OUT if row.holds is SIDES[said] else NOT_BORNE_OUT
            counts[name, standing] += 1
    names = sorted({name for name, _ in counts})
    shares = []
    for name in names:
        # With those who said nothing, each row of the table adds up to all documents.
        counts[name, DID_NOT_REVIEW] = len(rows) - sum(counts[name, standing] for standing in STANDINGS)
        right, wrong = counts[name, BORNE_OUT], counts[name, NOT_BORNE_OUT]
        shares.append(Reviewer(name, right, right + wrong))
    return cross(counts.elements(), names, STANDINGS, with_sum=False), tuple(shares)


def cross(
    counts: Iterable[tuple[str, str]], names: Iterable[str], columns: Iterable[str], *, with_sum: bool = True
) -> CrossTable:
    """A table of how often there is each pair of words; rows and columns that count nothing are left out."""
    cells = Counter(counts)
    # What people write may be called like one of the other rows, and is then counted with that.
    names = list(dict.fromkeys(names))
    # Columns that count nothing would make tables too wide to read.
    present = [column for column in columns if any(cells[name, column] for name in names)]
    lines = [(str(name), [cells[name, column] for column in present]) for name in names]
    rows = [(name, (*line, sum(line))) for name, line in lines if any(line)]
    if with_sum:
        sums = [sum(column) for column in zip(*(line for _, line in rows), strict=True)]
        rows.append((SUM, tuple(sums or [0])))
    return CrossTable((*map(str, present), SUM), tuple(rows))


def hot_spots(rows: Sequence[ReportRow]) -> HotSpots:
    """The files that most documents name."""
    # Reviewers write absolute paths of their machines.
    short = shortened({file for row in rows for file in row.stated.files})
    files = [tuple(dict.fromkeys(short[file] for file in row.stated.files)) for row in rows]
    counts = Counter(file for each in files for file in each)
    # Of files that as many documents name, the first by name, whatever the order of the documents.
    most = sorted(counts, key=lambda file: (-counts[file], file))[:MOST_FILES]
    places = [NO_FILE if not each else each[0] if each[0] in most else OTHER_FILES for each in files]
    pairs = zip(places, (row.severity for row in rows), strict=True)
    return HotSpots(
        cross(pairs, [*most, OTHER_FILES, NO_FILE], SEVERITIES), {file: counts[file] for file in most}
    )


def shortened(files: Collection[str]) -> dict[str, str]:
    """What each file is called here: its path from the repository's root, as far as that can be told.

    Somebody's ``/home/ada/repo/src/a.py`` shows that ``/home/ada/repo/`` is the root of a repository where
    somebody else has written ``src/a.py``: a path of a folder and a name at least.
    """
    roots = set()
    for file in files:
        parts = file.split("/") if file.startswith(("/", "~/")) else []
        ends = ("/".join(parts[first:]) for first in range(1, len(parts) - 1))
        # The longest end that somebody else wrote leaves the shortest root.
        longest = next((end for end in ends if end in files), None)
        if longest:
            roots.add(file.removesuffix(longest))
    by_length = sorted(roots, key=lambda root: (len(root), root))
    return {
        file: next((file.removeprefix(root) for root in by_length if file.startswith(root)), file)
        for file in files
    }


def _disagreements(rows: Sequence[ReportRow], facts: Facts) -> Iterator[Disagreement]:
    """Duplicates of which at least one is in the report."""
    # Of documents that share an ID the first one counts.
    by_id = {row.id.casefold(): row for row in reversed(rows)}

    def find(key: str) -> ReportRow | None:
        stated = facts.relations.rows.get(key)
        return by_id.get(key) or (row_of(stated, facts.measured(stated)) if stated else None)

    for edge in facts.relations.edges:
        keys = edge.source.casefold(), edge.target.casefold()
        if edge.relationship is not Relationship.DUPLICATE or by_id.keys().isdisjoint(keys):
            continue
        one, other = map(find, keys)
        if one is None or other is None or one is other or not (one.is_finding and other.is_finding):
            continue
        # Lint and the report agree on what a comment silences.
        stating = [each for each in (one, other) if each.id in edge.stated_by]
        silent = all("duplicates-differ" in each.ignored for each in stating)
        ended = ((each.stated.status, each.stated.outcome) for each in (one, other))
        if differ(*ended) and not silent:
            yield Disagreement(one, other, DECISIONS)
        if None not in (one.holds, other.holds) and one.holds is not other.holds:
            yield Disagreement(one, other, MEASUREMENTS)


def compare_since(
    revision: str, facts: Facts, rows: Sequence[ReportRow], is_meant: Callable[[Row], bool]
) -> Since:
    """What became of ``rows`` since a revision; of those that are gone, ``is_meant`` says which count.

    Raises:
        UsageError: There is no such revision, or no history.
    """
    # Only those who ask for it wait for git and for what reads evidence.
    from finding_tickets.ground.checkouts import Checkouts
    from finding_tickets.ground.files import safe_name
    from finding_tickets.ground.git import GitError
    from finding_tickets.history.evidence_log import changed_verdicts
    from finding_tickets.register.history import config_at, rows_at

    try:
        commit = Checkouts(facts.root).revision(revision).commit
        past = config_at(facts.root, commit)
        before = rows_at(facts.root, facts.config, commit, facts.rows, past.tickets)
        verdicts = changed_verdicts(facts.root, facts.config.evidence, commit, past.evidence)
    except (RevisionError, GitError) as error:
        raise UsageError(f"--since {revision}: {error}") from None
    # IDs identify documents: files may have been moved since.
    then = {row.id.casefold(): row for row in reversed(before)}
    # Of two documents with one ID, each is what it was under its path.
    then_at = {(row.id.casefold(), row.path): row for row in before}
    here = {row.id.casefold() for row in facts.rows}
    changed = []
    for row in rows:
        key = row.id.casefold()
        stated = then_at.get((key, row.path), then.get(key))
        if stated is None:
            continue
        # Nobody can say of a commit which of its evidence was stale.
        old = row_of(stated, CurrentVerdict())
        changed += [
            StatedChange(row.id, what, getattr(old, what), getattr(row, what))
            for what in ("severity", "disposition")
            if getattr(old, what) != getattr(row, what)
        ]
        verdict = verdicts.get(safe_name(row.id))
        if verdict and verdict[0] != verdict[1]:
            changed.append(StatedChange(row.id, "verdict", *verdict))
    return Since(
        revision=revision,
        commit=commit,
        added=tuple(row.id for row in rows if row.id.casefold() not in then),
        removed=tuple(row.id for key, row in reversed(then.items()) if key not in here and is_meant(row)),
        changed=tuple(changed),
    )
