"""``tickets show``: whole documents, with what git's history says of them when asked."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.options import HERE, Ids, OutputFormat, Root
from finding_tickets.cli.output import Format, is_terminal, say, style, write, write_json
from finding_tickets.cli.registers import evidence_code, find_each, reading_code
from finding_tickets.documents.reading import Document
from finding_tickets.errors import ExitCode
from finding_tickets.model.verdict import Verdict
from finding_tickets.register.index import list_rows
from finding_tickets.register.load import files_of
from finding_tickets.register.query import Facts
from finding_tickets.report.json import full_item
from finding_tickets.report.text import MeasuredDocument, document_text, measured_documents

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
    listing = list_rows(root)
    rows, code = find_each(listing.find, ids)
    facts = Facts.of_listing(listing)
    found = [
        (each, _history(facts, each.document) if history else None)
        for each in measured_documents(facts, rows)
    ]
    if output_format is Format.JSON:
        write_json("ticket", [_item(entry, past) for entry, past in found])
    elif is_terminal(sys.stdout):
        _show_on_terminal(facts, found)
    elif found:
        write("\n\n".join(_page(entry, past) for entry, past in found))
    files = frozenset[str]().union(*(files_of(entry.document) for entry, _ in found))
    problems = [problem for problem in listing.problems if problem.file in files]
    for problem in problems:
        say(str(problem))
    return ExitCode.worst(code, reading_code(problems), evidence_code(entry for entry, _ in found))


def _show_on_terminal(facts: Facts, found: Iterable[tuple[MeasuredDocument, History | None]]) -> None:
    from finding_tickets.cli.terminal import write_rich
    from finding_tickets.report.history import history_lines
    from finding_tickets.report.terminal import DocumentView, related_section
    from finding_tickets.report.text import Sources, no_line, plainly

    sources = Sources(facts.root)
    write_rich(
        sys.stdout,
        (
            DocumentView(
                entry,
                text=_text(facts.root / entry.document.path),
                related=related_section(entry.document, facts),
                # What was measured is not what stands there now.
                code_at=no_line if entry.verdict is Verdict.STALE else sources.line,
                history=tuple(history_lines(past, plainly)) if past else (),
            )
            for entry, past in found
        ),
    )


def _text(file: Path) -> str:
    """What the file says now; nothing where it is gone since it was read."""
    try:
        return file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _history(facts: Facts, document: Document) -> History:
    from finding_tickets.register.history import history_of

    pattern = facts.config.vocabulary.id_pattern
    return history_of(facts.root, document.path, document.id.value, pattern)


def _item(entry: MeasuredDocument, past: History | None) -> dict[str, object]:
    from finding_tickets.report.history import history_item

    return full_item(entry) | {"history": history_item(past) if past else None}


def _page(entry: MeasuredDocument, past: History | None) -> str:
    from finding_tickets.report.history import history_lines

    return "\n".join([document_text(entry, style), *(["", *history_lines(past, style)] if past else ())])
