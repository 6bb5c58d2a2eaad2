"""A row for each document: what it states and what was measured, for lists, for CSV and for reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from finding_tickets.model.vocabulary import Opinion, Severity, Verdict
from finding_tickets.register.disposition import UNDECIDED, disposed, is_fixed
from finding_tickets.register.index import IndexExtras, Row
from finding_tickets.register.query import Facts
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.text import printable
from finding_tickets.report.verification import AFTER, BEFORE, LawChange, law_changes

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem
    from finding_tickets.model.verification import Verification

REVIEW = "review"
SEVERITIES = (*Severity, UNDECIDED, REVIEW)
"""The severities of documents, the worst first, and what those without one are counted as."""
UNNAMED = "not named"
ENDORSED, OBJECTED, SPLIT, NO_SIDE, NOT_REVIEWED = "endorsed", "objected", "split", "no side", "not reviewed"
CONSENSUS = (ENDORSED, OBJECTED, SPLIT, NO_SIDE, NOT_REVIEWED, REVIEW)
SIDES: Mapping[str, bool] = {Opinion.ENDORSE: True, Opinion.REFINE: True, Opinion.OBJECT: False}
"""The opinions that take a side: whether they say that there is something to what the finding claims."""

UNPROVEN_RULE = "closed-without-evidence"
REFUTED_RULE = "fixed-but-refuted"
BETWEEN = ", "

# Where a semicolon separates cells, as it does for half of Europe, what follows one begins a cell.
_FORMULA = re.compile(
    "^(?=[=+\\-@\uff0b\uff0d\uff1d\uff20])|(?<=;)(?=[\"'\\s]*[=+\\-@\uff0b\uff0d\uff1d\uff20])"
)
LONGEST_CELL = 32_767
"""Characters that spreadsheets take in a cell; some put what follows into the next cells."""


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One document of a report: what it states, and what was measured.

    ``severity``, ``disposition`` and ``consensus`` are the words that tables count it under. docs/reports.md
    tells the authors of templates what each field is.
    """

    stated: Row
    measured: CurrentVerdict
    severity: str
    disposition: str
    consensus: str = NOT_REVIEWED
    claimed: tuple[LawChange, ...] = ()
    changes: tuple[LawChange, ...] = ()
    contradictions: tuple[Problem, ...] = ()
    is_unproven: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The ID, as the register spells it."""
        return self.stated.id

    @property
    def title(self) -> str:
        """The title, without the words that only say what kind of document it is."""
        return self.stated.title

    @property
    def path(self) -> str:
        """The file, from the register's root."""
        return self.stated.path

    @property
    def is_finding(self) -> bool:
        """True for a finding, False for an implementation review."""
        return self.stated.kind == "finding"

    @property
    def verdict(self) -> Verdict:
        """The verdict of the measurement."""
        return self.measured.verdict

    @property
    def verification(self) -> Verification | None:
        """The verification that the verdict comes from."""
        return self.measured.verification

    @property
    def reason(self) -> str:
        """The reason of the verdict; empty without a verification."""
        return self.verification.reason if self.verification else ""

    @property
    def disagreement(self) -> str:
        """The verdicts of meters that differ; empty where they do not."""
        return self.measured.disagreement or ""

    @property
    def opinions(self) -> Mapping[str, str]:
        """The last opinion of each reviewer of a finding, by their names."""
        return {name or UNNAMED: said for name, said in self.stated.reviews} if self.is_finding else {}

    @property
    def holds(self) -> bool | None:
        """True if every claim about the code as found holds, False if one is false, else None.

        A verdict that is stale, inconclusive or not there says nothing of it, nor does one on the fix alone.
        """
        unknown = {Verdict.STALE, Verdict.INCONCLUSIVE, Verdict.UNVERIFIED}
        if self.verification is None or self.verdict in unknown:
            return None
        held = [claim.holds for claim in self.verification.claims if claim.variant == BEFORE]
        # One false claim refutes the finding, whatever could not be checked.
        if False in held:
            return False
        return True if held and None not in held else None


def rows_of(facts: Facts, chosen: Iterable[Row], extras: Mapping[str, IndexExtras]) -> Iterator[ReportRow]:
    """Yield the rows of a report; ``extras`` has further values of documents by their paths.

    A rule that the configuration has lint ignore says nothing in a report either.
    """
    is_wanted = facts.config.is_linted
    for stated in chosen:
        row = row_of(stated, facts.measured(stated), extras.get(stated.path, IndexExtras()))
        found = [*row.contradictions, *_contrary_problems(row, facts)]
        yield replace(
            row,
            contradictions=tuple(problem for problem in found if is_wanted(problem.rule)),
            is_unproven=row.is_unproven and is_wanted(UNPROVEN_RULE),
        )


def _contrary_problems(row: ReportRow, facts: Facts) -> list[Problem]:
    """Return the problems of a document that is closed as fixed against its own measurement."""
    stated = row.stated
    contrary = row.verification and row.verification.verdict in {Verdict.FAILED, Verdict.REFUTED}
    # Few documents are: only those have to be read.
    if not contrary or not is_fixed(stated.status, stated.outcome):
        return []
    from finding_tickets.lint.contradictions import problems_of

    document = facts.document(stated)
    if document is None:
        return []
    data = (facts.root / document.path).read_bytes()
    return list(problems_of(document, data, facts.root, facts.config, [REFUTED_RULE]))


def row_of(
    stated: Row,
    measured: CurrentVerdict,
    extras: IndexExtras = IndexExtras(),  # noqa: B008 - frozen
) -> ReportRow:
    """The row of one document, by what is in it."""
    is_finding = stated.kind == "finding"
    # A ticked item, a measurement, or a reason not to look for one, is evidence.
    shown = stated.done or measured.verification or measured.problem or UNPROVEN_RULE in extras.ignored
    is_closed = is_finding and is_fixed(stated.status, stated.outcome)
    # A reviewer who takes no side does not split those who do.
    sides = {SIDES[said] for _, said in stated.reviews if said in SIDES}
    if not is_finding:
        consensus = REVIEW
    elif not stated.reviews:
        consensus = NOT_REVIEWED
    elif len(sides) == 1:
        consensus = ENDORSED if True in sides else OBJECTED
    else:
        consensus = SPLIT if sides else NO_SIDE

    def claimed(variant: str, metric: str) -> str | None:
        """Return the claim for every point; without one, all claims with their points."""
        about = [claim for claim in extras.claims if (claim.variant, claim.metric) == (variant, metric)]
        # A claim for all points says more than those for some.
        everywhere = [claim.text for claim in about if claim.is_everywhere]
        return " and ".join(everywhere) or "; ".join(claim.text for claim in about) or None

    metrics = dict.fromkeys(each.metric for each in extras.claims if each.variant in {BEFORE, AFTER})
    return ReportRow(
        stated=stated,
        measured=measured,
        severity=(stated.severity or UNDECIDED) if is_finding else REVIEW,
        disposition=disposed(stated.status, stated.outcome) if is_finding else REVIEW,
        consensus=consensus,
        claimed=tuple(LawChange(each, claimed(BEFORE, each), claimed(AFTER, each)) for each in metrics),
        changes=tuple(law_changes(measured.verification)) if measured.verification else (),
        contradictions=tuple(map(_problem, extras.contradictions)),
        is_unproven=is_closed and not shown,
        ignored=extras.ignored,
    )


def _problem(fields: Mapping[str, Any]) -> Problem:
    # Few registers have a document that contradicts itself: the others' reports load no pydantic.
    from finding_tickets.model.ticket import Problem

    return Problem.model_validate(fields)


def _verdict_cell(row: Row, facts: Facts) -> str:
    """Return the verdict, and verdicts of meters that disagree."""
    measured = facts.measured(row)
    return f"{measured.verdict} ({measured.disagreement})" if measured.disagreement else measured.verdict


LIST_COLUMNS: Mapping[str, Callable[[Row, Facts], object]] = {
    "id": lambda row, _: row.id,
    "kind": lambda row, _: row.kind,
    "severity": lambda row, _: row.severity,
    "status": lambda row, _: row.status,
    "resolution": lambda row, _: row.outcome,
    "verdict": _verdict_cell,
    "batch": lambda row, _: row.batch,
    "agent": lambda row, _: row.agent,
    "assignee": lambda row, _: row.assignee,
    "domain": lambda row, _: BETWEEN.join(row.domains),
    "category": lambda row, _: BETWEEN.join(row.categories),
    "file": lambda row, _: BETWEEN.join(row.files),
    "reviewed-by": lambda row, _: BETWEEN.join(f"{name or '?'}={said}" for name, said in row.reviews),
    "related": lambda row, _: BETWEEN.join(f"{other}={how}" for other, how in row.related),
    "checklist": lambda row, _: f"{row.done}/{row.done + row.undone}" if row.done + row.undone else None,
    "created": lambda row, _: row.created,
    "updated": lambda row, _: row.updated,
    "path": lambda row, _: row.path,
    "summary": lambda row, _: row.summary,
    "title": lambda row, _: row.title,
}
"""Every column of a list by its name, which is that of the query's key where there is one."""
DEFAULT_COLUMNS = ("id", "severity", "status", "verdict", "title")


def list_cells(row: Row, facts: Facts, names: Iterable[str], *, is_for_people: bool = False) -> list[str]:
    """The cells of a document in a list; what it does not state is empty.

    People are shown a disposition that is its folder's as such; a column of a file has nothing but its word.
    """
    filed = {"status": f"{disposed(row.status, row.outcome)} (folder)"} if row.filed and is_for_people else {}
    values = (filed.get(name) or LIST_COLUMNS[name](row, facts) for name in names)
    return ["" if value is None else str(value) for value in values]


CSV_COLUMNS: Mapping[str, Callable[[ReportRow], object]] = {
    "id": lambda row: row.id,
    "kind": lambda row: row.stated.kind,
    "title": lambda row: row.title,
    "severity": lambda row: row.stated.severity,
    "disposition": lambda row: row.disposition,
    "status": lambda row: row.stated.status,
    "resolution": lambda row: row.stated.outcome,
    "verdict": lambda row: row.verdict,
    "reason": lambda row: row.reason,
    "disagreement": lambda row: row.disagreement,
    "laws": lambda row: "; ".join(f"{change.metric}: {change.text}" for change in row.changes),
    "consensus": lambda row: row.consensus,
    "unproven": lambda row: "yes" if row.is_unproven else "no",
    "batch": lambda row: row.stated.batch,
    "agent": lambda row: row.stated.agent,
    "assignee": lambda row: row.stated.assignee,
    "domains": lambda row: BETWEEN.join(row.stated.domains),
    "categories": lambda row: BETWEEN.join(row.stated.categories),
    "files": lambda row: BETWEEN.join(row.stated.files),
    "done": lambda row: row.stated.done,
    "undone": lambda row: row.stated.undone,
    "created": lambda row: row.stated.created,
    "updated": lambda row: row.stated.updated,
    "path": lambda row: row.path,
}
"""Each column of a report as CSV with its value; None is an empty cell."""


def csv_lines(lines: Iterable[Sequence[object]]) -> Iterator[str]:
    """Comma-separated values; each row is on one line, and no cell is a formula in any spreadsheet."""
    import csv
    import io

    for cells in lines:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(map(csv_cell, cells))
        yield line.getvalue()


def csv_cell(value: object) -> str:
    """A value on one line; an apostrophe makes text of what would be a formula.

    What is longer than spreadsheets take is cut.
    """
    # Line ends and control characters would make rows of their own.
    text = "" if value is None else " ".join(printable(str(value)).split())
    text = _FORMULA.sub("'", text)
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "\u2026"


def write_csv(rows: Iterable[ReportRow]) -> Iterator[str]:
    """A report as CSV: a line with the names of the columns, and a line for each document."""
    yield from csv_lines([list(CSV_COLUMNS)])
    yield from csv_lines([column(row) for column in CSV_COLUMNS.values()] for row in rows)
