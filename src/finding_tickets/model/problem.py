"""What the reader or a lint rule has to say about a place in a file."""

from __future__ import annotations

from finding_tickets.errors import BadDataError
from finding_tickets.model.record import Record
from finding_tickets.model.vocabulary import REMEDIATION_RULES, Level

__all__ = ["REMEDIATION_RULES", "Level", "Problem"]


class Problem(Record):
    """One message about one place.

    ``file`` is relative to the register's root; ``line`` and ``column`` count from 1, columns in characters.
    A column of 1 may also mean the line as a whole.
    """

    level: Level
    rule: str
    file: str
    line: int
    column: int = 1
    message: str
    hint: str | None = None

    @property
    def as_error(self) -> BadDataError:
        """The error to raise where nothing can be done about it."""
        return BadDataError(self.message, file=self.file, line=self.line, hint=self.hint)

    def __str__(self) -> str:
        """One line, the way compilers print it, so that editors can jump to the place."""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.level} [{self.rule}] {self.message}{hint}"
