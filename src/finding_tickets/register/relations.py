"""Relations between the documents of a register, whichever of the two states them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from finding_tickets.model.vocabulary import CONVERSE, Relationship
from finding_tickets.register.entries import Entry


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two IDs: ``related``, ``duplicate`` or ``blocks`` with the blocker as source.

    ``stated_by`` has the tickets that state it. A duplicate that both state has the first one as source.
    """

    source: str
    relationship: Relationship
    target: str
    stated_by: tuple[str, ...]


@dataclass(frozen=True)
class Relations:
    """The relations of a register.

    ``rows`` has the first document with each ID, by the ID in lower case; an ID of ``edges`` that it lacks is
    missing from the register.
    """

    rows: Mapping[str, Entry]
    edges: tuple[Edge, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Sequence[tuple[str, Relationship]]]:
        """For each ID in lower case, the others in lower case, and what it would say of them."""
        seen: dict[str, list[tuple[str, Relationship]]] = {}
        for edge in self.edges:
            source, target = edge.source.casefold(), edge.target.casefold()
            seen.setdefault(source, []).append((target, edge.relationship))
            seen.setdefault(target, []).append((source, CONVERSE[edge.relationship]))
        return seen


def relations(rows: Iterable[Entry]) -> Relations:
    """All relations that rows state: each once, in the order in which the first of the two states it."""
    documents: dict[str, Entry] = {}
    stated: dict[tuple[str, Relationship, str], list[str]] = {}
    for row in rows:
        here = row.id.casefold()
        documents.setdefault(here, row)
        for other, word in row.related:
            there, relationship = other.casefold(), Relationship(word)
            edge = (here, relationship, there)
            # As both ends would have it: from the blocker, or as the other one stated it before.
            if relationship is Relationship.BLOCKED_BY:
                edge = (there, Relationship.BLOCKS, here)
            elif (
                relationship is not Relationship.BLOCKS
                and (there, relationship, here) in stated
            ):
                edge = (there, relationship, here)
            stated.setdefault(edge, []).append(here)
    spelt = {name: row.id for name, row in documents.items()}
    edges = []
    for (one, relationship, other), by in stated.items():
        # How a missing document spells its ID is not known.
        source, target, *names = (
            spelt.get(name, name.upper()) for name in (one, other, *by)
        )
        edges.append(Edge(source, relationship, target, tuple(dict.fromkeys(names))))
    return Relations(documents, tuple(edges))
