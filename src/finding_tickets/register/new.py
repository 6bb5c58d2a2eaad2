"""A finding that has no ticket yet: what a new ticket is made from."""

from __future__ import annotations

import json
import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints, ValidationError
from pydantic import Field as Default

from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import Record
from finding_tickets.model.vocabulary import Relationship, Severity, Status

Line = Annotated[str, AfterValidator(lambda text: " ".join(text.split())), StringConstraints(min_length=1)]


# Where pydantic's messages speak of Python: the same in the words of JSON.
_REASONS = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "model_type": "must be an object",
}


class Place(Record):
    """Where the finding is; ``lines`` are pairs of first and last line."""

    file: Line
    lines: tuple[tuple[int, int], ...] = ()
    symbol: Line | None = None

    @property
    def where(self) -> str:
        """The file with its lines: ``path.py:10-20,30``."""
        ranges = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self.lines)
        return f"{self.file}:{ranges}" if ranges else self.file


class DraftRelation(Record):
    """Another ticket, and what it has to do with this one."""

    id: Line
    relationship: Relationship = Relationship.RELATED
    note: str = ""


class Draft(Record):
    """The content of a new ticket; its keys are those of ``tickets list --format json``."""

    title: Line
    severity: Severity | None
    status: Status = Status.OPEN
    batch: int | None = Default(default=None, ge=0)
    agent: Line | None = None
    domains: tuple[Line, ...] = ()
    summary: Line | None = None
    description: str = ""
    recommended_fix: str = ""
    code_repository: Line | None = None
    locations: tuple[Place, ...] = ()
    categories: tuple[Line, ...] = ()
    checklist: tuple[Line, ...] = ()
    related: tuple[DraftRelation, ...] = ()


def read_drafts(text: str, source: str) -> list[Draft]:
    """The drafts in a JSON object, or in a list of objects; ``source`` names where the text came from.

    Raises:
        BadDataError: The text is not JSON, or an object does not have the form of a draft.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise BadDataError(f"not JSON: {error}", file=source, line=line) from None
    if not isinstance(value, list):
        return [draft_of(value, source)]
    return [draft_of(item, source, f"[{number}]") for number, item in enumerate(value)]


def draft_of(value: object, source: str, place: str = "") -> Draft:
    """The draft that a JSON value states; ``place`` is where in ``source`` it stands.

    Raises:
        BadDataError: It does not have the form of a draft; the message names each key that is wrong.
    """
    try:
        return Draft.model_validate(value)
    except ValidationError as error:
        wrong = []
        for detail in error.errors():
            keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in detail["loc"])
            path = (place + "".join(keys)).removeprefix(".")
            reason = _REASONS.get(detail["type"]) or re.sub(r"^Input should be", "must be", detail["msg"])
            wrong.append(f"{path}: {reason}" if path else reason)
        hint = f"keys: {', '.join(Draft.model_fields)}"
        raise BadDataError("; ".join(wrong), file=source, hint=hint) from None
