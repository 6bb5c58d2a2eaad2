"""A command that is measured, as tickets and budgets state one: what it runs, split into words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Literal

from finding_tickets.documents.source import Values
from finding_tickets.ground.files import inside_repository

TARGET_FORMS = (
    "script.py, package.module, package.module:function or tests/test_x.py::test_y"
)
_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
TargetKind = Literal["function", "script", "module", "test"]
_TARGETS: dict[TargetKind, re.Pattern[str]] = {
    "test": re.compile(r"[^:]+\.py::.+"),
    "function": re.compile(rf"(?:{_DOTTED}|[^:]+\.py):{_DOTTED}"),
    "script": re.compile(r"[^:]*\.py|[^:=]*/[^:]+"),
    "module": re.compile(rf"(?!python\d?\Z|pytest\Z|torchrun\Z){_DOTTED}"),
}
# What only a shell would interpret, outside of quotes.
_SHELL = re.compile(r"[|&;<>$`*?\n]|(?<!\S)[~#]")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.")
_BRACES = re.compile(r"\{([A-Za-z_]\w*)\}")


class WrongCommandError(ValueError):
    """A command that cannot be run, with a hint on how to write it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def target_kind(target: str) -> TargetKind | None:
    """Return the kind of a target by its form alone; None for what Python cannot run."""
    return next(
        (name for name, form in _TARGETS.items() if form.fullmatch(target)), None
    )


def parse_command(raw: str, names: Iterable[str]) -> Values:
    """The parts of a ``RunCommand`` but for its line; ``names`` are the variables of the sweep.

    Raises:
        WrongCommandError: It cannot be split, or is nothing that can be run.
    """
    try:
        # Values are filled in later, into what is split here: none of them can add an argument.
        words = shlex.split(raw)
    except ValueError as error:
        raise WrongCommandError(
            f"run cannot be split into arguments: {error}"
        ) from None
    if not words:
        raise WrongCommandError("run: nothing to run", f"write {TARGET_FORMS}")
    kind = target_kind(words[0])
    if wrong := _wrong(raw, kind, words, set(names)):
        raise WrongCommandError(f"run: {wrong[0]}", wrong[1])
    return {"raw": raw, "kind": kind, "target": words[0], "arguments": words[1:]}


def _wrong(
    raw: str, kind: TargetKind | None, words: list[str], variables: set[str]
) -> tuple[str, str | None] | None:
    """Return the mistake in a command and a hint; None for a sound one."""
    named, target = _BRACES.findall(raw), words[0]
    if shell := _SHELL.search(_QUOTED.sub("", raw)):
        return (
            f"{shell[0]!r} has no meaning here, for no shell runs this",
            "quote it to pass it on as it is",
        )
    if kind is None:
        return (
            f"{target!r} is nothing that Python runs",
            f"write {TARGET_FORMS}, without python or -m in front",
        )
    if kind != "module" and not inside_repository(target.partition(":")[0]):
        return f"{target} leaves the repository", None
    if kind == "function" and (len(words) > 1 or named):
        return (
            "a function takes no arguments here",
            "the variables of the sweep are its parameters",
        )
    if _BRACES.search(target.partition("::")[0]):
        return f"only arguments depend on the sweep, and not {target}", None
    if unknown := [name for name in named if name not in variables]:
        return (
            f"{{{unknown[0]}}} is no variable of the sweep",
            f"sweep: {{{unknown[0]}: [1, 2, 3, 5, 9]}}",
        )
    if kind != "function" and (unused := sorted(variables.difference(named))):
        return (
            f"nothing uses {unused[0]} of the sweep",
            f"write {{{unused[0]}}} among the arguments",
        )
    return None
