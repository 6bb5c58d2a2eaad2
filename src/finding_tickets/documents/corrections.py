"""Sections that take back or mend an earlier fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.documents.parts import Part
from finding_tickets.documents.roles import Role
from finding_tickets.model.ticket import Correction

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_STATEMENT = frozenset(["status", "correction", "verdict", "outcome"])
_DATED = frozenset(["date", "corrected", "correctedon"])


def correcting(parts: Iterable[Part]) -> Iterator[Part]:
    """The sections that correct something, and such parts of a resolution."""
    for part in parts:
        if part.role is Role.CORRECTION:
            yield part
        elif part.role is Role.RESOLUTION:
            yield from correcting(part.parts)


def read_corrections(parts: Iterable[Part]) -> Iterator[Correction]:
    """The corrections among ``parts``, each with its date and what it says of its own status."""
    for part in correcting(parts):
        stated = part.entries
        dates = (entry.plain for entry in stated if entry.key in _DATED)
        date = next((match[0] for match in map(_DATE.search, [part.title, *dates]) if match), None)
        body = part.body
        yield Correction(
            raw=body.raw,
            span=body.span,
            title=part.title,
            date=date,
            statement=next((entry.value for entry in stated if entry.key in _STATEMENT), None),
        )
