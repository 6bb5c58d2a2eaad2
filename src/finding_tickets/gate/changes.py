"""What a branch changes in what decides about a ticket: its verifier, variants, decision and claims.

Claims are compared text by text. Whether a changed one demands less is decided at the points of the sweep,
where it can be decided at all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil, floor, inf
from pathlib import Path

from finding_tickets.claims.check import meets, parse_conditions
from finding_tickets.claims.language import (
    ClaimCondition,
    ExpressionError,
    evaluate,
    parse_condition,
    variables,
)
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground.paths import fixes_folder
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim
from finding_tickets.verify.judge import FIX
from finding_tickets.verify.plan import places_of, verifier_of

Points = Sequence[Mapping[str, int]]
_Bounds = tuple[Fraction | float, Fraction | float]

_ACCEPTED = re.compile(r"^[-*#\s]*\*\*Accepted change:\*\*\s*(?P<names>[^:]+?)\s*:\s*(?P<why>\S.*)$")


class ChangeKind(StrEnum):
    """What became of something that decides about a ticket."""

    ADDED = "added"
    TIGHTENED = "tightened"
    LOOSENED = "loosened"
    CHANGED = "changed"
    REMOVED = "removed"


HARMLESS = frozenset({ChangeKind.ADDED, ChangeKind.TIGHTENED})
"""What no branch needs to name: all that was demanded before still is."""


@dataclass(frozen=True)
class Change:
    """One change, with the text before and after; None where there is none.

    ``name`` is ``verifier``, ``decision``, ``variants.NAME`` or a claim's ``variant.metric``. ``accepted``
    says who accepts the change and why; None where nobody does.
    """

    name: str
    kind: ChangeKind
    before: str | None
    after: str | None
    accepted: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it may demand less and nobody has named it."""
        return self.kind not in HARMLESS and self.accepted is None

    def __str__(self) -> str:
        """``loosened fix.syncs: 1 -> <= 100``."""
        return f"{self.kind} {self.name}: {' -> '.join(text for text in (self.before, self.after) if text)}"


@dataclass(frozen=True)
class Side:
    """A document and the root of its register, at the base or in the work tree."""

    document: Document
    root: Path


def changes(base: Side, head: Side, points: Points, imported: Collection[str]) -> tuple[Change, ...]:
    """What differs between the two; ``imported`` are the files beyond the variants that the base needed.

    ``points`` are the sweep of the base's evidence, empty where there is none.
    """
    found = [*_verifier(base, head, imported), *_variants(base, head)]
    decisions = [
        side.document.remediation.decision if side.document.remediation else "fix" for side in (base, head)
    ]
    if decisions[0] != decisions[1]:
        found.append(Change("decision", ChangeKind.CHANGED, *decisions))
    return (*found, *_claims(base.document, head.document, points))


def accepted(found: Iterable[Change], base: bytes, head: bytes, by_command: str | None) -> tuple[Change, ...]:
    """The changes, each with who accepts it: the command line, or a line that is new in the ticket."""
    before = set(base.splitlines())
    lines = [line.decode(errors="replace") for line in head.splitlines() if line not in before]
    named = {
        name.strip(): f"the ticket: {match['why'].strip()}"
        for match in filter(None, map(_ACCEPTED.match, lines))
        for name in match["names"].split(",")
    }
    return tuple(
        change
        if change.kind in HARMLESS
        else replace(
            change,
            accepted=by_command or named.get(change.name) or named.get(change.name.partition(".")[0]),
        )
        for change in found
    )


def _verifier(base: Side, head: Side, imported: Collection[str]) -> Iterator[Change]:
    before, after = verifier_of(base.document, base.root), verifier_of(head.document, head.root)
    if before is None:
        return
    if after is None:
        yield Change("verifier", ChangeKind.REMOVED, before, None)
        return
    if before != after:
        yield Change("verifier", ChangeKind.CHANGED, before, after)
    # What stands beside a verifier belongs to it, unless that is the code under test.
    folder = Path(before).parent
    is_apart = folder != Path() and "src" not in folder.parts[:1]
    beside = {file for file in imported if is_apart and Path(file).is_relative_to(folder)} - {before}
    for file in [*([before] if before == after else []), *sorted(beside)]:
        if _content(base.root / file) != _content(head.root / file):
            yield Change("verifier", ChangeKind.CHANGED, file, None)


def _variants(base: Side, head: Side) -> Iterator[Change]:
    places = []
    for side in (base, head):
        try:
            places.append(places_of(side.document, side.root))
        except BadDataError:
            places.append({})
    before, after = places
    for name in dict.fromkeys([*before, *after]):
        if name not in before:
            yield Change(f"variants.{name}", ChangeKind.ADDED, None, after[name])
        elif name not in after:
            yield Change(f"variants.{name}", ChangeKind.REMOVED, before[name], None)
        elif before[name] != after[name]:
            yield Change(f"variants.{name}", ChangeKind.CHANGED, before[name], after[name])
        elif name != FIX and "@" not in before[name]:
            # A copy that is kept for the ticket is what a fix is measured by, and no code in use.
            file = before[name].partition(":")[0]
            is_copy = Path(file).is_relative_to(fixes_folder(base.document.id.value))
            if is_copy and _content(base.root / file) != _content(head.root / file):
                yield Change(f"variants.{name}", ChangeKind.CHANGED, file, None)


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _claims(base: Document, head: Document, points: Points) -> Iterator[Change]:
    """What became of claims, by variant and metric: the number of a claim among several says nothing."""
    sides: list[dict[str, list[Claim]]] = [{}, {}]
    for claims, document in zip(sides, (base, head), strict=True):
        for claim in document.remediation.claims if document.remediation else ():
            claims.setdefault(f"{claim.variant}.{claim.metric}", []).append(claim)
    before, after = sides
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, []), after.get(name, [])
        was, now = {stated(claim) for claim in old}, {stated(claim) for claim in new}
        added = [claim for claim in new if stated(claim) not in was]
        gone = [claim for claim in old if stated(claim) not in now]
        for claim in gone:
            text, texts = stated(claim), "; ".join(map(stated, added)) or None
            kinds = {_compare(claim, other, points): other for other in new}
            if ChangeKind.TIGHTENED in kinds:
                other = stated(kinds[ChangeKind.TIGHTENED])
                yield Change(name, ChangeKind.TIGHTENED, text, other)
            elif texts is None:
                yield Change(name, ChangeKind.REMOVED, text, None)
            elif len(added) == 1 and _compare(claim, added[0], points) is ChangeKind.LOOSENED:
                yield Change(name, ChangeKind.LOOSENED, text, texts)
            else:
                yield Change(name, ChangeKind.CHANGED, text, texts)
        if not gone:
            yield from (Change(name, ChangeKind.ADDED, None, stated(claim)) for claim in added)


def stated(claim: Claim) -> str:
    """All that a claim says, but for why."""
    within = f" within {claim.tolerance:g}" if claim.tolerance is not None else ""
    where = ", ".join(f"{name} {condition}" for name, condition in sorted(claim.at.items()))
    expected = " (expected to be refuted)" if claim.expect == "refuted" else ""
    return f"{claim.value}{within}{f' where {where}' if where else ''}{expected}"


def _compare(old: Claim, new: Claim, points: Points) -> ChangeKind:
    """Whether a new claim demands all that an old one did (or more), less, or nobody can tell."""
    if old.expect == "holds" and new.expect == "refuted":
        return ChangeKind.LOOSENED
    if "refuted" in (old.expect, new.expect) or not points:
        return ChangeKind.CHANGED
    try:
        where_old, where_new = parse_conditions(old.at), parse_conditions(new.at)
        here: list[Mapping[str, int]] = [point for point in points if meets(dict(point), where_old)]
        if not here:
            return ChangeKind.CHANGED
        if not all(meets(dict(point), where_new) for point in here):
            return ChangeKind.LOOSENED
        if old.metric == SAME_RESULT:
            if old.value != new.value:
                return ChangeKind.CHANGED
            is_closer = (new.tolerance or 0) <= (old.tolerance or 0)
            return ChangeKind.TIGHTENED if is_closer else ChangeKind.LOOSENED
        before, after = parse_condition(old.value), parse_condition(new.value)
        if old.metric == SECONDS:
            # The name that the sweep does not have is the variant that times are compared with.
            names, others = (
                {each.name for each in variables(one)} - here[0].keys() for one in (before, after)
            )
            if names != others or len(names) != 1:
                return ChangeKind.CHANGED
            (reference,) = names
            here = [{**point, reference: 1} for point in here]
        for point in here:
            was = _bounds(before, point, whole=old.metric != SECONDS)
            now = _bounds(after, point, whole=old.metric != SECONDS)
            if was is None or now is None:
                return ChangeKind.CHANGED
            if now[0] < was[0] or now[1] > was[1]:
                return ChangeKind.LOOSENED
    except (ExpressionError, LookupError):
        return ChangeKind.CHANGED
    return ChangeKind.TIGHTENED


def _bounds(condition: ClaimCondition, at: Mapping[str, int], *, whole: bool) -> _Bounds | None:
    """The least and the greatest value that meet a condition; None where these do not describe it.

    Counts are ``whole`` numbers. Of other values those at the very edge are not told apart.
    """
    values = [evaluate(side, at) for side in condition.sides]
    first, last = values[0], values[-1]
    match condition.relation:
        case "==" | "..":
            return first, last
        case "<=":
            return -inf, first
        case "<":
            return -inf, ceil(first) - 1 if whole else first
        case ">=":
            return first, inf
        case ">":
            return floor(first) + 1 if whole else first, inf
        case _:
            return None
