"""The results of a log that are findings, each with a fingerprint by which it is known again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from finding_tickets.importers.identity import Identity, Traits, fingerprints, parts_of
from finding_tickets.importers.log import Log
from finding_tickets.importers.messages import text_of
from finding_tickets.importers.places import File, Files
from finding_tickets.importers.rules import Rules, severity_of, tags_of
from finding_tickets.importers.sarif import Location, Region, Result
from finding_tickets.model.vocabulary import Severity

UNNAMED = "an unnamed tool"
MOST_LINES = 10**9
_NOT_A_FINDING = {"pass", "notApplicable", "informational"}
_NOT_SUPPRESSING = {"underReview", "rejected"}


class Lines(NamedTuple):
    """Lines of a file, both included, from 1."""

    first: int
    last: int


@dataclass(frozen=True)
class Spot:
    """A place that a result names; what it does not say is None. ``column`` counts from 1."""

    file: File | None
    lines: Lines | None
    column: int | None
    symbol: str | None
    text: str = ""

    def __str__(self) -> str:
        """``path:line:column``, as far as each part is known; the URI of a file that is elsewhere."""
        parts = [(self.file.path or self.file.uri) if self.file else None]
        parts += [str(number) for number in (self.lines.first, self.column) if number] if self.lines else []
        return ":".join(filter(None, parts))


@dataclass(frozen=True)
class Found:
    """A finding of another tool.

    Attributes:
        fingerprint: The same whenever the tool finds the same, wherever the lines have moved to.
        tool: Its name.
        version: Of the tool.
        rule: The ID of the rule that was broken.
        name: What the rule is called.
        about: What the tool says of the rule.
        link: Where more is said about the rule.
        text: What the tool says of this finding.
        severity: By the rule's score, or the level.
        tags: Of the rule and the result.
        spots: Where it is, the first one being the place to look at.
        related: Further places, each with what the tool says of it.
        fix: What the tool would do about it.
        left_out: Why no ticket is to be made of it; empty where one is.
    """

    fingerprint: str
    tool: str
    version: str
    rule: str
    name: str
    about: str
    link: str
    text: str
    severity: Severity
    tags: tuple[str, ...]
    spots: tuple[Spot, ...]
    related: tuple[Spot, ...]
    fix: str
    left_out: str


def found_in(log: Log, roots: Collection[str]) -> Iterator[Found]:
    """Every result of a log, in its order; what several runs of a tool have in common comes once.

    ``roots`` are folders that are the root of the repository; see ``Files``.

    Raises:
        BadDataError: A result is none of SARIF.
    """
    seen: set[str] = set()
    for number in range(len(log.runs)):
        for found in _Results(log, number, roots):
            if found.fingerprint not in seen:
                seen.add(found.fingerprint)
                yield found


class _Results:
    """The results of one run."""

    def __init__(self, log: Log, number: int, roots: Collection[str]) -> None:
        self._log, self._number = log, number
        run = log.runs[number]
        self._files, self._rules = Files(run, roots), Rules(run)
        self._tool, self._version = (
            run.driver.name or UNNAMED,
            run.driver.semantic_version or run.driver.version,
        )
        self._symbols = run.logical_locations or []

    def __iter__(self) -> Iterator[Found]:
        prints = fingerprints(map(self._identity, self._log.results(self._number)))
        # Of a large log, identities are kept and results are made once more.
        for result, fingerprint in zip(self._log.results(self._number), prints, strict=True):
            yield self._found(result, fingerprint)

    def _identity(self, result: Result) -> Identity:
        place = next(iter(result.locations or ()), Location())
        spot, where = self._spot(place, result), place.physical_location
        region = where.region if where else None
        traits = Traits(
            tool=self._tool,
            rule=self._rules.of(result).id,
            path=(spot.file.path or spot.file.uri) if spot.file else "",
            symbol=spot.symbol or "",
            text=text_of(result.message, result, self._rules),
            code=(region.snippet.text or "") if region and region.snippet else "",
        )
        parts = parts_of(traits, result.fingerprints, result.partial_fingerprints)
        return Identity(parts, (spot.lines.first if spot.lines else 0, spot.column or 0))

    def _found(self, result: Result, fingerprint: str) -> Found:
        rule_id, rule = self._rules.of(result)
        texts = (text.text or "" for text in (rule.full_description, rule.short_description) if text)
        about = next(filter(None, texts), "")
        fixes = (text_of(fix.description, result, self._rules) for fix in result.fixes or ())
        return Found(
            fingerprint=fingerprint,
            tool=self._tool,
            version=self._version or "",
            rule=rule_id,
            name=rule.name or "",
            about=about,
            link=rule.help_uri or "",
            text=text_of(result.message, result, self._rules) or about or rule.name or rule_id,
            severity=severity_of(result, rule),
            tags=tuple(tags_of(result, rule)),
            spots=self._spots(result.locations, result),
            related=self._spots(result.related_locations, result),
            fix=next(filter(None, fixes), ""),
            left_out=_left_out(result),
        )

    def _spots(self, places: Iterable[Location] | None, result: Result) -> tuple[Spot, ...]:
        return tuple(self._spot(place, result) for place in places or ())

    def _spot(self, place: Location, result: Result) -> Spot:
        where = place.physical_location
        region = where.region if where else None
        lines = _lines(region) if region else None
        return Spot(
            file=self._files.file(where.artifact_location if where else None),
            lines=lines,
            column=region.start_column if region else None,
            symbol=self._symbol(place),
            text=text_of(place.message, result, self._rules),
        )

    def _symbol(self, place: Location) -> str | None:
        for each in place.logical_locations or ():
            at = each.index
            listed = self._symbols[at] if at is not None and 0 <= at < len(self._symbols) else each
            name = each.fully_qualified_name or each.name or listed.fully_qualified_name or listed.name
            if name:
                return name
        return None


def _lines(region: Region) -> Lines | None:
    """The lines of a region; None where it has none, or numbers that no file has."""
    first, last = region.start_line or 0, region.end_line or 0
    return Lines(first, max(first, last)) if 0 < first < MOST_LINES and last < MOST_LINES else None


def _left_out(result: Result) -> str:
    """Why a result is no finding to work on: it passed, is gone, or somebody decided not to see it."""
    if result.kind in _NOT_A_FINDING:
        return f"kind {result.kind}"
    if result.baseline_state == "absent":
        return "baseline state absent"
    decisions = result.suppressions or ()
    if decisions and all(decision.status not in _NOT_SUPPRESSING for decision in decisions):
        return "suppressed"
    return ""
