"""A finding that has no ticket yet: what a new ticket is made from, and the free IDs for it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import AfterValidator, StringConstraints, ValidationError
from pydantic import Field as Default

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.model.ticket import Record
from finding_tickets.model.vocabulary import Relationship, Severity, Status, squeeze

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document


Line = Annotated[
    str,
    AfterValidator(lambda text: " ".join(text.split())),
    StringConstraints(min_length=1),
]


# Where pydantic's messages speak of Python: the same in the words of JSON.
_REASONS = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "model_type": "must be an object",
}


class Place(Record):
    """The place of a finding; ``lines`` are pairs of first and last line."""

    file: Line
    lines: tuple[tuple[int, int], ...] = ()
    symbol: Line | None = None

    @property
    def where(self) -> str:
        """The file with its lines: ``path.py:10-20,30``."""
        ranges = ",".join(
            str(first) if first == last else f"{first}-{last}"
            for first, last in self.lines
        )
        return f"{self.file}:{ranges}" if ranges else self.file


class DraftRelation(Record):
    """Another ticket, and what it has to do with this one."""

    id: Line
    relationship: Relationship = Relationship.RELATED
    note: str = ""


class Draft(Record):
    """The content of a new ticket, with the keys of ``tickets list --format json``."""

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
            keys = (
                f"[{key}]" if isinstance(key, int) else f".{key}"
                for key in detail["loc"]
            )
            path = (place + "".join(keys)).removeprefix(".")
            reason = _REASONS.get(detail["type"]) or re.sub(
                r"^Input should be", "must be", detail["msg"]
            )
            wrong.append(f"{path}: {reason}" if path else reason)
        hint = f"keys: {', '.join(Draft.model_fields)}"
        raise BadDataError("; ".join(wrong), file=source, hint=hint) from None


DEFAULT_SERIES = "T"
LEAST_DIGITS = 2
KNOWN_CODES = {"drl": "DRL", "pytorch": "PT", "codereview": "CR"}
CODE_LETTERS = 4
_NUMBER = "[0-9]{1,9}"


class NumberedId(NamedTuple):
    """An ID taken apart: ``B7-PT-02`` is number 2, written with two digits, of the series ``B7-PT``."""

    series: str
    number: int
    digits: int


def numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text, without leading zeros; as text, since they may have thousands of digits."""
    return tuple(re.findall(r"0*([0-9]+)", text))


def numbered(document_id: str) -> NumberedId | None:
    """The parts of an ID that ends in a number, else None."""
    match = re.fullmatch(
        rf"(?P<series>.+)-(?P<number>{_NUMBER})", document_id, re.DOTALL
    )
    return (
        NumberedId(match["series"].upper(), int(match["number"]), len(match["number"]))
        if match
        else None
    )


def free_ids(
    documents: Sequence[Document],
    *,
    batch: int | None = None,
    agent: str | None = None,
    paths: Iterable[str] = (),
) -> Iterator[str]:
    """Yield IDs of one series without end, from the number after the highest one in use.

    Gaps are not filled, since others may remember an ID. The series is ``B<batch>-<agent's code>``.
    If neither is given, it is the series of all findings if they share one, else ``T``. A caller that finds
    an ID taken by another process uses the next. A file whose name begins with an ID takes it too, whatever
    it holds: ``paths`` are files to look at besides the documents.

    Raises:
        UsageError: Only one of batch and agent is given.
    """
    known = [parts for document in documents if (parts := numbered(document.id.value))]
    if batch is not None and agent:
        series = f"B{batch}-{agent_code(documents, agent)}"
    elif batch is not None or agent:
        raise UsageError(
            "an ID is made of a batch and an agent: give both --batch and --agent, or neither"
        )
    else:
        findings = (
            numbered(each.id.value) for each in documents if each.kind == "finding"
        )
        found = {parts.series for parts in findings if parts}
        series = found.pop() if len(found) == 1 else DEFAULT_SERIES
    leading = re.compile(rf"{re.escape(series)}-({_NUMBER})(?![A-Z0-9])", re.IGNORECASE)
    names = [PurePosixPath(path).name for path in paths]
    for document in documents:
        names += [document.id.value, PurePosixPath(document.path).name]
    taken = [match[1] for match in map(leading.match, names) if match]
    digits = max(
        [*map(len, taken)] or [parts.digits for parts in known], default=LEAST_DIGITS
    )
    return (
        f"{series}-{number:0{digits}}"
        for number in count(max(map(int, taken), default=0) + 1)
    )


def agent_code(documents: Sequence[Document], agent: str) -> str:
    """The code of an agent in IDs, such as ``PT`` for ``pytorch``.

    It is the one used most in the register, else a known one, else the first four letters of its name.
    """
    wanted = squeeze(agent)
    codes = Counter(
        parts.series.split("-")[1]
        for document in documents
        if document.kind == "finding"
        and document.agent
        and squeeze(document.agent.value) == wanted
        if (parts := numbered(document.id.value)) and parts.series.count("-") == 1
    )
    if codes:
        return codes.most_common(1)[0][0]
    return KNOWN_CODES.get(wanted) or wanted.upper()[:CODE_LETTERS]
