"""Everything that is shown: text, pages, charts, and reports in formats for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finding_tickets.report.status import StatusReport
    from finding_tickets.report.text import Styler


def write_report(report: StatusReport, output_format: str) -> Iterator[str]:
    """The text of a report piece by piece, as the pieces are asked for; the same report gives the same text.

    Raises:
        UsageError: There is no such template.
        BadDataError: The template is wrong, or uses a name that the report does not have.
    """
    # Each format is loaded for those who ask for it.
    match output_format:
        case "markdown":
            from finding_tickets.report.templates import pieces

            context = {"report": report, "status": report.status}
            return pieces(report.template, context, report.templates)
        case "html":
            from finding_tickets.report.formats.html import write_html

            return write_html(report)
        case "json":
            from finding_tickets.report.formats.json import write_json

            return write_json(report)
        case "csv":
            from finding_tickets.report.rows import write_csv

            return write_csv(report.status.rows)
        case "junit":
            from finding_tickets.report.formats.junit import write_junit

            return write_junit(report)
        case "sarif":
            from finding_tickets.report.formats.sarif import write_sarif

            return write_sarif(report)
        case "github":
            from finding_tickets.report.formats.github import write_annotations

            return write_annotations(report)
    raise ValueError(f"no such format as {output_format}")


def short_lines(report: StatusReport, style: Styler, width: int) -> Iterator[str]:
    """The opening of a report, for half a screen; its headings are the lines without an indent."""
    from textwrap import wrap

    from finding_tickets.report.templates import render
    from finding_tickets.report.text import printable

    text = render("report_short.j2", {"report": report, "status": report.status}, report.templates)
    for line in printable(text).splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        yield from (
            wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
            if indent[4:]
            else [style(line, "bold")]
        )
