"""``tickets report``: the status of the register in the format that is asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from finding_tickets.cli.options import (
    HERE,
    Query,
    Root,
    flag,
    format_option,
    option,
    say_problem_count,
)
from finding_tickets.cli.output import is_terminal, say, style, used_width, write
from finding_tickets.cli.output_file import (
    add_to_summary,
    files_to_protect,
    refuse_protected,
    summary_room,
    write_output,
)
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.ground import MINUS
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import load
from finding_tickets.register.query import parse
from finding_tickets.report import short_lines, write_report
from finding_tickets.report.rows import rows_of
from finding_tickets.report.status import (
    TEMPLATES,
    ReportFormat,
    StatusReport,
    status_of_rows,
)


def report(
    query: Query = None,
    root: Root = HERE,
    output_format: Annotated[
        ReportFormat | None,
        format_option(
            help="How to write it: by default as Markdown, and on a terminal in short."
        ),
    ] = None,
    template: Annotated[
        str | None, option("NAME", "A template in templates/, or one of the tool's.")
    ] = None,
    summary: Annotated[
        Path | None,
        option("FILE", "Add counts and open work to this file, as Markdown."),
    ] = None,
    output: Annotated[
        Path | None, option("FILE", "The file, or - for stdout.", "--output", "-o")
    ] = None,
    verbose: Annotated[
        bool, flag("--verbose", "Print the whole report on a terminal too.", "-v")
    ] = False,
) -> ExitCode:
    """Report what was won, what to do next and what is refuted."""
    usual = {output_format, template, output} == {None}
    is_short = usual and not verbose and is_terminal(sys.stdout)
    output_format = output_format or ReportFormat.MARKDOWN
    if template is not None and output_format not in TEMPLATES:
        raise UsageError(f"--format {output_format} has no --template")
    register = load(root)
    text = " ".join(query or ())
    asked = parse(text, register)
    rows = tuple(rows_of(register, asked.choose(register.entries)))
    name = TEMPLATES.get(output_format, "") if template is None else template
    made = StatusReport(
        register, status_of_rows(rows, register, text.replace(MINUS, "-")), name
    )
    # A file that could not be read may be a ticket all the same.
    unread_files = [
        file for file, _, level in register.problem_levels() if level is Level.ERROR
    ]
    is_protected = files_to_protect(
        register, [*(entry.path for entry in register.entries), *unread_files]
    )
    if summary:
        refuse_protected(summary, is_protected)
    if is_short:
        write("\n".join(short_lines(made, style, used_width(sys.stdout))))
        say("-v prints the whole report; --format html -o report.html writes a page")
    else:
        write_output(write_report(made, output_format), output, is_protected)
    if summary:
        from finding_tickets.report.formats.github import summary as page

        add_to_summary(summary, page(made, summary_room(summary)))
    return say_problem_count(register, root)
