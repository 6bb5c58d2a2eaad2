"""``tickets report``: the status of the register, written by a template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.choosing import Query, chosen
from finding_tickets.cli.options import HERE, Root
from finding_tickets.cli.output import say, write
from finding_tickets.cli.reading import evidence_code, open_register, reading_code
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.register.query import Facts
from finding_tickets.report.contexts import status
from finding_tickets.report.entries import entries
from finding_tickets.report.templates import render

TEMPLATE = "report.md.j2"


def report(
    query: Query = None,
    root: Root = HERE,
    template: Annotated[
        str, typer.Option(metavar="NAME", help="A template of templates/, or one that the tool brings along.")
    ] = TEMPLATE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
) -> ExitCode:
    """Report counts, laws, refuted claims and open work."""
    register = open_register(root)
    facts = Facts.of(register)
    everything = entries(facts, chosen(query, facts))
    context = {"status": status(everything, " ".join(query or ()))}
    text = render(template, context, register.root / register.config.templates)
    if output is None:
        write(text)
    else:
        _save(text, output)
    return ExitCode.worst(reading_code(register.problems), evidence_code(everything))


def _save(text: str, file: Path) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the report: {error.strerror}", file=str(file)) from None
    say(f"wrote {file}")
