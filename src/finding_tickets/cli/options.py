"""Options and arguments that several commands share, and what they stand for."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields
from datetime import date, datetime
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from finding_tickets.cli.output import Format, say, say_errors
from finding_tickets.errors import BadDataError, ExitCode, TicketsError, UsageError
from finding_tickets.model.vocabulary import (
    REMEDIATION_RULES,
    Level,
    Vocabulary,
    Words,
    word_for,
)
from finding_tickets.report.text import counted

if TYPE_CHECKING:
    from finding_tickets.register.config import Config
    from finding_tickets.register.load import Register
    from finding_tickets.verify.verify import Settings

HERE = Path()
STDIN = "-"
T = TypeVar("T")


# What counts during a run: auto is a real GPU where one is usable.
MeterName = StrEnum("MeterName", ["AUTO", "SIMULATED", "CUDA"])


def complete_id(context: typer.Context, incomplete: str) -> list[str]:
    """Return the IDs of the register that begin with what was typed, in any case; what was typed stays."""
    from finding_tickets.register.load import load

    # An error message between two key strokes would only be in the way.
    try:
        rows = load(Path(context.params.get("root") or HERE)).entries
    except Exception:
        return []
    typed = incomplete.casefold()
    # No shell would take a blank for a part of the word.
    found = [
        row.id
        for row in rows
        if row.id.casefold().startswith(typed) and " " not in row.id
    ]
    return [incomplete + name[len(incomplete) :] for name in dict.fromkeys(found)]


def option(metavar: str, what: str, *names: str, **more: Any) -> Any:
    """Make an option with a value that help calls ``metavar``; by default its parameter names it."""
    if metavar == "ID":
        more["autocompletion"] = complete_id
    return typer.Option(*names, metavar=metavar, help=what, **more)


def flag(name: str, what: str, *shorter: str) -> Any:
    """An option without a value; its name is given, since typer would add its opposite."""
    return typer.Option(name, *shorter, help=what)


# The option that says how a command prints its data, in any case.
format_option = partial(typer.Option, "--format", case_sensitive=False)
_id_argument = partial(typer.Argument, autocompletion=complete_id)

Root = Annotated[
    Path,
    option("FOLDER", "The repository or folder that holds the register.", "--root"),
]
OutputFormat = Annotated[Format, format_option(help="How the data is printed.")]
Id = Annotated[str, _id_argument(metavar="ID", help="A ticket, in any case.")]
Ids = Annotated[list[str], _id_argument(metavar="ID...", help="Tickets, in any case.")]
OptionalIds = Annotated[
    list[str] | None, _id_argument(metavar="[ID]...", help="Tickets, in any case.")
]
Query = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY]...",
        autocompletion=complete_id,
        help="Which documents: IDs, text and conditions such as status:open (docs/queries.md).",
    ),
]
SeverityWord = Annotated[str | None, option("WORD", "How bad it is: P0 to P4.")]
AgentWord = Annotated[str | None, option("WORD", "Who found it, for the ID.")]
DryRun = Annotated[
    bool, flag("--dry-run", "Print what would change as a diff; change nothing.")
]
Meter = Annotated[
    MeterName | None,
    typer.Option(help="What counts the costs; the configuration has the default."),
]
Timeout = Annotated[
    float | None, option("SECONDS", "Stop a measurement after this time.", min=0.1)
]


Seed = Annotated[
    int | None, option("N", "Draw inputs with this seed, as another run did.")
]


@dataclass(frozen=True)
class Measuring:
    """The options that say how to measure; what they leave open is the configuration's."""

    meter: Meter = None
    timeout: Timeout = None

    def limits(self, config: Config) -> dict[str, Any]:
        """Return the meter, the seconds and the bytes of memory that a run may take, by their names."""
        meter, timeout = self.meter or config.meter, self.timeout or config.timeout
        return {"meter": meter, "timeout": timeout, "memory": config.memory}

    def settings(self, register: Register, **more: Any) -> Settings:
        """The settings of a verification in a register."""
        from finding_tickets.verify.verify import Settings

        root, config = register.root.resolve(), register.config
        limits = self.limits(config)
        return Settings(
            root=root,
            evidence=config.evidence,
            excused=register.excused,
            **limits,
            **more,
        )


@dataclass(frozen=True)
class Drafting:
    """The options that say what ticket to write about a line of code, if any."""

    draft: Annotated[
        str | None,
        option("SITE", "Write a ticket about this site, FILE:LINE or metric."),
    ] = None
    into: Annotated[
        str | None,
        option("ID", "Write the run and its place into this ticket.", "--for"),
    ] = None
    title: Annotated[str | None, option("TEXT", "Of the ticket: what is wrong.")] = None
    severity: SeverityWord = None
    batch: Annotated[
        int | None, typer.Option(min=0, help="Of the ticket, for its ID.")
    ] = None
    agent: AgentWord = None

    def content(self, vocabulary: Vocabulary) -> dict[str, Any]:
        """Return the stated values of the ticket. The severity may have any spelling."""
        severities = self.severity and words_of(
            "severity", [self.severity], vocabulary.severities
        )
        return self.given | ({"severity": severities[0]} if severities else {})

    @property
    def given(self) -> dict[str, Any]:
        """Return what is stated of the ticket to write."""
        named = vars(self).items()
        return {
            name: value
            for name, value in named
            if value is not None and name not in ("draft", "into")
        }

    def check(self) -> None:
        """Raise ``UsageError`` for what no ticket will say."""
        if self.given and (self.draft is None or self.into):
            raise UsageError(
                f"--{', --'.join(self.given)}: for a ticket that --draft SITE writes"
            )


@dataclass(frozen=True)
class Writing:
    """The options that say whether to change documents, and how to print what changes."""

    dry_run: DryRun = False
    output_format: OutputFormat = Format.TABLE


# Without any options.
MEASURING, DRAFTING, WRITING = Measuring(), Drafting(), Writing()


def with_options(command: Callable[..., ExitCode | None]) -> Callable[..., NoReturn]:
    """A command with the options of each class of options that is a parameter of it, in its place.

    It exits with the code that the command returns; None is success.
    """
    signature, keyword = (
        inspect.signature(command, eval_str=True),
        inspect.Parameter.KEYWORD_ONLY,
    )
    groups: dict[str, type[Measuring | Drafting | Writing]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        own = [parameter]
        if parameter.annotation in {Measuring, Drafting, Writing}:
            groups[name] = parameter.annotation
            own = [
                *inspect.signature(
                    parameter.annotation, eval_str=True
                ).parameters.values()
            ]
        parameters += [each.replace(kind=keyword) for each in own]

    @wraps(command)
    def run(**values: Any) -> NoReturn:
        for name, group in groups.items():
            values[name] = group(
                **{each.name: values.pop(each.name) for each in fields(group)}
            )
        raise typer.Exit(command(**values) or ExitCode.OK)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
    return run


def today() -> date:
    """The date where the user is, as in what they write by hand."""
    return datetime.now().astimezone().date()


def words_of(
    name: str, words: Iterable[str] | None, vocabulary: Words, what: str = ""
) -> list[str]:
    """The words of a vocabulary that the values of the option ``name`` mean, in any of their spellings.

    ``what`` names the kind of word where the option has another name.
    """
    found = []
    for word in words or ():
        meant = word_for(word, vocabulary)
        if meant is None:
            known = ", ".join(vocabulary)
            raise UsageError(
                f"--{name} {word}: no such {what or name}", hint=f"one of {known}"
            )
        found.append(meant)
    return found


def find_each(
    find: Callable[[str], T], names: Iterable[str]
) -> tuple[list[T], ExitCode]:
    """Look up each ID once. An ID that is not found is an error message and an exit code."""
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
    register: Register,
    root: Path,
    *,
    files: Collection[str] | None = None,
    query: Iterable[str] = (),
    but: Collection[str] = (),
) -> ExitCode:
    """Count the problems on stderr, with the command that prints them.

    Only problems of ``files`` count if there are any; ``query`` limits lint to them. BAD_DATA if the answer
    lacks a document or a unique ID, by other rules than those of ``but``; other problems fail no command.
    """
    register.save()
    met = [
        each for each in register.problem_levels() if files is None or each[0] in files
    ]
    linted = [level for _, rule, level in met if register.config.is_linted(rule)]
    if linted:
        worst = (
            counted(linted.count(Level.ERROR), "error") if Level.ERROR in linted else ""
        )
        line = [
            "tickets",
            "lint",
            *([] if root == HERE else ["--root", str(root)]),
            *query,
        ]
        prints = f"{shlex.join(line)} prints {'it' if len(linted) == 1 else 'them'}"
        say(
            f"{counted(len(linted), 'problem')}{f' ({worst})' if worst else ''}; {prints}"
        )
    errors = [
        rule for _, rule, level in met if level is Level.ERROR and rule not in but
    ]
    lacking = (not rule.startswith(REMEDIATION_RULES) for rule in errors)
    return ExitCode.BAD_DATA if any(lacking) else ExitCode.OK


def read_input(file: str) -> tuple[bytes, str]:
    """The bytes of a file, or of standard input for ``-``, and what messages call it."""
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(), "standard input"
        return Path(file).read_bytes(), file
    except OSError as error:
        raise BadDataError(
            f"cannot be read: {error.strerror or error}", file=file
        ) from None
