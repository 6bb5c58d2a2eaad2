"""Where the code is that a document is about, for services that show results beside its lines."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from finding_tickets.report.contexts import Report
from finding_tickets.report.rows import Row


class Place(NamedTuple):
    """A file from the register's root, and its lines from 1 where they are known."""

    file: str
    first: int | None = None
    last: int | None = None


def code_of(report: Report, row: Row) -> Place | None:
    """The first place in code that a document names and this repository has.

    The document is read where there is one, since its row knows nothing of lines.
    """
    here = [file for file in row.stated.files if _is_here(report, file)]
    document = report.facts.document(row.stated) if here else None
    for location in document.locations if document else ():
        if location.file in here:
            first = location.lines[0] if location.lines and location.lines[0].first else None
            return Place(location.file, *((first.first, first.last) if first else ()))
    return None


def _is_here(report: Report, file: str) -> bool:
    """Whether a path names a file of the repository, and leads nowhere else."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or not file.isprintable():
        return False
    try:
        return (report.facts.root / path).is_file()
    except (OSError, ValueError):
        return False
