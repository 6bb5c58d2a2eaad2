"""The commits between a revision and HEAD, with what came from where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from finding_tickets.ground.git import ask
from finding_tickets.register.history import Commit

# NUL ends each field, for it is what no field can hold.
_FORMAT = "--format=%H%x00%T%x00%P%x00%aI%x00%aN%x00%s"
_LOG = ("log", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--no-notes", _FORMAT)


@dataclass(frozen=True)
class Node:
    """A commit with the object of its files and the places of its parents in the range, the first one first.

    ``ancestors`` has a bit for each commit that led to it, itself among them, by its place.
    """

    commit: Commit
    tree: str
    parents: tuple[int, ...]
    ancestors: int


def commits_since(root: Path, commit: str) -> tuple[Node, ...]:
    """A commit and all from there to HEAD, each after its parents; git is called twice at most.

    Where a branch that was merged began earlier, the commit that it began at is among them. There are none
    where HEAD did not come from ``commit``.

    Raises:
        GitError: Git is not installed, or there is no such commit.
    """
    # Boundaries are the newest commits that are left out of what is asked for.
    printed = ask(root, *_LOG, "--topo-order", "--reverse", "--boundary", f"{commit}..HEAD", "--")
    if not printed:
        printed = ask(root, *_LOG, "--max-count=1", "HEAD", "--")
    nodes = tuple(_nodes(line for line in printed.split("\n") if line))
    return nodes if any(node.commit.id == commit for node in nodes) else ()


def _nodes(lines: Iterable[str]) -> Iterator[Node]:
    places: dict[str, int] = {}
    ancestors: list[int] = []
    for place, line in enumerate(lines):
        name, tree, parents, *fields = line.split("\0", 5)
        commit = Commit(name, *fields)
        before = tuple(places[parent] for parent in parents.split() if parent in places)
        mask = 1 << place
        for parent in before:
            mask |= ancestors[parent]
        places[commit.id] = place
        ancestors.append(mask)
        yield Node(commit, tree, before, mask)
