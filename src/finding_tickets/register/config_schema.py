"""The table of a register's configuration as a pydantic model, and what is wrong with one.

Each field's description ends the sentence "KEY must be ...", by which a wrong value is explained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic import Field as Key

from finding_tickets.errors import BadDataError
from finding_tickets.ground.paths import safe_name
from finding_tickets.model.vocabulary import Vocabulary

_SIZE = re.compile(r"(?P<number>\d{1,18})\s*(?P<unit>B|[KMGT]i?B)?", re.IGNORECASE)
_POWERS = {"B": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_VERSION = re.compile(r"\d+(\.\d+)+[a-z0-9.]*")
_OF_RAY = {"CPU", "GPU", "memory", "object_store_memory"}


def _size(value: Any) -> Any:
    """``8589934592`` or ``"8GiB"`` as bytes; ``GB`` is a thousand million."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    match = _SIZE.fullmatch(text)
    if match is None or int(match["number"]) == 0:
        return None
    unit = (match["unit"] or "B").upper()
    return int(match["number"]) * int((1024 if "I" in unit else 1000) ** _POWERS[unit[0]])


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


def _versions(value: Mapping[str, str]) -> Mapping[str, str]:
    for version, python in value.items():
        if not python.isprintable():
            raise ValueError(f"{version} must be the path of a Python, not {python!r}")
        if not _VERSION.fullmatch(version):
            raise ValueError(f"{version!r} is no version of torch such as '2.11.0'")
    return value


def _once(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(value)) < len(value) or not all(text and text.isprintable() for text in value):
        raise ValueError(f"must have each text once, and none that is empty: {list(value)!r}")
    return value


def _folders_apart(value: tuple[str, ...]) -> tuple[str, ...]:
    """Revisions that each have a folder of evidence of their own, which does not look like a file of it."""
    folders: dict[str, str] = {}
    for revision in value:
        folder = safe_name(revision)
        other = folders.setdefault(folder, revision)
        if other != revision:
            raise ValueError(f"{other!r} and {revision!r} share a folder; name a commit")
        if folder.endswith(".json"):
            raise ValueError(f"must not end like evidence, as {revision!r}; name a commit")
    return value


def _table(value: Any) -> Any:
    """Words in a list are words without other spellings."""
    are_texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return dict.fromkeys(value, ()) if are_texts else value


Texts = tuple[str, ...]
Words = Annotated[dict[str, Texts], BeforeValidator(_table)]
Path = Annotated[str, StringConstraints(min_length=1)]
Paths = Annotated[
    tuple[Path, ...],
    Key(min_length=1),
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
]
Size = Annotated[int, BeforeValidator(_size)]
Amounts = Annotated[dict[str, Annotated[float, Key(strict=True)]], AfterValidator(_amounts)]
Seconds = Annotated[float, Key(gt=0, allow_inf_nan=False, strict=True)]
Meters = tuple[Literal["simulated", "cuda"], ...]
WORDS = "a list of words or a table of their spellings"


class StrictTable(BaseModel):
    """A table of the configuration: other keys are refused, and values are not converted."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RayTable(StrictTable):
    """``ray``: what is asked of a Ray cluster."""

    resources: Amounts | None = Key(default=None, description="a table of names and amounts")


class MatrixTable(StrictTable):
    """``matrix``: on what tickets are measured beside the tool's own environment."""

    meters: Annotated[Meters, Key(min_length=1), AfterValidator(_once)] | None = Key(
        default=None, description="a list of simulated and cuda"
    )
    torch: Annotated[dict[str, Path], AfterValidator(_versions)] | None = Key(
        default=None, description="a table of versions, in quotes, and paths of a Python"
    )
    gpus: dict[Annotated[str, StringConstraints(pattern=r"\S")], Amounts] | None = Key(
        default=None, description="a table of names and resources"
    )
    revisions: Annotated[Texts, AfterValidator(_once), AfterValidator(_folders_apart)] | None = Key(
        default=None, description="a list of texts"
    )

    @model_validator(mode="after")
    def _cuda_has_gpus(self) -> MatrixTable:
        if self.meters and ("cuda" in self.meters) != bool(self.gpus):
            raise ValueError(
                "the meter cuda and a table of gpus go together, as in gpus = {'NVIDIA H200' = {}}"
            )
        return self


class ConfigTable(StrictTable):
    """The whole configuration, key by key; what is not stated has the default of ``Config``."""

    tickets: Paths | None = Key(default=None, description="a path or a list of at least one")
    evidence: Path | None = Key(default=None, description="a path")
    templates: Path | None = Key(default=None, description="a path")
    meter: Literal["auto", "simulated", "cuda"] | None = Key(
        default=None, description="one of auto, simulated, cuda"
    )
    timeout: Seconds | None = Key(default=None, description="a number of seconds above 0")
    memory: Size | None = Key(default=None, description="a number of bytes such as '8GiB'")
    largest_file: Size | None = Key(default=None, description="a number of bytes such as '8GiB'")
    lint_select: Texts | None = Key(default=None, description="a list of names")
    lint_ignore: Texts | None = Key(default=None, description="a list of names")
    ray: RayTable | None = Key(default=None, description="a table with nothing but resources")
    matrix: MatrixTable | None = Key(default=None, description="a table")
    id_pattern: Annotated[str, AfterValidator(_pattern)] | None = Key(
        default=None, description="a regular expression"
    )
    severities: Words | None = Key(default=None, description=WORDS)
    statuses: Words | None = Key(default=None, description=WORDS)
    outcomes: Words | None = Key(default=None, description=WORDS)
    opinions: Words | None = Key(default=None, description=WORDS)
    agents: Words | None = Key(default=None, description=WORDS)
    domains: Words | None = Key(default=None, description=WORDS)
    categories: Words | None = Key(default=None, description=WORDS)

    @model_validator(mode="after")
    def _known_words(self) -> ConfigTable:
        usual = Vocabulary()
        for key in ("severities", "statuses", "outcomes", "opinions"):
            known: Mapping[str, Texts] = getattr(usual, key)
            for word in getattr(self, key) or ():
                if word not in known:
                    raise ValueError(f"{key}: no such word as {word!r}; the words are {', '.join(known)}")
        return self


def validate(table: Mapping[str, Any], file: str) -> bytes:
    """The configuration that a table states, as JSON with a value for each key that it has.

    Raises:
        BadDataError: A key is unknown or a value wrong; the message names file and key.
    """
    try:
        return ConfigTable.model_validate(table).model_dump_json(exclude_unset=True).encode()
    except ValidationError as error:
        # Only what is meant to be a table can have unknown keys, so these come first.
        wrong = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    # The keys of the models on the way to the wrong value, and what stands there.
    model: type[BaseModel] = ConfigTable
    keys: list[str] = []
    must_be, stated = "a table", table
    location = list(map(str, wrong["loc"]))
    while location and location[0] in model.model_fields:
        key = location.pop(0)
        keys.append(key)
        must_be, stated = model.model_fields[key].description or must_be, stated[key]
        if key not in {"ray", "matrix"}:
            break
        model = RayTable if key == "ray" else MatrixTable
    place = f"{'.'.join(keys)}: " if keys else ""
    if wrong["type"] == "extra_forbidden" and location:
        close = get_close_matches(location[0], model.model_fields, n=1)
        known = f"known keys are {', '.join(model.model_fields)}"
        hint = f"did you mean {close[0]!r}?" if close else known
        raise BadDataError(f"{place}unknown key {location[0]!r}", file=file, hint=hint)
    if wrong["type"] == "value_error":
        raise BadDataError(f"{place}{wrong['ctx']['error']}", file=file)
    raise BadDataError(f"{place}must be {must_be}, not {stated!r}", file=file)
