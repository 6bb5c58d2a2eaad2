"""What commands do with a register: find documents, report problems, take settings, add tickets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from finding_tickets.cli.options import HERE, MeterName
from finding_tickets.cli.output import say, say_error
from finding_tickets.errors import BadDataError, ExitCode, TicketsError, UsageError
from finding_tickets.model.problem import REMEDIATION_RULES, Level, Problem
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE

# Commands of a warm list import neither the parser nor the templates.
if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.register.index import Examine, Listing
    from finding_tickets.register.load import Register
    from finding_tickets.register.new import Draft
    from finding_tickets.register.staleness import CurrentVerdict
    from finding_tickets.report.templates import Attached
    from finding_tickets.verify.verify import Settings

ATTEMPTS = 1000
STDIN = "-"
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


def evidence_code(entries: Iterable[CurrentVerdict]) -> ExitCode:
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
            # The other IDs are still answered.
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
    sound = []
    for document in chosen:
        unread = sorted(files_of(document) & broken.keys())
        sound += [] if unread else [document]
        for file in unread:
            what = "its Remediation section" if file == document.path else file
            say(f"{document.id.value}: not measured, for {what} has an error on line {broken[file]}")
    return sound, ExitCode.BAD_DATA if errors else ExitCode.OK


def files_to_protect(register: Register | Listing, files: Iterable[str]) -> Callable[[Path], bool]:
    """Whether a path belongs to a register, whose ``files`` no report may overwrite, nor its evidence."""
    known = {CONFIG_FILE, PROJECT_FILE, *files}
    folders = (register.config.evidence, register.config.templates)

    def is_protected(file: Path) -> bool:
        if not file.is_relative_to(register.root):
            return False
        place = file.relative_to(register.root)
        return place.as_posix() in known or any(map(place.is_relative_to, folders))

    return is_protected


def read_input(file: str) -> tuple[bytes, str]:
    """The bytes of a file, or of standard input for ``-``, and what messages call it.

    Raises:
        BadDataError: It cannot be read.
    """
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(), "standard input"
        return Path(file).read_bytes(), file
    except OSError as error:
        raise BadDataError(f"cannot be read: {error.strerror or error}", file=file) from None


class TicketWriter:
    """Adds tickets to the register at ``root``; the first one of a repository starts a register here."""

    def __init__(self, root: Path) -> None:
        from finding_tickets.ground.git import paths_on_branches
        from finding_tickets.register.config import Config, is_repository
        from finding_tickets.register.load import Register, load

        try:
            self.register = load(root)
        except UsageError:
            if root != HERE:
                raise
            self.register = Register(Path.cwd(), Config(), (), ())
        # A bare folder of Markdown files holds its tickets itself.
        is_bare = self.register.documents and not is_repository(self.register.root)
        self._folders: Sequence[str] = (".",) if is_bare else self.register.config.tickets
        # A number is used by a file on any branch, readable or not.
        unread = (problem.file for problem in self.register.problems)
        self._used = [*paths_on_branches(self.register.root, self._folders), *unread]
        self._series: dict[tuple[int | None, str | None], Iterator[str]] = {}

    def add(
        self, draft: Draft, attached: Attached | None = None, *, dry_run: bool = False
    ) -> tuple[str, list[str]]:
        """Write the files of a ticket under the next free ID; return the ID and the paths, its own first.

        An ID that another process has used meanwhile is skipped. A dry run writes nothing.

        Raises:
            UsageError: A file cannot be written.
            BadDataError: The ticket could not be read again.
        """
        from finding_tickets.ground.files import create
        from finding_tickets.register.identifiers import free_ids
        from finding_tickets.report.templates import ticket_files

        series = (draft.batch, draft.agent)
        if series not in self._series:
            self._series[series] = free_ids(self.register.documents, *series, self._used)
        for ticket_id in islice(self._series[series], ATTEMPTS):
            path = (PurePosixPath(self._folders[0]) / f"{ticket_id}.md").as_posix()
            # The date is the user's, as in what they write by hand.
            today = datetime.now().astimezone().date()
            texts = ticket_files(self.register, draft, ticket_id, path, today, attached)
            try:
                if not dry_run:
                    create(self.register.root, texts)
            except FileExistsError:
                continue
            except OSError as error:
                raise UsageError(f"cannot write: {error.strerror}", file=error.filename) from None
            return ticket_id, list(texts)
        folder = self.register.root / self._folders[0]
        raise UsageError(f"no free ID among the next {ATTEMPTS}", file=str(folder))
