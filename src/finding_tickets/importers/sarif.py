"""Read a log in SARIF 2.1.0: each result becomes a finding, and a fingerprint recognises it in later logs.

Only properties that tickets need are decoded. Whatever a tool may leave out may also be null. The standard:
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar
from urllib.parse import unquote

from msgspec import DecodeError, Raw, Struct, ValidationError, field
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
_NOT_SUPPRESSING = {"underReview", "rejected"}
_OFFSET = re.compile(r" \(byte (\d+)\)$")
_GAP = re.compile(r"\{(?:(?P<number>\d+)\}|\{)|\}\}")
_LINK = re.compile(r"(?<!\\)\[(?P<text>(?:\\[\\\[\]]|[^\\\[\]])*)\]\((?P<place>\d+)\)")
_ESCAPE = re.compile(r"\\([\\\[\]])")
_NUMBER = re.compile(r"(?<![\w.])\d++(?![\w.]*\w)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/))?(?P<path>/.*)", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"/?(?P<letter>[A-Za-z]):/")


# The objects of a log, as the standard names them and their properties; of each, what tickets are made of.


class _Part(Struct, rename="camel"):
    pass


class _Message(_Part):
    text: str | None = None
    markdown: str | None = None
    id: str | None = None  # of a text of the rule, whose gaps the arguments fill
    arguments: list[str] | None = None


class _File(_Part):
    uri: str | None = None
    uri_base_id: str | None = None
    index: int | None = None  # among the files of the run


class _Entry(_Part):
    """One of several kinds of objects, of each of which a single property counts here."""

    location: _File | None = None  # of an artifact of the run
    level: str | None = None  # of a rule's configuration
    description: _Message | None = None  # of a fix
    status: str | None = None  # of a suppression
    execution_successful: bool | None = None  # of an invocation
    mapped_to: _File | None = None  # of a repository: the base of URIs that is its root


class _Region(_Part):
    start_line: int | None = None
    start_column: int | None = None
    end_line: int | None = None
    snippet: _Message | None = None


class _PhysicalLocation(_Part):
    artifact_location: _File | None = None
    region: _Region | None = None


class _Reference(_Part):
    """A symbol, a rule or an extension: by ID, by name, or by its index in a list of the run or the tool."""

    id: str | None = None
    name: str | None = None
    fully_qualified_name: str | None = None
    index: int | None = None
    tool_component: _Reference | None = None


class _Location(_Part):
    id: int | None = None
    physical_location: _PhysicalLocation | None = None
    logical_locations: list[_Reference] | None = None
    message: _Message | None = None


class _Properties(_Part):
    # Services agree on these beside the standard. Tools may put a value of any type there.
    tags: Any = None
    security_severity: Any = field(default=None, name="security-severity")


class _Rule(_Part):
    id: str | None = None
    name: str | None = None
    short_description: _Message | None = None
    full_description: _Message | None = None
    help_uri: str | None = None
    message_strings: dict[str, _Message | None] | None = None
    default_configuration: _Entry | None = None
    properties: _Properties | None = None


class _Tool(_Part):
    name: str | None = None
    version: str | None = None
    semantic_version: str | None = None
    rules: list[_Rule] | None = None
    global_message_strings: dict[str, _Message | None] | None = None


class _Tools(_Part):
    driver: _Tool | None = None
    extensions: list[_Tool] | None = None


class _Result(_Part):
    rule_id: str | None = None
    rule_index: int | None = None
    rule: _Reference | None = None
    kind: str | None = None
    level: str | None = None
    message: _Message | None = None
    locations: list[_Location] | None = None
    related_locations: list[_Location] | None = None
    fingerprints: dict[str, str] | None = None
    partial_fingerprints: dict[str, str] | None = None
    baseline_state: str | None = None
    suppressions: list[_Entry] | None = None
    fixes: list[_Entry] | None = None
    properties: _Properties | None = None


class _Run(_Part):
    tool: _Tools | None = None
    results: list[Raw] | None = None  # taken apart one at a time, for a log may have very many
    artifacts: list[_Entry] | None = None
    logical_locations: list[_Reference] | None = None
    original_uri_base_ids: dict[str, _File | None] | None = None
    invocations: list[_Entry] | None = None
    version_control_provenance: list[_Entry] | None = None
    external_property_file_references: Any = None

    @property
    def driver(self) -> _Tool:
        """The tool itself."""
        return (self.tool and self.tool.driver) or _Tool()


class _Head(_Part):
    version: Any = None
    runs: list[Raw] | None = None


P = TypeVar("P", bound=Struct)
T = TypeVar("T")


@dataclass(frozen=True)
class SarifLog:
    """The runs of a log; ``data`` is all of it in UTF-8, ``source`` names where it came from."""

    source: str
    data: bytes
    runs: tuple[_Run, ...]


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
    text: str = ""

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
    fix: str  # what the tool would do about it
    left_out: str = ""  # why no ticket is to be made of it; empty where one is


@dataclass(frozen=True, kw_only=True)
class SarifFinding(Finding):
    """A finding of another tool."""

    version: str  # of the tool
    name: str  # what the rule is called
    about: str  # what the tool says of the rule
    link: str  # where more is said about the rule
    tags: tuple[str, ...]  # of the rule and the result
    related: tuple[Spot, ...]  # further places, each with what the tool says of it


def read_log(data: bytes, source: str) -> SarifLog:
    """The log in ``data``.

    Raises:
        BadDataError: It is not JSON, not SARIF, or of another version.
    """
    encoding = json.detect_encoding(data)
    try:
        # Some shells redirect output as UTF-16.
        text = data if encoding == "utf-8" else data.decode(encoding).encode()
    except UnicodeDecodeError as error:
        raise BadDataError(f"not JSON: {error}", file=source) from None
    head = _part(text, _Head, "", text, source)
    if head.version != VERSION:
        stated = "no version" if head.version is None else f"version {head.version}"
        raise BadDataError(f"not a log in SARIF {VERSION}: it states {stated}", file=source)
    if head.runs is None:
        raise BadDataError("not a log in SARIF: it has no runs", file=source)
    runs = (_part(piece, _Run, f"runs[{number}]", text, source) for number, piece in enumerate(head.runs))
    return SarifLog(source, text, tuple(runs))


def _part(piece: bytes | Raw, kind: type[P], place: str, data: bytes, source: str) -> P:
    """An object of the log at a place such as ``runs[0].results[1]``."""
    try:
        return decode(piece, type=kind)
    except ValidationError as error:
        what, _, within = str(error).partition(" - at `$")
        path = (place + within.removesuffix("`")).removeprefix(".")
        said = what.replace(" | null", "").replace("Expected", "expected", 1)
        said = f"not a log in SARIF: {f'{path}: ' if path else ''}{said}"
        # The pieces lie in the data one after the other, so that the first of equal ones is the one to blame.
        at = max(data.find(bytes(piece)), 0) if place else None
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        offset = _OFFSET.search(str(error))
        known = len(data) if "truncated" in str(error) else int(offset[1]) if offset else None
        at = None if place else known
        said = f"not JSON: {f'{place}: {error}' if place else _OFFSET.sub('', str(error))}"
    line = None if at is None else data.count(b"\n", 0, at) + 1
    raise BadDataError(said, file=source, line=line)


def found_in(log: SarifLog, roots: Collection[str]) -> Iterator[SarifFinding]:
    """Every result of a log, in its order; one that several runs of a tool have in common comes once.

    ``roots`` are paths or ``file:`` URIs of the repository's root, now and where the tool ran.

    Raises:
        BadDataError: A result is none of SARIF; the message has its place and line.
    """
    seen: set[str] = set()
    for number, run in enumerate(log.runs):
        reader = _RunReader(run, roots)
        places = defaultdict[tuple[object, ...], set[tuple[int, int]]](set)
        # Of a large log, identities are kept and results are made once more.
        identities = [reader.identity(result) for result in _results(log, number)]
        for parts, at in identities:
            places[parts].add(at)
        ranks = {(parts, at): rank for parts, ats in places.items() for rank, at in enumerate(sorted(ats))}
        for result, (parts, at) in zip(_results(log, number), identities, strict=True):
            # Results with all parts in common are told apart by their order in the file, not in the log.
            text = json.dumps((*parts, ranks[parts, at]), ensure_ascii=True)
            fingerprint = MARK + hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
            if fingerprint not in seen:
                seen.add(fingerprint)
                yield reader.found(result, fingerprint)


def _results(log: SarifLog, number: int) -> Iterator[_Result]:
    """The results of one of the runs, each made when it is asked for."""
    for at, piece in enumerate(log.runs[number].results or ()):
        yield _part(piece, _Result, f"runs[{number}].results[{at}]", log.data, log.source)


class _RunReader:
    """The results of one run, with the rules and files that it lists."""

    def __init__(self, run: _Run, roots: Collection[str]) -> None:
        self._run, self._files = run, _Files(run, roots)
        self._tool = run.driver.name or UNNAMED
        self._extensions = (run.tool.extensions if run.tool else None) or []
        self._rules: dict[str, _Rule] = {}
        for tool in (run.driver, *self._extensions):
            for rule in tool.rules or ():
                self._rules.setdefault(rule.id or "", rule)

    def identity(self, result: _Result) -> tuple[tuple[object, ...], tuple[int, int]]:
        """What identifies the result in any log, and its line and column in this one.

        That is the best of what the tool states: fingerprints, partial fingerprints with the file, or rule,
        file, symbol, text and code.
        """
        place = next(iter(result.locations or ()), _Location())
        spot, rule = self._spot(place, result), self._rule(result)[0]
        at = (spot.lines[0] if spot.lines else 0, spot.column or 0)
        path = spot.path or spot.uri
        for beside, stated in (((), result.fingerprints), ((path,), result.partial_fingerprints)):
            # A value with spaces is a sentence, such as one that asks the user to log in.
            given = sorted(pair for pair in (stated or {}).items() if re.fullmatch(r"\S+", pair[1]))
            if given:
                return (self._tool, rule, *beside, tuple(given)), at
        # Numbers in the text may count lines.
        text = _NUMBER.sub("#", self._text(result.message, result))
        region = place.physical_location.region if place.physical_location else None
        code = (region.snippet.text or "") if region and region.snippet else ""
        words = (" ".join(text.split()), " ".join(code.split()))
        return (self._tool, rule, path, spot.symbol or "", *words), at

    def found(self, result: _Result, fingerprint: str) -> SarifFinding:
        """The result as a finding."""
        rule_id, rule = self._rule(result)
        texts = (text.text or "" for text in (rule.full_description, rule.short_description) if text)
        about = next(filter(None, texts), "")
        fixes = (self._text(fix.description, result) for fix in result.fixes or ())
        listed = [each.tags for each in (result.properties, rule.properties) if each]
        tags = [tag for some in listed if isinstance(some, list) for tag in some if isinstance(tag, str)]
        return SarifFinding(
            fingerprint=fingerprint,
            tool=self._tool,
            version=self._run.driver.semantic_version or self._run.driver.version or "",
            rule=rule_id,
            name=rule.name or "",
            about=about,
            link=rule.help_uri or "",
            text=self._text(result.message, result) or about or rule.name or rule_id,
            severity=_severity(result, rule),
            tags=tuple(tags),
            spots=tuple(self._spot(place, result) for place in result.locations or ()),
            related=tuple(self._spot(place, result) for place in result.related_locations or ()),
            fix=next(filter(None, fixes), ""),
            left_out=_left_out(result),
        )

    def _rule(self, result: _Result) -> tuple[str, _Rule]:
        """The ID of the rule that a result speaks of, as far as it is known, and what the tool says of it."""
        reference = result.rule or _Reference()
        stated = result.rule_id or reference.id or ""
        at = result.rule_index if reference.index is None else reference.index
        # Where ID and index contradict each other, as they do in some logs, the ID is what people see.
        name = stated
        while name and name not in self._rules:
            # ``CA1000/1`` is a case of ``CA1000``.
            name = name.rpartition("/")[0]
        component = reference.tool_component or _Reference()
        named = (each for each in self._extensions if component.name and each.name == component.name)
        tool = _listed(self._extensions, component.index) or next(named, self._run.driver)
        rule = self._rules[name] if name else _listed(tool.rules or [], at) or _Rule()
        return stated or rule.id or "", rule

    def _text(self, message: _Message | None, result: _Result) -> str:
        """What a message of a result says, its gaps filled; empty where it says nothing."""
        if message is None:
            return ""
        named: _Message | None = None
        if message.id and not message.text:
            own, common = self._rule(result)[1].message_strings, self._run.driver.global_message_strings
            named = (own or {}).get(message.id) or (common or {}).get(message.id)
        text = message.text or (named and named.text) or message.markdown or ""
        # A text that nothing is filled into may well have braces of its own.
        if message.arguments or named:
            values = dict(enumerate(message.arguments or ()))
            text = _GAP.sub(
                lambda gap: values.get(int(gap["number"]), gap[0]) if gap["number"] else gap[0][0], text
            )
        places = {place.id for place in result.related_locations or ()}
        if "](" not in text or not places:
            return text
        # ``[text](1)`` is the text, where 1 is a related place: ``array[0](1)`` is code otherwise.
        return _LINK.sub(
            lambda link: _ESCAPE.sub(r"\1", link["text"]) if int(link["place"]) in places else link[0], text
        )

    def _spot(self, place: _Location, result: _Result) -> Spot:
        where = place.physical_location or _PhysicalLocation()
        region = where.region or _Region()
        uri, path = self._files.find(where.artifact_location or _File())
        first, last = region.start_line or 0, region.end_line or 0
        names = []
        for symbol in place.logical_locations or ():
            listed = _listed(self._run.logical_locations or [], symbol.index) or symbol
            names += [symbol.fully_qualified_name, symbol.name, listed.fully_qualified_name, listed.name]
        return Spot(
            uri=uri,
            path=path,
            # No file has so many lines.
            lines=(first, max(first, last)) if 0 < first < MOST_LINES and last < MOST_LINES else None,
            column=region.start_column,
            symbol=next(filter(None, names), None),
            text=self._text(place.message, result),
        )


class _Files:
    """The files of one run, as paths from the root of the repository."""

    def __init__(self, run: _Run, roots: Collection[str]) -> None:
        self._artifacts = run.artifacts or []
        self._bases: Mapping[str, _File | None] = run.original_uri_base_ids or {}
        mapped = [each.mapped_to for each in run.version_control_provenance or () if each.mapped_to]
        named = {base.uri_base_id for base in mapped if base.uri_base_id and not base.uri}
        tops = {name for name, base in self._bases.items() if base is None or base.uri_base_id is None}
        # The bases that are the root: mapped to it, called after it, or the only one relative to no other.
        self._names = (
            named or {name for name in tops if _is_root(name)} or (tops if len(tops) == 1 else set())
        )
        stated = [absolute_path(self._resolve("", name, ())[0]) for name in self._names]
        # The root of a whole file system is that of no repository.
        self._stated_roots = [path for path in stated if path and path != "/"]
        self._given = [path for path in map(absolute_path, roots) if path]

    def find(self, place: _File) -> tuple[str, str | None]:
        """The URI at a place, empty where it names no file, and its path; None for one outside the root."""
        if place.uri is None:
            artifact = _listed(self._artifacts, place.index)
            place = (artifact and artifact.location) or _File()
        if not place.uri:
            return "", None
        path = self._path(place.uri, place.uri_base_id)
        short = posixpath.normpath(path or "..")
        outside = short in {".", ".."} or short.startswith(("../", "/")) or _DRIVE.match(short)
        return place.uri, None if outside or not short.isprintable() else short

    def _path(self, uri: str, base: str | None) -> str | None:
        """The path from the root, which may still lead out of it; None for what is elsewhere."""
        absolute = absolute_path(self._resolve(uri, base, ())[0])
        if absolute and (below := _below(absolute, self._given)):
            return below
        relative, top = self._resolve(uri, base, self._names)
        if _is_absolute(relative):
            return _below(absolute, self._stated_roots) if absolute else None
        # A base that nobody explains is the root, unless the log says that another one is.
        is_root = top is None or top in self._names or _is_root(top) or not self._names
        return unquote(relative, errors="replace") if is_root else None

    def _resolve(self, uri: str, base: str | None, stop: Collection[str]) -> tuple[str, str | None]:
        """A URI as far up as its bases tell, and the base of which they do not."""
        # A backslash is in no URI, but in paths that tools on Windows write in place of one.
        uri, seen = uri.replace("\\", "/"), set[str]()
        while base is not None and not _is_absolute(uri):
            above = self._bases.get(base)
            if base in stop or base in seen or above is None or above.uri is None:
                return uri, base
            seen.add(base)
            uri = above.uri.replace("\\", "/").rstrip("/") + "/" + uri
            base = above.uri_base_id
        return uri, None


def absolute_path(uri: str) -> str | None:
    """The path that an absolute URI or path names on its machine, with slashes; None for everything else."""
    text = uri.replace("\\", "/")
    if found := _FILE.fullmatch(text):
        text = unquote(found["path"], errors="replace")
    if drive := _DRIVE.match(text):
        text = f"/{drive['letter'].upper()}:/{text[drive.end() :]}"
    return posixpath.normpath(text) if text.startswith("/") else None


def _is_absolute(uri: str) -> bool:
    return uri.startswith("/") or _SCHEME.match(uri) is not None or _DRIVE.match(uri) is not None


def _is_root(name: str) -> bool:
    return name.strip("%").upper() in _ROOTS


def _below(path: str, roots: Collection[str]) -> str | None:
    """A path from the first of ``roots`` that it is below."""
    starts = (root.rstrip("/") + "/" for root in roots)
    return next((path.removeprefix(start) for start in starts if path.startswith(start)), None)


def _listed(listed: Sequence[T], index: int | None) -> T | None:
    return listed[index] if index is not None and 0 <= index < len(listed) else None


def _severity(result: _Result, rule: _Rule) -> Severity:
    """How bad a result is: by its score for security, where it or its rule has one, else by its level."""
    for properties in (result.properties, rule.properties):
        try:
            score = float(properties.security_severity) if properties else 0.0
        except (TypeError, ValueError):
            continue
        if score > 0 and isfinite(score):
            return next((severity for least, severity in SCORES if score >= least), Severity.P3)
    usual = rule.default_configuration.level if rule.default_configuration else None
    level = result.level or ("none" if result.kind not in (None, "fail") else usual)
    return LEVELS.get(level or "", Severity.P2)


def _left_out(result: _Result) -> str:
    """Why a result is no finding to work on: it passed, is gone, or somebody decided not to see it."""
    if result.kind in _NOT_A_FINDING:
        return f"kind {result.kind}"
    if result.baseline_state == "absent":
        return "baseline state absent"
    decisions = result.suppressions or ()
    if decisions and all(decision.status not in _NOT_SUPPRESSING for decision in decisions):
        return "suppressed"
    return ""
