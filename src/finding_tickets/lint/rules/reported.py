"""The rules whose breaches the reader reports, which every command shows, and how some of them are fixed.

Those about ``lint-ignore`` comments are reported by lint itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from finding_tickets.documents.source import (
    LINE_END,
    Source,
    Splice,
    code_spans,
    is_within,
    line_end,
    parse,
    walk,
)
from finding_tickets.lint.rules.rule import RULES, Fix, Rule
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level, Vocabulary


def _escape_pipes(source: Source, problem: Problem) -> Sequence[Splice]:
    """Escape the pipes within code, where these are as many as there are cells too many."""
    start, end, width = _rows(source.data).get(problem.line, (0, 0, 0))
    text = source.data[start:end]
    pipes = _pipes_of(text)
    ends = text.lstrip().startswith(b"|") + text.rstrip().endswith(b"|")
    spans = code_spans(text, 0, len(text))
    # Only where the pipes in code are exactly those too many is it clear which ones were meant as text.
    inside = [at for at in pipes if is_within(at, spans)]
    excess = len(pipes) - ends + 1 - width
    return [Splice(start + at, start + at, b"\\") for at in inside] if len(inside) == excess else ()


# A hostile file may have thousands of such rows.
@lru_cache(maxsize=2)
def _rows(data: bytes) -> Mapping[int, tuple[int, int, int]]:
    """By its line, where each row of a table starts and ends, and how many cells its header has."""
    lines = Source("", data, Vocabulary())
    return {
        lines.line(row.start): (row.start, row.end, len(table.children[0].children))
        for table in walk(parse(data))
        if table.kind == "Table"
        for row in table.children
    }


def _pipes_of(row: bytes) -> list[int]:
    """Where a row has pipes that end a cell."""
    return [at for at, byte in enumerate(row) if byte == ord("|") and row[at - 1 : at] != b"\\"]


def _part_from_table(source: Source, problem: Problem) -> Sequence[Splice]:
    """Part the line from the table above it; the lines of text that follow it go along."""
    above, start = source.line_starts[problem.line - 2 : problem.line]
    if not source.data[above:start].lstrip().startswith(b"|"):
        return ()
    return [Splice(start, start, line_end(source.data, above))]


def _part_from_rule(source: Source, problem: Problem) -> Sequence[Splice]:
    """Part the text from the rule below it."""
    for start in source.line_starts[problem.line :]:
        if source.data.startswith(b"---", start):
            return [Splice(start, start, line_end(source.data, start))]
    return ()


def _add_delimiter(source: Source, problem: Problem) -> Sequence[Splice]:
    """Write a delimiter row below the line that is meant to be a header."""
    start, below = source.line_starts[problem.line - 1 : problem.line + 1]
    header = source.data[start:below]
    indent = header[: len(header) - len(header.lstrip())]
    row = indent + b"|" + b"---|" * (len(_pipes_of(header)) - 1) + line_end(source.data, start)
    return [Splice(below, below, row)]


def _align_line_ends(source: Source, problem: Problem) -> Sequence[Splice]:
    """Have every line end as most do; of ways that are as frequent, as the first one that is such."""
    ends = [match.span() for match in LINE_END.finditer(source.data)]
    counts = Counter(source.data[slice(*span)] for span in ends)
    # A dictionary keeps its order, so that the first way wins where two are as frequent.
    usual = counts.most_common(1)[0][0] if counts else b""
    return [Splice(*span, usual) for span in ends if source.data[slice(*span)] != usual]


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
FIXES: dict[str, Fix] = {
    "line-ends": _align_line_ends,
    "table-cells": _escape_pipes,
    "table-delimiter": _add_delimiter,
    "table-text": _part_from_table,
    "heading-rule": _part_from_rule,
}
for level, names in ((Level.ERROR, ERRORS), (Level.WARNING, WARNINGS), (Level.NOTE, NOTES)):
    for name in names.split():
        fix, is_bad = FIXES.get(name), level is Level.ERROR
        RULES[name] = Rule(name, level, bad_data=is_bad, fixable=bool(fix), fix=fix, is_reported=True)

FORM, UNUSED = "suppression-form", "suppression-unused"
RULES[FORM] = Rule(FORM, Level.WARNING)
RULES[UNUSED] = Rule(UNUSED, Level.WARNING, fixable=True)
