"""``tickets report``: the status of the register in the format that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.choosing import Query, chosen
from finding_tickets.cli.options import HERE, Root
from finding_tickets.cli.output import say, write
from finding_tickets.cli.reading import evidence_code, open_listing, reading_code
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.register.query import Facts
from finding_tickets.report.contexts import Profile, Report, row_of, status
from finding_tickets.report.formats import FORMATS, ReportFormat, writer


def report(
    query: Query = None,
    root: Root = HERE,
    output_format: Annotated[
        ReportFormat, typer.Option("--format", case_sensitive=False, help="What the report is written as.")
    ] = ReportFormat.MARKDOWN,
    template: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A template of templates/, or one that the tool brings along."),
    ] = None,
    profile: Annotated[
        Profile | None,
        typer.Option(case_sensitive=False, help="What SARIF is for, by default full."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
) -> ExitCode:
    """Report counts, laws, refuted claims and open work."""
    how = FORMATS[output_format]
    if template and not how.template:
        raise UsageError(f"--format {output_format} has no --template")
    if profile and not how.has_profiles:
        raise UsageError(f"--format {output_format} has no --profile")
    listing = open_listing(root)
    facts = Facts(listing.root, listing.config, listing.rows)
    rows = (row_of(row, facts.measured(row)) for row in chosen(query, facts))
    made = Report(
        facts,
        status(rows, " ".join(query or ())),
        template or how.template or "",
        profile or Profile.FULL,
    )
    text = "".join(writer(output_format)(made))
    if output is None:
        write(text)
    else:
        _save(text, output)
    return ExitCode.worst(reading_code(listing.problems), evidence_code(facts.looked_up))


def _save(text: str, file: Path) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the report: {error.strerror}", file=str(file)) from None
    say(f"wrote {file}")
