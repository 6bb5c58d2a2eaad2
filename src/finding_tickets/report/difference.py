"""How the code of a document's fix differs from the code as it was found."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground.checkouts import Checkouts, RevisionError
from finding_tickets.ground.git import GitError, ask_bytes
from finding_tickets.report.measured import AFTER, BEFORE
from finding_tickets.verify.plan import places_of

NEXT_BEST = (AFTER, "applied", "recommended")
"""What the code as it was found is compared with: the first of these that there is, else any variant."""
CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference and its number before and after, None where that file does not have it."""

    before: int | None
    after: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Two variants, their places as ``file:function``, and pieces of their code with lines around changes."""

    before: str
    after: str
    before_place: str
    after_place: str
    hunks: tuple[tuple[Line, ...], ...]


def variant_places(document: Document, root: Path) -> dict[str, str]:
    """Where each variant lives, as ``module:function`` or that and ``@REV``; none where that is unclear."""
    try:
        return places_of(document, root)
    except BadDataError:
        return {}


def difference(places: Mapping[str, str], root: Path) -> Difference | None:
    """From the code as it was found to the fix, or to the next best variant; None without files of both."""
    names = [name for name in (*NEXT_BEST, *places) if name in places and name != BEFORE]
    if BEFORE not in places or not names:
        return None
    before, after = _lines(places[BEFORE], root), _lines(places[names[0]], root)
    if before is None or after is None:
        return None
    return Difference(BEFORE, names[0], places[BEFORE], places[names[0]], tuple(_hunks(before, after)))


def revision_of(place: str) -> str:
    """The revision that a place states; empty for the work tree."""
    return place.partition(":")[2].partition("@")[2]


def _lines(place: str, root: Path) -> list[str] | None:
    file, revision = place.partition(":")[0], revision_of(place)
    try:
        path = (root / file).resolve()
        if not path.is_relative_to(root.resolve()):
            return None
        if revision:
            commit = Checkouts(root).revision(revision).commit
            data = ask_bytes(root, "cat-file", "blob", f"{commit}:./{file}")
        else:
            data = path.read_bytes()
    except (OSError, ValueError, GitError, RevisionError):
        return None
    return data.decode(errors="replace").splitlines()


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Line, ...]]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        yield tuple(
            line
            for kind, start, end, new_start, new_end in group
            for line in _changed(kind, before[start:end], start, after[new_start:new_end], new_start)
        )


def _changed(kind: str, old: Sequence[str], start: int, new: Sequence[str], new_start: int) -> Iterator[Line]:
    if kind == "equal":
        for place, text in enumerate(new, 1):
            yield Line(start + place, new_start + place, text)
    else:
        yield from (Line(number, None, text) for number, text in enumerate(old, start + 1))
        yield from (Line(None, number, text) for number, text in enumerate(new, new_start + 1))
