"""Every table of a report adds up to the same number of documents, whatever register it is of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.report.conftest import claim, verification

from finding_tickets.model.vocabulary import (
    Opinion,
    Outcome,
    Relationship,
    Severity,
    Status,
    Verdict,
)
from finding_tickets.register.config import Config
from finding_tickets.register.entries import Entry
from finding_tickets.register.load import Register
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.rows import row_of
from finding_tickets.report.status import CrossTable, StatusReport, status_of_rows

NONE = Path("none")
TEMPLATE = "report.md.j2"

# Words of the tables themselves are names of files and reviewers, too.
NAMES = st.sampled_from(
    ["a.py", "b.py", "sum", "review", "no file", "other files", "not stated", "|", "ü\u202e"]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def one_of(words: Any) -> st.SearchStrategy[str | None]:
    """A word of a vocabulary as a row has it, or that nothing is stated."""
    return st.none() | st.sampled_from([word.value for word in words])


def measured(verdict: Verdict, holds: Sequence[bool | None] | None) -> CurrentVerdict:
    """A verdict from a claim about the code as found for each of these outcomes."""
    if holds is None:
        return CurrentVerdict(verdict)
    claims = [claim(str(at), holds=each, variant="found") for at, each in enumerate(holds)]
    return CurrentVerdict(verdict, verification("so", verdict, claims))


MEASURED = st.builds(
    measured,
    st.sampled_from(Verdict),
    st.none() | st.lists(st.none() | st.booleans(), max_size=2),
)
STATED = st.builds(
    Entry,
    kind=st.sampled_from(["finding", "review"]),
    path=st.just("tickets/a.md"),
    id=st.from_regex(r"[AB]-[1-9]", fullmatch=True),
    title=TEXT.map("It {}".format),
    severity=one_of(Severity),
    status=one_of(Status),
    outcome=one_of(Outcome),
    files=st.lists(NAMES | TEXT, max_size=3, unique=True).map(tuple),
    reviews=st.lists(
        st.tuples(st.none() | NAMES, st.sampled_from([each.value for each in Opinion]) | TEXT), max_size=4
    ).map(tuple),
    related=st.lists(
        st.tuples(st.sampled_from(["A-1", "b-2"]), st.sampled_from([each.value for each in Relationship])),
        max_size=2,
    ).map(tuple),
    done=st.integers(0, 1),
)
DOCUMENTS = st.lists(st.tuples(STATED, MEASURED), max_size=12)


def report(documents: list[tuple[Entry, CurrentVerdict]]) -> StatusReport:
    """A report on these documents, which are all that there are."""
    facts = Register(NONE, Config(), [stated for stated, _ in documents])
    rows = [row_of(stated, measured) for stated, measured in documents]
    return StatusReport(facts, status_of_rows(rows, facts), TEMPLATE)


def sums(table: CrossTable) -> Iterator[int]:
    """What a table adds up to, by rows and by columns; the sum that each row states of itself is right."""
    cells = [counts for _, counts in table.rows]
    assert all(sum(counts[:-1]) == counts[-1] for counts in cells)
    *lines, last = cells
    assert tuple(map(sum, zip(*lines, strict=True))) in {last, ()}
    yield last[-1]
    yield sum(counts[-1] for counts in lines)


@given(DOCUMENTS)
def test_every_table_adds_up(documents: list[tuple[Entry, CurrentVerdict]]) -> None:
    """Tables of two properties end in a row of sums; of a table without one, each row is of all documents."""
    made = report(documents).status
    total = len(documents)
    assert total == made.total == len(made.rows)
    for table in (made.by_disposition, made.by_verdict, made.by_consensus):
        assert {total} == set(sums(table))
    for _, counts in made.by_reviewer.rows:
        assert [total, total] == [sum(counts[:-1]), counts[-1]]
