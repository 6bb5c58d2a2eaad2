"""Read a log in SARIF 2.1.0: of each result its rule, message, places, severity and fingerprint.

Only the properties that these are made of are decoded. Whatever a tool may leave out may also be null. The
standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import decode

from finding_tickets.errors import BadDataError
from finding_tickets.model.vocabulary import Severity

VERSION = "2.1.0"
UNNAMED = "an unnamed tool"
# How a fingerprint begins.
MARK = "sarif:"
DIGITS = 32
MOST_LINES = 10**9
LEVELS = {"error": Severity.P1, "warning": Severity.P2, "note": Severity.P3, "none": Severity.P4}
"""The severity of a result, by its level."""
SCORES = ((9.0, Severity.P0), (7.0, Severity.P1), (4.0, Severity.P2))
"""The severity of a result, by the least score it needs: critical, high and medium as GitHub has them."""

# Names that tools give to the root of a repository, without the per cent signs around some of them.
_ROOTS = {"SRCROOT", "PROJECTROOT", "REPOROOT", "ROOTPATH"}
_NOT_A_FINDING = {"pass", "notApplicable", "informational"}
_OFFSET = re.compile(r" \(byte (\d+)\)$")
_NUMBER = re.compile(r"(?<![\w.])\d++(?![\w.]*\w)")
# The letter of a drive looks like one.
_GAP = re.compile(r"\{(\d{1,3})\}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/))?(?P<path>/.*)", re.IGNORECASE | re.DOTALL)


# The objects of a log, as the standard names them and their properties; of each, what tickets are made of.


class _Part(Struct, rename="camel"):
    pass


class _Message(_Part):
    text: str | None = None
    id: str | None = None  # of a text of the rule, whose gaps the arguments fill
    arguments: list[str] | None = None


class _File(_Part):
    uri: str | None = None
    uri_base_id: str | None = None


class _Region(_Part):
    start_line: int | None = None
    start_column: int | None = None
    end_line: int | None = None
    snippet: _Message | None = None


class _PhysicalLocation(_Part):
    artifact_location: _File | None = None
    region: _Region | None = None


class _Symbol(_Part):
    name: str | None = None
    fully_qualified_name: str | None = None


class _Location(_Part):
    physical_location: _PhysicalLocation | None = None
    logical_locations: list[_Symbol] | None = None


class _Properties(_Part):
    # Services agree on it beside the standard. Tools may put a value of any type there.
    security_severity: Any = field(default=None, name="security-severity")


class _Configuration(_Part):
    level: str | None = None


class _Rule(_Part):
    id: str | None = None
    short_description: _Message | None = None
    full_description: _Message | None = None
    message_strings: dict[str, _Message | None] | None = None
    default_configuration: _Configuration | None = None
    properties: _Properties | None = None


class _Tool(_Part):
    name: str | None = None
    rules: list[_Rule] | None = None


class _Tools(_Part):
    driver: _Tool | None = None
    extensions: list[_Tool] | None = None


class _Result(_Part):
    rule_id: str | None = None
    kind: str | None = None
    level: str | None = None
    message: _Message | None = None
    locations: list[_Location] | None = None
    fingerprints: dict[str, str] | None = None
    partial_fingerprints: dict[str, str] | None = None
    baseline_state: str | None = None
    properties: _Properties | None = None


class _Run(_Part):
    tool: _Tools | None = None
    results: list[_Result] | None = None
    original_uri_base_ids: dict[str, _File | None] | None = None


class _Log(_Part):
    version: Any = None
    runs: list[_Run] | None = None


@dataclass(frozen=True)
class Spot:
    """A place that a result names, as far as it does.

    ``uri`` is the file as the log has it, ``path`` its path from the repository's root, None for one outside
    of it. ``lines`` are the first and the last one, ``column`` counts from 1.
    """

    uri: str
    path: str | None
    lines: tuple[int, int] | None
    column: int | None
    symbol: str | None

    def __str__(self) -> str:
        """``path:line:column``, as far as each part is known; the URI of a file that is elsewhere."""
        numbers = (self.lines[0], self.column) if self.lines else ()
        return ":".join(filter(None, [self.path or self.uri, *(str(number) for number in numbers if number)]))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A finding of another tool, or of a report."""

    fingerprint: str  # the same whenever the tool finds the same, wherever the lines have moved to
    tool: str  # or the report's path
    rule: str  # the ID of the rule that was broken, or the title as it stands in the report
    text: str  # what the tool says of this finding, or its title
    severity: Severity | None  # by the rule's score, or the level; None where a report states none
    spots: tuple[Spot, ...]  # where it is, the first one being the place to look at
    left_out: str = ""  # why no ticket is to be made of it; empty where one is


@dataclass(frozen=True, kw_only=True)
class SarifFinding(Finding):
    """A finding of another tool."""

    about: str  # what the tool says of the rule


def read_log(data: bytes, source: str, roots: Collection[str]) -> list[SarifFinding]:
    """Return the findings of the log in ``data``, each once. ``source`` names where it came from.

    ``roots`` are paths or ``file:`` URIs of the repository's root, now and where the tool ran.

    Raises:
        BadDataError: It is not JSON, not SARIF, or of another version.
    """
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        log = decode(text, type=_Log)
    except ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        path = place.strip("`.")
        said = what.replace(" | null", "").replace("Expected", "expected", 1)
        said = f"not a log in SARIF: {f'{path}: ' if path else ''}{said}"
        raise BadDataError(said, file=source) from None
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        offset = _OFFSET.search(str(error))
        line = text.count(b"\n", 0, int(offset[1])) + 1 if offset else None
        raise BadDataError(f"not JSON: {_OFFSET.sub('', str(error))}", file=source, line=line) from None
    if log.version != VERSION:
        stated = "no version" if log.version is None else f"version {log.version}"
        raise BadDataError(f"not a log in SARIF {VERSION}: it states {stated}", file=source)
    if log.runs is None:
        raise BadDataError("not a log in SARIF: it has no runs", file=source)
    # Several runs of a tool have findings in common.
    found: dict[str, SarifFinding] = {}
    for run in log.runs:
        for finding in _RunReader(run, roots).findings():
            found.setdefault(finding.fingerprint, finding)
    return list(found.values())


class _RunReader:
    """The results of one run, with the rules and files that it lists."""

    def __init__(self, run: _Run, roots: Collection[str]) -> None:
        tools = run.tool or _Tools()
        driver = tools.driver or _Tool()
        self._tool, self._results = driver.name or UNNAMED, run.results or []
        self._bases = run.original_uri_base_ids or {}
        self._roots = [path for path in map(absolute_path, roots) if path]
        self._rules: dict[str, _Rule] = {}
        for tool in (driver, *(tools.extensions or ())):
            for rule in tool.rules or ():
                self._rules.setdefault(rule.id or "", rule)

    def findings(self) -> Iterator[SarifFinding]:
        """Yield the findings, in their order."""
        found = []
        places = defaultdict[tuple[object, ...], set[tuple[int, int]]](set)
        self._results.reverse()
        while self._results:
            # Of a large log, what is not needed any more is let go.
            result = self._results.pop()
            rule = self._rules.get(result.rule_id or "", _Rule())
            text = _text(result.message, rule)
            about = _text(rule.full_description, rule) or _text(rule.short_description, rule)
            spots = tuple(map(self._spot, result.locations or ()))
            identity, place = self._identity(result, text, spots), _line_and_column(spots)
            places[identity].add(place)
            finding = SarifFinding(
                fingerprint="",
                tool=self._tool,
                rule=result.rule_id or "",
                text=text or about or result.rule_id or "",
                severity=_severity(result, rule),
                spots=spots,
                about=about,
                left_out=_why_left_out(result),
            )
            found.append((finding, identity, place))
        ranks = {}
        for identity, same in places.items():
            for rank, place in enumerate(sorted(same)):
                ranks[identity, place] = rank
        for finding, identity, place in found:
            # Results with all parts in common are told apart by their order in the file, not in the log.
            parts = json.dumps((*identity, ranks[identity, place]), ensure_ascii=True)
            digest = hashlib.sha256(parts.encode()).hexdigest()[:DIGITS]
            yield replace(finding, fingerprint=MARK + digest)

    def _identity(self, result: _Result, text: str, spots: tuple[Spot, ...]) -> tuple[object, ...]:
        """Return what identifies the result in any log.

        That is the best of what the tool states: fingerprints, partial fingerprints with the file, or rule,
        file, symbol, text and code.
        """
        spot = spots[0] if spots else Spot("", None, None, None, None)
        rule, path = result.rule_id or "", spot.path or spot.uri
        for beside, stated in (((), result.fingerprints), ((path,), result.partial_fingerprints)):
            # A value with spaces is a sentence, such as one that asks the user to log in.
            given = sorted(pair for pair in (stated or {}).items() if re.fullmatch(r"\S+", pair[1]))
            if given:
                return (self._tool, rule, *beside, tuple(given))
        snippet = _region(result.locations[0]).snippet if result.locations else None
        code = (snippet and snippet.text) or ""
        # Numbers in the text may count lines.
        words = (" ".join(_NUMBER.sub("#", text).split()), " ".join(code.split()))
        return (self._tool, rule, path, spot.symbol or "", *words)

    def _spot(self, place: _Location) -> Spot:
        where, region = place.physical_location or _PhysicalLocation(), _region(place)
        first, last = region.start_line or 0, region.end_line or 0
        # No file has so many lines.
        is_known = 0 < first < MOST_LINES and last < MOST_LINES
        symbol = next(iter(place.logical_locations or ()), _Symbol())
        file = where.artifact_location or _File()
        return Spot(
            uri=file.uri or "",
            path=self._path(file),
            lines=(first, max(first, last)) if is_known else None,
            column=region.start_column,
            symbol=symbol.fully_qualified_name or symbol.name,
        )

    def _path(self, file: _File) -> str | None:
        """Return the path from the root of the repository; None for what is outside of it."""
        uri, base = _with_slashes(file.uri), self._bases.get(file.uri_base_id or "")
        resolved = uri
        if base and base.uri and not _is_absolute(uri):
            resolved = f"{_with_slashes(base.uri).rstrip('/')}/{uri}"
        absolute = absolute_path(resolved) or ""
        above = [root for root in self._roots if absolute.startswith(f"{root}/")]
        if above:
            path = absolute.removeprefix(f"{above[0]}/")
        else:
            # The root may have been elsewhere when the tool ran.
            is_root = (file.uri_base_id or "").strip("%").upper() in _ROOTS
            relative = uri if is_root else resolved
            if _is_absolute(relative):
                return None
            path = unquote(relative, errors="replace")
        short = posixpath.normpath(path or "..")
        is_outside = short in {".", ".."} or short.startswith(("../", "/"))
        return None if is_outside or not short.isprintable() else short


def absolute_path(uri: str) -> str | None:
    """Return the path that an absolute path or ``file:`` URI names; None for anything else."""
    text = _with_slashes(uri)
    if found := _FILE.fullmatch(text):
        text = unquote(found["path"], errors="replace")
    return posixpath.normpath(text) if text.startswith("/") else None


def _with_slashes(uri: str | None) -> str:
    """Return a URI without backslashes, which tools on Windows write in relative paths."""
    return (uri or "").replace("\\", "/")


def _is_absolute(uri: str) -> bool:
    return uri.startswith("/") or _SCHEME.match(uri) is not None


def _text(message: _Message | None, rule: _Rule) -> str:
    """Return what a message says, by itself or by a text of its rule; empty where it says nothing."""
    if message is None:
        return ""
    text = message.text or ""
    if not text and message.id and rule.message_strings:
        of_rule = rule.message_strings.get(message.id) or _Message()
        text = of_rule.text or ""
    arguments = dict(enumerate(message.arguments or ()))
    return _GAP.sub(lambda gap: arguments.get(int(gap[1]), gap[0]), text)


def _why_left_out(result: _Result) -> str:
    """Return why a result is no finding to work on: it passed, or is gone."""
    if result.kind in _NOT_A_FINDING:
        return f"kind {result.kind}"
    return "baseline state absent" if result.baseline_state == "absent" else ""


def _region(place: _Location) -> _Region:
    return (place.physical_location and place.physical_location.region) or _Region()


def _line_and_column(spots: tuple[Spot, ...]) -> tuple[int, int]:
    if not spots or not spots[0].lines:
        return 0, 0
    return spots[0].lines[0], spots[0].column or 0


def _severity(result: _Result, rule: _Rule) -> Severity:
    """Return how bad a result is: by its score for security, where it or its rule has one, else its level."""
    for properties in (result.properties, rule.properties):
        try:
            score = float(properties.security_severity) if properties else 0.0
        except (TypeError, ValueError):
            continue
        if score > 0 and math.isfinite(score):
            return next((severity for least, severity in SCORES if score >= least), Severity.P3)
    usual = rule.default_configuration.level if rule.default_configuration else None
    if result.kind not in (None, "fail"):
        usual = "none"
    return LEVELS.get(result.level or usual or "", Severity.P2)
