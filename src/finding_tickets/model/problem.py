"""What the reader or a lint rule has to say about a place in a file."""

from __future__ import annotations

from dataclasses import dataclass

from finding_tickets.errors import BadDataError
from finding_tickets.model.vocabulary import Level

__all__ = ["REMEDIATION_RULES", "Level", "Problem"]

REMEDIATION_RULES = "remediation-"
"""How the names of the rules about a Remediation begin: a document that breaks one is not measured."""


# A dataclass, no pydantic model: the index keeps problems, and a list from the index loads no pydantic.
@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
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
