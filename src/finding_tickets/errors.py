"""Define the kinds of failure and their exit codes."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of ``tickets``; where several apply, the first of this list wins."""

    INTERRUPTED = 130
    CRASHED = 70
    USAGE = 2
    BAD_DATA = 4
    GATE_FAILED = 1
    INCONCLUSIVE = 3
    OK = 0

    @classmethod
    def worst(cls, *codes: ExitCode) -> ExitCode:
        """The code to exit with when each of ``codes`` applies; ``OK`` for none."""
        order = list(cls)
        return min(codes, key=order.index, default=cls.OK)


class TicketsError(Exception):
    """A failure with a message for the user: what, where, and what to do about it."""

    exit_code = ExitCode.BAD_DATA

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.hint = hint

    def __str__(self) -> str:
        """``file:line: message (hint)``, as far as each part is known."""
        place = ":".join(
            str(part) for part in (self.file, self.line) if part is not None
        )
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {self.message}{hint}" if place else f"{self.message}{hint}"


class UsageError(TicketsError):
    """The command line asks for something that does not exist or does not fit."""

    exit_code = ExitCode.USAGE


class BadDataError(TicketsError):
    """A file of the register cannot be read or does not say what it must."""

    exit_code = ExitCode.BAD_DATA

    def in_file(self, file: str, line: int | None = None) -> BadDataError:
        """The same error, in this file and line unless it names others."""
        return BadDataError(
            self.message, file=self.file or file, line=self.line or line, hint=self.hint
        )


class UnreachableError(TicketsError):
    """The machine or device that should measure cannot be reached."""

    exit_code = ExitCode.INCONCLUSIVE


class GateError(TicketsError):
    """A measurement is missing that the request needs."""

    exit_code = ExitCode.GATE_FAILED


class RevisionError(Exception):
    """A revision of the repository is not available; the message says why."""
