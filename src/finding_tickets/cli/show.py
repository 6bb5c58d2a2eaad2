"""``tickets show``: whole documents, with what git's history says of them when asked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from finding_tickets.cli.options import (
    HERE,
    Ids,
    OutputFormat,
    Root,
    find_each,
    flag,
    say_problem_count,
)
from finding_tickets.cli.output import (
    Format,
    style,
    terminal_size,
    write,
    write_json,
)
from finding_tickets.errors import ExitCode
from finding_tickets.register.load import files_of, load
from finding_tickets.report.document import (
    MeasuredDocument,
    document_text,
    measured_documents,
)
from finding_tickets.report.formats.json import full_item
from finding_tickets.report.history import history_item, history_lines

if TYPE_CHECKING:
    from finding_tickets.register.history import History
    from finding_tickets.register.load import Register


def show(
    ids: Ids,
    root: Root = HERE,
    history: Annotated[
        bool,
        flag(
            "--history", "Add authors, dates, commits and recorded verdicts, from git."
        ),
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Show documents with their verdict, laws and claims."""
    register = load(root)
    rows, code = find_each(register.find_entry, ids)
    found = list(measured_documents(register, rows))
    both = [
        (entry, _history_of(entry, register) if history else None) for entry in found
    ]
    if output_format is Format.JSON:
        write_json(
            "ticket",
            (
                full_item(entry) | {"history": past and history_item(past)}
                for entry, past in both
            ),
        )
    elif found:
        width = terminal_size(sys.stdout).columns
        texts = []
        for entry, past in both:
            lines = list(history_lines(past)) if past else []
            texts.append(document_text(register, entry, style, width, lines))
        write("\n\n".join(texts))
    # What is wrong with other documents is not what was asked for.
    files = frozenset[str]().union(*(files_of(entry.document) for entry in found))
    reading = say_problem_count(
        register, root, files=files, query=[row.id for row in rows]
    )
    return ExitCode.worst(code, reading)


def _history_of(entry: MeasuredDocument, register: Register) -> History:
    from finding_tickets.register.history import read_history

    config = register.config
    pattern = config.vocabulary.id_pattern
    return read_history(
        register.root, entry.document.path, entry.id, pattern, config.evidence
    )
