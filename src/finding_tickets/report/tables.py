"""Counts of documents in tables, each of which adds up to the number of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SUM = "sum"


Counts = Iterable[tuple[str, str]] | Mapping[tuple[str, str], int]
"""Pairs of words, or how often there is each."""


@dataclass(frozen=True, slots=True)
class CrossTable:
    """Counts by two properties. The last column is the sum of each row.

    The last row is the sum of each column, and the last cell the number of all documents. A table without
    such a row is one of which every row adds up to that number.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


def cross(counts: Counts, names: Iterable[str], columns: Iterable[str]) -> CrossTable:
    """A table of counts, in the order given; rows and columns that count nothing are left out."""
    table = by_row(counts, names, columns)
    sums = [sum(column) for column in zip(*(line for _, line in table.rows), strict=True)]
    return CrossTable(table.columns, (*table.rows, (SUM, tuple(sums or [0]))))


def by_row(counts: Counts, names: Iterable[str], columns: Iterable[str]) -> CrossTable:
    """What ``cross`` makes, without the sum of each column."""
    cells = Counter(counts)
    # What people write may be called like one of the other rows, and is then counted with that.
    names = list(dict.fromkeys(names))
    present = [column for column in columns if any(cells[name, column] for name in names)]
    lines = [(str(name), [cells[name, column] for column in present]) for name in names]
    return CrossTable(
        (*map(str, present), SUM), tuple((name, (*line, sum(line))) for name, line in lines if any(line))
    )
