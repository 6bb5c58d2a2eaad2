"""The rules whose breaches the reader reports, which every command shows.

Those about ``lint-ignore`` comments are reported by lint itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from finding_tickets.documents.source import (
    MarkdownTable,
    Source,
    Splice,
    TableRow,
    parse,
    walk,
)
from finding_tickets.lint.rules.rule import RULES, Rule
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level, Vocabulary


def _escape_pipes(source: Source, problem: Problem) -> Sequence[Splice]:
    """Escape the pipes within code, where these are as many as there are cells too many."""
    if problem.line not in _rows(source.data):
        return ()
    table, row = _rows(source.data)[problem.line]
    inside, outside = table.pipes(row)
    # Only where the pipes in code are exactly those too many is it clear which ones were meant as text.
    if len(outside) + 1 != len(table.titles):
        return ()
    return [Splice(at, at, b"\\") for at in inside]


# A hostile file may have thousands of such rows.
@lru_cache(maxsize=2)
def _rows(data: bytes) -> Mapping[int, tuple[MarkdownTable, TableRow]]:
    """Return the rows of all tables by their lines."""
    source = Source("", data, Vocabulary())
    rows: dict[int, tuple[MarkdownTable, TableRow]] = {}
    for block in walk(parse(data)):
        if block.kind == "Table":
            table = source.table(block)
            rows |= {source.line(row.block.start): (table, row) for row in table.rows}
    return rows


# What leaves a document unreadable, or its remediation.
ERRORS = """
    unreadable too-large empty-file binary-file invalid-utf8 merge-conflict duplicate-id
    remediation-block remediation-yaml remediation-key remediation-twice remediation-type
    remediation-missing remediation-why remediation-answer remediation-variant remediation-path
    remediation-sidecar remediation-run
"""
WARNINGS = """
    no-folder line-ends unclosed nesting title id-missing id-form metadata-number metadata-twice
    unknown-word location-lines table-cells table-delimiter table-header table-text heading-rule
    related-id review-form review-reviewer requirement-status resolution-outcome commits
"""
NOTES = "linked-folder not-a-document"
for level, names in (
    (Level.ERROR, ERRORS),
    (Level.WARNING, WARNINGS),
    (Level.NOTE, NOTES),
):
    for name in names.split():
        RULES[name] = Rule(name, level, bad_data=level is Level.ERROR, is_reported=True)
RULES["table-cells"] = replace(RULES["table-cells"], fixable=True, fix=_escape_pipes)

FORM = "suppression-form"
RULES[FORM] = Rule(FORM, Level.WARNING)
