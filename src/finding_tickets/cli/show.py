"""``tickets show``: whole documents as plain text, with what git's history says of them when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.options import HERE, Ids, OutputFormat, Root
from finding_tickets.cli.output import Format, say, style, write, write_json
from finding_tickets.cli.reading import evidence_code, find_all, reading_code
from finding_tickets.errors import ExitCode
from finding_tickets.markdown.reading import Document
from finding_tickets.register.load import Register, load
from finding_tickets.report.entries import Entry, entry_of
from finding_tickets.report.export import full_item
from finding_tickets.report.page import page

if TYPE_CHECKING:
    from finding_tickets.register.history import History


def show(
    ids: Ids,
    root: Root = HERE,
    history: Annotated[
        bool, typer.Option("--history", help="Add who wrote it when, and the commits that name it, from git.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Show documents with their verdict, laws and claims."""
    register = load(root)
    documents, code = find_all(register, ids)
    found = [(entry_of(register, each), _history(register, each) if history else None) for each in documents]
    if output_format is Format.JSON:
        write_json("ticket", [_item(entry, past) for entry, past in found])
    elif found:
        write("\n\n".join(_page(entry, past) for entry, past in found))
    problems = [problem for document in documents for problem in register.problems_of(document)]
    for problem in problems:
        say(str(problem))
    return ExitCode.worst(code, reading_code(problems), evidence_code(entry for entry, _ in found))


def _history(register: Register, document: Document) -> History:
    from finding_tickets.register.history import history_of

    pattern = register.config.vocabulary.id_pattern
    return history_of(register.root, document.path, document.id.value, pattern)


def _item(entry: Entry, past: History | None) -> dict[str, object]:
    from finding_tickets.report.history import history_item

    return full_item(entry) | {"history": history_item(past) if past else None}


def _page(entry: Entry, past: History | None) -> str:
    from finding_tickets.report.history import history_lines

    return "\n".join([page(entry, style), *(["", *history_lines(past, style)] if past else ())])
