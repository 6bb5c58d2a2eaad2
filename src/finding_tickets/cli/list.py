"""``tickets list``: the documents of a register, or those that filters choose, one a line."""

from __future__ import annotations

from typing import Annotated

import typer

from finding_tickets.cli.options import HERE, OutputFormat, Root, known
from finding_tickets.cli.output import Format, counted, say, write_json, write_table
from finding_tickets.cli.reading import evidence_code, open_register, reading_code
from finding_tickets.errors import ExitCode
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.vocabulary import Severity, Status, Words
from finding_tickets.report.entries import Entry, entries
from finding_tickets.report.export import ticket_item
from finding_tickets.report.query import Query

HEADER = ("ID", "SEVERITY", "STATUS", "VERDICT", "TITLE")
VERDICTS: Words = {verdict.value: () for verdict in Verdict}


def filter_option(name: str, what: str) -> typer.models.OptionInfo:
    """An option that may be repeated: its values are alternatives, in any case."""
    option: typer.models.OptionInfo = typer.Option(name, metavar="WORD", help=f"Only {what} (repeatable).")
    return option


def list_tickets(
    root: Root = HERE,
    severity: Annotated[
        list[str] | None, filter_option("--severity", "findings this bad, such as P1")
    ] = None,
    status: Annotated[list[str] | None, filter_option("--status", "findings of this status")] = None,
    domain: Annotated[list[str] | None, filter_option("--domain", "findings in this domain or below")] = None,
    agent: Annotated[list[str] | None, filter_option("--agent", "findings by this agent")] = None,
    category: Annotated[list[str] | None, filter_option("--category", "findings of this category")] = None,
    verdict: Annotated[list[str] | None, filter_option("--verdict", "documents with this verdict")] = None,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """List documents with severity, status and verdict."""
    register = open_register(root)
    words = register.config.vocabulary
    query = Query(
        severities=[Severity(word) for word in known("severity", severity, words.severities)],
        statuses=[Status(word) for word in known("status", status, words.statuses)],
        verdicts=[Verdict(word) for word in known("verdict", verdict, VERDICTS)],
        domains=domain or (),
        agents=agent or (),
        categories=category or (),
    )
    everything = entries(register)
    chosen = [entry for entry in everything if query.matches(entry)]
    if output_format is Format.JSON:
        write_json("ticket-list", [ticket_item(entry) for entry in chosen])
    else:
        write_table(HEADER, map(row, chosen))
    say(f"{len(chosen)} of {counted(len(register.documents), 'document')}")
    return ExitCode.worst(reading_code(register), evidence_code(everything))


def row(entry: Entry) -> tuple[str, ...]:
    """One line of the table; what a document does not state is a dash, and meters that disagree are named."""
    verdict = f"{entry.verdict} ({entry.disagreement})" if entry.disagreement else entry.verdict
    return entry.id, entry.severity or "-", entry.status or "-", verdict, entry.document.title.value
