"""The status of a register: the tables and lists that a report shows, and the formats that it is written in.

The classes of this module are what templates are given: docs/reports.md promises their names to users.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.claims.language import evaluate, parse_expression
from finding_tickets.ground.git import SHORT_HASH, GitError, ask, changed_files
from finding_tickets.ground.statements import equal_statements
from finding_tickets.lint.worktree import WorkTree, is_absolute
from finding_tickets.model.vocabulary import UNSETTLED, Relationship, Status, Verdict
from finding_tickets.register.disposition import DISPOSITIONS, UNDECIDED, differ
from finding_tickets.register.load import Register
from finding_tickets.report.document import MeasuredDocument, measured_documents
from finding_tickets.report.rows import (
    CONSENSUS,
    REVIEW,
    SEVERITIES,
    SIDES,
    UNPROVEN_RULE,
    ReportRow,
    row_of,
)
from finding_tickets.report.text import counted
from finding_tickets.report.verification import AFTER, BEFORE, moved_text

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem
    from finding_tickets.model.verification import ClaimResult, VariantResult

BORNE_OUT, NOT_BORNE_OUT, NO_SIDE, NOT_MEASURED, DID_NOT_REVIEW = STANDINGS = (
    "borne out",
    "not borne out",
    "no side",
    "not measured",
    "did not review",
)
DECISIONS, MEASUREMENTS = "decisions", "measurements"
SUM = "sum"
# Verdicts that make work of a settled document: its measurement speaks against it.
AGAINST = frozenset(
    {Verdict.FAILED, Verdict.REFUTED, Verdict.STALE, Verdict.INCONCLUSIVE}
)
CONTRADICT, STATE, PROVE, GONE = "contradictions", UNDECIDED, "unproven", "gone"
# What to do, by the verdict or, without a verifier, by the status: what is wrong comes before what
# waits.
STEPS: Mapping[str, str] = {
    Verdict.FAILED: "mend the fix: it does not do what is claimed",
    CONTRADICT: "say which is true: they contradict themselves, or their measurement",
    Verdict.REFUTED: "restate it: the code does not do what the finding says",
    Verdict.VERIFIED: "close it: what it claims is measured",
    GONE: "measure the fix: the statement is not there any more",
    Verdict.REPRODUCED: "write a fix: the finding is measured",
    Verdict.STALE: "measure it again: something it depends on has changed",
    Verdict.INCONCLUSIVE: "make it measurable",
    Verdict.UNVERIFIED: "measure it",
    Status.IN_REVIEW: "review the fix",
    Status.IN_PROGRESS: "finish the fix",
    Status.INVESTIGATING: "find out whether it is so",
    Status.OPEN: "fix it, or decide to keep the code as it is",
    STATE: "state a status",
    PROVE: "show that it is fixed: nothing is ticked or measured",
}
# Verdicts without a gain.
UNSURE = {Verdict.STALE, Verdict.INCONCLUSIVE, Verdict.UNVERIFIED, Verdict.FAILED}
# What the metrics count that are known of a run that raised.
NOUNS = {"raised": "exceptions", "ooms": "out-of-memory errors"}
# Folders of people's machines, and below them that of a repository.
_HOME = re.compile(r"(?:~|/(?:home|Users)/[^/]+|/root|/workspaces?)/[^/]+/")


class ReportFormat(StrEnum):
    """The formats of a report."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CSV = "csv"
    SARIF = "sarif"


# The templates of the formats that have one.
TEMPLATES = {ReportFormat.MARKDOWN: "report.md.j2", ReportFormat.HTML: "report.html.j2"}


@dataclass(frozen=True, slots=True)
class CrossTable:
    """Counts by two properties. The last column and the last row are sums.

    In a table without a row of sums, every row adds up to the number of all documents.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


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
    """A document, and what a reader is to know of it before anything else."""

    row: ReportRow
    text: str


@dataclass(frozen=True)
class NextStep:
    """Something to do for all of ``rows``, the worst first; ``command`` lists them or does it."""

    step: str
    rows: tuple[ReportRow, ...]
    command: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two duplicates whose ``decisions`` or ``measurements`` differ."""

    one: ReportRow
    other: ReportRow
    about: str


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
    rows: tuple[ReportRow, ...]
    unproven: tuple[ReportRow, ...]
    contradictions: tuple[Problem, ...]
    refuted: tuple[RefutedClaim, ...]
    disagreements: tuple[Disagreement, ...]
    open_work: tuple[OpenWork, ...]
    won: tuple[Headline, ...]
    next_steps: tuple[NextStep, ...]
    disproved: tuple[Headline, ...]
    blocked: tuple[Headline, ...]
    paths: Mapping[str, str]
    query: str = ""

    @property
    def alerts(self) -> list[OpenWork]:
        """The open work that people are to be shown where they did not ask: without what is verified."""
        return [
            work for work in self.open_work if work.row.verdict is not Verdict.VERIFIED
        ]


@dataclass(frozen=True)
class StatusReport:
    """The input of every writer of a report: the register, its status, and the options."""

    facts: Register
    status: RegisterStatus
    template: str = ""

    @property
    def templates(self) -> Path:
        """The folder of the register's own templates, which come first."""
        return self.facts.root / self.facts.config.templates

    @property
    def project(self) -> str:
        """Return the project's name: the name of its folder."""
        return self.facts.root.resolve().name

    @cached_property
    def revision(self) -> str:
        """The commit of the work tree with its date, and whether files differ from it; empty without git."""
        try:
            said = ask(
                self.facts.root,
                "log",
                "-1",
                f"--abbrev={SHORT_HASH}",
                "--format=%h of %cs",
            )
            changed = changed_files(self.facts.root, "HEAD")
        except GitError:
            return ""
        return f"{said.strip()}, with uncommitted changes" if changed else said.strip()

    def entries(self) -> Iterator[MeasuredDocument]:
        """Each document whole, read when it is asked for and not kept; those gone by now are left out."""
        return measured_documents(self.facts, (row.stated for row in self.status.rows))


def status_of_rows(
    rows: Iterable[ReportRow],
    facts: Register,
    query: str = "",
) -> RegisterStatus:
    """Return the status of the documents that are ``rows``, in their order."""
    rows = tuple(rows)
    verdicts = list(Verdict)
    work = [
        OpenWork(row, STEPS[_step(row, facts)])
        for row in rows
        if row.stated.status in UNSETTLED or row.verdict in AGAINST
    ]
    paths = short_paths({file for row in rows for file in row.stated.files}, facts.root)
    gains = (Headline(row, text) for row in rows if (text := gains_text(row)))
    refuted = [row for row in rows if row.verdict is Verdict.REFUTED]
    blocked = [
        Headline(row, f"waits for {names}")
        for row in rows
        if (names := _blockers(row, facts))
    ]
    return RegisterStatus(
        total=len(rows),
        by_disposition=cross_table(
            ((row.severity, row.disposition) for row in rows),
            SEVERITIES,
            [*DISPOSITIONS, UNDECIDED, REVIEW],
        ),
        by_verdict=cross_table(
            ((row.severity, row.verdict) for row in rows), SEVERITIES, verdicts
        ),
        by_consensus=cross_table(
            ((row.consensus, row.verdict) for row in rows), CONSENSUS, verdicts
        ),
        by_reviewer=_reviewers(rows),
        rows=rows,
        unproven=tuple(row for row in rows if row.is_unproven),
        contradictions=tuple(problem for row in rows for problem in row.contradictions),
        refuted=tuple(
            RefutedClaim(row.id, claim) for row in rows for claim in false_claims(row)
        ),
        disagreements=tuple(_disagreements(rows, facts)),
        open_work=tuple(sorted(work, key=lambda item: item.row.severity)),
        won=tuple(
            sorted(gains, key=lambda each: each.row.verdict is not Verdict.VERIFIED)
        ),
        next_steps=tuple(
            _next_steps(work, rows, {each.row.id for each in blocked}, query)
        ),
        disproved=tuple(Headline(row, refutation_text(row)) for row in refuted),
        blocked=tuple(blocked),
        paths=paths,
        query=query,
    )


def _reviewers(rows: Sequence[ReportRow]) -> CrossTable:
    """Compare the opinions of each reviewer with the measurements."""
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
    for name in names:
        # With those who said nothing, each row of the table adds up to all documents.
        counts[name, DID_NOT_REVIEW] = len(rows) - sum(
            counts[name, standing] for standing in STANDINGS
        )
    return cross_table(counts.elements(), names, STANDINGS, with_sum=False)


def cross_table(
    counts: Iterable[tuple[str, str]],
    names: Iterable[str],
    columns: Iterable[str],
    *,
    with_sum: bool = True,
) -> CrossTable:
    """Count each pair of words; rows and columns that count nothing are left out."""
    cells = Counter(counts)
    # What people write may be called like one of the other rows, and is then counted with that.
    names = list(dict.fromkeys(names))
    # Columns that count nothing would make tables too wide to read.
    present = [
        column for column in columns if any(cells[name, column] for name in names)
    ]
    lines = [(str(name), [cells[name, column] for column in present]) for name in names]
    rows = [(name, (*line, sum(line))) for name, line in lines if any(line)]
    if with_sum:
        sums = [sum(column) for column in zip(*(line for _, line in rows), strict=True)]
        rows.append((SUM, tuple(sums or [0])))
    return CrossTable((*map(str, present), SUM), tuple(rows))


def short_paths(files: Iterable[str], root: Path) -> dict[str, str]:
    """Return the path of each file from the repository's root, where that can be found.

    Reviewers write absolute paths of their machines. ``/home/ada/repo/src/a.py`` is ``src/a.py`` where that
    is a file below ``root``; else the folder below a home is a root.
    """
    tree = WorkTree(root)
    paths = {}
    for file in files:
        paths[file] = (is_absolute(file) and tree.at_home(file)) or _HOME.sub(
            "", file, count=1
        )
    return paths


def _step(row: ReportRow, facts: Register) -> str:
    """Return the key of ``STEPS`` for an open document."""
    if row.verdict is Verdict.REPRODUCED and row.stated.place:
        file, function, code, _ = row.stated.place
        return (
            row.verdict if equal_statements(facts.root, file, function, code) else GONE
        )
    is_measurable = row.verdict is not Verdict.UNVERIFIED or facts.has_verifier(
        row.stated
    )
    return row.verdict if is_measurable else row.stated.status or row.verdict


def _blockers(row: ReportRow, facts: Register) -> str:
    """Return the open documents that block an open one."""
    relations = (
        facts.relations.by_id.get(row.id.casefold(), ())
        if row.stated.status in UNSETTLED
        else ()
    )
    others = (
        facts.relations.rows.get(other)
        for other, how in relations
        if how is Relationship.BLOCKED_BY
    )
    return ", ".join(
        other.id for other in others if other and other.status in UNSETTLED
    )


def _next_steps(
    work: Iterable[OpenWork],
    rows: Sequence[ReportRow],
    blocked: Collection[str],
    query: str,
) -> Iterator[NextStep]:
    """Yield the steps to take, each with its documents and a command that lists them."""
    found = {
        STEPS[CONTRADICT]: [row for row in rows if row.contradictions],
        STEPS[STATE]: [row for row in rows if row.disposition == UNDECIDED],
        STEPS[PROVE]: [row for row in rows if row.is_unproven],
    }
    for each in work:
        found.setdefault(each.step, []).append(each.row)
    # An order counts for nothing here.
    chosen = re.sub(r"-?sort:\S+", "", query).strip()
    contradicted = sorted({each.rule for row in rows for each in row.contradictions})
    rules = {CONTRADICT: contradicted, PROVE: [UNPROVEN_RULE]}
    for key, step in STEPS.items():
        if not found.get(step):
            continue
        # What is blocked cannot be done next; of the worst, what has waited longest comes first.
        named = sorted(
            found[step],
            key=lambda row: (
                row.id in blocked,
                row.severity,
                row.stated.created or "no date",
            ),
        )
        command, condition = "tickets list", _condition(key)
        if key in rules:
            command, condition = f"tickets lint --select {','.join(rules[key])}", ""
        asked = f"{chosen} {condition}".strip()
        if key == GONE:
            command, asked = "tickets fix", named[0].id
        yield NextStep(
            step, tuple(named), f"{command} {shlex.quote(asked)}" if asked else command
        )


def _condition(key: str) -> str:
    """Return the query for the documents of a step that lint does not find."""
    unsettled = f"status:{','.join(sorted(UNSETTLED))}"
    if key == STATE:
        return "kind:finding no:status"
    if key in UNSETTLED:
        return f"verdict:unverified no:verifier status:{key}"
    if key == Verdict.UNVERIFIED:
        return f"verdict:unverified has:verifier {unsettled}"
    return f"verdict:{key}" if key in AGAINST else f"verdict:{key} {unsettled}"


def gains_text(row: ReportRow) -> str:
    """Describe the costs that the fix reduces; empty if it reduces none, or if a claim about it is false."""
    done = row.verification
    if (
        done is None
        or row.verdict in UNSURE
        or not {BEFORE, AFTER} <= done.variants.keys()
    ):
        return ""
    before, after = done.variants[BEFORE], done.variants[AFTER]
    less, more = list[str](), list[str]()
    for metric in dict.fromkeys(
        each.metric for each in done.claims if each.variant in {BEFORE, AFTER}
    ):
        noun = NOUNS.get(metric, metric.replace("_", " "))
        old, new = (
            _highest(variant, metric, done.sweep) for variant in (before, after)
        )
        if old is None or new is None:
            continue
        law, fixed = before.laws.get(metric), after.laws.get(metric)
        most = "" if len(done.sweep) == 1 else "at most "
        moved = moved_text(done) if metric == "syncs" and not new else ""
        if old < new:
            more.append(noun)
        elif old > new and law and fixed:
            was, now = _law_in_words(law), _law_in_words(fixed)
            now += moved
            less.append(
                f"{was} {noun} became {now}"
                if was == law
                else f"{noun}: {was} became {now}"
            )
        elif old > new:
            least = f"{most}{new:,}" if new else "none"
            less.append(f"{noun}: {most}{old:,} became {least}{moved}")
    if less and more:
        less.append(f"in return more {' and '.join(more)}")
    return "; ".join(less)


def _highest(
    variant: VariantResult, metric: str, sweep: Sequence[Mapping[str, int]]
) -> int | None:
    """Return the highest cost at any point of the sweep; None if it is not known."""
    law = variant.laws.get(metric)
    if law:
        expression = parse_expression(law)
        return int(max(evaluate(expression, at) for at in sweep))
    # Without a law there is a range, or a single value.
    last = re.search(r"(?:^|\.\.|, )(\d+)$", variant.growth.get(metric, ""))
    return int(last[1]) if last else None


def _law_in_words(law: str) -> str:
    """Return a law in words: one that is only the name of things is one for each of them."""
    each = f"one for each {law[:-1]}" if re.fullmatch("[a-z_]+s", law) else law
    return {"0": "none", "1": "one"}.get(law, each)


def false_claims(row: ReportRow) -> list[ClaimResult]:
    """Return the claims of a document that were measured to be false, expected or not."""
    return [
        each
        for each in (row.verification.claims if row.verification else ())
        if each.holds is False
    ]


def refutation_text(row: ReportRow) -> str:
    """Return the false claim of a document that matters most, and how many more there are; else nothing."""
    claims = false_claims(row)
    if not claims:
        return ""
    first, *others = sorted(
        claims, key=lambda each: (not each.is_surprise, each.variant != BEFORE)
    )
    said = f"measured {first.measured}, which is not expected"
    if not first.is_surprise:
        said = first.why or f"measured {first.measured}"
    more = f"; {counted(len(others), 'more claim')} false" if others else ""
    return f"{first.id} claims {first.claimed}, but {said}{more}"


def _disagreements(
    rows: Sequence[ReportRow], facts: Register
) -> Iterator[Disagreement]:
    """Yield pairs of duplicates that disagree, at least one of them in the report."""
    # Of documents that share an ID the first one counts.
    by_id = {row.id.casefold(): row for row in reversed(rows)}
    for edge in facts.relations.edges:
        keys = edge.source.casefold(), edge.target.casefold()
        if edge.relationship is not Relationship.DUPLICATE or by_id.keys().isdisjoint(
            keys
        ):
            continue
        pair = []
        for key in dict.fromkeys(keys):
            stated = facts.relations.rows.get(key)
            row = by_id.get(key) or (
                row_of(stated, facts.measured(stated)) if stated else None
            )
            if row and row.is_finding:
                pair.append(row)
        if len(pair) < len(keys):
            continue
        one, other = pair
        # Lint and the report agree on what a comment silences.
        stating = [each for each in pair if each.id in edge.stated_by]
        is_silent = all("duplicates-differ" in each.ignored for each in stating)
        ends = [(each.stated.status, each.stated.outcome) for each in pair]
        if differ(*ends) and not is_silent:
            yield Disagreement(one, other, DECISIONS)
        if {one.holds, other.holds} == {True, False}:
            yield Disagreement(one, other, MEASUREMENTS)
