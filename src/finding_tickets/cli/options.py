"""Options and arguments that several commands share, and what they stand for."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from finding_tickets.cli.output import Format, say, say_errors
from finding_tickets.errors import BadDataError, ExitCode, TicketsError, UsageError
from finding_tickets.model.vocabulary import REMEDIATION_RULES, Level, Words, word_for
from finding_tickets.report.text import counted

if TYPE_CHECKING:
    from finding_tickets.register.index import Listing
    from finding_tickets.register.load import Register
    from finding_tickets.register.query import Facts
    from finding_tickets.verify.verify import Settings

HERE = Path()
STDIN = "-"
SIGNS = frozenset("<>=+-")
"""What may stand in front of a value: comparisons, and the signs of what is added and removed."""
T = TypeVar("T")


# What counts during a run: auto is a real GPU where one is usable.
MeterName = StrEnum("MeterName", ["AUTO", "SIMULATED", "CUDA"])


def facts_of(context: typer.Context) -> Facts:
    """The register that the command line which is being completed is about."""
    from finding_tickets.register.index import list_rows
    from finding_tickets.register.query import Facts

    return Facts.of_listing(list_rows(Path(context.params.get("root") or HERE)))


def completes(
    words_of: Callable[[typer.Context], Iterable[str]],
) -> Callable[[typer.Context, str], list[str]]:
    """Completes a word, or the last of several with commas between them, in any case; what is typed stays."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        begun = re.split("[,>=<+-]+", incomplete)[-1] if incomplete[:1] in SIGNS else incomplete
        begun = begun.rpartition(",")[2]
        # An error message between two key strokes would only be in the way.
        try:
            words = dict.fromkeys(words_of(context))
        except Exception:
            return []
        # No shell would take a blank for a part of the word.
        found = (word for word in words if word.casefold().startswith(begun.casefold()) and " " not in word)
        return [incomplete + word[len(begun) :] for word in found]

    return complete


def complete_key(key: str) -> Callable[[typer.Context, str], list[str]]:
    """Completes the values that a key of queries has: the words of the register, and what documents state."""

    def words_of(context: typer.Context) -> Iterable[str]:
        from finding_tickets.register.query.keys import words_of_key

        return words_of_key(key, facts_of(context))

    return completes(words_of)


complete_id = complete_key("id")


def complete_pair(
    context: typer.Context, words: Sequence[str], sign: str, keys: Mapping[str, str], rest: Iterable[str]
) -> list[str]:
    """Completes ``key:value`` or ``key=value``: the value once there is a ``sign``, before it an ID or a key.

    Bash splits the line at either sign, so that key and sign may be words of their own.

    Args:
        context: The command line as far as it is read.
        words: All words of the argument, the last of which is being typed.
        sign: What stands between key and value.
        keys: The keys that have words, by what is written for them.
        rest: Keys that have none.
    """
    last = words[-1]
    if sign in last[1:]:
        key, _, value = last.partition(sign)
    elif words[-2:-1] == [sign]:
        key, value = words[-3], last
    else:
        names = [f"{key}{sign}" for key in (*keys, *rest) if key.startswith(last.lower())]
        return [*complete_id(context, last), *names]
    before = f"{key}{sign}" if sign in last[1:] else ""
    meant = keys.get(key.lstrip("-").lower())
    return [before + value for value in complete_key(meant)(context, value)] if meant else []


def complete_word(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs, keys and values of a query that begin with what was typed."""
    from finding_tickets.register.query.keys import KEYS
    from finding_tickets.register.query.parser import SORT

    words = [*(context.params.get("query") or ()), incomplete]
    return complete_pair(context, words, ":", {key: key for key in (*KEYS, SORT)}, ())


def complete_change(context: typer.Context, incomplete: str) -> list[str]:
    """The IDs, keys and values of what ``set`` sets."""
    from finding_tickets.register.actions import KEYS, TITLE

    words = [*(context.params.get("words") or ()), incomplete]
    named = {
        key: key for key in KEYS if key in ("severity", "status", "batch", "agent", "domain", "assignee")
    }
    rest = [key for key in (*KEYS, TITLE) if key not in named]
    return complete_pair(context, words, "=", {**named, "labels": "domain"}, rest)


def _revisions(context: typer.Context) -> list[str]:
    from finding_tickets.ground.git import ask

    root = Path(context.params.get("root") or HERE)
    return ask(root, "for-each-ref", "--format=%(refname:short)").split()


BY_METAVAR = {"REV": completes(_revisions), "ID": complete_id}
"""What completes the values of options, by what help calls these."""


def option(metavar: str, what: str, *names: str, **more: Any) -> Any:
    """An option with a value that help calls ``metavar``; without ``names`` it has its parameter's name."""
    more.setdefault("autocompletion", BY_METAVAR.get(metavar))
    return typer.Option(*names, metavar=metavar, help=what, **more)


def flag(name: str, what: str, *shorter: str) -> Any:
    """An option without a value; its name is given, since typer would add its opposite."""
    return typer.Option(name, *shorter, help=what)


def format_option(what: str) -> Any:
    """The option that says how a command prints its data, in any case."""
    return typer.Option("--format", case_sensitive=False, help=what)


def words_option(key: str) -> Any:
    """An option that takes words of the register, one each time."""
    return option("WORD", "Repeatable.", autocompletion=complete_key(key))


def ids(metavar: str) -> Any:
    """An argument that is one ID or several."""
    what = "A ticket, in any case." if metavar == "ID" else "Tickets, in any case."
    return typer.Argument(metavar=metavar, autocompletion=complete_id, help=what)


Root = Annotated[Path, option("FOLDER", "The repository or folder that holds the register.", "--root")]
OutputFormat = Annotated[Format, format_option("How the data is printed.")]
Id = Annotated[str, ids("ID")]
Ids = Annotated[list[str], ids("ID...")]
OptionalIds = Annotated[list[str] | None, ids("[ID]...")]
Query = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY]...",
        autocompletion=complete_word,
        help="Which documents: IDs, text and conditions such as status:open (docs/queries.md).",
    ),
]
SeverityWord = Annotated[
    str | None, option("WORD", "How bad it is: P0 to P4.", autocompletion=complete_key("severity"))
]
AgentWord = Annotated[
    str | None, option("WORD", "Who found it, for the ID.", autocompletion=complete_key("agent"))
]
DryRun = Annotated[bool, flag("--dry-run", "Print what would change as a diff; change nothing.")]
Meter = Annotated[
    MeterName | None, typer.Option(help="What counts the costs; the configuration has the default.")
]
Timeout = Annotated[float | None, option("SECONDS", "Stop a measurement after this time.", min=0.1)]
Sandbox = Annotated[bool, flag("--sandbox", "Run the repository's code without network or write access.")]


def today() -> date:
    """The date where the user is, as in what they write by hand."""
    return datetime.now().astimezone().date()


def words_of(name: str, words: Iterable[str] | None, vocabulary: Words, what: str = "") -> list[str]:
    """The words of a vocabulary that the values of the option ``name`` mean, in any of their spellings.

    ``what`` names the kind of word where the option has another name.
    """
    found = []
    for word in words or ():
        meant = word_for(word, vocabulary)
        if meant is None:
            known = ", ".join(vocabulary)
            raise UsageError(f"--{name} {word}: no such {what or name}", hint=f"one of {known}")
        found.append(meant)
    return found


def find_each(find: Callable[[str], T], names: Iterable[str]) -> tuple[list[T], ExitCode]:
    """What ``find`` returns for each ID, each once; an ID that it refuses is an error message and a code."""
    found: list[T] = []
    errors = []
    for name in names:
        try:
            one = find(name)
        except TicketsError as error:
            # The other IDs are still answered.
            errors.append(error)
        else:
            found += [] if one in found else [one]
    return found, say_errors(errors)


def say_problem_count(
    listing: Listing,
    root: Path,
    errors: Iterable[TicketsError | None] = (),
    *,
    files: Collection[str] | None = None,
    query: Iterable[str] = (),
) -> ExitCode:
    """Say how many problems there are, with ``errors``, and which command prints them.

    Args:
        listing: The register.
        root: The option of that name.
        errors: Evidence that cannot be read.
        files: Those whose problems count; None for all.
        query: What has lint print the problems of these files.

    Returns:
        BAD_DATA where an answer lacks something: a document or evidence that cannot be read, or an ID that
        is not unique. What is only ill-formed keeps no command from its answer.
    """
    met = [each for each in listing.problems if files is None or each.file in files]
    unread = {str(error) for error in errors if error}
    linted = [each.level for each in met if listing.config.is_linted(each.rule)] + [Level.ERROR] * len(unread)
    if linted:
        worst = counted(linted.count(Level.ERROR), "error") if Level.ERROR in linted else ""
        line = ["tickets", "lint", *([] if root == HERE else ["--root", str(root)]), *query]
        prints = f"{shlex.join(line)} prints {'it' if len(linted) == 1 else 'them'}"
        say(f"{counted(len(linted), 'problem')}{f' ({worst})' if worst else ''}; {prints}")
    lacking = (each.level is Level.ERROR and not each.rule.startswith(REMEDIATION_RULES) for each in met)
    return ExitCode.BAD_DATA if unread or any(lacking) else ExitCode.OK


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


def read_input(file: str) -> tuple[bytes, str]:
    """The bytes of a file, or of standard input for ``-``, and what messages call it."""
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(), "standard input"
        return Path(file).read_bytes(), file
    except OSError as error:
        raise BadDataError(f"cannot be read: {error.strerror or error}", file=file) from None
