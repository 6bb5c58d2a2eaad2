"""The values of a configuration: each function turns a TOML value into ours or says what is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from finding_tickets.model.vocabulary import Vocabulary, Words, squeeze

_METERS = ("auto", "simulated", "cuda")
_SIZE = re.compile(r"(?P<number>\d{1,18})\s*(?P<unit>B|[KMGT]i?B)?", re.IGNORECASE)
_OF_RAY = ("CPU", "GPU", "memory", "object_store_memory")
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class WrongValueError(ValueError):
    """What is wrong with a value, without saying where it stands."""


def folder(value: Any, root: Path) -> str:
    """A path relative to ``root`` that stays below it."""
    if not isinstance(value, str) or not value:
        raise WrongValueError(f"must be a path, not {value!r}")
    # Unlike Path.resolve, this raises nothing where links lead in a circle.
    if not Path(os.path.realpath(root / value)).is_relative_to(os.path.realpath(root)):
        raise WrongValueError(f"{value} leaves the repository")
    return value


def folders(value: Any, root: Path) -> tuple[str, ...]:
    """One path, or a list of at least one."""
    values = value if isinstance(value, list) else [value]
    if not values:
        raise WrongValueError("must name at least one folder")
    return tuple(folder(each, root) for each in values)


def seconds(value: Any, _root: Path) -> float:
    """A time span above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise WrongValueError(f"must be a number of seconds above 0, not {value!r}")
    return float(value)


def size(value: Any, _root: Path) -> int:
    """A number of bytes: ``8589934592`` or ``"8GiB"``; ``GB`` is a thousand million."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    match = _SIZE.fullmatch(text)
    if match is None or int(match["number"]) == 0:
        raise WrongValueError(f"must be a number of bytes such as '8GiB', not {value!r}")
    unit = (match["unit"] or "B").upper()
    return int(match["number"]) * int((1024 if "I" in unit else 1000) ** _POWERS[unit[0]])


def meter(value: Any, _root: Path) -> str:
    """What counts where nobody says otherwise."""
    if value not in _METERS:
        raise WrongValueError(f"must be one of {', '.join(_METERS)}, not {value!r}")
    return str(value)


def names(value: Any, _root: Path) -> tuple[str, ...]:
    """A list of names."""
    if not _is_texts(value):
        raise WrongValueError(f"must be a list of names, not {value!r}")
    return tuple(value)


def ray(value: Any, _root: Path) -> Mapping[str, float]:
    """A table whose ``resources`` are names of the cluster with amounts above 0, none of them Ray's own."""
    if not isinstance(value, dict) or value.keys() - {"resources"}:
        raise WrongValueError(f"must be a table with nothing but resources, not {value!r}")
    return amounts(value.get("resources", {}), "resources")


def amounts(value: Any, name: str) -> Mapping[str, float]:
    """A table of what a machine of a cluster must have; ``name`` is that of the table."""
    if not isinstance(value, dict):
        raise WrongValueError(f"{name} must be a table of names and amounts, not {value!r}")
    for resource, amount in value.items():
        if not _is_amount(amount):
            raise WrongValueError(f"{name}.{resource} must be a part of 1 or a whole number, not {amount!r}")
        if resource in _OF_RAY:
            raise WrongValueError(f"{name}.{resource} is Ray's own, and follows from meter and memory")
    return {resource: float(amount) for resource, amount in value.items()}


def _is_amount(value: Any) -> bool:
    """Whether Ray takes a number: parts of a resource are those of a single one."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < float("inf") and (value < 1 or value % 1 == 0)


def pattern(value: Any, _root: Path) -> str:
    """A regular expression."""
    if not isinstance(value, str):
        raise WrongValueError(f"must be a regular expression, not {value!r}")
    try:
        re.compile(value)
        # As it will be used: its groups must not have the names of ours.
        re.compile(rf"(?P<id>{value})(?P<kind>)")
    except (re.error, RecursionError, OverflowError) as error:
        raise WrongValueError(f"must be a regular expression: {error}") from error
    return value


def words(value: Any, _root: Path) -> Words:
    """Words of the register's own: a list, or a table that gives each word its other spellings."""
    if _is_texts(value):
        return dict.fromkeys(value, ())
    if not isinstance(value, dict):
        raise WrongValueError(f"must be a list of words or a table of their spellings, not {value!r}")
    for word, spellings in value.items():
        if not _is_texts(spellings):
            raise WrongValueError(f"{word} must have a list of spellings, not {spellings!r}")
    return {word: tuple(spellings) for word, spellings in value.items()}


def spellings_of(name: str) -> Callable[[Any, Path], Words]:
    """A reader of further spellings for the words of the vocabulary ``name``, whose words are given.

    A spelling of one word that the register gives to another one is that one's alone.
    """
    given: Words = getattr(Vocabulary(), name)

    def spellings(value: Any, root: Path) -> Words:
        found = words(value, root)
        for word in found:
            if word not in given:
                raise WrongValueError(f"no such word as {word!r}; the words are {', '.join(given)}")
        taken = {squeeze(each) for others in found.values() for each in others}
        return {
            word: (*found.get(word, ()), *(each for each in others if squeeze(each) not in taken))
            for word, others in given.items()
        }

    return spellings


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
