"""Which tickets block one another in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def circles(edges: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The number of the strongly connected component that each node belongs to.

    Nodes of one component follow one another in a circle. ``edges`` has the successors of each node. Takes
    time in proportion to nodes and edges: two searches in depth, the second one against the edges (Kosaraju's
    algorithm).
    """
    backwards: dict[str, list[str]] = {}
    for node, successors in edges.items():
        for successor in successors:
            backwards.setdefault(successor, []).append(node)
    found: dict[str, int] = {}
    seen: set[str] = set()
    for number, node in enumerate(reversed(_finished(edges))):
        found.update(dict.fromkeys(_reached(node, backwards, seen), number))
    return found


def _finished(edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes in the order in which a search in depth has dealt with all that follows them."""
    order: list[str] = []
    seen: set[str] = set()
    for start in edges:
        stack = [(start, iter(edges.get(start, ())))] if start not in seen else []
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            successor = next((each for each in rest if each not in seen), None)
            if successor is None:
                stack.pop()
                order.append(node)
            else:
                seen.add(successor)
                stack.append((successor, iter(edges.get(successor, ()))))
    return order


def _reached(start: str, edges: Mapping[str, Iterable[str]], seen: set[str]) -> list[str]:
    """The nodes not seen before that can be reached from ``start``, itself among them."""
    waiting = [] if start in seen else [start]
    seen.add(start)
    found = []
    while waiting:
        node = waiting.pop()
        found.append(node)
        new = [each for each in dict.fromkeys(edges.get(node, ())) if each not in seen]
        seen.update(new)
        waiting.extend(new)
    return found
