"""A report as Markdown, or as whatever a template makes of it."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.report.contexts import Report
from finding_tickets.report.templates import pieces


def write(report: Report) -> Iterator[str]:
    """The report's template filled in.

    Raises:
        UsageError: There is no such template.
        BadDataError: The template is wrong, or uses a name that the report does not have.
    """
    return pieces(report.template, {"report": report, "status": report.status}, report.templates)
