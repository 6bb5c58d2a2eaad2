"""How the documents of a register relate to one another, whichever of the two says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from finding_tickets.model.vocabulary import CONVERSE, Relationship
from finding_tickets.register.index import Row


@dataclass(frozen=True, slots=True)
class Edge:
    """One relation between two IDs, ``related``, ``duplicate`` or ``blocks``; the blocker is the source.

    ``stated_by`` has those of the two that state it. A duplicate that both state has its first as the source.
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

    rows: Mapping[str, Row]
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


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One end of a relation: an ID, its document unless that is missing, and whether it was asked for."""

    id: str
    row: Row | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """Relations and the documents that they are between.

    ``cycles`` are IDs that block one another in this order, the last one the first.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    cycles: tuple[tuple[str, ...], ...]


def graph(relations: Relations, rows: Iterable[Row]) -> Graph:
    """The relations of ``rows``, whatever document they lead to, and the cycles that ``rows`` are part of."""
    chosen = {row.id.casefold() for row in rows}
    ends = ((edge, {edge.source.casefold(), edge.target.casefold()}) for edge in relations.edges)
    edges = tuple(edge for edge, names in ends if names & chosen)
    nodes = {
        name: GraphNode(name, relations.rows.get(name.casefold()), name.casefold() in chosen)
        for edge in edges
        for name in (edge.source, edge.target)
    }
    found = (each for each in cycles(relations.edges) if not chosen.isdisjoint(map(str.casefold, each)))
    return Graph(tuple(nodes.values()), edges, tuple(found))


def relations(rows: Iterable[Row]) -> Relations:
    """All relations that rows state: each once, in the order in which the first of the two states it."""
    documents: dict[str, Row] = {}
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
            elif relationship is not Relationship.BLOCKS and (there, relationship, here) in stated:
                edge = (there, relationship, here)
            stated.setdefault(edge, []).append(here)
    spelt = {name: row.id for name, row in documents.items()}
    edges = []
    for (one, relationship, other), by in stated.items():
        # How a missing document spells its ID is not known.
        source, target, *names = (spelt.get(name, name.upper()) for name in (one, other, *by))
        edges.append(Edge(source, relationship, target, tuple(dict.fromkeys(names))))
    return Relations(documents, tuple(edges))


def cycles(edges: Iterable[Edge]) -> tuple[tuple[str, ...], ...]:
    """For each set of documents that all block one another in the end, the shortest cycle through its first.

    A cycle names each document once, beginning with the one that the edges name first.
    """
    after = blocked_by(edges)
    found = []
    for start, *_ in cyclic(after):
        before = _ways(start, after)
        way = [before[start]]
        while way[-1] != start:
            way.append(before[way[-1]])
        found.append(tuple(reversed(way)))
    return tuple(found)


def blocked_by(edges: Iterable[Edge]) -> dict[str, list[str]]:
    """What each document blocks, for all that block or are blocked."""
    after: dict[str, list[str]] = {}
    for edge in edges:
        if edge.relationship is Relationship.BLOCKS:
            after.setdefault(edge.source, []).append(edge.target)
            after.setdefault(edge.target, [])
    return after


def cyclic(after: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The sets of names that all reach one another and themselves, each and all in the order of ``after``."""
    before: dict[str, list[str]] = {name: [] for name in after}
    for name, targets in after.items():
        for target in targets:
            before[target].append(name)
    found: list[list[str]] = []
    for name in after:
        if not any(name in members for members in found):
            members = _ways(name, after).keys() & _ways(name, before).keys()
            found += [[each for each in after if each in members]] if members else []
    return found


def _ways(start: str, after: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The names that some way leads to, each with the one before it on the shortest way there."""
    before: dict[str, str] = {}
    waiting = [start]
    for here in waiting:
        for there in after[here]:
            if there not in before:
                before[there] = here
                waiting.append(there)
    return before
