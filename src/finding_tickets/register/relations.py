"""How the documents of a register relate to one another, whichever of the two says so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

    def touches(names: Iterable[str]) -> bool:
        return any(name.casefold() in chosen for name in names)

    edges = tuple(edge for edge in relations.edges if touches((edge.source, edge.target)))
    names = dict.fromkeys(name for edge in edges for name in (edge.source, edge.target))
    return Graph(
        tuple(GraphNode(name, relations.rows.get(name.casefold()), touches([name])) for name in names),
        edges,
        tuple(cycle for cycle in cycles(relations.edges) if touches(cycle)),
    )


def relations(rows: Iterable[Row]) -> Relations:
    """All relations that rows state: each once, in the order in which the first of the two states it."""
    documents: dict[str, Row] = {}
    stated: dict[tuple[str, Relationship, str], list[str]] = {}
    for row in rows:
        documents.setdefault(row.id.casefold(), row)
        for other, word in row.related:
            edge = _directed(row.id.casefold(), Relationship(word), other.casefold(), stated)
            stated.setdefault(edge, []).append(row.id.casefold())

    def spelt(name: str) -> str:
        return documents[name].id if name in documents else name.upper()

    edges = (
        Edge(spelt(source), relationship, spelt(target), tuple(map(spelt, dict.fromkeys(by))))
        for (source, relationship, target), by in stated.items()
    )
    return Relations(documents, tuple(edges))


def _directed(
    here: str, relationship: Relationship, there: str, stated: Collection[tuple[str, Relationship, str]]
) -> tuple[str, Relationship, str]:
    """A relation as both of its ends would have it: from the blocker, or as it was stated already."""
    if relationship is Relationship.BLOCKED_BY:
        return there, Relationship.BLOCKS, here
    if relationship is not Relationship.BLOCKS and (there, relationship, here) in stated:
        return there, relationship, here
    return here, relationship, there


def cycles(edges: Iterable[Edge]) -> tuple[tuple[str, ...], ...]:
    """For each set of documents that all block one another in the end, the shortest cycle through its first.

    A cycle names each document once, beginning with the one that the edges name first.
    """
    after = _blocked_by(edges)
    return tuple(_shortest(members, after) for members in _cyclic(after))


def blocking(edges: Iterable[Edge]) -> list[list[str]]:
    """The sets of documents that all block one another in the end."""
    return _cyclic(_blocked_by(edges))


def _blocked_by(edges: Iterable[Edge]) -> dict[str, list[str]]:
    """What each document blocks, for all that block or are blocked."""
    after: dict[str, list[str]] = {}
    for edge in edges:
        if edge.relationship is Relationship.BLOCKS:
            after.setdefault(edge.source, []).append(edge.target)
            after.setdefault(edge.target, [])
    return after


def _shortest(members: Sequence[str], after: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The shortest way from the first of ``members`` back to it, within them."""
    start, inside = members[0], set(members)
    came_from: dict[str, str] = {}
    waiting = [start]
    for here in waiting:
        for there in after[here]:
            if there == start:
                way = [here]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return tuple(reversed(way))
            if there in inside and there not in came_from:
                came_from[there] = here
                waiting.append(there)
    raise AssertionError("the members of a component reach one another")


def _cyclic(after: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The sets of names that all reach one another and themselves, each and all in the order of ``after``.

    By finishing times, forwards and then backwards (Kosaraju and Sharir), without recursion.
    """
    before: dict[str, list[str]] = {name: [] for name in after}
    for name, targets in after.items():
        for target in targets:
            before[target].append(name)
    finished = [name for start in _walks(after, after) for name in start]
    position = {name: number for number, name in enumerate(after)}
    found = (sorted(walk, key=position.__getitem__) for walk in _walks(before, reversed(finished)))
    cyclic = (names for names in found if len(names) > 1 or names[0] in after[names[0]])
    return sorted(cyclic, key=lambda names: position[names[0]])


def _walks(after: Mapping[str, Sequence[str]], starts: Iterable[str]) -> Iterator[list[str]]:
    """From each start that was not reached yet, the names newly reached, those finished first in front."""
    seen: set[str] = set()
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        walk, done = [(start, iter(after[start]))], []
        while walk:
            name, targets = walk[-1]
            target = next((each for each in targets if each not in seen), None)
            if target is None:
                done.append(name)
                walk.pop()
            else:
                seen.add(target)
                walk.append((target, iter(after[target])))
        yield done
