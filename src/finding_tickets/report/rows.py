"""A row for each document: what it states and what was measured, for lists, for CSV and for reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from finding_tickets.model.vocabulary import Opinion, Severity, Verdict
from finding_tickets.register.disposition import UNDECIDED, disposed, is_fixed
from finding_tickets.register.entries import Entry
from finding_tickets.register.load import Register
from finding_tickets.register.query import values_of
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.text import printable
from finding_tickets.report.verification import AFTER, BEFORE, LawChange, law_changes

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem
    from finding_tickets.model.verification import Verification

REVIEW = "review"
# The severities of documents, the worst first, and what those without one are counted as.
SEVERITIES = (*Severity, UNDECIDED, REVIEW)
UNNAMED = "not named"
ENDORSED, OBJECTED, SPLIT, NO_SIDE, NOT_REVIEWED = (
    "endorsed",
    "objected",
    "split",
    "no side",
    "not reviewed",
)
CONSENSUS = (ENDORSED, OBJECTED, SPLIT, NO_SIDE, NOT_REVIEWED, REVIEW)
# The opinions that take a side: whether they say that there is something to what the finding claims.
SIDES: Mapping[str, bool] = {
    Opinion.ENDORSE: True,
    Opinion.REFINE: True,
    Opinion.OBJECT: False,
}

UNPROVEN_RULE = "closed-without-evidence"
REFUTED_RULE = "fixed-but-refuted"
BETWEEN = ", "

# Where a semicolon separates cells, as it does for half of Europe, what follows one begins a cell.
_FORMULA = re.compile(
    "^(?=[=+\\-@\uff0b\uff0d\uff1d\uff20])|(?<=;)(?=[\"'\\s]*[=+\\-@\uff0b\uff0d\uff1d\uff20])"
)
# Characters that spreadsheets take in a cell; some put what follows into the next cells.
LONGEST_CELL = 32_767


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One document of a report: what it states, and what was measured.

    ``severity``, ``disposition`` and ``consensus`` are the words that tables count it under. docs/reports.md
    tells the authors of templates what each field is.
    """

    stated: Entry
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
        return (
            {name or UNNAMED: said for name, said in self.stated.reviews}
            if self.is_finding
            else {}
        )

    @property
    def holds(self) -> bool | None:
        """Return True if every claim about the code as found holds, False if one is false, else None.

        It is None, too, if the verdict is stale, inconclusive or missing, or about the fix alone.
        """
        unknown = {Verdict.STALE, Verdict.INCONCLUSIVE, Verdict.UNVERIFIED}
        if self.verification is None or self.verdict in unknown:
            return None
        held = [
            claim.holds for claim in self.verification.claims if claim.variant == BEFORE
        ]
        # One false claim refutes the finding, whatever could not be checked.
        if False in held:
            return False
        return True if held and None not in held else None


def rows_of(facts: Register, chosen: Iterable[Entry]) -> Iterator[ReportRow]:
    """Yield the rows of a report.

    Rules that the configuration switches off are left out of reports, too.
    """
    from finding_tickets.lint.contradictions import contradictions_of

    is_wanted = facts.config.is_linted
    for stated in chosen:
        found, ignored = contradictions_of(facts, stated)
        row = row_of(stated, facts.measured(stated), map(_problem, found), ignored)
        found_now = [*row.contradictions, *_contrary_problems(row, facts)]
        yield replace(
            row,
            contradictions=tuple(
                problem for problem in found_now if is_wanted(problem.rule)
            ),
            is_unproven=row.is_unproven and is_wanted(UNPROVEN_RULE),
        )


def _contrary_problems(row: ReportRow, facts: Register) -> list[Problem]:
    """Return the problems of a document that is closed as fixed against its own measurement."""
    stated = row.stated
    contrary = row.verification and row.verification.verdict in {
        Verdict.FAILED,
        Verdict.REFUTED,
    }
    # Few documents are: only those have to be read.
    if not contrary or not is_fixed(stated.status, stated.outcome):
        return []
    from finding_tickets.lint.contradictions import problems_of

    document = facts.document(stated)
    data = (facts.root / document.path).read_bytes()
    return list(problems_of(document, data, facts.root, facts.config, [REFUTED_RULE]))


def row_of(
    stated: Entry,
    measured: CurrentVerdict,
    contradictions: Iterable[Problem] = (),
    ignored: tuple[str, ...] = (),
) -> ReportRow:
    """The row of one document, by what is in it."""
    is_finding = stated.kind == "finding"
    # A ticked item, a measurement, or a reason not to look for one, is evidence.
    shown = (
        stated.done
        or measured.verdict is not Verdict.UNVERIFIED
        or UNPROVEN_RULE in ignored
    )
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
        about = [
            claim
            for claim in stated.claims
            if (claim.variant, claim.metric) == (variant, metric)
        ]
        # A claim for all points says more than those for some.
        everywhere = [claim.text for claim in about if claim.is_everywhere]
        return (
            " and ".join(everywhere) or "; ".join(claim.text for claim in about) or None
        )

    metrics = dict.fromkeys(
        each.metric for each in stated.claims if each.variant in {BEFORE, AFTER}
    )
    return ReportRow(
        stated=stated,
        measured=measured,
        severity=(stated.severity or UNDECIDED) if is_finding else REVIEW,
        disposition=disposed(stated.status, stated.outcome) if is_finding else REVIEW,
        consensus=consensus,
        claimed=tuple(
            LawChange(each, claimed(BEFORE, each), claimed(AFTER, each))
            for each in metrics
        ),
        changes=tuple(law_changes(measured.verification))
        if measured.verification
        else (),
        contradictions=tuple(contradictions),
        is_unproven=is_closed and not shown,
        ignored=ignored,
    )


def _problem(fields: Mapping[str, Any]) -> Problem:
    # Few registers have a document that contradicts itself: the others' reports load no pydantic.
    from finding_tickets.model.ticket import Problem

    return Problem.model_validate(fields)


def _verdict_cell(row: Entry, facts: Register) -> str:
    """Return the verdict, and verdicts of meters that disagree."""
    measured = facts.measured(row)
    return (
        f"{measured.verdict} ({measured.disagreement})"
        if measured.disagreement
        else measured.verdict
    )


# Every column of a list by its name, which is that of the query's key where there is one.
LIST_COLUMNS = (
    "id", "kind", "severity", "status", "resolution", "verdict", "batch", "agent", "assignee", "domain",
    "category", "file", "reviewed-by", "related", "checklist", "created", "updated", "path", "summary",
    "title",
)  # fmt: skip
DEFAULT_COLUMNS = ("id", "severity", "status", "verdict", "title")


def list_cells(
    row: Entry, facts: Register, names: Iterable[str], *, is_for_people: bool = False
) -> list[str]:
    """Return the cells of a document in a list; what it does not state is empty.

    People are shown a disposition that is its folder's as such; a column of a file has nothing but its word.
    """
    cells = []
    for name in names:
        if name == "status" and row.filed and is_for_people:
            cells.append(f"{disposed(row.status, row.outcome)} (folder)")
        elif name == "verdict":
            cells.append(_verdict_cell(row, facts))
        elif name == "checklist":
            items = row.done + row.undone
            cells.append(f"{row.done}/{items}" if items else "")
        elif name == "related":
            cells.append(BETWEEN.join(f"{other}={how}" for other, how in row.related))
        else:
            cells.append(BETWEEN.join(map(str, values_of(name, row, facts))))
    return cells


# The columns of a report as CSV.
CSV_COLUMNS = (
    "id", "kind", "title", "severity", "disposition", "status", "resolution", "verdict", "reason",
    "disagreement", "laws", "consensus", "unproven", "batch", "agent", "assignee", "domains", "categories",
    "files", "done", "undone", "created", "updated", "path",
)  # fmt: skip


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
    yield from csv_lines(
        [_csv_value(row, name) for name in CSV_COLUMNS] for row in rows
    )


def _csv_value(row: ReportRow, name: str) -> object:
    """Return the value of a column; None is an empty cell."""
    if name == "laws":
        return "; ".join(f"{change.metric}: {change.text}" for change in row.changes)
    if name == "unproven":
        return "yes" if row.is_unproven else "no"
    if name == "resolution":
        return row.stated.outcome
    is_of_report = name in {
        "disposition",
        "verdict",
        "reason",
        "disagreement",
        "consensus",
    }
    value = getattr(row if is_of_report else row.stated, name)
    return BETWEEN.join(value) if isinstance(value, tuple) else value
