"""What commands do with a register before they answer: find documents, report problems, take settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from finding_tickets.cli.options import MeterName
from finding_tickets.cli.output import say, say_error
from finding_tickets.errors import ExitCode, TicketsError
from finding_tickets.model.problem import Level, Problem

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.register.index import Examine, Listing
    from finding_tickets.register.load import Register
    from finding_tickets.register.staleness import CurrentVerdict
    from finding_tickets.report.text import MeasuredDocument
    from finding_tickets.verify.verify import Settings

REMEDIATION_RULES = "remediation-"
T = TypeVar("T")


def open_listing(
    root: Path, *, indexed: bool = True, measured: bool = False, examine: Examine | None = None
) -> Listing:
    """The rows of the register at ``root``; every problem met in reading it is printed on stderr."""
    from finding_tickets.register.index import list_rows

    listing = list_rows(root, indexed=indexed, measured=measured, examine=examine)
    if listing.problems:
        say("\n".join(map(str, listing.problems)))
    return listing


def reading_code(problems: Iterable[Problem]) -> ExitCode:
    """Bad data where a document could not be read; a misspelt value keeps no command from its answer."""
    unreadable = any(problem.level is Level.ERROR for problem in problems)
    return ExitCode.BAD_DATA if unreadable else ExitCode.OK


def evidence_code(entries: Iterable[MeasuredDocument | CurrentVerdict]) -> ExitCode:
    """Bad data where evidence could not be read, which is printed on stderr."""
    problems = [entry.problem for entry in entries if entry.problem]
    for problem in problems:
        say_error(problem)
    return ExitCode.BAD_DATA if problems else ExitCode.OK


def find_each(find: Callable[[str], T], ids: Iterable[str]) -> tuple[list[T], ExitCode]:
    """What ``find`` returns for each ID, each once; an ID that it refuses is an error message and a code."""
    found: list[T] = []
    codes = [ExitCode.OK]
    for document_id in ids:
        try:
            one = find(document_id)
        except TicketsError as error:
            say_error(error)
            codes.append(error.exit_code)
        else:
            found += [] if one in found else [one]
    return found, ExitCode.worst(*codes)


def settings_of(register: Register, meter: MeterName | None, timeout: float | None, **more: Any) -> Settings:
    """The settings of a verification: the options of a command first, then the configuration."""
    from finding_tickets.verify.verify import Settings

    return Settings(
        root=register.root.resolve(),
        evidence=register.config.evidence,
        meter=meter or register.config.meter,
        timeout=timeout or register.config.timeout,
        memory=register.config.memory,
        **more,
    )


def measurable(
    register: Register, documents: Iterable[Document], problems: Iterable[Problem] = ()
) -> tuple[list[Document], ExitCode]:
    """The documents whose Remediation could be read.

    Errors in files of the other documents, and in ``problems``, are printed and make the code bad data.
    """
    from finding_tickets.register.load import files_of

    chosen = list(documents)
    theirs = [problem for document in chosen for problem in register.problems_of(document)]
    errors = [problem for problem in dict.fromkeys([*problems, *theirs]) if problem.level is Level.ERROR]
    for problem in errors:
        say(str(problem))
    broken = {problem.file: problem.line for problem in errors if problem.rule.startswith(REMEDIATION_RULES)}
    for document in chosen:
        for file in sorted(files_of(document) & broken.keys()):
            what = "its Remediation section" if file == document.path else file
            say(f"{document.id.value}: not measured, for {what} has an error on line {broken[file]}")
    sound = [document for document in chosen if broken.keys().isdisjoint(files_of(document))]
    return sound, ExitCode.BAD_DATA if errors else ExitCode.OK
