"""The configuration of a register: ``[tool.tickets]`` in pyproject.toml, or tickets.toml, checked key by key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from finding_tickets.errors import BadDataError
from finding_tickets.model.record import Record
from finding_tickets.model.vocabulary import Vocabulary, Words

CONFIG_FILE = "tickets.toml"
PROJECT_FILE = "pyproject.toml"

_SIZE = re.compile(r"(?P<number>\d+)\s*(?P<unit>B|[KMGT]i?B)?", re.IGNORECASE)
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_FIXED_WORDS = ("severities", "statuses", "outcomes", "opinions")
_FREE_WORDS = ("agents", "domains", "categories")


class Config(Record):
    """What a register may choose; paths are relative to its root.

    Attributes:
        tickets: Folders that hold documents.
        evidence: Folder that holds recorded verifications.
        templates: Folder whose templates replace those of the tool.
        timeout: Seconds after which a verification is stopped.
        memory: Bytes that a verification may use.
        vocabulary: The words of the register.
    """

    tickets: tuple[str, ...] = ("tickets",)
    evidence: str = "evidence"
    templates: str = "templates"
    timeout: float = 120.0
    memory: int = 8 * 1024**3
    vocabulary: Vocabulary = Vocabulary()


def read_config(root: Path) -> Config:
    """The configuration of the register at ``root``; its defaults where there is none.

    Raises:
        BadDataError: The file cannot be read, has an unknown key or a value of the wrong type.
    """
    own, project = root / CONFIG_FILE, root / PROJECT_FILE
    if own.is_file():
        return _Reader(own).config(_load(own))
    table = project_table(project)
    return _Reader(project).config(table) if table is not None else Config()


def project_table(path: Path) -> Mapping[str, Any] | None:
    """``[tool.tickets]`` of a pyproject.toml, or None."""
    if not path.is_file():
        return None
    tool = _load(path).get("tool", {})
    table = tool.get("tickets") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise BadDataError("tool.tickets must be a table", file=str(path))
    return table


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataError(f"cannot be read: {error}", file=str(path)) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        raise BadDataError(
            f"not TOML: {error}", file=str(path), line=int(line[1]) if line else None
        ) from error


class _Reader:
    """Reads the values of one configuration file, naming file and key in every error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        plain: dict[str, Callable[[str, Any], Any]] = {
            "tickets": self._folders,
            "evidence": self._folder,
            "templates": self._folder,
            "timeout": self._seconds,
            "memory": self._bytes,
        }
        fixed = dict.fromkeys(_FIXED_WORDS, self._spellings)
        self._words: dict[str, Callable[[str, Any], Any]] = {
            "id_pattern": self._pattern,
            **fixed,
            **dict.fromkeys(_FREE_WORDS, self._free_words),
        }
        self._plain = plain

    def config(self, table: Mapping[str, Any]) -> Config:
        """The configuration that ``table`` states."""
        known = {**self._plain, **self._words}
        values = {key: known[self._known(key, known)](key, value) for key, value in table.items()}
        words = {key: values.pop(key) for key in list(values) if key in self._words}
        return Config(**values, vocabulary=Vocabulary(**words))

    def _error(self, key: str, message: str, hint: str | None = None) -> BadDataError:
        return BadDataError(f"{key}: {message}", file=str(self._path), hint=hint)

    def _known(self, key: str, known: Mapping[str, Any]) -> str:
        if key not in known:
            from difflib import get_close_matches

            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known keys are {', '.join(known)}"
            raise self._error(key, "unknown key", hint)
        return key

    def _folder(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self._error(key, f"must be a path, not {value!r}")
        if not (self._path.parent / value).resolve().is_relative_to(self._path.parent.resolve()):
            raise self._error(key, f"{value} leaves the repository")
        return value

    def _folders(self, key: str, value: Any) -> tuple[str, ...]:
        values = value if isinstance(value, list) else [value]
        if not values:
            raise self._error(key, "must name at least one folder")
        return tuple(self._folder(key, each) for each in values)

    def _seconds(self, key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise self._error(key, f"must be a number of seconds above 0, not {value!r}")
        return float(value)

    def _bytes(self, key: str, value: Any) -> int:
        match = _SIZE.fullmatch(str(value).strip()) if isinstance(value, str | int) else None
        if isinstance(value, bool) or match is None or int(match["number"]) == 0:
            raise self._error(key, f"must be a number of bytes such as '8GiB', not {value!r}")
        unit = (match["unit"] or "B").upper()
        base = 1024 if "I" in unit else 1000
        return int(match["number"]) * int(base ** _POWERS[unit[0]])

    def _pattern(self, key: str, value: Any) -> str:
        try:
            re.compile(value)
        except (re.error, TypeError) as error:
            raise self._error(key, f"must be a regular expression: {error}") from error
        return str(value)

    def _spellings(self, key: str, value: Any) -> Words:
        """Other spellings of words that are given: ``severities = {P0 = ["critical"]}``."""
        default: Words = getattr(Vocabulary(), key)
        given = self._free_words(key, value)
        for word in given:
            if word not in default:
                raise self._error(f"{key}.{word}", "unknown word", f"one of {', '.join(default)}")
        return {**default, **given}

    def _free_words(self, key: str, value: Any) -> Words:
        """Words, each with its other spellings, or a list of words."""
        table = dict.fromkeys(value, []) if self._is_strings(value) else value
        if not isinstance(table, dict):
            raise self._error(key, f"must be a table of words or a list of them, not {value!r}")
        for word, spellings in table.items():
            if not self._is_strings(spellings):
                raise self._error(f"{key}.{word}", f"must be a list of spellings, not {spellings!r}")
        return {word: tuple(spellings) for word, spellings in table.items()}

    @staticmethod
    def _is_strings(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
