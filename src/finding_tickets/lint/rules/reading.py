"""What the reader itself reports; every command says it, not only lint."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from finding_tickets.documents.blocks import parse, walk
from finding_tickets.documents.inline import code_spans
from finding_tickets.documents.source import Source
from finding_tickets.documents.splice import Splice
from finding_tickets.lint.rules.rule import Files, reported
from finding_tickets.lint.suppression import is_within
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.vocabulary import Vocabulary

_LINE_END = re.compile(rb"\r\n|\r|\n")
_COMMITS = "# Implementation Review: Clipping\n\n**Review ID:** TASK-5\n**Commits:** {}\n"
_ITEM = "checklist:\n  - {item: Count the waits, why: by hand}"
_REVIEW = "## Cross-Review\n\n| Reviewer | Verdict | Evaluation |\n|---|---|---|\n"
_RELATED = "## Related Findings\n\n"
_UNTITLED = """\
| Field | Value |
|---|---|
| **Ticket ID** | `B1-PT-01` |
| **Severity** | `P2` |
| **Status** | `wont-fix` |
"""
_SECTIONS = """
## Location

`src/step.py`

## Summary

**One-line summary:** It waits once in every step.

## Verification

- [ ] Count the waits
"""
_ID = "| **Ticket ID** | `{}` |"


def _yaml(*lines: str, item: bool = True) -> Files:
    """An example: a Remediation section with these lines of YAML, and the files that they name."""
    block = "\n".join([*lines, *([_ITEM] if item else [])])
    return {
        "tickets/B1-PT-01.md": f"## Remediation\n\n```yaml\n{block}\n```",
        "fixes/b1_pt_01/found.py": "def step(): ...\n",
        "verifiers/b1_pt_01.py": "",
    }


def _pipes(source: Source, problem: Problem) -> Sequence[Splice]:
    """Escape the pipes within code, where these are as many as there are cells too many."""
    found = _rows(source.data).get(problem.line)
    return _escaped(source.data, *found) if found else ()


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


def _escaped(data: bytes, start: int, end: int, width: int) -> Sequence[Splice]:
    text = data[start:end]
    pipes = _pipes_of(text)
    ends = text.lstrip().startswith(b"|") + text.rstrip().endswith(b"|")
    spans = code_spans(text, 0, len(text))
    inside = [at for at in pipes if is_within(at, spans)]
    excess = len(pipes) - ends + 1 - width
    return [Splice(start + at, start + at, b"\\") for at in inside] if len(inside) == excess else ()


def _pipes_of(row: bytes) -> list[int]:
    """Where a row has pipes that end a cell."""
    return [at for at, byte in enumerate(row) if byte == ord("|") and row[at - 1 : at] != b"\\"]


def _empty_line(source: Source, problem: Problem) -> Sequence[Splice]:
    """Part the line from the table above it; the lines of text that follow it go along."""
    above, start = source.line_starts[problem.line - 2 : problem.line]
    if not source.data[above:start].lstrip().startswith(b"|"):
        return ()
    return [Splice(start, start, _line_end(source, problem.line - 1))]


def _above_rule(source: Source, problem: Problem) -> Sequence[Splice]:
    """Part the text from the rule below it."""
    for number, start in enumerate(source.line_starts[problem.line :], problem.line):
        if source.data.startswith(b"---", start):
            return [Splice(start, start, _line_end(source, number))]
    return ()


def _delimiter(source: Source, problem: Problem) -> Sequence[Splice]:
    """Write a delimiter row below the line that is meant to be a header."""
    start, below = source.line_starts[problem.line - 1 : problem.line + 1]
    header = source.data[start:below]
    count = len(_pipes_of(header)) - 1
    indent = header[: len(header) - len(header.lstrip())]
    row = indent + b"|" + b"---|" * count + _line_end(source, problem.line)
    return [Splice(below, below, row)]


def _same_ends(source: Source, problem: Problem) -> Sequence[Splice]:
    """Have every line end as most do; of ways that are as frequent, as the first one that is such."""
    ends = [match.span() for match in _LINE_END.finditer(source.data)]
    counts = Counter(source.data[slice(*span)] for span in ends)
    usual = counts.most_common(1)[0][0] if counts else b""
    return [Splice(*span, usual) for span in ends if source.data[slice(*span)] != usual]


def _line_end(source: Source, line: int) -> bytes:
    """How a line that another one follows ends."""
    text = source.data[source.line_starts[line - 1] : source.line_starts[line]]
    return text[len(text.rstrip(b"\r\n")) :]


reported(
    "unreadable",
    Level.ERROR,
    "A file or folder of the register can be read.",
    wrong={"tickets/B1-PT-01.md": "-> gone.md"},
    right={"tickets/B1-PT-01.md": ""},
)
reported(
    "no-folder",
    Level.WARNING,
    "The folders that the configuration names exist.",
    wrong={"tickets.toml": 'tickets = ["tickets", "more"]', "tickets/B1-PT-01.md": ""},
    right={"tickets.toml": 'tickets = ["tickets"]', "tickets/B1-PT-01.md": ""},
)
reported(
    "linked-folder",
    Level.NOTE,
    "Folders behind links are not searched.",
    wrong={"tickets/B1-PT-01.md": "", "tickets/more": "-> ../src"},
    right={"tickets/B1-PT-01.md": "", "tickets/more/B1-PT-02.md": ""},
)
reported(
    "too-large",
    Level.ERROR,
    "A document is not larger than the configuration's largest_file; a larger one is not read at all.",
    wrong={"tickets.toml": "largest_file = 100", "tickets/B1-PT-01.md": ""},
    right={"tickets.toml": 'largest_file = "1MiB"', "tickets/B1-PT-01.md": ""},
)
reported(
    "empty-file",
    Level.ERROR,
    "A document says something.",
    wrong={"tickets/B1-PT-01.md": b"\n"},
    right={"tickets/B1-PT-01.md": ""},
)
reported(
    "binary-file",
    Level.ERROR,
    "A document is text.",
    wrong={"tickets/B1-PT-01.md": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"},
    right={"tickets/B1-PT-01.md": ""},
)
reported(
    "invalid-utf8",
    Level.ERROR,
    "A document is UTF-8.",
    wrong={"tickets/B1-PT-01.md": b"# Finding Ticket: caf\xe9"},
    right={"tickets/B1-PT-01.md": ""},
)
reported(
    "merge-conflict",
    Level.ERROR,
    "A merge is finished: git has left none of its marks.",
    wrong="## Notes\n\n<<<<<<< HEAD\nIt waits once.\n>>>>>>> other",
    right="## Notes\n\nIt waits once.",
)
reported(
    "line-ends",
    Level.WARNING,
    "All lines of a file end in the same way; `--fix` has them end as most of them do.",
    wrong="## Notes\n\nIt waits once.\r\nThat is too often.",
    right="## Notes\n\nIt waits once.\nThat is too often.",
    mend=_same_ends,
)
reported(
    "unclosed",
    Level.WARNING,
    "A fence and a comment are closed; else all that follows belongs to them and is not read.",
    wrong="## Notes\n\n```python\nstep()",
    right="## Notes\n\n```python\nstep()\n```",
)
reported(
    "nesting",
    Level.WARNING,
    "Quotes and lists are nested less than a hundred deep.",
    wrong=f"## Notes\n\n{'>' * 101} It waits once.",
    right="## Notes\n\n> It waits once.",
)
reported(
    "not-a-document",
    Level.NOTE,
    "A Markdown file in a folder of tickets is a finding ticket or a review.",
    wrong={"tickets/B1-PT-01.md": "", "tickets/notes.md": "# Notes\n\nWritten on the train."},
    right={"tickets/B1-PT-01.md": "", "notes.md": "# Notes\n\nWritten on the train."},
)
reported(
    "title",
    Level.WARNING,
    "A document has a title.",
    wrong={"tickets/B1-PT-01.md": _UNTITLED.encode()},
    right={"tickets/B1-PT-01.md": f"# Finding Ticket: Clipping waits\n\n{_UNTITLED}{_SECTIONS}"},
)
reported(
    "id-missing",
    Level.WARNING,
    "A ticket states its ID.",
    wrong=_ID.replace("`{}`", ""),
    right=_ID.format("B1-PT-01"),
)
reported(
    "duplicate-id",
    Level.ERROR,
    "An ID names one document. With two, nobody knows which one a relation or a commit message means.",
    wrong={"tickets/B1-PT-01.md": _ID.format("B1-PT-01"), "tickets/B1-PT-01-b.md": _ID.format("B1-PT-01")},
    right={"tickets/B1-PT-01.md": _ID.format("B1-PT-01"), "tickets/B1-PT-02.md": _ID.format("B1-PT-02")},
)
reported(
    "id-form",
    Level.WARNING,
    "An ID has the form that the register asks for.",
    wrong={"tickets/seven.md": _ID.format("seven")},
    right={"tickets/B1-PT-07.md": _ID.format("B1-PT-07")},
)
reported(
    "metadata-number",
    Level.WARNING,
    "A batch is a number.",
    wrong="| **Batch** | seven |",
    right="| **Batch** | 7 |",
)
reported(
    "metadata-twice",
    Level.WARNING,
    "A metadata row is given once; the first one counts.",
    wrong="| **Batch** | 7 |\n| **Batch** | 8 |",
    right="| **Batch** | 8 |",
)
reported(
    "unknown-word",
    Level.WARNING,
    "Severity, status, verdict and relationship are words of the register, and so is a reviewer where the "
    "configuration names its agents.",
    wrong="| **Status** | `wonky` |",
    right="| **Status** | `wont-fix` |",
)
reported(
    "location-lines",
    Level.WARNING,
    "It is clear which lines of which file a location means.",
    wrong="## Location\n\n| Field | Value |\n|---|---|\n| **File(s)** | `src/step.py`, `src/more.py` |\n"
    "| **Line(s)** | `1` |",
    right="## Location\n\n| Field | Value |\n|---|---|\n| **File(s)** | `src/step.py`, `src/more.py` |\n"
    "| **Line(s)** | `step.py:1, more.py:2` |",
)
reported(
    "table-cells",
    Level.WARNING,
    "A row has as many cells as its header. A pipe ends a cell even within backticks, and Markdown drops "
    "what is beyond the last cell. `--fix` escapes pipes within backticks, where these are what is too much.",
    wrong=f"{_REVIEW}| drl | ENDORSE | It returns `Tensor | None`. |",
    right=f"{_REVIEW}| drl | ENDORSE | It returns `Tensor \\| None`. |",
    mend=_pipes,
)
reported(
    "table-delimiter",
    Level.WARNING,
    "Below its header a table has a delimiter row with as many cells; without it the rows are text, and "
    "nothing is read from them.",
    wrong="## Measured\n\n| Waits | Before |\n| one step | 48 |",
    right="## Measured\n\n| Waits | Before |\n|---|---|\n| one step | 48 |",
    mend=_delimiter,
)
reported(
    "table-header",
    Level.WARNING,
    "A table has a header; a row by itself is read with the table above it.",
    wrong=f"{_REVIEW}| drl | ENDORSE | It waits. |\n\nOne came later.\n\n| pytorch | NEUTRAL | Rarely. |",
    right=f"{_REVIEW}| drl | ENDORSE | It waits. |\n| pytorch | NEUTRAL | Rarely. |\n\nOne came later.",
)
reported(
    "table-text",
    Level.WARNING,
    "An empty line ends a table; without one, Markdown makes the text below a row of it.",
    wrong="## Measured\n\n| Waits | Before |\n|---|---|\n| one step | 48 |\nCounted by hand.",
    right="## Measured\n\n| Waits | Before |\n|---|---|\n| one step | 48 |\n\nCounted by hand.",
    mend=_empty_line,
)
reported(
    "heading-rule",
    Level.WARNING,
    "An empty line is between a text and the rule below it; else Markdown makes a heading of the text.",
    wrong="## Notes\n\nIt waits once.\n---",
    right="## Notes\n\nIt waits once.\n\n---",
    mend=_above_rule,
)
reported(
    "related-id",
    Level.WARNING,
    "A related finding begins with its ID.",
    wrong={"tickets/B1-PT-01.md": f"{_RELATED}- the same loop elsewhere"},
    right={
        "tickets/B1-PT-01.md": f"{_RELATED}- B1-PT-02: the same loop elsewhere",
        "tickets/B1-PT-02.md": f"{_RELATED}- B1-PT-01: the same loop",
    },
)
reported(
    "review-form",
    Level.WARNING,
    "A cross-review states a verdict.",
    wrong="## Cross-Review (drl)\n\nStill to come.",
    right="## Cross-Review (drl)\n\n**Verdict:** ENDORSE",
)
reported(
    "review-reviewer",
    Level.WARNING,
    "A cross-review names its reviewer.",
    wrong="## Cross-Review\n\n**Verdict:** ENDORSE",
    right="## Cross-Review (drl)\n\n**Verdict:** ENDORSE",
)
reported(
    "requirement-status",
    Level.WARNING,
    "A requirement of a review is met or not.",
    wrong={
        "tickets/TASK-5.md": """\
# Implementation Review: Clipping

**Review ID:** TASK-5
**Plan Reference:** plan.md

## Requirements

| Requirement | Implementation | Status |
|---|---|---|
| Add a test | added | perhaps |
"""
    },
    right={
        "tickets/TASK-5.md": """\
# Implementation Review: Clipping

**Review ID:** TASK-5
**Plan Reference:** plan.md

## Requirements

| Requirement | Implementation | Status |
|---|---|---|
| Add a test | added | done |
"""
    },
)
reported(
    "resolution-outcome",
    Level.WARNING,
    "A resolution states its outcome; for a ticket still open this is a note.",
    wrong="| **Status** | `closed` |\n\n## Resolution\n\nDiscussed on Monday.",
    right="| **Status** | `closed` |\n\n## Resolution\n\n**Status:** Won't fix\n\nDiscussed on Monday.",
)
reported(
    "commits",
    Level.WARNING,
    "Commits are named by their hashes.",
    wrong={"tickets/TASK-5.md": _COMMITS.format("the last two")},
    right={"tickets/TASK-5.md": _COMMITS.format("62d9698..7574061")},
)
reported(
    "remediation-block",
    Level.ERROR,
    "A Remediation section holds one YAML block.",
    wrong="## Remediation\n\nSee the verifier.",
    right=_yaml("verifier: verifiers/b1_pt_01.py"),
)
reported(
    "remediation-yaml",
    Level.ERROR,
    "The block is YAML.",
    wrong=_yaml("claims:", "  found:", "    syncs: {is: 1, why: once: in the loop}"),
    right=_yaml("claims:", "  found:", "    syncs: {is: 1, why: 'once: in the loop'}"),
)
reported(
    "remediation-key",
    Level.ERROR,
    "The block has known keys only.",
    wrong=_yaml("verifyer: verifiers/b1_pt_01.py"),
    right=_yaml("verifier: verifiers/b1_pt_01.py"),
)
reported(
    "remediation-twice",
    Level.ERROR,
    "A key is given once.",
    wrong=_yaml("claims:", "  found: {syncs: 1}", "claims:", "  found: {syncs: 2}"),
    right=_yaml("claims:", "  found: {syncs: 2}"),
)
reported(
    "remediation-type",
    Level.ERROR,
    "A value has the type that its key needs.",
    wrong=_yaml("claims: 4"),
    right=_yaml("claims: {found: {syncs: 4}}"),
)
reported(
    "remediation-missing",
    Level.ERROR,
    "A mapping states what it must.",
    wrong=_yaml("claims: {found: {syncs: {expect: refuted, why: it waits twice}}}"),
    right=_yaml("claims: {found: {syncs: {is: 1, expect: refuted, why: it waits twice}}}"),
)
reported(
    "remediation-why",
    Level.ERROR,
    "An expected refutation gives a reason.",
    wrong=_yaml("claims: {found: {syncs: {is: 1, expect: refuted}}}"),
    right=_yaml("claims: {found: {syncs: {is: 1, expect: refuted, why: it waits twice}}}"),
)
reported(
    "remediation-answer",
    Level.ERROR,
    "An answer names claims or a reason.",
    wrong=_yaml("checklist:", "  - {item: Count the waits}", item=False),
    right=_yaml("checklist:", "  - {item: Count the waits, why: by hand}", item=False),
)
reported(
    "remediation-variant",
    Level.ERROR,
    "A variant names a file and a function.",
    wrong=_yaml("variants: {found: fixes/b1_pt_01/found.py}"),
    right=_yaml("variants: {found: 'fixes/b1_pt_01/found.py:step'}"),
)
reported(
    "remediation-path",
    Level.ERROR,
    "A path stays in the repository.",
    wrong=_yaml("verifier: ../b1_pt_01.py"),
    right=_yaml("verifier: verifiers/b1_pt_01.py"),
)
reported(
    "remediation-sidecar",
    Level.ERROR,
    "A remediation in a file of its own, called ID.remediation.yaml, stands beside the ticket of that ID, "
    "which has no section for it.",
    wrong={"tickets/B1-PT-01.md": "", "tickets/B1-PT-02.remediation.yaml": "decision: keep\n"},
    right={"tickets/B1-PT-01.md": "", "tickets/B1-PT-01.remediation.yaml": f"decision: keep\n{_ITEM}\n"},
)
