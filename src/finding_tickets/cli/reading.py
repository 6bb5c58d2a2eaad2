"""Opening a register for a command, with everything that could not be understood said on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from finding_tickets.cli.output import say, say_error
from finding_tickets.errors import ExitCode, TicketsError
from finding_tickets.model.problem import Level, Problem

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.register.listing import Listing
    from finding_tickets.register.load import Register
    from finding_tickets.register.query import Measured
    from finding_tickets.register.row import Row
    from finding_tickets.report.entries import Entry

T = TypeVar("T")


def open_register(root: Path) -> Register:
    """The register at ``root``; a line on stderr for every problem met in reading it."""
    from finding_tickets.register.load import load

    register = load(root)
    _say_all(register.problems)
    return register


def open_listing(root: Path, *, indexed: bool = True, whole: bool = False) -> Listing:
    """The rows of the register at ``root``; a line on stderr for every problem met in reading it."""
    from finding_tickets.register.listing import list_rows

    listing = list_rows(root, indexed=indexed, whole=whole)
    _say_all(listing.problems)
    return listing


def _say_all(problems: Sequence[Problem]) -> None:
    if problems:
        say("\n".join(map(str, problems)))


def reading_code(problems: Iterable[Problem]) -> ExitCode:
    """Bad data where a document could not be read; else fine, for what is misspelt is still listed."""
    unreadable = any(problem.level is Level.ERROR for problem in problems)
    return ExitCode.BAD_DATA if unreadable else ExitCode.OK


def evidence_code(entries: Iterable[Entry | Measured]) -> ExitCode:
    """Bad data where evidence could not be read, which is said on stderr; else fine."""
    problems = [entry.problem for entry in entries if entry.problem]
    for problem in problems:
        say_error(problem)
    return ExitCode.BAD_DATA if problems else ExitCode.OK


def find_all(register: Register, ids: Iterable[str]) -> tuple[list[Document], ExitCode]:
    """The documents with these IDs, each once; a message and the exit code for those that cannot be found."""
    return _found(register.find, ids)


def find_rows(listing: Listing, ids: Iterable[str]) -> tuple[list[Row], ExitCode]:
    """The rows of the documents with these IDs, as ``find_all`` finds documents."""
    from finding_tickets.register.lookup import find_row

    return _found(lambda document_id: find_row(listing.rows, document_id), ids)


def _found(find: Callable[[str], T], ids: Iterable[str]) -> tuple[list[T], ExitCode]:
    found: list[T] = []
    codes = [ExitCode.OK]
    for document_id in ids:
        try:
            one = find(document_id)
        except TicketsError as error:
            say_error(error)
            codes.append(error.exit_code)
        else:
            found += [] if one in found else [one]
    return found, ExitCode.worst(*codes)
