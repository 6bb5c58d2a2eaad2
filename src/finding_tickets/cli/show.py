"""``tickets show``: whole documents as plain text."""

from __future__ import annotations

from finding_tickets.cli.options import HERE, Ids, OutputFormat, Root
from finding_tickets.cli.output import Format, say, style, write, write_json
from finding_tickets.cli.reading import evidence_code, find_all
from finding_tickets.errors import ExitCode
from finding_tickets.register.load import load
from finding_tickets.report.entries import entry_of
from finding_tickets.report.export import full_item
from finding_tickets.report.page import page


def show(ids: Ids, root: Root = HERE, output_format: OutputFormat = Format.TABLE) -> ExitCode:
    """Show documents with their verdict, laws and claims."""
    register = load(root)
    documents, code = find_all(register, ids)
    found = [entry_of(register, document) for document in documents]
    if output_format is Format.JSON:
        write_json("ticket", [full_item(entry) for entry in found])
    elif found:
        write("\n\n".join(page(entry, style) for entry in found))
    for document in documents:
        for problem in register.problems_of(document):
            say(str(problem))
    return ExitCode.worst(code, evidence_code(found))
