"""``tickets new``: a new ticket with the next free ID, from options, answers on a terminal or JSON."""

from __future__ import annotations

from typing import Annotated

import typer

from finding_tickets.cli.adding import add, register_to_add_to, taken_in
from finding_tickets.cli.content import drafts, places
from finding_tickets.cli.options import HERE, OutputFormat, Root, known
from finding_tickets.cli.output import Format, say, write, write_json
from finding_tickets.errors import ExitCode
from finding_tickets.report.templates import EXAMPLE


def new(
    root: Root = HERE,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What is wrong, in a line.")] = None,
    severity: Annotated[str | None, typer.Option(metavar="WORD", help="How bad it is: P0 to P4.")] = None,
    batch: Annotated[int | None, typer.Option(min=0, help="The batch, for an ID such as B7-PT-04.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="WORD", help="Who found it, for the ID.")] = None,
    domain: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Repeatable.")] = None,
    summary: Annotated[str | None, typer.Option(metavar="TEXT", help="The finding in a sentence.")] = None,
    file: Annotated[
        list[str] | None, typer.Option(metavar="PATH[:LINES]", help="Where it is: a.py:10-20 (repeatable).")
    ] = None,
    symbol: Annotated[
        str | None, typer.Option(metavar="NAME", help="The function or class it is in.")
    ] = None,
    category: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Repeatable.")] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help="Read JSON from a file, or from stdin with -."),
    ] = None,
    with_verifier: Annotated[
        bool, typer.Option("--with-verifier", help="Add a verifier and two variants that run.")
    ] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Write a ticket under the next free ID."""
    register = register_to_add_to(root)
    options = {
        "title": title,
        "severity": severity,
        "batch": batch,
        "agent": agent,
        "domains": domain,
        "summary": summary,
        "locations": places(file or (), symbol),
        "categories": known("category", category, register.config.vocabulary.categories),
    }
    given = {name: value for name, value in options.items() if value not in (None, [])}
    created: list[tuple[str, list[str]]] = []
    try:
        wanted = drafts(register, given, source)
        taken, attached = taken_in(register), EXAMPLE if with_verifier else None
        for draft in wanted:
            ticket_id, files = add(register, draft, taken, attached)
            taken.append(files[0])
            created.append((ticket_id, files))
    finally:
        # Of several drafts, those before one that fails are there to stay.
        if created:
            _show(created, output_format)
    return ExitCode.OK


def _show(created: list[tuple[str, list[str]]], output_format: Format) -> None:
    if output_format is Format.JSON:
        write_json("new-tickets", [{"id": name, "files": files} for name, files in created])
    else:
        write("\n".join(file for _, files in created for file in files))
    say(f"created {', '.join(name for name, _ in created)}")
