"""What the commands that measure have in common: their options, and their settings."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from finding_tickets.cli.output import say
from finding_tickets.errors import ExitCode
from finding_tickets.model.problem import Level, Problem

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.register.load import Register
    from finding_tickets.verify.session import Settings


REMEDIATION_RULES = "remediation-"


class MeterName(StrEnum):
    """What counts during a run; ``auto`` is a real GPU where one is usable."""

    AUTO = "auto"
    SIMULATED = "simulated"
    CUDA = "cuda"


Meter = Annotated[
    MeterName | None, typer.Option(help="What counts during a run, by default what is configured.")
]
Sandbox = Annotated[
    bool,
    typer.Option(
        "--sandbox", help="Run code of the repository without network and where it can write nothing."
    ),
]


def timeout_option(what: str) -> typer.models.OptionInfo:
    """An option that takes seconds; ``what`` is what they limit."""
    option: typer.models.OptionInfo = typer.Option(min=0.1, metavar="SECONDS", help=what)
    return option


def revision_option(what: str) -> typer.models.OptionInfo:
    """An option that takes a commit, a branch, a tag or an expression of git's."""
    option: typer.models.OptionInfo = typer.Option(metavar="REV", help=what)
    return option


def settings_of(register: Register, meter: MeterName | None, timeout: float | None, **more: Any) -> Settings:
    """How a command verifies documents of a register: as configured, but for what was said to it."""
    from finding_tickets.verify.session import Settings

    return Settings(
        root=register.root.resolve(),
        evidence=register.config.evidence,
        meter=meter or register.config.meter,
        timeout=timeout or register.config.timeout,
        memory=register.config.memory,
        **more,
    )


def sound_ones(
    register: Register, documents: Iterable[Document], problems: Iterable[Problem] = ()
) -> tuple[list[Document], ExitCode]:
    """The documents whose Remediation block was understood; what is wrong with a file is said.

    What is wrong with any of their files is, and ``problems`` beside.
    """
    from finding_tickets.register.load import files_of

    chosen = list(documents)
    theirs = [problem for document in chosen for problem in register.problems_of(document)]
    errors = [problem for problem in dict.fromkeys([*problems, *theirs]) if problem.level is Level.ERROR]
    for problem in errors:
        say(str(problem))
    broken = {problem.file: problem.line for problem in errors if problem.rule.startswith(REMEDIATION_RULES)}
    sound = [document for document in chosen if broken.keys().isdisjoint(files_of(document))]
    for document in chosen:
        for file in sorted(files_of(document) & broken.keys()):
            what = "its Remediation section" if file == document.path else file
            say(f"{document.id.value}: not measured, for {what} has an error on line {broken[file]}")
    return sound, ExitCode.BAD_DATA if errors else ExitCode.OK
