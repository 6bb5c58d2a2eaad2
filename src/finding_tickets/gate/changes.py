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

from finding_tickets.claims.exceptions import conditions_of, meets
from finding_tickets.claims.expressions import (
    Comparison,
    Condition,
    ExpressionError,
    Growth,
    Range,
    evaluate,
    variables,
)
from finding_tickets.claims.grammar import parse_condition
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim
from finding_tickets.register.convention import fixes_folder
from finding_tickets.verify.plan import places_of, verifier_of
from finding_tickets.verify.verdict import FIX

Points = Sequence[Mapping[str, int]]
_Bounds = tuple[Fraction | float, Fraction | float]

_ACCEPTED = re.compile(r"^[-*#\s]*\*\*Accepted change:\*\*\s*(?P<names>[^:]+?)\s*:\s*(?P<why>\S.*)$")


class Kind(StrEnum):
    """What became of something that decides about a ticket."""

    ADDED = "added"
    TIGHTENED = "tightened"
    LOOSENED = "loosened"
    CHANGED = "changed"
    REMOVED = "removed"


HARMLESS = frozenset({Kind.ADDED, Kind.TIGHTENED})
"""What no branch needs to name: all that was demanded before still is."""


@dataclass(frozen=True)
class Change:
    """One change, with the text before and after; None where there is none.

    ``name`` is ``verifier``, ``decision``, ``variants.NAME`` or a claim's ``variant.metric``. ``accepted``
    says who accepts the change and why; None where nobody does.
    """

    name: str
    kind: Kind
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
    found = [*_verifier(base, head, imported), *_variants(base, head), *_decision(base, head)]
    return (*found, *_claims(_claims_of(base.document), _claims_of(head.document), points))


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
        change if change.kind in HARMLESS else replace(change, accepted=by_command or _who(change, named))
        for change in found
    )


def _who(change: Change, named: Mapping[str, str]) -> str | None:
    return named.get(change.name) or named.get(change.name.partition(".")[0])


def _verifier(base: Side, head: Side, imported: Collection[str]) -> Iterator[Change]:
    before, after = verifier_of(base.document, base.root), verifier_of(head.document, head.root)
    if before is None:
        return
    if after is None:
        yield Change("verifier", Kind.REMOVED, before, None)
        return
    if before != after:
        yield Change("verifier", Kind.CHANGED, before, after)
    beside = {file for file in imported if _is_beside(file, before)} - {before}
    for file in [*([before] if before == after else []), *sorted(beside)]:
        if _differs(base, head, file):
            yield Change("verifier", Kind.CHANGED, file, None)


def _is_beside(file: str, verifier: str) -> bool:
    folder = Path(verifier).parent
    return folder != Path() and "src" not in folder.parts[:1] and Path(file).is_relative_to(folder)


def _differs(base: Side, head: Side, file: str) -> bool:
    return _content(base.root / file) != _content(head.root / file)


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _variants(base: Side, head: Side) -> Iterator[Change]:
    before, after = _places(base), _places(head)
    for name in dict.fromkeys([*before, *after]):
        if name not in before:
            yield Change(f"variants.{name}", Kind.ADDED, None, after[name])
        elif name not in after:
            yield Change(f"variants.{name}", Kind.REMOVED, before[name], None)
        elif before[name] != after[name]:
            yield Change(f"variants.{name}", Kind.CHANGED, before[name], after[name])
        elif name != FIX and (file := _kept_copy(base, before[name])) and _differs(base, head, file):
            yield Change(f"variants.{name}", Kind.CHANGED, file, None)


def _kept_copy(side: Side, place: str) -> str | None:
    """The file of a variant that is kept for its ticket: what a fix is measured by, and not code in use."""
    file = place.partition(":")[0]
    kept = "@" not in place and Path(file).is_relative_to(fixes_folder(side.document.id.value))
    return file if kept else None


def _places(side: Side) -> dict[str, str]:
    try:
        return places_of(side.document, side.root)
    except BadDataError:
        return {}


def _decision(base: Side, head: Side) -> Iterator[Change]:
    before, after = (
        side.document.remediation.decision if side.document.remediation else "fix" for side in (base, head)
    )
    if before != after:
        yield Change("decision", Kind.CHANGED, before, after)


def _claims_of(document: Document) -> dict[str, list[Claim]]:
    """The claims by variant and metric: what number a claim has among several says nothing."""
    found: dict[str, list[Claim]] = {}
    for claim in document.remediation.claims if document.remediation else ():
        found.setdefault(f"{claim.variant}.{claim.metric}", []).append(claim)
    return found


def _claims(
    before: Mapping[str, list[Claim]], after: Mapping[str, list[Claim]], points: Points
) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, []), after.get(name, [])
        texts = [stated(claim) for claim in old]
        added = [claim for claim in new if stated(claim) not in texts]
        kept = {stated(claim) for claim in new}
        gone = [claim for claim in old if stated(claim) not in kept]
        for claim in gone:
            yield _gone(name, claim, added, new, points)
        if not gone:
            yield from (Change(name, Kind.ADDED, None, stated(claim)) for claim in added)


def _gone(
    name: str, claim: Claim, added: Sequence[Claim], all_now: Sequence[Claim], points: Points
) -> Change:
    """What became of a claim whose text is no longer there."""
    kinds = {_compared(claim, other, points): other for other in all_now}
    if Kind.TIGHTENED in kinds:
        return Change(name, Kind.TIGHTENED, stated(claim), stated(kinds[Kind.TIGHTENED]))
    now = "; ".join(map(stated, added)) or None
    if now is None:
        return Change(name, Kind.REMOVED, stated(claim), None)
    only = len(added) == 1 and _compared(claim, added[0], points) is Kind.LOOSENED
    return Change(name, Kind.LOOSENED if only else Kind.CHANGED, stated(claim), now)


def stated(claim: Claim) -> str:
    """All that a claim says, but for why."""
    within = f" within {claim.tolerance:g}" if claim.tolerance is not None else ""
    where = ", ".join(f"{name} {condition}" for name, condition in sorted(claim.at.items()))
    expected = " (expected to be refuted)" if claim.expect == "refuted" else ""
    return f"{claim.value}{within}{f' where {where}' if where else ''}{expected}"


def _compared(old: Claim, new: Claim, points: Points) -> Kind:
    """Whether a new claim demands all that an old one did (or more), less, or nobody can tell."""
    if old.expect == "holds" and new.expect == "refuted":
        return Kind.LOOSENED
    if "refuted" in (old.expect, new.expect) or not points:
        return Kind.CHANGED
    try:
        where_old, where_new = conditions_of(old), conditions_of(new)
        here = [point for point in points if meets(dict(point), where_old)]
        if not here:
            return Kind.CHANGED
        if not all(meets(dict(point), where_new) for point in here):
            return Kind.LOOSENED
        if old.metric == SAME_RESULT:
            return _same_results(old, new)
        before, after = parse_condition(old.value), parse_condition(new.value)
        if old.metric == SECONDS:
            return _ratios(before, after, here)
        return _at_points(before, after, here)
    except (ExpressionError, LookupError):
        return Kind.CHANGED


def _same_results(old: Claim, new: Claim) -> Kind:
    if old.value != new.value:
        return Kind.CHANGED
    return Kind.TIGHTENED if (new.tolerance or 0) <= (old.tolerance or 0) else Kind.LOOSENED


def _ratios(before: Condition, after: Condition, points: Points) -> Kind:
    """Claims about times, if both compare with the same variant: what the sweep does not have is its name."""
    old, new = ({each.name for each in variables(one)} - points[0].keys() for one in (before, after))
    if old != new or len(old) != 1:
        return Kind.CHANGED
    reference = old.pop()
    return _at_points(before, after, [{**point, reference: 1} for point in points], whole=False)


def _at_points(before: Condition, after: Condition, points: Points, *, whole: bool = True) -> Kind:
    for point in points:
        old, new = _bounds(before, point, whole=whole), _bounds(after, point, whole=whole)
        if old is None or new is None:
            return Kind.CHANGED
        if new[0] < old[0] or new[1] > old[1]:
            return Kind.LOOSENED
    return Kind.TIGHTENED


def _bounds(condition: Condition, at: Mapping[str, int], *, whole: bool) -> _Bounds | None:
    """The least and the greatest value that meet a condition; None where these do not describe it.

    Counts are ``whole`` numbers. Of other values those at the very edge are not told apart.
    """
    match condition:
        case Range(low, high):
            return evaluate(low, at), evaluate(high, at)
        case Comparison("==", expression):
            value = evaluate(expression, at)
            return value, value
        case Comparison("<=", expression):
            return -inf, evaluate(expression, at)
        case Comparison("<", expression):
            value = evaluate(expression, at)
            return -inf, ceil(value) - 1 if whole else value
        case Comparison(">=", expression):
            return evaluate(expression, at), inf
        case Comparison(">", expression):
            value = evaluate(expression, at)
            return floor(value) + 1 if whole else value, inf
        case Comparison() | Growth():
            return None
