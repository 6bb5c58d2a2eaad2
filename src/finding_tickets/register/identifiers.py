"""The IDs of a register: their order, which are given twice, the next free one, and who has one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.vocabulary import squeeze

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document

PLAIN_SERIES = "T"
SHORTEST_NUMBER = 2
CODES = {"drl": "DRL", "pytorch": "PT", "codereview": "CR"}
LONGEST_CODE = 4
T = TypeVar("T")

_NAMED = 3
_SUGGESTIONS = 5
_NUMBER = "[0-9]{1,9}"


class IdPlace(NamedTuple):
    """The ID of a document, its file, and the line (from 1) on which the ID stands."""

    id: str
    path: str
    line: int


class NumberedId(NamedTuple):
    """An ID taken apart: ``B7-PT-02`` is number 2, written with two digits, of the series ``B7-PT``."""

    series: str
    number: int
    digits: int


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers within text by their value, however long: ``B2`` before ``B10``."""
    pieces = re.split(r"([0-9]+)", text.upper())
    # Of two numbers without zeros in front the longer one is greater.
    bare = (piece.lstrip("0") if at % 2 else piece for at, piece in enumerate(pieces))
    return tuple((len(piece) if at % 2 else 0, piece) for at, piece in enumerate(bare))


def numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text without the zeros in front, as text, for they may have any number of digits."""
    return tuple(re.findall(r"0*([0-9]+)", text))


def duplicates(places: Iterable[IdPlace]) -> Iterator[Problem]:
    """A problem for every ID that another document has too, in any case; it says where else."""
    named: dict[str, list[IdPlace]] = {}
    for place in places:
        named.setdefault(place.id.casefold(), []).append(place)
    for sharing in named.values():
        for place in sharing if len(sharing) > 1 else ():
            # Of many places the first few, so that the problems do not grow as a square.
            others = [other for other in sharing[: _NAMED + 1] if other is not place][:_NAMED]
            more = len(sharing) - 1 - len(others)
            shown = ", ".join(f"{other.path}:{other.line}" for other in others)
            yield Problem(
                level=Level.ERROR,
                rule="duplicate-id",
                file=place.path,
                line=place.line,
                message=f"{place.id} is also the ID of {shown}{f' and {more} more' if more else ''}",
            )


def find(named: Iterable[tuple[str, str, T]], document_id: str) -> T:
    """What has this ID, in any case, or this path; ``named`` are IDs, paths and what they belong to.

    Raises:
        UsageError: There is none; the hint names those that come close.
        BadDataError: There are several; the message names their files.
    """
    known = list(named)
    wanted = document_id.strip().casefold()
    path = document_id.strip().removeprefix("./")
    found = [each for each in known if each[0].casefold() == wanted or each[1] == path]
    if len(found) > 1:
        files = ", ".join(path for _, path, _ in found)
        raise BadDataError(f"{found[0][0]} is the ID of several documents: {files}")
    if not found:
        hint = hint_for([name for name, _, _ in known], wanted)
        raise UsageError(f"no document has the ID {document_id!r}", hint=hint)
    return found[0][2]


def hint_for(ids: Sequence[str], wanted: str) -> str:
    """What to say where no document has an ID: those of ``ids`` that begin as it does, or resemble it."""
    if not ids:
        return "the register is empty"
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in ids}
    begin = [name for name in folded if wanted and name.startswith(wanted)]
    close = begin or get_close_matches(wanted, folded, n=_SUGGESTIONS)
    names = [folded[name] for name in close[:_SUGGESTIONS]]
    return f"did you mean {', '.join(names)}?" if names else "tickets list shows them all"


def numbered(document_id: str) -> NumberedId | None:
    """The parts of an ID that ends in a number, else None."""
    match = re.fullmatch(rf"(?P<series>.+)-(?P<number>{_NUMBER})", document_id, re.DOTALL)
    return NumberedId(match["series"].upper(), int(match["number"]), len(match["number"])) if match else None


def free_ids(
    documents: Sequence[Document],
    batch: int | None = None,
    agent: str | None = None,
    paths: Iterable[str] = (),
) -> Iterator[str]:
    """The IDs after the highest of its series; gaps stay free, since an ID may be remembered elsewhere.

    The series is ``B<batch>-<agent's code>`` where both are given. Where neither is, it is the only series of
    findings there is, or one of its own. The first ID is the one to take; the next is for whoever finds that
    another process has just taken it. Files whose name begins with an ID take it too, whatever is in them:
    ``paths`` are those to look at beside the documents.

    Raises:
        UsageError: Only one of batch and agent is given.
    """
    known = [parts for document in documents if (parts := numbered(document.id.value))]
    if batch is not None and agent:
        series = f"B{batch}-{agent_code(documents, agent)}"
    elif batch is not None or agent:
        raise UsageError("an ID is made of a batch and an agent: give both --batch and --agent, or neither")
    else:
        findings = (numbered(each.id.value) for each in documents if each.kind == "finding")
        found = {parts.series for parts in findings if parts}
        series = found.pop() if len(found) == 1 else PLAIN_SERIES
    taken = [parts for parts in known if parts.series == series]
    leading = re.compile(rf"{re.escape(series)}-({_NUMBER})(?![A-Z0-9])", re.IGNORECASE)
    names = (PurePosixPath(path).name for path in [*paths, *(document.path for document in documents)])
    matches = (leading.match(name) for name in names)
    taken += [NumberedId(series, int(match[1]), len(match[1])) for match in matches if match]
    digits = max((parts.digits for parts in taken or known), default=SHORTEST_NUMBER)
    highest = max((parts.number for parts in taken), default=0)
    return (f"{series}-{number:0{digits}}" for number in count(highest + 1))


def agent_code(documents: Sequence[Document], agent: str) -> str:
    """What the register's IDs call an agent most often: ``PT`` for ``pytorch``; else made of its name."""
    wanted = squeeze(agent)
    codes = Counter(
        parts.series.split("-")[1]
        for document in documents
        if document.kind == "finding" and document.agent and squeeze(document.agent.value) == wanted
        if (parts := numbered(document.id.value)) and parts.series.count("-") == 1
    )
    if codes:
        return codes.most_common(1)[0][0]
    return CODES.get(wanted) or wanted.upper()[:LONGEST_CODE]
