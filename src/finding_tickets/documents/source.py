"""The bytes of one file, the pieces that are cut out of it, their plain text, and the problems on the way."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias

from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.record import Span
from finding_tickets.model.vocabulary import Vocabulary

_TICKS = re.compile(rb"`+")
_ONE_SPAN = 2
_MARKUP = re.compile(r"\*\*|\\([|*_`\[\]])")
_NOT_A_WORD = re.compile(r"[^\w]+")


def plain(raw: str) -> str:
    """``raw`` on one line, without bold marks, backticks and escapes: ``**Agent**`` is ``Agent``."""
    ticks = raw.count("`")
    # Most texts have neither code nor escapes, and some have one code span: the general way takes longer.
    if not ticks and "\\" not in raw:
        return " ".join(raw.replace("**", "").split())
    if not ticks:
        pieces = [_without_marks(raw)]
    elif ticks == _ONE_SPAN and "``" not in raw:
        before, code, after = raw.split("`")
        # A backslash takes the backtick behind it along, though it does not keep it from opening the span.
        pieces = [_without_marks(before + "`"), code, _without_marks(after)]
    else:
        data, at = raw.encode(), 0
        pieces = []
        for start, end in code_spans(data, 0, len(data)):
            pieces += [_without_marks(data[at:start].decode()), data[start:end].decode()]
            at = end
        pieces.append(_without_marks(data[at:].decode()))
    return " ".join("".join(pieces).split())


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
    # Found from the end, so that a text of many different runs takes no more time than others.
    following: dict[int, int] = {}
    closing = [0] * len(runs)
    for index in reversed(range(len(runs))):
        length = runs[index][1] - runs[index][0]
        closing[index] = following.get(length, 0)
        following[length] = index
    spans, index = [], 0
    while index < len(runs):
        if closing[index]:
            spans.append((runs[index][1], runs[closing[index]][0]))
        index = max(index, closing[index]) + 1
    return spans


def _without_marks(text: str) -> str:
    bare = _MARKUP.sub(lambda match: match[1] or "", text) if "\\" in text else text.replace("**", "")
    return bare.replace("`", "")


Values: TypeAlias = dict[str, Any]
"""The fields of a record, or of one within it; a whole document is validated at once when all are read."""


class Excerpt:
    """A piece of a file, without the white space around it: ``raw`` is what stands in ``[start, end)``."""

    __slots__ = ("_plain", "end", "raw", "source", "start")

    def __init__(self, source: Source, start: int, end: int, raw: str) -> None:
        self.source = source
        self.start = start
        self.end = end
        self.raw = raw
        self._plain: str | None = None

    @property
    def plain(self) -> str:
        """The text on one line, without markup."""
        if self._plain is None:
            self._plain = plain(self.raw)
        return self._plain

    def piece(self, first: int, last: int | None = None) -> Excerpt:
        """What stands between two of its characters."""
        start = self.start + len(self.raw[:first].encode())
        return self.source.text(start, start + len(self.raw[first:last].encode()))

    def code_spans(self) -> list[Excerpt]:
        """What stands between backticks."""
        return [self.source.text(*span) for span in code_spans(self.source.data, self.start, self.end)]

    def record(self, **values: object) -> Values:
        """The fields of a record that stands here."""
        return {"raw": self.raw, "span": self.source.span(self.start, self.end), **values}

    def report(self, rule: str, message: str, hint: str | None = None, level: Level = Level.WARNING) -> None:
        """Remember that this could not be understood."""
        self.source.report(rule, self.start, message, hint=hint, level=level)


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
        begun = piece.lstrip()
        written = begun.rstrip()
        first = start + len(piece) - len(begun)
        return Excerpt(self, first, first + len(written), written.decode())

    def report(
        self,
        rule: str,
        at: int,
        message: str,
        *,
        hint: str | None = None,
        level: Level = Level.WARNING,
    ) -> None:
        """Remember that what stands at the offset ``at`` could not be understood."""
        self.report_line(rule, self.line(at), message, column=self.column(at), hint=hint, level=level)

    def report_line(
        self,
        rule: str,
        line: int,
        message: str,
        *,
        column: int = 1,
        hint: str | None = None,
        level: Level = Level.WARNING,
    ) -> None:
        """Remember that something on ``line``, from ``column`` on, could not be understood."""
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
