"""``tickets report``: the status of the register in the format that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.choosing import Query
from finding_tickets.cli.delivery import deliver, kept_by, refuse_kept
from finding_tickets.cli.options import HERE, Root
from finding_tickets.cli.reading import evidence_code, open_listing, reading_code
from finding_tickets.cli.summary import add_to, room_in
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.model.problem import Level
from finding_tickets.register.listing import Listing
from finding_tickets.register.query import Facts, Lexicon, Measured, choose, parse
from finding_tickets.report import write_report
from finding_tickets.report.rows import ReportRow, rows_of
from finding_tickets.report.status import (
    TEMPLATES,
    WITH_HISTORY,
    Profile,
    ReportFormat,
    StatusReport,
    compare_since,
    status_of_rows,
)

if TYPE_CHECKING:
    from finding_tickets.report.matrix import VerdictMatrix


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
    since: Annotated[
        str | None, typer.Option(metavar="REV", help="Also what is different from this revision of git.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add counts and open work as Markdown to a file as well."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout (-)."),
    ] = None,
) -> ExitCode:
    """Report counts, laws, refuted claims and open work."""
    if template is not None and output_format not in TEMPLATES:
        raise UsageError(f"--format {output_format} has no --template")
    if profile and output_format is not ReportFormat.SARIF:
        raise UsageError(f"--format {output_format} has no --profile")
    if since is not None and output_format not in WITH_HISTORY:
        raise UsageError(f"--format {output_format} has no --since")
    listing = open_listing(root, whole=True)
    facts = Facts(listing.root, listing.config, listing.rows)
    text = " ".join(query or ())
    asked = parse(text, Lexicon(facts))
    rows = tuple(rows_of(facts, choose(asked, facts), listing.particulars))
    past = None if since is None else compare_since(since, facts, rows, asked.tree.holds)
    name = TEMPLATES.get(output_format, "") if template is None else template
    matrix = _matrix(rows, facts) if output_format in WITH_HISTORY else None
    made = StatusReport(facts, status_of_rows(rows, facts, text, past, matrix), name, profile or Profile.FULL)
    is_kept = _kept_by(listing)
    if summary:
        refuse_kept(summary, is_kept)
    deliver(write_report(made, output_format), output, is_kept)
    if summary:
        from finding_tickets.report.github import summary as page

        add_to(summary, page(made, room_in(summary)))
    unread = _unread(matrix, facts) if matrix else ()
    return ExitCode.worst(reading_code(listing.problems), evidence_code([*facts.looked_up, *unread]))


def _kept_by(listing: Listing) -> Callable[[Path], bool]:
    """Whether a file is one that a register is made of, whatever is to be read in it."""
    unread = (problem.file for problem in listing.problems if problem.level is Level.ERROR)
    return kept_by(listing.root, listing.config, (*(row.path for row in listing.rows), *unread))


def _matrix(rows: Sequence[ReportRow], facts: Facts) -> VerdictMatrix | None:
    if facts.config.matrix is None:
        return None
    # Only those who declare one wait for what reads evidence.
    from finding_tickets.report.matrix import matrix_of_rows

    return matrix_of_rows(rows, facts, facts.config.matrix)


def _unread(matrix: VerdictMatrix, facts: Facts) -> list[Measured]:
    """The evidence of cells that cannot be read, but for what is known of the work tree's already."""
    known = {str(each.problem) for each in facts.looked_up if each.problem}
    return [Measured(problem=problem) for problem in matrix.problems if str(problem) not in known]
