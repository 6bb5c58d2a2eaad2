"""The rules whose breaches the reader reports, which every command shows.

Those about ``lint-ignore`` comments are reported by lint itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from finding_tickets.documents.source import Source, Splice, code_spans, is_within, parse, walk
from finding_tickets.lint.rules.rule import RULES, Rule
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level, Vocabulary


def _escape_pipes(source: Source, problem: Problem) -> Sequence[Splice]:
    """Escape the pipes within code, where these are as many as there are cells too many."""
    row = _rows(source.data).get(problem.line)
    if row is None:
        return ()
    text = source.data[row.start : row.end]
    pipes = [at for at, byte in enumerate(text) if byte == ord("|") and text[at - 1 : at] != b"\\"]
    ends = text.lstrip().startswith(b"|") + text.rstrip().endswith(b"|")
    spans = code_spans(text, 0, len(text))
    # Only where the pipes in code are exactly those too many is it clear which ones were meant as text.
    inside = [at for at in pipes if is_within(at, spans)]
    if len(inside) != len(pipes) - ends + 1 - row.width:
        return ()
    return [Splice(row.start + at, row.start + at, b"\\") for at in inside]


class _Row(NamedTuple):
    """A row of a table, and how many cells its header has."""

    start: int
    end: int
    width: int


# A hostile file may have thousands of such rows.
@lru_cache(maxsize=2)
def _rows(data: bytes) -> Mapping[int, _Row]:
    """Return the rows of all tables by their lines."""
    lines, rows = Source("", data, Vocabulary()), {}
    for table in walk(parse(data)):
        if table.kind == "Table":
            width = len(table.children[0].children)
            for row in table.children:
                rows[lines.line(row.start)] = _Row(row.start, row.end, width)
    return rows


ERRORS = """
    unreadable too-large empty-file binary-file invalid-utf8 merge-conflict duplicate-id
    remediation-block remediation-yaml remediation-key remediation-twice remediation-type
    remediation-missing remediation-why remediation-answer remediation-variant remediation-path
    remediation-sidecar remediation-run
"""
"""What leaves a document unreadable, or its remediation."""
WARNINGS = """
    no-folder line-ends unclosed nesting title id-missing id-form metadata-number metadata-twice
    unknown-word location-lines table-cells table-delimiter table-header table-text heading-rule
    related-id review-form review-reviewer requirement-status resolution-outcome commits
"""
NOTES = "linked-folder not-a-document"
for level, names in ((Level.ERROR, ERRORS), (Level.WARNING, WARNINGS), (Level.NOTE, NOTES)):
    for name in names.split():
        RULES[name] = Rule(name, level, bad_data=level is Level.ERROR, is_reported=True)
RULES["table-cells"] = replace(RULES["table-cells"], fixable=True, fix=_escape_pipes)

FORM, UNUSED = "suppression-form", "suppression-unused"
RULES[FORM] = Rule(FORM, Level.WARNING)
RULES[UNUSED] = Rule(UNUSED, Level.WARNING, fixable=True)
