"""Everything that is shown: text, pages, and reports in formats for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finding_tickets.report.status import StatusReport
    from finding_tickets.report.text import Styler


def write_report(report: StatusReport, output_format: str) -> Iterator[str]:
    """Yield the text of a report piece by piece. The same report gives the same text.

    Raises:
        UsageError: The template does not exist.
        BadDataError: The template is wrong, or uses a name that the report does not have.
    """
    if output_format == "markdown":
        from finding_tickets.report.templates import render_pieces

        return render_pieces(
            report.template,
            {"report": report, "status": report.status},
            report.templates,
        )
    if output_format == "csv":
        from finding_tickets.report.rows import write_csv

        return write_csv(report.status.rows)
    # The other formats are modules, of which one is loaded for those who ask for it.
    writer: Callable[[StatusReport], Iterator[str]]
    writer = import_module(f"{__name__}.formats.{output_format}").write_report
    return writer(report)


def short_lines(report: StatusReport, style: Styler, width: int) -> Iterator[str]:
    """The opening of a report, for half a screen; its headings are the lines without an indent."""
    from textwrap import wrap

    from finding_tickets.report.templates import render
    from finding_tickets.report.text import printable

    text = render(
        "report_short.j2", {"report": report, "status": report.status}, report.templates
    )
    for line in printable(text).splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        yield from (
            wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
            if indent[4:]
            else [style(line, "bold")]
        )
