"""Validate the tables of a register's configuration, including its budgets.

The description of each field ends the sentence "KEY must be ...", by which a wrong value is explained. An
error in a budget has its line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from finding_tickets.claims.language import suggest
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import LONGEST_NAME
from finding_tickets.model.vocabulary import Vocabulary, squeeze
from finding_tickets.register.budget_tables import parse_budgets

_LONGEST_PATH = 1000
_MORE_SPELLINGS = ("severities", "statuses", "outcomes", "opinions", "folders")
_OWN_WORDS = ("id_pattern", "agents", "domains", "categories", "labels")


def _pattern(value: str) -> str:
    try:
        re.compile(value)
        # As it will be used: its groups must not have the names of ours.
        re.compile(rf"(?P<id>{value})(?P<kind>)")
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"must be a regular expression: {error}") from error
    return value


def _table(value: Any) -> Any:
    """Words in a list are words without other spellings."""
    are_texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return dict.fromkeys(value, ()) if are_texts else value


def key(must_be: str) -> Any:
    """A key that need not be there; what is not stated has the default of ``Config``."""
    return Field(default=None, description=must_be)


def _path(value: str) -> str:
    parts = value.split("/")
    if (
        not value.isprintable()
        or max(len(part.encode()) for part in parts) > LONGEST_NAME
    ):
        raise ValueError(
            f"must be a path that can be printed, with no long names, not {value[:80]!r}"
        )
    if len(value) > _LONGEST_PATH or ".git" in parts or value.startswith("~"):
        raise ValueError(f"must be a path within the repository, not {value[:80]!r}")
    return value


Text = Annotated[str, StringConstraints(min_length=1)]
PathText = Annotated[Text, AfterValidator(_path)]
Texts = tuple[str, ...]
Words = Annotated[dict[str, Texts], BeforeValidator(_table)]
Folders = Annotated[
    tuple[PathText, ...],
    Field(min_length=1),
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
]
# A single byte is refused as well, for pydantic takes true for the number 1.
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Size = Annotated[ByteSize, Field(gt=1)]
BYTES = "a number of bytes such as '8GiB'"
# What to do instead of a key that older versions had.
REMOVED_KEYS = {
    "ray": "a verification asks for one processor, and for one GPU with --meter cuda, see docs/cluster.md",
    "matrix": "run tickets verify in each environment of your CI's own matrix, see docs/ci.md",
}
LABELLED = (
    "id",
    "title",
    "severity",
    "status",
    "resolution",
    "agent",
    "domain",
    "assignee",
    "created",
    "updated",
)
WORDS = "a list of words or a table of their spellings"


class ConfigTable(BaseModel):
    """The whole configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tickets: Folders = key("a path or a list of at least one")
    exclude: Texts = key("a list of patterns")
    evidence: PathText = key("a path")
    templates: PathText = key("a path")
    meter: Literal["auto", "simulated", "cuda"] = key("one of auto, simulated, cuda")
    timeout: Seconds = key("a number of seconds above 0")
    memory: Size = key(BYTES)
    largest_file: Size = key(BYTES)
    lint_select: Texts = key("a list of names")
    lint_ignore: Texts = key("a list of names")
    id_pattern: Annotated[str, AfterValidator(_pattern)] = key("a regular expression")
    severities: Words = key(WORDS)
    statuses: Words = key(WORDS)
    outcomes: Words = key(WORDS)
    opinions: Words = key(WORDS)
    folders: Words = key(WORDS)
    agents: Words = key(WORDS)
    domains: Words = key(WORDS)
    categories: Words = key(WORDS)
    labels: Words = key("a table of labels, such as severity = ['Prio']")

    @model_validator(mode="after")
    def _fits_together(self) -> ConfigTable:
        for name in _MORE_SPELLINGS:
            known = getattr(Vocabulary(), name)
            for word in getattr(self, name) or ():
                if word not in known:
                    raise ValueError(
                        f"{name}: no such word as {word!r}; the words are {', '.join(known)}"
                    )
        for name in self.labels or ():
            if name not in LABELLED:
                raise ValueError(
                    f"labels: no such value as {name!r}; there are {', '.join(LABELLED)}"
                )
        return self


def parse_config(
    path: Path, content: bytes, *, is_project: bool
) -> dict[str, Any] | None:
    """The attributes of the ``Config`` in a file; None for a project's file without a table for the tool.

    Raises:
        BadDataError: It is no TOML, a key is unknown or a value wrong; the message names file and key.
    """
    try:
        table = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise BadDataError(f"cannot be read: {error}", file=str(path)) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        number = int(line[1]) if line else None
        raise BadDataError(f"not TOML: {error}", file=str(path), line=number) from error
    if is_project:
        tool = table.get("tool", {})
        if not isinstance(tool, dict) or "tickets" not in tool:
            return None
        table = tool["tickets"]
        if not isinstance(table, dict):
            raise BadDataError("tool.tickets must be a table", file=str(path))
    budgets = table.pop("budget", [])
    try:
        values = ConfigTable.model_validate(table).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise _mistake(error, table, str(path)) from None
    words = {name: values.pop(name) for name in _OWN_WORDS if name in values}
    for name in _MORE_SPELLINGS:
        words[name] = extended(getattr(Vocabulary(), name), values.pop(name, {}))
    if budgets:
        values["budgets"] = parse_budgets(budgets, content.decode(), str(path))
    return {**values, "vocabulary": words}


def extended(words: Mapping[str, Texts], more: Mapping[str, Texts]) -> dict[str, Texts]:
    """Add spellings to words. One that they give to another word is that one's alone."""
    given = {squeeze(each) for others in more.values() for each in others}
    return {
        word: (
            *more.get(word, ()),
            *(each for each in others if squeeze(each) not in given),
        )
        for word, others in words.items()
    }


def _mistake(
    error: ValidationError, table: Mapping[str, Any], file: str
) -> BadDataError:
    """The first mistake in a table, in words of the configuration and not of pydantic."""
    wrong = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    name = str(wrong["loc"][0]) if wrong["loc"] else ""
    known = {name: each.description for name, each in ConfigTable.model_fields.items()}
    if wrong["type"] == "extra_forbidden":
        if name in REMOVED_KEYS:
            return BadDataError(
                f"the key {name!r} is gone", file=file, hint=REMOVED_KEYS[name]
            )
        return BadDataError(
            f"unknown key {name!r}", file=file, hint=suggest(name, list(known))
        )
    if wrong["type"] == "value_error":
        why = str(wrong["ctx"]["error"])
        return BadDataError(f"{name}: {why}" if name else why, file=file)
    return BadDataError(
        f"{name}: must be {known[name]}, not {table[name]!r}", file=file
    )
