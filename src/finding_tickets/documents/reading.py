"""Read one file: its bytes become a record and a list of problems. No content makes the reader raise.

First it looks for damage: an unfinished merge, code without an end, rows that are none in Markdown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from finding_tickets.documents.finding import read_finding
from finding_tickets.documents.metadata import kind_of
from finding_tickets.documents.sections import (
    DocumentPart,
    read_metadata,
    read_sections,
    title_of,
)
from finding_tickets.documents.source import (
    DEEPEST,
    LINE_END,
    TOO_DEEP,
    Block,
    Source,
    parse,
    walk,
)
from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import ImplementationReview, Problem, Text, Ticket
from finding_tickets.model.vocabulary import Level, Vocabulary

Document: TypeAlias = Ticket | ImplementationReview

_MERGE = re.compile(
    rb"(?:\A|(?<=[\r\n]))(?:(?P<ours><{7})|(?P<between>\|{7}|={7})|(?P<theirs>>{7}))(?=[ \r\n]|\Z)"
)
_FENCE = re.compile(rb"[ \t]*(?P<fence>`{3,}|~{3,})")
_LINE_ENDS = {b"\r\n": "CRLF", b"\n": "LF", b"\r": "CR"}
_LINT_IGNORE = b"lint-ignore"
_SUPPRESSION = re.compile(
    rb"<!--[ \t\r\n]*lint-ignore\b(?P<text>(?:(?!<!--|-->)[\s\S])*)-->"
)
_IGNORED = re.compile(
    r"(?s)\s+(?P<rules>[\w-]+(?:\s*,\s*[\w-]+)*)\s*(?::\s*(?P<reason>\S.*))?"
)


@dataclass(frozen=True)
class Page:
    """A document, the file that it was read from, and its parts."""

    source: Source
    document: Document
    parts: tuple[DocumentPart, ...]

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.source.data

    @property
    def blocks(self) -> Iterator[Block]:
        """Every block below a heading or before the first one, parents before children."""
        return walk(block for part in self.parts for block in part.blocks)

    def enclosing(
        self, value: Text, kinds: Sequence[str], label: str = ""
    ) -> Block | None:
        """The innermost block of these kinds around a value. An empty value may stand where the block ends.

        The next row may begin at that place as well: the ``label`` tells the two apart.
        """
        at, named = value.span.start, label.encode()
        found = [
            block
            for block in self.blocks
            if block.kind in kinds and block.start <= at <= block.end
        ]
        own = [block for block in found if named in self.data[block.start : block.end]]
        # The last one, which is the innermost, of those that do not end there.
        own.sort(key=lambda block: at < block.end)
        return own[-1] if own else None


def read_document(
    data: bytes, path: str, vocabulary: Vocabulary | None = None
) -> tuple[Document | None, tuple[Problem, ...]]:
    """The document in ``data`` and what could not be understood of it, as ``read_page`` has them."""
    page, problems = read_page(data, path, vocabulary)
    return page.document if page else None, problems


def read_page(
    data: bytes, path: str, vocabulary: Vocabulary | None = None
) -> tuple[Page | None, tuple[Problem, ...]]:
    """Return the document in ``data`` with its parts, and the problems, in which ``path`` names the file.

    If ``data`` is not text, or neither a ticket nor a review, there is a problem in place of a document.
    """
    source = Source(path, data, vocabulary or Vocabulary())
    page: Page | None = None
    if not data.strip():
        source.report("empty-file", 0, "the file is empty", level=Level.ERROR)
    elif b"\0" in data:
        source.report(
            "binary-file",
            data.index(0),
            "a NUL byte: this is not a text file",
            level=Level.ERROR,
        )
    else:
        source.utf8_text("invalid-utf8")
    if not source.problems:
        try:
            page = _read_text(source)
        except BadDataError as error:
            source.report("too-large", 0, error.message, error.hint, Level.ERROR)
    return page, tuple(sorted(source.problems, key=lambda problem: problem.line))


def _read_text(source: Source) -> Page | None:
    """Return the document of a text; None, which is reported, for what is neither a ticket nor a review."""
    parts = read_sections(source)
    _check_source(source, parts)
    metadata = read_metadata(source, parts)
    title = title_of(parts, metadata)
    kind = kind_of(title, metadata)
    if kind:
        _check_tables(source, parts)
    if kind == "finding":
        return Page(source, read_finding(parts, metadata, title), parts)
    if kind == "review":
        # Most registers have none: what reads reviews is loaded with the first.
        from finding_tickets.documents.implementation_review import (
            read_implementation_review,
        )

        return Page(source, read_implementation_review(parts, metadata, title), parts)
    message = "neither a finding ticket nor an implementation review"
    hint = "begin a ticket with '# Finding Ticket: ...'"
    source.report("not-a-document", 0, message, hint, Level.NOTE)
    return None


def _check_source(source: Source, parts: Iterable[DocumentPart]) -> None:
    """Report conflict marks, mixed line ends, deep nesting, and code and comments that do not end."""
    # The search at the start of each line takes as long as parsing, and few files have conflict marks. A line
    # of equal signs is one only within a conflict.
    within = False
    marked = any(
        mark in source.data for mark in (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
    )
    for mark in _MERGE.finditer(source.data) if marked else ():
        if within or not mark["between"]:
            message = "a mark of a merge that is not finished: what follows may be there twice"
            source.report("merge-conflict", mark.start(), message, level=Level.ERROR)
        within = bool(mark["ours"] or (within and mark["between"]))
    ends = list(LINE_END.finditer(source.data)) if b"\r" in source.data else []
    counts = Counter(each[0] for each in ends)
    usual = max(_LINE_ENDS, key=lambda end: counts[end])
    # The first line with another end shows what an editor or a merge has brought in.
    if first := next((each for each in ends if each[0] != usual), None):
        stated = ", ".join(
            f"{counts[end]} in {name}"
            for end, name in _LINE_ENDS.items()
            if counts[end]
        )
        message = f"the file mixes line ends: of {len(ends)} lines {stated}"
        source.report("line-ends", first.start(), message)
    for part in parts:
        for block in part.by_kind[TOO_DEEP]:
            message = f"nested more than {DEEPEST} deep: this is not read"
            source.report("nesting", block.start, message)
        for block in part.by_kind["CodeBlock"]:
            text = source.data[block.start : block.end].rstrip()
            fence = _FENCE.match(text)
            last = text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :].lstrip(b" \t>")
            alone = len(text.splitlines()) == 1
            if fence and (
                alone
                or not last.startswith(fence["fence"])
                or last.strip(fence["fence"][:1])
            ):
                message = "the fence is not closed: what follows is read as code"
                source.report(
                    "unclosed", block.start, message, "end the code with the same fence"
                )
        # An open comment hides everything behind it, also from GitHub.
        for block in part.by_kind["HtmlBlock"]:
            text = source.data[block.start : block.end].strip()
            if text.startswith(b"<!--") and b"-->" not in text:
                message = "the comment is not closed, so what follows is not read"
                source.report(
                    "unclosed", block.start, message, "end the comment with -->"
                )


def _check_tables(source: Source, parts: Iterable[DocumentPart]) -> None:
    """Report rows that Markdown reads in another way than people do."""
    for part in parts:
        for row in (
            row for block in part.by_kind["Table"] for row in source.table(block).body
        ):
            if row.text:
                message = "no blank line between this line and the table above makes the line a row"
                source.report("table-text", row.block.start, message)
            elif row.overfull:
                message = f"the row has more cells than the {len(row.block.children)} of its header"
                hint = r"a pipe ends a cell even inside backticks; write it as \|"
                source.report("table-cells", row.block.children[-1].end, message, hint)
        for block in part.by_kind["Paragraph"]:
            # Two lines in a paragraph that look like rows.
            text = source.data[block.start : block.end]
            lines = [line.strip() for line in text.splitlines()] if b"|" in text else []
            rows = [
                len(line) > 1 and line.startswith(b"|") and line.endswith(b"|")
                for line in lines
            ]
            first = next(
                (index for index, pair in enumerate(pairwise(rows)) if all(pair)), None
            )
            if first is not None:
                message = (
                    "rows without a delimiter row, so Markdown makes no table of them"
                )
                hint = (
                    "below the header write |---|---|, with as many cells as the header"
                )
                source.report(
                    "table-delimiter",
                    (source.line(block.start) + first, 1),
                    message,
                    hint,
                )


@dataclass(frozen=True)
class Suppression:
    """A comment at ``[start, end)`` that makes lint ignore rules, and its reason, empty where it has none."""

    start: int
    end: int
    rules: tuple[str, ...]
    reason: str


def suppressions(data: bytes) -> tuple[Suppression, ...]:
    """The comments ``<!-- lint-ignore RULE, RULE: reason -->`` on lines of their own."""
    if _LINT_IGNORE not in data:
        return ()
    found = []
    for block in walk(parse(data)):
        for match in (
            _SUPPRESSION.finditer(data, block.start, block.end)
            if block.kind == "HtmlBlock"
            else ()
        ):
            text = _IGNORED.fullmatch(match["text"].decode(errors="replace").rstrip())
            names = re.split(r"\s*,\s*", text["rules"]) if text else []
            found.append(
                Suppression(
                    *match.span(), tuple(names), (text["reason"] or "") if text else ""
                )
            )
    return tuple(found)


def ignored_rules(data: bytes) -> tuple[str, ...]:
    """The rules that the comments of a document ignore. A comment without a reason ignores nothing."""
    names = (name for each in suppressions(data) if each.reason for name in each.rules)
    return tuple(dict.fromkeys(names))
