"""The tables of a register's configuration, its budgets among them, and what is wrong with one.

The description of each field ends the sentence "KEY must be ...", by which a wrong value is explained. What
is wrong in a budget is told with its line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, replace
from datetime import date
from difflib import get_close_matches
from itertools import chain, product, repeat
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
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

from finding_tickets.claims.language import (
    ExpressionError,
    check_variables,
    evaluate,
    parse_expression,
    suggest,
)
from finding_tickets.claims.metrics import COUNTS
from finding_tickets.documents.run_command import WrongCommandError, parse_command
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import LONGEST_NAME, inside_repository
from finding_tickets.model.vocabulary import MOST_POINTS, Vocabulary, squeeze
from finding_tickets.register.budgets import Allowance, Budget

_LONGEST_PATH = 1000
_OF_RAY = {"CPU", "GPU", "memory", "object_store_memory"}
_MORE_SPELLINGS = ("severities", "statuses", "outcomes", "opinions", "folders")
_OWN_WORDS = ("id_pattern", "agents", "domains", "categories")
_TABLES = {"ray"}


def _pattern(value: str) -> str:
    try:
        re.compile(value)
        # As it will be used: its groups must not have the names of ours.
        re.compile(rf"(?P<id>{value})(?P<kind>)")
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"must be a regular expression: {error}") from error
    return value


def _amounts(value: Mapping[str, float]) -> Mapping[str, float]:
    for name, amount in value.items():
        # Ray takes parts of a resource only of a single one.
        if not 0 < amount < float("inf") or (amount > 1 and amount % 1):
            raise ValueError(f"{name} must be a part of 1 or a whole number, not {amount!r}")
        if name in _OF_RAY:
            raise ValueError(f"{name} is Ray's own, and follows from meter and memory")
    return value


def _table(value: Any) -> Any:
    """Words in a list are words without other spellings."""
    are_texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return dict.fromkeys(value, ()) if are_texts else value


def key(must_be: str, name: str | None = None) -> Any:
    """A key that need not be there; what is not stated has the default of ``Config``."""
    return Field(default=None, description=must_be, alias=name)


def _path(value: str) -> str:
    parts = value.split("/")
    if not value.isprintable() or max(len(part.encode()) for part in parts) > LONGEST_NAME:
        raise ValueError(f"must be a path that can be printed, with no long names, not {value[:80]!r}")
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
Amounts = Annotated[dict[str, Annotated[float, Field(strict=True)]], AfterValidator(_amounts)]
BYTES = "a number of bytes such as '8GiB'"
# What to do instead of a key that older versions had; a key of a table is written "table.key".
REMOVED_KEYS = {
    "matrix": "run tickets verify in each environment of your CI's own matrix, see docs/ci.md",
}
WORDS = "a list of words or a table of their spellings"


class ConfigTable(BaseModel):
    """The whole configuration; keys of the table ``ray`` are joined with its name."""

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
    ray: Amounts = key("a table of names and amounts", "ray.resources")
    id_pattern: Annotated[str, AfterValidator(_pattern)] = key("a regular expression")
    severities: Words = key(WORDS)
    statuses: Words = key(WORDS)
    outcomes: Words = key(WORDS)
    opinions: Words = key(WORDS)
    folders: Words = key(WORDS)
    agents: Words = key(WORDS)
    domains: Words = key(WORDS)
    categories: Words = key(WORDS)

    @model_validator(mode="after")
    def _fits_together(self) -> ConfigTable:
        for name in _MORE_SPELLINGS:
            known = getattr(Vocabulary(), name)
            for word in getattr(self, name) or ():
                if word not in known:
                    raise ValueError(f"{name}: no such word as {word!r}; the words are {', '.join(known)}")
        return self


def parse_config(path: Path, content: bytes, *, is_project: bool) -> dict[str, Any] | None:
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
    flat = {name: value for name, value in table.items() if name not in _TABLES}
    for name in _TABLES & table.keys():
        if not isinstance(table[name], dict):
            raise BadDataError(f"{name}: must be a table, not {table[name]!r}", file=str(path))
        flat |= {f"{name}.{inner}": value for inner, value in table[name].items()}
    try:
        values = ConfigTable.model_validate(flat).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise _mistake(error, flat, str(path)) from None
    words = {name: values.pop(name) for name in _OWN_WORDS if name in values}
    for name in _MORE_SPELLINGS:
        more: Mapping[str, Texts] = values.pop(name, {})
        # A spelling of one word that the register gives to another one is that one's alone.
        given = {squeeze(each) for others in more.values() for each in others}
        words[name] = {
            word: (*more.get(word, ()), *(each for each in others if squeeze(each) not in given))
            for word, others in getattr(Vocabulary(), name).items()
        }
    if budgets:
        values["budgets"] = parse_budgets(budgets, content.decode(), str(path))
    return {**values, "vocabulary": words}


def _mistake(error: ValidationError, table: Mapping[str, Any], file: str) -> BadDataError:
    """The first mistake in a table, in words of the configuration and not of pydantic."""
    wrong = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    name = str(wrong["loc"][0]) if wrong["loc"] else ""
    known = {each.alias or name: each.description for name, each in ConfigTable.model_fields.items()}
    if wrong["type"] == "extra_forbidden":
        if name in REMOVED_KEYS:
            return BadDataError(f"the key {name!r} is gone", file=file, hint=REMOVED_KEYS[name])
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known keys are {', '.join(known)}"
        return BadDataError(f"unknown key {name!r}", file=file, hint=hint)
    if wrong["type"] == "value_error":
        why = str(wrong["ctx"]["error"])
        return BadDataError(f"{name}: {why}" if name else why, file=file)
    return BadDataError(f"{name}: must be {known[name]}, not {table[name]!r}", file=file)


# What lines of code spend: an allowance can set no other metric apart.
OF_LINES = (
    *("syncs", "stream_syncs", "event_syncs", "device_syncs", "drains", "implicit_syncs", "hazards"),
    *("d2h", "h2d", "d2d", "p2p", "allocations"),
)
_HEADER = re.compile(r"\s*\[\[\s*(?:tool\s*\.\s*tickets\s*\.\s*)?budget\s*(\.\s*allow\s*)?\]\]")
_WITHIN = re.compile(r"[^:@\s]+:[A-Za-z_][\w.]*")
_TICKET = re.compile(r"[^\s/]*\d[^\s/]*")
_LINE = "line"
T = TypeVar("T", Budget, Allowance)


def parse_budgets(tables: Any, text: str, file: str) -> list[Budget]:
    """The budgets in a configuration.

    Raises:
        BadDataError: One is wrong; the message names the file and the line.
    """
    found: list[Budget] = []
    if not isinstance(tables, list):
        raise BadDataError("budget: must be a list of tables", file=file, hint="write [[budget]]")
    for table, (at, *allowed) in zip(tables, chain(_headers(text), repeat([1])), strict=False):
        try:
            budget = _budget(table, at, allowed)
        except BadDataError as error:
            line = _line_of(text, at, error.message.partition(":")[0]) if error.line is None else error.line
            raise error.in_file(file, line) from None
        if any(budget.name == other.name for other in found):
            message = f"budget {budget.name!r} is there twice"
            raise BadDataError(message, file=file, line=at, hint="name one of them")
        found.append(budget)
    return found


def _budget(table: Any, at: int, lines: Sequence[int]) -> Budget:
    """The budget in a table; the message of an error begins with the key, unless it has a line."""
    tables = table.get("allow") if isinstance(table, dict) else None
    without = {**table, "allow": ()} if isinstance(tables, list) else table
    budget = _converted(Budget, without, "a budget")
    _check(budget)
    allow = []
    for each, line in zip(tables or (), chain(lines, repeat(at)), strict=False):
        try:
            allowance = _converted(Allowance, each, "an allowance")
            _check_allowance(allowance, budget.sweep)
        except BadDataError as error:
            raise error.in_file("", line) from None
        allow.append(replace(allowance, line=line))
    return replace(budget, name=budget.name or budget.run, allow=tuple(allow), line=at)


def _converted(kind: type[T], table: Any, what: str) -> T:
    """What a table states, if it has the keys and types of what it stands for."""
    if not isinstance(table, dict):
        raise BadDataError(f"{what} must be a table, not {table!r:.80}")
    known = {each.name: each.default for each in fields(kind) if each.name != _LINE}
    for name in table:
        if name not in known:
            raise BadDataError(f"unknown key {name!r}", hint=suggest(name, list(known)))
    for each in fields(kind):
        if each.default is each.default_factory is MISSING and each.name not in table:
            lacks = "target: nothing says what runs" if each.name == "run" else each.name
            raise BadDataError(f"{what} has no {lacks}", hint=f'{each.name} = "..."')
    given = table | {name: _as_text(table[name]) for name in ("law", "until") if name in table}
    # One word is a list of one.
    given |= {name: [table[name]] for name in ("what", "paths") if isinstance(table.get(name), str)}
    if isinstance(table.get("limits"), dict):
        given["limits"] = {metric: _as_text(law) for metric, law in table["limits"].items()}
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        why, _, path = str(error).partition(" - at `$.")
        name = re.split(r"\W", path)[0]
        raise BadDataError(f"{name}: {why.lower()}, not {table[name]!r:.80}") from None


def _as_text(value: Any) -> Any:
    """A number is a law, too, and a date an end."""
    return str(value) if isinstance(value, int | date) and not isinstance(value, bool) else value


def _check(budget: Budget) -> None:
    """Raise ``BadDataError`` for what is wrong in a budget; the message begins with the key."""
    if wrong := [name for name in budget.sweep if not name.isidentifier() or not budget.sweep[name]]:
        raise BadDataError(f"sweep: {wrong[0]} needs a name of Python and values")
    if prod(len(values) for values in budget.sweep.values()) > MOST_POINTS:
        raise BadDataError(f"sweep: it has more than {MOST_POINTS} points")
    try:
        parse_command(budget.run, budget.sweep)
    except WrongCommandError as error:
        raise BadDataError(error.message, hint=error.hint) from None
    if budget.within and not _WITHIN.fullmatch(budget.within):
        raise BadDataError(f"within: {budget.within!r} is no function", hint="write path.py:function")
    if not budget.limits:
        raise BadDataError("limits: none is stated", hint='limits = {syncs = "0"}')
    for path in budget.paths:
        if not inside_repository(path):
            raise BadDataError(f"paths: {path} leaves the repository")
    for metric, law in budget.limits.items():
        _check_metric(metric, COUNTS)
        _check_law(metric, law, budget.sweep)


def _check_allowance(allowance: Allowance, sweep: Mapping[str, Sequence[int]]) -> None:
    if not inside_repository(allowance.file):
        raise BadDataError(f"file: {allowance.file} leaves the repository")
    if allowance.text and not allowance.text.strip():
        raise BadDataError("text: is empty")
    if allowance.occurrence and not allowance.text:
        raise BadDataError("occurrence: needs a text")
    for metric in allowance.what:
        _check_metric(metric, OF_LINES)
    if allowance.law:
        _check_law("law", allowance.law, sweep)
        if not allowance.what:
            raise BadDataError("law: needs the metrics that it bounds", hint='what = ["syncs"]')
    try:
        is_known = bool(allowance.last_day or not allowance.until or _TICKET.fullmatch(allowance.until))
    except ValueError:
        is_known = False
    if not is_known:
        hint = "write a date such as 2030-01-31, or the ID of a ticket"
        raise BadDataError(f"until: {allowance.until!r} is neither a date nor a ticket", hint=hint)


def _check_metric(metric: str, known: Sequence[str]) -> None:
    if metric not in known:
        raise BadDataError(f"{metric}: no metric that can be stated here", hint=suggest(metric, known))


def _check_law(key: str, law: str, sweep: Mapping[str, Sequence[int]]) -> None:
    try:
        expression = parse_expression(law)
        check_variables(expression, sweep)
        # A law without a value at some point is refused now, and not after an hour of measuring.
        points = (dict(zip(sweep, row, strict=True)) for row in product(*sweep.values()))
        least = min(evaluate(expression, at) for at in points)
    except ExpressionError as error:
        raise BadDataError(f"{key}: {error.message}", hint=error.hint) from None
    if least < 0:
        raise BadDataError(f"{key}: {law} is below 0, and nothing spends less than that")


def _headers(text: str) -> list[list[int]]:
    """The line of each budget, and behind it those of its allowances, where each has a header of its own."""
    found: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _HEADER.match(line)
        if match and not match[1]:
            found.append([number])
        elif match and found:
            found[-1].append(number)
    return found


def _line_of(text: str, start: int, key: str) -> int:
    """The line below ``start`` that states a key; ``start`` where none does."""
    form = re.compile(rf"[^#]*\b{re.escape(key)}\b\s*=")
    for number, line in enumerate(text.splitlines()[start:], start + 1):
        if (match := _HEADER.match(line)) and not match[1]:
            break
        if form.match(line):
            return number
    return start
