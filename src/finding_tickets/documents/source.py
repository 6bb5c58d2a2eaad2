"""The bytes of one file: blocks of Markdown, tables, excerpts, problems, and splices that change them.

Markdown is a tree of blocks, each with the bytes it covers. Front matter stands between a line of ``---`` at
the very beginning of a file and the next such line (or ``...``). Tables keep the cells that Markdown drops.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from typing import Any, NamedTuple, TypeAlias

import pyromark

from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import Problem, Span
from finding_tickets.model.vocabulary import Level, Vocabulary, squeeze

_TICKS = re.compile(rb"`+")
_MARKUP = re.compile(r"\*\*|\\([|*_`\[\]])")
_NOT_A_WORD = re.compile(r"[^\w]+")
_PARSER = pyromark.Markdown(
    options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_TASKLISTS
)
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_DELIMITERS = re.compile(rb"(?m)^[ >]*\|[|: \t-]*\r?$")
_PIPE = re.compile(rb"(?<!\\)\|")
_CONTAINERS = frozenset(["List", "Item", "BlockQuote"])
_BLOCKS = _CONTAINERS | frozenset(
    [
        "Heading",
        "Paragraph",
        "CodeBlock",
        "HtmlBlock",
        "Table",
        "TableHead",
        "TableRow",
        "TableCell",
    ]
)
_FRONT_MATTER = re.compile(
    rb"""(?x)(?:---[ \t]*(?:\r\n|\r|\n)|(?=\w+:\t))
    (?P<text>[\w"'][^\r\n:]*:(?:[ \t][^\r\n]*)?(?:\r\n|\r|\n)(?:[^\r\n]*(?:\r\n|\r|\n))*?)
    (?:---?|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)""",
)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n|\r|\n")
# So many blocks may stand one within another: more than people write, few enough to be walked in any
# way.
DEEPEST = 100
# So many beginnings, ends and texts of blocks may a file have: more than a megabyte for people has.
MOST_PIECES = 500_000
TOO_DEEP = "TooDeep"

# The fields of a record, or of one within it; a whole document is validated at once when all are read.
Values: TypeAlias = dict[str, Any]


def plain(raw: str) -> str:
    """``raw`` on one line, without bold marks, backticks and escapes: ``**Agent**`` is ``Agent``."""
    # Most texts have neither code nor escapes: the general way takes longer.
    if "`" not in raw and "\\" not in raw:
        return " ".join(raw.replace("**", "").split())
    data, at, pieces = raw.encode(), 0, list[str]()
    for start, end in code_spans(data, 0, len(data)):
        pieces += [_without_marks(data[at:start].decode()), data[start:end].decode()]
        at = end
    pieces.append(_without_marks(data[at:].decode()))
    return " ".join("".join(pieces).split())


def key_of(label: str) -> str:
    """A label in the form that is compared, without a remark: ``Severity (CVSS 3.1)`` is ``severity``."""
    return squeeze(label.partition(" (")[0])


def words_of(title: str) -> str:
    """A title in lower case with single spaces between its words."""
    return _NOT_A_WORD.sub(" ", title.lower()).strip()


def code_spans(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """The content of each code span within ``data[start:end]``, as offsets into ``data``.

    A run of backticks opens a span that the next run of the same length closes.
    """
    if data.find(b"`", start, end) < 0:
        return []
    runs = [match.span() for match in _TICKS.finditer(data, start, end)]
    left = Counter(last - first for first, last in runs)
    spans, opened, wanted = list[tuple[int, int]](), 0, 0
    for first, last in runs:
        length = last - first
        left[length] -= 1
        if wanted == length:
            spans.append((opened, first))
            wanted = 0
        elif not wanted and left[length]:
            opened, wanted = last, length
    return spans


def code_span(value: str) -> str:
    """A value on one line as a code span of Markdown, whatever backticks are in it."""
    ticks = "`" * (max(map(len, re.findall("`+", value)), default=0) + 1)
    gap = " " if value.startswith("`") or value.endswith("`") or not value else ""
    return f"{ticks}{gap}{value}{gap}{ticks}"


def _without_marks(text: str) -> str:
    return _MARKUP.sub(lambda match: match[1] or "", text).replace("`", "")


@dataclass(eq=False)
class Excerpt:
    """A piece of a file, without the white space around it: ``raw`` is what stands in ``[start, end)``."""

    source: Source
    start: int
    end: int
    raw: str

    @cached_property
    def plain(self) -> str:
        """The text on one line, without markup."""
        return plain(self.raw)

    def piece(self, first: int, last: int | None = None) -> Excerpt:
        """Return the text between two of its characters."""
        start = self.start + len(self.raw[:first].encode())
        return self.source.text(start, start + len(self.raw[first:last].encode()))

    @property
    def after_colon(self) -> Excerpt:
        """The text behind its first colon; empty without one."""
        return self.piece(len(self.raw.partition(":")[0]) + 1)

    @property
    def first_line(self) -> Excerpt:
        """Its first line."""
        return self.piece(0, len(self.raw.partition("\n")[0]))

    def code_spans(self) -> list[Excerpt]:
        """Return the texts between backticks."""
        return [
            self.source.text(*span)
            for span in code_spans(self.source.data, self.start, self.end)
        ]

    def record(self, **values: object) -> Values:
        """The fields of a record that stands here."""
        return {
            "raw": self.raw,
            "span": self.source.span(self.start, self.end),
            **values,
        }

    def report(self, rule: str, message: str, hint: str | None = None) -> None:
        """Report that this could not be understood."""
        self.source.report(rule, self.start, message, hint)

    def report_unknown(self, what: str, words: Iterable[str]) -> None:
        """Report that this is none of the words of a vocabulary."""
        self.report(
            "unknown-word", f"{what} is {self.plain!r}", f"one of {', '.join(words)}"
        )


@dataclass(frozen=True)
class Source:
    """A file of UTF-8 text under its path relative to the register's root.

    All offsets are byte offsets into ``data``. ``problems`` collects what could not be understood.
    """

    path: str
    data: bytes
    vocabulary: Vocabulary
    problems: list[Problem] = field(default_factory=list)
    line_starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        lines = self.data.splitlines(keepends=True)
        self.line_starts.extend(accumulate(map(len, lines), initial=0))
        if lines and not lines[-1].endswith((b"\n", b"\r")):
            self.line_starts.pop()

    def utf8_text(self, rule: str) -> str:
        """All of the text; where it is not UTF-8, none, and the first byte that is not is reported."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            message = f"byte 0x{self.data[error.start]:02x} is not UTF-8"
            self.report(
                rule, error.start, message, "save the file as UTF-8", Level.ERROR
            )
            return ""

    def line(self, offset: int) -> int:
        """The line, from 1, that the byte at ``offset`` is on."""
        return bisect_right(self.line_starts, offset)

    def column(self, offset: int) -> int:
        """The column, in characters from 1, of the byte at ``offset``; a byte order mark takes none."""
        before = self.data[self.line_starts[self.line(offset) - 1] : offset]
        return len(before.decode(errors="replace").removeprefix("\ufeff")) + 1

    def span(self, start: int, end: int) -> Span:
        """The span ``[start, end)``."""
        return Span(start, end, bisect_right(self.line_starts, start))

    def raw(self, start: int, end: int) -> str:
        """The text of ``[start, end)`` exactly as written."""
        return self.data[start:end].decode()

    def text(self, start: int, end: int) -> Excerpt:
        """The text of ``[start, end)``; of white space alone, its empty end."""
        piece = self.data[start:end]
        written = piece.strip()
        first = (
            start + len(piece) - len(piece.lstrip())
            if len(written) < len(piece)
            else start
        )
        return Excerpt(self, first, first + len(written), written.decode())

    def whole(self, block: Block) -> Excerpt:
        """All that a block covers."""
        return self.text(block.start, block.end)

    def words(self, block: Block) -> Excerpt:
        """The text of a heading, or of a list item without the blocks nested in it."""
        paragraphs = (child for child in block.children if child.kind == "Paragraph")
        holder = block if block.first < block.last else next(paragraphs, block)
        return self.text(holder.first, holder.last)

    def table(self, block: Block) -> MarkdownTable:
        """The table that a block is, read once however often it is asked for."""
        if block.table is None:
            rows: list[TableRow] = []
            piped = False
            for row in block.children:
                text = self.data[row.start : row.end].rstrip()
                closed = text.endswith(b"|") and not text.endswith(rb"\|")
                end = row.start + len(text) - closed
                opened = text.lstrip().startswith(b"|")
                piped = piped if rows else opened
                rows.append(
                    TableRow(row, end, end > row.children[-1].end, piped and not opened)
                )
            block.table = MarkdownTable(self, rows, rows[1:])
        return block.table

    def report(
        self,
        rule: str,
        at: int | tuple[int, int],
        message: str,
        hint: str | None = None,
        level: Level = Level.WARNING,
    ) -> Problem:
        """Report what is wrong at an offset, or on a line and a column."""
        line, column = (self.line(at), self.column(at)) if isinstance(at, int) else at
        problem = Problem(
            level=level,
            rule=rule,
            file=self.path,
            line=line,
            column=column,
            message=message,
            hint=hint,
        )
        self.problems.append(problem)
        return problem


@dataclass(eq=False, slots=True)
class Block:
    """A block of Markdown: its bytes are ``[start, end)`` and its text, if any, is ``[first, last)``.

    Attributes:
        kind: The parser's name for it: Heading, Paragraph, List, Item, CodeBlock, BlockQuote, HtmlBlock,
            Rule, FrontMatter, Table, TableHead, TableRow or TableCell.
        level: The level of a heading, 0 for any other block.
        info: The language of a fence, and what follows it.
        code: The content of a code block.
        checked: Whether a check box is ticked; None for what has none.
        table: The table in it, once it was asked for.
    """

    kind: str
    start: int
    end: int
    first: int
    last: int
    level: int = 0
    info: str = ""
    code: str = ""
    checked: bool | None = None
    table: MarkdownTable | None = None
    children: list[Block] = field(default_factory=list)


def parse(data: bytes) -> list[Block]:
    """Return the outermost blocks of UTF-8 ``data``.

    Raises:
        BadDataError: They are too many, as those of a table with half a million cells are.
    """
    # The parser takes a byte order mark for text, which would hide a heading on the first line, and front
    # matter for a heading.
    skipped = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
    root = Block("Document", 0, len(data), 0, 0)
    front_matter = _FRONT_MATTER.match(data, skipped)
    if front_matter:
        start, end = front_matter.span("text")
        root.children.append(Block("FrontMatter", start, end, end, end))
        skipped = front_matter.end()
    events = _events(data, skipped)
    current, outer = root, list[Block]()
    what: str
    detail: Any
    for event, span in events:
        what, detail = (event, "") if event.__class__ is str else event.popitem()
        if what == "Start":
            kind: str = detail if detail.__class__ is str else next(iter(detail))
            if kind in _BLOCKS:
                start, end = span["start"], span["end"]
                block = Block(kind, start, end, end, end)
                if kind == "Heading":
                    block.level = int(detail[kind]["level"][1:])
                elif (
                    kind == "CodeBlock"
                    and isinstance(detail, dict)
                    and isinstance(detail[kind], dict)
                ):
                    block.info = detail[kind]["Fenced"]
                # What is too deep is parsed on, in a tree of its own that nobody reads.
                deep = len(outer) >= DEEPEST and kind in _CONTAINERS
                current.children.append(
                    Block(TOO_DEEP, start, end, end, end) if deep else block
                )
                outer.append(current)
                current = block
                continue
        elif what == "Text":
            if current.kind == "CodeBlock":
                current.code += detail
        elif what == "End":
            if (detail if detail.__class__ is str else next(iter(detail))) in _BLOCKS:
                current = outer.pop()
                continue
        elif what == "Rule":
            start, end = span["start"], span["end"]
            current.children.append(Block(what, start, end, end, end))
            continue
        elif what == "TaskListMarker":
            # In a loose list the marker stands in the paragraph of its item.
            (current if current.kind == "Item" else outer[-1]).checked = bool(detail)
            continue
        # The pieces of a text come in its order, and what has pieces of its own once more at its end.
        if current.first == current.last:
            current.first = span["start"]
        current.last = span["end"]
    return root.children


def _events(data: bytes, skipped: int) -> list[tuple[Any, Any]]:
    """Return what the parser finds behind the first bytes, each event with its span."""
    # Empty lines in the place of what is skipped leave every offset as it is. The parser takes a lone
    # carriage return for the end of some lines only, and knows no tabs in the row below a table's header.
    meant = _LONE_RETURN.sub(b"\n", b"\n" * skipped + data[skipped:])
    meant = (
        _DELIMITERS.sub(lambda row: row[0].replace(b"\t", b" "), meant)
        if b"\t" in meant
        else meant
    )
    read = _PARSER.events_with_range(meant.decode(), merge_text=True)
    events: list[tuple[Any, Any]] = list(islice(read, MOST_PIECES + 1))
    if len(events) > MOST_PIECES:
        message = f"more than {MOST_PIECES:,} cells and other pieces of Markdown: too large to be read"
        raise BadDataError(
            message,
            hint="keep what people read, and tables of data in files of their own",
        )
    return events


def walk(blocks: Iterable[Block], *, rows: bool = True) -> Iterator[Block]:
    """Every block of the trees, parents before children, in the order of the file.

    Without ``rows`` tables count as leaves.
    """
    waiting = list(blocks)[::-1]
    while waiting:
        block = waiting.pop()
        yield block
        if block.children and (rows or block.kind != "Table"):
            waiting.extend(reversed(block.children))


class TableRow(NamedTuple):
    """A row whose content ends at ``end``, before the last pipe.

    An ``overfull`` row has more cells than the header. A row of ``text`` is a line below the table that
    Markdown takes for a row: the header begins with a pipe, and the line does not.
    """

    block: Block
    end: int
    overfull: bool
    text: bool


@dataclass(frozen=True)
class MarkdownTable:
    """A table and what stands in it; ``rows`` are all of them, the header first, and ``body`` the others."""

    source: Source
    rows: list[TableRow]
    body: list[TableRow]

    @cached_property
    def titles(self) -> list[str]:
        """The titles of the columns, in lower case."""
        return [cell.plain.lower() for cell in self.cells(self.rows[0])]

    @cached_property
    def records(self) -> list[dict[str, Excerpt]]:
        """Each row below the header as ``{column title: cell}``."""
        return [
            dict(zip(self.titles, self.cells(row), strict=True)) for row in self.body
        ]

    def column(self, pattern: re.Pattern[str], *but: str | None) -> str | None:
        """Return the first title that matches and is not excluded; None where no column has one."""
        for title in self.titles:
            if title not in but and (
                pattern.fullmatch(title) or pattern.fullmatch(key_of(title))
            ):
                return title
        return None

    def text_of(self, record: dict[str, Excerpt]) -> Excerpt:
        """The text from the first to the last cell of a row."""
        cells = [*record.values()]
        return self.source.text(cells[0].start, cells[-1].end)

    def cells(self, row: TableRow) -> list[Excerpt]:
        """The cells of a row, as many as the header has.

        In Markdown a pipe ends a cell even inside backticks, and surplus cells are dropped. Here such pipes
        do not count if the number of cells is right without them; else the last cell takes the surplus.
        """
        cells = [(cell.start, cell.end) for cell in row.block.children]
        cells[-1] = (cells[-1][0], max(cells[-1][1], row.end))
        if row.overfull:
            _, outside = self.pipes(row)
            if len(outside) + 1 == len(cells):
                starts, ends = [pipe + 1 for pipe in outside], [*outside, row.end]
                cells = list(zip([cells[0][0], *starts], ends, strict=True))
        return [self.source.text(*cell) for cell in cells]

    def pipes(self, row: TableRow) -> tuple[list[int], list[int]]:
        """Return the offsets of a row's pipes behind its first cell: those in code, and the others."""
        data, start = self.source.data, row.block.children[0].start
        # Where code begins and ends, in order: behind an odd number of these marks a pipe is inside.
        marks = [mark for span in code_spans(data, start, row.end) for mark in span]
        pipes: tuple[list[int], list[int]] = ([], [])
        for match in _PIPE.finditer(data, start, row.end):
            pipes[bisect_right(marks, match.start()) % 2 == 0].append(match.start())
        return pipes


# Splices, and the lines around them, which may end in any of three ways.


@dataclass(frozen=True)
class Splice:
    """The bytes ``[start, end)`` of a file are to become ``new``; where both are equal, it is inserted."""

    start: int
    end: int
    new: bytes


Splices = Sequence[Splice]


def spliced(data: bytes, splices: Splices) -> bytes:
    """``data`` after all of ``splices``, which may come in any order; insertions at one place keep theirs.

    Raises:
        ValueError: Two of them overlap, or one reaches beyond the data.
    """
    pieces, at = [], 0
    for splice in sorted(splices, key=lambda each: (each.start, each.end)):
        if not at <= splice.start <= splice.end <= len(data):
            raise ValueError(
                f"{splice} overlaps another edit or the end of {len(data)} bytes"
            )
        pieces += [data[at : splice.start], splice.new]
        at = splice.end
    return b"".join([*pieces, data[at:]])


class LineOfFile(NamedTuple):
    """The line ``[start, end)`` of a file; with its line end, if it has one, it is ``[start, after)``."""

    start: int
    end: int
    after: int


def line_at(data: bytes, offset: int) -> LineOfFile:
    """The line that the byte at ``offset`` is on."""
    start = max(data.rfind(b"\n", 0, offset), data.rfind(b"\r", 0, offset)) + 1
    match = LINE_END.search(data, offset)
    return (
        LineOfFile(start, *match.span())
        if match
        else LineOfFile(start, len(data), len(data))
    )


def line_end(data: bytes, offset: int) -> bytes:
    """Return the line end for a line added at ``offset``: the one of the line there or before it."""
    line = line_at(data, offset)
    if line.after == line.end and line.start:
        line = line_at(
            data, line.start - (2 if data[: line.start].endswith(b"\r\n") else 1)
        )
    return data[line.end : line.after] or b"\n"


def lines_below(data: bytes, line: LineOfFile, *texts: bytes) -> Splice:
    """Add lines below a line."""
    end = line_end(data, line.start)
    added = end.join(texts)
    # The last line of a file may have no end yet; then the last one that is added gets none.
    return Splice(
        line.after, line.after, end + added if line.after == line.end else added + end
    )
