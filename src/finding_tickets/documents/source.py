"""The bytes of one file, where its lines start, and the problems found while reading it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.record import Span, Text
from finding_tickets.model.vocabulary import Vocabulary


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
        return Span(start, end, self.line(start))

    def raw(self, start: int, end: int) -> str:
        """The text of ``[start, end)`` exactly as written."""
        return self.data[start:end].decode()

    def text(self, start: int, end: int) -> Text:
        """The text of ``[start, end)`` without the white space around it."""
        piece = self.data[start:end]
        begun = piece.lstrip()
        written = begun.rstrip()
        first = start + len(piece) - len(begun)
        line = bisect_right(self.line_starts, first)
        return Text(written.decode(), Span(first, first + len(written), line))

    def trimmed(self, start: int, end: int) -> tuple[int, int]:
        """``[start, end)`` without the white space around it; of white space alone, its empty end."""
        piece = self.data[start:end]
        first, last = start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
        return first, max(first, last)

    def report(
        self, rule: str, at: int, message: str, *, hint: str | None = None, level: Level = Level.WARNING
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
