"""The formats of a report, each with the module that writes it, which is loaded for those who ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from importlib import import_module
from typing import NamedTuple

from finding_tickets.report.contexts import Report

Writer = Callable[[Report], Iterator[str]]
"""Makes the text of a report piece by piece, as the pieces are taken; the same report gives the same text."""


class ReportFormat(StrEnum):
    """What a report can be written as."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CSV = "csv"
    JUNIT = "junit"
    SARIF = "sarif"
    GITHUB = "github"


class How(NamedTuple):
    """The module whose ``write`` is the writer of a format, its template if it has one, and any profiles.

    ``has_since`` says whether it shows what is different from a revision, ``has_matrix`` whether it shows
    what was measured in the cells of a matrix.
    """

    module: str
    template: str | None = None
    has_profiles: bool = False
    has_since: bool = False
    has_matrix: bool = False


FORMATS: Mapping[ReportFormat, How] = {
    ReportFormat.MARKDOWN: How(
        "finding_tickets.report.markdown", "report.md.j2", has_since=True, has_matrix=True
    ),
    ReportFormat.HTML: How("finding_tickets.report.html", "report.html.j2", has_since=True, has_matrix=True),
    ReportFormat.JSON: How("finding_tickets.report.exports.data", has_since=True, has_matrix=True),
    ReportFormat.CSV: How("finding_tickets.report.exports.sheet"),
    ReportFormat.JUNIT: How("finding_tickets.report.exports.junit"),
    ReportFormat.SARIF: How("finding_tickets.report.exports.sarif", has_profiles=True),
    ReportFormat.GITHUB: How("finding_tickets.report.exports.github"),
}
"""Every format."""


def writer(output_format: ReportFormat) -> Writer:
    """The function that writes a format."""
    write: Writer = import_module(FORMATS[output_format].module).write
    return write
