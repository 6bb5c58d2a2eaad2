"""Opening a register for a command, with everything that could not be understood said on stderr."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from finding_tickets.cli.output import say, say_error
from finding_tickets.errors import ExitCode, TicketsError
from finding_tickets.markdown.reading import Document
from finding_tickets.model.problem import Level, Problem
from finding_tickets.register.load import Register, load


def open_register(root: Path) -> Register:
    """The register at ``root``; a line on stderr for every problem met in reading it."""
    register = load(root)
    for problem in register.problems:
        say(str(problem))
    return register


def reading_code(problems: Iterable[Problem]) -> ExitCode:
    """Bad data where something could not be read at all; what was misspelt is still listed."""
    errors = any(problem.level is Level.ERROR for problem in problems)
    return ExitCode.BAD_DATA if errors else ExitCode.OK


def find_all(register: Register, ids: Iterable[str]) -> tuple[list[Document], ExitCode]:
    """The documents with these IDs, each once; a message and the exit code for those that cannot be found."""
    found: list[Document] = []
    codes = [ExitCode.OK]
    for document_id in ids:
        try:
            document = register.find(document_id)
        except TicketsError as error:
            say_error(error)
            codes.append(error.exit_code)
        else:
            found += [] if document in found else [document]
    return found, ExitCode.worst(*codes)
