"""The IDs of a register by their numbers: their series, and the next one that is free."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import squeeze

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document

PLAIN_SERIES = "T"
SHORTEST_NUMBER = 2
CODES = {"drl": "DRL", "pytorch": "PT", "codereview": "CR"}
LONGEST_CODE = 4
_NUMBER = "[0-9]{1,9}"


class NumberedId(NamedTuple):
    """An ID taken apart: ``B7-PT-02`` is number 2, written with two digits, of the series ``B7-PT``."""

    series: str
    number: int
    digits: int


def numbers(text: str) -> tuple[str, ...]:
    """The numbers in a text without the zeros in front, as text, for they may have any number of digits."""
    return tuple(re.findall(r"0*([0-9]+)", text))


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
