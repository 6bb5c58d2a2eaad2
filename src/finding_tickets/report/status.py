"""The status of a register: the tables and lists that a report shows, and the formats that it is written in.

The classes of this module are what templates are given: docs/reports.md promises their names to users.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.errors import RevisionError, UsageError
from finding_tickets.ground.git import SHORT_HASH, GitError, ask, changed_files
from finding_tickets.lint.contradictions import CONTRADICTIONS
from finding_tickets.model.vocabulary import UNSETTLED, Relationship, Status, Verdict
from finding_tickets.register.disposition import DISPOSITIONS, UNDECIDED, differ
from finding_tickets.register.index import Row
from finding_tickets.register.query import Facts
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.rows import (
    CONSENSUS,
    REFUTED_RULE,
    REVIEW,
    SEVERITIES,
    SIDES,
    UNPROVEN_RULE,
    ReportRow,
    row_of,
)
from finding_tickets.report.text import (
    AFTER,
    BEFORE,
    MeasuredDocument,
    Styled,
    Styler,
    TableCell,
    TextSection,
    counted,
    measured_documents,
    printable,
    section_lines,
)

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
    Verdict.FAILED: "mend the fix: it does not do what is claimed",
    Verdict.REFUTED: "restate it: the code does not do what the finding says",
    Verdict.VERIFIED: "close it: what it claims is measured",
    Verdict.REPRODUCED: "write a fix: the finding is measured",
    Verdict.STALE: "measure it again: something it depends on has changed",
    Verdict.INCONCLUSIVE: "make it measurable",
    Verdict.UNVERIFIED: "measure it",
}
"""What settles a document, by its verdict; what was measured and is wrong comes first."""
UNMEASURABLE_STEP = {
    Status.IN_REVIEW: "review the fix",
    Status.IN_PROGRESS: "finish the fix",
    Status.INVESTIGATING: "find out whether it is so",
    Status.OPEN: "fix it, or decide to keep the code as it is",
}
"""What settles a document without a verifier, by its status."""
NOT_OPEN, NO_DATE = "not open", "no date"
NAMED, FEW = 5, 3
"""Documents of a step that a page and a terminal name; a query lists the others."""
MOST_MONTHS = 12
MOST_GAINS = 2
"""Metrics of a fix that are told in a sentence."""
CONTRADICT = "say which is true: they contradict themselves, or their measurement"
STATE = "state a status"
PROVE = "show that it is fixed: nothing is ticked or measured"
_OPEN = f"status:{','.join(sorted(UNSETTLED))}"
STEPS = {
    NEXT_STEP[Verdict.FAILED]: ("list", "verdict:failed"),
    CONTRADICT: (f"lint --select {','.join((*CONTRADICTIONS, REFUTED_RULE))}", ""),
    NEXT_STEP[Verdict.REFUTED]: ("list", "verdict:refuted"),
    NEXT_STEP[Verdict.VERIFIED]: ("list", f"verdict:verified {_OPEN}"),
    NEXT_STEP[Verdict.REPRODUCED]: ("list", f"verdict:reproduced {_OPEN}"),
    NEXT_STEP[Verdict.STALE]: ("list", "verdict:stale"),
    NEXT_STEP[Verdict.INCONCLUSIVE]: ("list", "verdict:inconclusive"),
    NEXT_STEP[Verdict.UNVERIFIED]: ("list", f"verdict:unverified has:verifier {_OPEN}"),
    **{
        step: ("list", f"verdict:unverified no:verifier status:{status}")
        for status, step in UNMEASURABLE_STEP.items()
    },
    STATE: ("list", "kind:finding no:status"),
    PROVE: (f"lint --select {UNPROVEN_RULE}", ""),
}
"""Each step with the command, and the condition, that lists the documents for which it is to be done."""
NOUNS = {"raised": "exceptions", "ooms": "out-of-memory errors"}
"""What a metric counts, where that is not its name."""
# Folders of people's machines, and below them that of a repository.
_HOME = re.compile(r"(?:~|/(?:home|Users)/[^/]+|/root|/workspaces?)/[^/]+/")


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


@dataclass(frozen=True)
class Headline:
    """A document, and what a reader is to know of it before anything else, in a sentence."""

    row: ReportRow
    text: str


@dataclass(frozen=True)
class NextStep:
    """Something to do for all of ``rows``, the worst first; ``command`` lists them or does it."""

    step: str
    rows: tuple[ReportRow, ...]
    command: str


@dataclass(frozen=True)
class BlockedWork:
    """An open document, and the open documents that block it, by their IDs."""

    row: ReportRow
    blockers: tuple[str, ...]


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
    won: tuple[Headline, ...]
    next_steps: tuple[NextStep, ...]
    disproved: tuple[Headline, ...]
    blocked: tuple[BlockedWork, ...]
    paths: Mapping[str, str]
    by_age: CrossTable | None = None
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

    @cached_property
    def project(self) -> str:
        """What the project is called: by its package, else by its origin, else by its folder."""
        root = self.facts.root.resolve()
        with suppress(OSError, ValueError, LookupError, TypeError):
            return str(
                tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
            )
        with suppress(GitError):
            return re.split("[/:]", ask(root, "remote", "get-url", "origin").strip())[-1].removesuffix(".git")
        return root.name

    @cached_property
    def revision(self) -> str:
        """The commit of the work tree with its date, and whether files differ from it; empty without git."""
        try:
            said = ask(self.facts.root, "log", "-1", f"--abbrev={SHORT_HASH}", "--format=%h of %cs")
            changed = changed_files(self.facts.root, "HEAD")
        except GitError:
            return ""
        return f"{said.strip()}, with uncommitted changes" if changed else said.strip()

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
        OpenWork(row, _step(row, facts))
        for row in rows
        if row.stated.status in UNSETTLED or row.verdict in against
    ]
    paths = shortened({file for row in rows for file in row.stated.files}, facts.root)
    gains = (Headline(row, text) for row in rows if (text := won(row)))
    refuted = (Headline(row, text) for row in rows if (text := disproved(row)))
    blocked = [BlockedWork(row, names) for row in rows if (names := _blockers(row, facts))]
    return RegisterStatus(
        total=len(rows),
        by_disposition=cross(
            ((row.severity, row.disposition) for row in rows), SEVERITIES, [*DISPOSITIONS, UNDECIDED, REVIEW]
        ),
        by_verdict=cross(((row.severity, row.verdict) for row in rows), SEVERITIES, verdicts),
        by_consensus=cross(((row.consensus, row.verdict) for row in rows), CONSENSUS, verdicts),
        by_reviewer=by_reviewer,
        reviewers=reviewers,
        hot_spots=hot_spots(rows, paths),
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
        won=tuple(sorted(gains, key=lambda each: each.row.verdict is not Verdict.VERIFIED)),
        next_steps=tuple(_next_steps(rows, work, {each.row.id for each in blocked}, query)),
        disproved=tuple(sorted(refuted, key=lambda each: each.row.verdict not in against)),
        blocked=tuple(blocked),
        paths=paths,
        by_age=_by_age(rows),
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


def hot_spots(rows: Sequence[ReportRow], paths: Mapping[str, str]) -> HotSpots:
    """The files that most documents name; ``paths`` has what each is called here."""
    files = [tuple(dict.fromkeys(paths[file] for file in row.stated.files)) for row in rows]
    counts = Counter(file for each in files for file in each)
    # Of files that as many documents name, the first by name, whatever the order of the documents.
    most = sorted(counts, key=lambda file: (-counts[file], file))[:MOST_FILES]
    places = [NO_FILE if not each else each[0] if each[0] in most else OTHER_FILES for each in files]
    pairs = zip(places, (row.severity for row in rows), strict=True)
    return HotSpots(
        cross(pairs, [*most, OTHER_FILES, NO_FILE], SEVERITIES), {file: counts[file] for file in most}
    )


def shortened(files: Collection[str], root: Path) -> dict[str, str]:
    """What each file is called here: its path from the repository's root, as far as that can be told.

    Reviewers write absolute paths of their machines. ``/home/ada/repo/src/a.py`` shows that
    ``/home/ada/repo/`` is a root where ``src/a.py`` is a file below ``root``, or is what somebody else has
    written: a path of a folder and a name at least. Otherwise the folder below a home is a root.
    """
    roots = set()
    for file in files:
        parts = file.split("/") if file.startswith(("/", "~/")) else []
        ends = ("/".join(parts[first:]) for first in range(1, len(parts) - 1))
        # The longest end that is known leaves the shortest root.
        longest = next((end for end in ends if end in files or _is_file(root / end)), None)
        if longest:
            roots.add(file.removesuffix(longest))
    by_length = sorted(roots, key=lambda each: (len(each), each))
    return {
        file: next((file.removeprefix(each) for each in by_length if file.startswith(each)), None)
        or _HOME.sub("", file, count=1)
        for file in files
    }


def _is_file(path: Path) -> bool:
    # What a ticket names may be longer than a path can be, or have a NUL in it.
    with suppress(OSError, ValueError):
        return path.is_file()
    return False


def _step(row: ReportRow, facts: Facts) -> str:
    """What settles an open document."""
    status = row.stated.status
    if row.verdict is Verdict.UNVERIFIED and not facts.has_verifier(row.stated) and status:
        return UNMEASURABLE_STEP[Status(status)]
    return NEXT_STEP[row.verdict]


def _blockers(row: ReportRow, facts: Facts) -> tuple[str, ...]:
    """The open documents that block an open one."""
    known, relations = facts.relations.rows, facts.relations.by_id.get(row.id.casefold(), ())
    if row.stated.status not in UNSETTLED:
        return ()
    others = (known.get(other) for other, how in relations if how is Relationship.BLOCKED_BY)
    return tuple(other.id for other in others if other and other.status in UNSETTLED)


def _next_steps(
    rows: Sequence[ReportRow], work: Iterable[OpenWork], blocked: Collection[str], query: str
) -> Iterator[NextStep]:
    """What to do, each with all documents that it is to be done for: what is wrong first, then what waits."""
    by_step: dict[str, list[ReportRow]] = {
        CONTRADICT: [row for row in rows if row.contradictions],
        STATE: [row for row in rows if row.disposition == UNDECIDED],
        PROVE: [row for row in rows if row.is_unproven],
    }
    for each in work:
        by_step.setdefault(each.step, []).append(each.row)
    # An order must stand outside of all parentheses, and counts for nothing here.
    chosen = re.sub(r"-?sort:\S+", "", query)
    chosen = f"({chosen})" if " OR " in chosen else chosen
    for step, (command, condition) in STEPS.items():
        found = by_step.get(step, [])
        # What is blocked cannot be done next; what has waited longest comes first.
        found.sort(key=lambda row: (row.id in blocked, row.severity, row.stated.created or NO_DATE))
        asked = " ".join(filter(None, (chosen, condition)))
        if found:
            yield NextStep(
                step,
                tuple(found),
                f"tickets {command} {shlex.quote(asked)}" if asked else f"tickets {command}",
            )


def _by_age(rows: Sequence[ReportRow]) -> CrossTable | None:
    """The months in which open documents were created, or the years; None where no document is open."""
    created = {
        id(row): found[0] if (found := re.match(r"\d{4}-\d\d", row.stated.created or "")) else NO_DATE
        for row in rows
        if row.stated.status in UNSETTLED
    }
    if len({*created.values()}) > MOST_MONTHS:
        created = {row: month if month == NO_DATE else month[:4] for row, month in created.items()}
    ages = [*sorted({*created.values()} - {NO_DATE}), NO_DATE, NOT_OPEN]
    counts = ((row.severity, created.get(id(row), NOT_OPEN)) for row in rows)
    return cross(counts, SEVERITIES, ages) if created else None


def won(row: ReportRow) -> str:
    """What the fix of a document costs less than the code as found, in words; empty where that is nothing.

    Only points where both were measured count. A fix of which a claim is false has won nothing.
    """
    done, unsure = row.verification, {Verdict.STALE, Verdict.INCONCLUSIVE, Verdict.UNVERIFIED, Verdict.FAILED}
    before, after = (done.variants.get(name) if done else None for name in (BEFORE, AFTER))
    if done is None or before is None or after is None or row.verdict in unsure:
        return ""
    at = {frozenset(sample.at.items()): sample for sample in after.samples}
    less, more = [], []
    for metric in dict.fromkeys(each.metric for each in done.claims if each.variant in {BEFORE, AFTER}):
        both = ((each, at.get(frozenset(each.at.items()))) for each in before.samples)
        pairs = [
            (one.metrics[metric], other.metrics[metric])
            for one, other in both
            # A run that raised counted only a part.
            if other and (metric in NOUNS or not (one.error or other.error))
            if metric in one.metrics and metric in other.metrics
        ]
        noun, worse = NOUNS.get(metric, metric.replace("_", " ")), sum(old < new for old, new in pairs)
        if any(old > new for old, new in pairs):
            but = f" (more at {worse} of {len(pairs)} points)" if worse else ""
            less.append(_change(metric, noun, pairs, before.laws.get(metric), after.laws.get(metric)) + but)
        elif worse:
            more.append(noun)
    others = [f"{counted(len(less) - MOST_GAINS, 'other metric')} fell"] if len(less) > MOST_GAINS else []
    price = [f"in return more {' and '.join(more)}"] if less and more else []
    return "; ".join([*less[:MOST_GAINS], *others, *price])


def _change(
    metric: str, noun: str, pairs: Sequence[tuple[int, int]], before: str | None, after: str | None
) -> str:
    """What became of a metric: of its law, or else of the points or of the most that was measured."""
    if metric in NOUNS:
        old, new = (sum(map(bool, each)) for each in zip(*pairs, strict=True))
        return f"{noun} at {old} of {len(pairs)} points became {new or 'none'}"
    if before is None or after is None:
        old, new = map(max, zip(*pairs, strict=True))
        return f"{noun}: at most {old:,} became at most {new:,}"
    # A law that is only the name of things is one for each of them.
    words = [
        f"one for each {law[:-1]}"
        if re.fullmatch("[a-z_]+s", law)
        else {"0": "none", "1": "one"}.get(law, law)
        for law in (before, after)
    ]
    return (
        f"{noun}: {words[0]} became {words[1]}"
        if words[0] != before
        else f"{before} {noun} became {words[1]}"
    )


def disproved(row: ReportRow) -> str:
    """The false claim of a document that matters most, and how many more there are; empty without one."""
    claims = [
        claim for claim in (row.verification.claims if row.verification else ()) if claim.holds is False
    ]
    if not claims:
        return ""
    first, *others = sorted(claims, key=lambda each: (not each.is_surprise, each.variant != BEFORE))
    but = "measured " + first.measured if first.is_surprise or not first.why else first.why
    surprise = ", which the ticket does not expect" if first.is_surprise else ""
    more = f"; {counted(len(others), 'more claim')} false" if others else ""
    return f"{first.id} claims {first.claimed}, but {but}{surprise}{more}"


def status_lines(report: StatusReport, style: Styler, width: int = 0) -> Iterator[str]:
    """A report for half a screen: counts, what was won, what to do next, what is refuted."""
    status = report.status

    def counts(numbers: Iterable[tuple[str, int]]) -> str:
        return ", ".join(f"{number} {name}" for name, number in numbers)

    decided, measured, age = status.by_disposition, status.by_verdict, status.by_age
    sums = [
        ("severity", counts((name, numbers[-1]) for name, numbers in decided.rows[:-1])),
        ("disposition", counts(zip(decided.columns[:-1], decided.rows[-1][1], strict=False))),
        ("verdict", counts(zip(measured.columns[:-1], measured.rows[-1][1], strict=False))),
    ]
    if age:
        months = (
            f"in {each}" if each != NO_DATE else each for each in age.columns if each not in {NOT_OPEN, SUM}
        )
        sums.append(("open since", counts(zip(months, age.rows[-1][1], strict=False))))
    sums += [("blocked", ", ".join(each.row.id for each in status.blocked))] if status.blocked else []
    steps: list[tuple[TableCell, ...]] = []
    for step in status.next_steps[:NAMED]:
        named = ", ".join(row.id for row in step.rows[:FEW])
        steps.append((Styled(str(len(step.rows)), "bold"), f"{step.step}: {named}"))
        steps += [("", Styled(step.command, "dim"))] if len(step.rows) > FEW else []
    heading = f"{report.project}: {counted(status.total, 'document')}"
    for title, lines in (
        (heading, sums),
        ("Won", [(Styled(each.row.id, "bold"), each.text) for each in status.won[:FEW]]),
        ("Next", steps),
        ("Refuted", [(Styled(each.row.id, "bold"), each.text) for each in status.disproved[:FEW]]),
    ):
        yield from section_lines(TextSection(printable(title), lines), style, width) if lines else ()


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
