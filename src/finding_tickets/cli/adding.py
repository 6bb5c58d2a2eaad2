"""Adding tickets to a register: under the next free ID, with the files that come along."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath

from finding_tickets.errors import UsageError
from finding_tickets.ground.branch_files import on_branches
from finding_tickets.ground.creation import create
from finding_tickets.register.config import Config
from finding_tickets.register.draft import Draft
from finding_tickets.register.load import Register, load
from finding_tickets.register.numbering import free_ids
from finding_tickets.register.root import is_repository
from finding_tickets.report.drafts import Attached, ticket_files

ATTEMPTS = 1000


def register_to_add_to(root: Path) -> Register:
    """The register to add to; the first ticket of a repository starts one in the current folder."""
    try:
        return load(root)
    except UsageError:
        if root != Path():
            raise
        return Register(Path.cwd(), Config(), (), ())


def taken_in(register: Register) -> list[str]:
    """The files that have taken a number, whether or not a document could be read from them here."""
    elsewhere = on_branches(register.root, _folders(register))
    return [*elsewhere, *(problem.file for problem in register.problems)]


def add(
    register: Register, draft: Draft, taken: Sequence[str], attached: Attached | None = None
) -> tuple[str, list[str]]:
    """Write the files of one ticket, and return its ID and their paths; the ticket's comes first.

    An ID that another process takes in between is passed over.

    Raises:
        UsageError: A file cannot be written.
        BadDataError: The ticket would not be understood when it is read again.
    """
    ids = free_ids(register.documents, draft.batch, draft.agent, taken)
    return add_as(register, draft, ids, attached)


def add_as(
    register: Register, draft: Draft, ids: Iterator[str], attached: Attached | None = None
) -> tuple[str, list[str]]:
    """Write the files of one ticket under the first of ``ids`` that is free, as ``add`` does."""
    for ticket_id in islice(ids, ATTEMPTS):
        texts = texts_of(register, draft, ticket_id, attached)
        try:
            create(register.root, texts)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"cannot write: {error.strerror}", file=error.filename) from None
        return ticket_id, list(texts)
    raise UsageError(f"no free ID among the next {ATTEMPTS}", file=str(register.root / _folders(register)[0]))


def texts_of(
    register: Register, draft: Draft, ticket_id: str, attached: Attached | None = None
) -> dict[str, str]:
    """The text of every file of a ticket with this ID, by its path; the ticket's comes first.

    Raises:
        BadDataError: The ticket would not be understood when it is read again.
    """
    path = (PurePosixPath(_folders(register)[0]) / f"{ticket_id}.md").as_posix()
    return ticket_files(register, draft, ticket_id, path, datetime.now().astimezone().date(), attached)


def _folders(register: Register) -> Sequence[str]:
    """The folders of the documents; a bare folder of Markdown files is one itself."""
    bare = register.documents and not is_repository(register.root)
    return (".",) if bare else register.config.tickets
