"""The next free ID in a register's scheme, learnt from the IDs that are there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import PurePosixPath
from typing import NamedTuple

from finding_tickets.errors import UsageError
from finding_tickets.model.review import ImplementationReview
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import squeeze

PLAIN_SERIES = "T"
SHORTEST_NUMBER = 2
CODES = {"drl": "DRL", "pytorch": "PT", "codereview": "CR"}
LONGEST_CODE = 4
_NUMBER = "[0-9]{1,9}"


class Numbered(NamedTuple):
    """An ID taken apart: ``B7-PT-02`` is number 2, written with two digits, of the series ``B7-PT``."""

    series: str
    number: int
    digits: int


def numbered(document_id: str) -> Numbered | None:
    """The parts of an ID that ends in a number, else None."""
    match = re.fullmatch(rf"(?P<series>.+)-(?P<number>{_NUMBER})", document_id, re.DOTALL)
    return Numbered(match["series"].upper(), int(match["number"]), len(match["number"])) if match else None


def free_ids(
    documents: Sequence[Ticket | ImplementationReview],
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
    series = _series(documents, batch, agent)
    taken = [parts for parts in known if parts.series == series]
    taken += _named(series, [*paths, *(document.path for document in documents)])
    digits = max((parts.digits for parts in taken or known), default=SHORTEST_NUMBER)
    highest = max((parts.number for parts in taken), default=0)
    return (f"{series}-{number:0{digits}}" for number in count(highest + 1))


def _named(series: str, paths: Iterable[str]) -> Iterator[Numbered]:
    """The IDs of a series with which the names of files begin: ``b7-pt-02.md``, ``B7-PT-02-slow.md``."""
    leading = re.compile(rf"{re.escape(series)}-({_NUMBER})(?![A-Z0-9])", re.IGNORECASE)
    matches = (leading.match(PurePosixPath(path).name) for path in paths)
    return (Numbered(series, int(match[1]), len(match[1])) for match in matches if match)


def _series(documents: Sequence[Ticket | ImplementationReview], batch: int | None, agent: str | None) -> str:
    if batch is not None and agent:
        return f"B{batch}-{agent_code(documents, agent)}"
    if batch is not None or agent:
        raise UsageError("an ID is made of a batch and an agent: give both --batch and --agent, or neither")
    findings = [numbered(document.id.value) for document in documents if isinstance(document, Ticket)]
    series = {parts.series for parts in findings if parts}
    return series.pop() if len(series) == 1 else PLAIN_SERIES


def agent_code(documents: Sequence[Ticket | ImplementationReview], agent: str) -> str:
    """What the register's IDs call an agent most often: ``PT`` for ``pytorch``; else made of its name."""
    wanted = squeeze(agent)
    codes = Counter(
        parts.series.split("-")[1]
        for document in documents
        if isinstance(document, Ticket) and document.agent and squeeze(document.agent.value) == wanted
        if (parts := numbered(document.id.value)) and parts.series.count("-") == 1
    )
    if codes:
        return codes.most_common(1)[0][0]
    return CODES.get(wanted) or wanted.upper()[:LONGEST_CODE]
