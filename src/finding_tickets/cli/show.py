"""``tickets show``: whole documents, with what git's history says of them when asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from finding_tickets.cli.options import HERE, Ids, OutputFormat, Root, find_each, flag
from finding_tickets.cli.output import (
    Format,
    is_terminal,
    say_errors,
    say_problems,
    style,
    write,
    write_json,
    write_rich,
)
from finding_tickets.errors import ExitCode
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.index import list_rows
from finding_tickets.register.load import files_of
from finding_tickets.register.query import Facts
from finding_tickets.report.history import history_item, history_lines
from finding_tickets.report.json import full_item
from finding_tickets.report.text import (
    MeasuredDocument,
    Sources,
    document_text,
    measured_documents,
    no_line,
    plainly,
)

if TYPE_CHECKING:
    from finding_tickets.register.history import History


def show(
    ids: Ids,
    root: Root = HERE,
    history: Annotated[
        bool, flag("--history", "Add who wrote it when, and the commits that name it, from git.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Show documents with their verdict, laws and claims."""
    listing = list_rows(root)
    rows, code = find_each(listing.find, ids)
    facts = Facts.of_listing(listing)
    found = list(measured_documents(facts, rows))
    pasts: list[History | None] = [None] * len(found)
    if history:
        from finding_tickets.register.history import history_of

        pattern = facts.config.vocabulary.id_pattern
        documents = [entry.document for entry in found]
        pasts = [history_of(facts.root, each.path, each.id.value, pattern) for each in documents]
    both = zip(found, pasts, strict=True)
    if output_format is Format.JSON:
        write_json(
            "ticket", (full_item(entry) | {"history": past and history_item(past)} for entry, past in both)
        )
    elif is_terminal(sys.stdout):
        _show_on_terminal(facts, found, pasts)
    elif found:
        pages = []
        for entry, past in both:
            git = ["", *history_lines(past, style)] if past else []
            pages.append("\n".join([document_text(entry, style), *git]))
        write("\n\n".join(pages))
    # What is wrong with other documents is not what was asked for.
    files = frozenset[str]().union(*(files_of(entry.document) for entry in found))
    reading = say_problems(problem for problem in listing.problems if problem.file in files)
    return ExitCode.worst(code, reading, say_errors(entry.measured.problem for entry in found))


def _show_on_terminal(
    facts: Facts, found: Sequence[MeasuredDocument], pasts: Sequence[History | None]
) -> None:
    from finding_tickets.report.terminal import DocumentView, related_section

    sources = Sources(facts.root)
    views = []
    for entry, past in zip(found, pasts, strict=True):
        text = ""
        # The file may be gone since it was read.
        with suppress(OSError):
            text = (facts.root / entry.document.path).read_text(encoding="utf-8-sig", errors="replace")
        view = DocumentView(
            entry,
            text=text,
            related=related_section(entry.document, facts),
            # The lines that were measured are no longer there.
            code_at=no_line if entry.measured.verdict is Verdict.STALE else sources.line,
            history=tuple(history_lines(past, plainly)) if past else (),
        )
        views.append(view)
    write_rich(views)
