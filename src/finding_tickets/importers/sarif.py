"""Read a log in SARIF 2.1.0: of each result its rule, message, places, severity and fingerprint.

Only the properties that these are made of are decoded. The standard:
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import decode
from msgspec.structs import replace

from finding_tickets.errors import BadDataError
from finding_tickets.model.vocabulary import Severity

T = TypeVar("T")
UNNAMED = "an unnamed tool"
# The beginning of a fingerprint.
MARK = "sarif:"
DIGITS = 32
# The severity of a result, by its level.
LEVELS = {
    "error": Severity.P1,
    "warning": Severity.P2,
    "note": Severity.P3,
    "none": Severity.P4,
}
# The severity of a result, by the least score it needs: critical, high and medium as GitHub has them.
SCORES = (
    (9.0, Severity.P0),
    (7.0, Severity.P1),
    (4.0, Severity.P2),
    (0.0, Severity.P3),
)

# Names that tools give to the root of a repository, without the per cent signs around some of them.
_ROOTS = {"SRCROOT", "PROJECTROOT", "REPOROOT", "ROOTPATH"}
_NOT_A_FINDING = {"pass", "notApplicable", "informational"}
_NUMBER = re.compile(r"(?<![\w.])\d++(?![\w.]*\w)")
_GAP = re.compile(r"\{(\d{1,3})\}")
# The letter of a drive looks like a scheme.
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
# Some tools write a property that they leave out, against the standard.
_NULL = re.compile(rb",\s*\"[^\"\\]*\"\s*:\s*null\b|\"[^\"\\]*\"\s*:\s*null\s*,?")
# Where services check a repository out.
_RUNNER = re.compile(
    r"(?:/home/runner/work|/Users/runner/work|/[A-Z]:/a|/__w)/(?P<name>[^/]+)/(?P=name)/|/github/workspace/"
)
_FILE = re.compile(r"(?is)file:(?://(?:localhost)?(?=/))?(?P<path>/.*)")


# The objects of a log, as the standard names them and their properties; of each, what tickets are made of.


class _Part(Struct, rename="camel", frozen=True):
    pass


class _Message(_Part, frozen=True):
    text: str = ""
    id: str = ""  # of a text of the rule, whose gaps the arguments fill
    arguments: list[str] = []


class _File(_Part, frozen=True):
    uri: str = ""
    uri_base_id: str = ""
    index: int = -1  # of an artifact of the run, which has the URI then


class _Artifact(_Part, frozen=True):
    location: _File = _File()


class _Region(_Part, frozen=True):
    start_line: int = 0
    start_column: int = 0
    end_line: int = 0
    snippet: _Message = _Message()


class _PhysicalLocation(_Part, frozen=True):
    artifact_location: _File = _File()
    region: _Region = _Region()


class _Symbol(_Part, frozen=True):
    name: str = ""
    fully_qualified_name: str = ""


class _Location(_Part, frozen=True):
    physical_location: _PhysicalLocation = _PhysicalLocation()
    logical_locations: list[_Symbol] = []


class _Properties(_Part, frozen=True):
    # Services agree on it beside the standard. Tools may put a value of any type there.
    security_severity: Any = field(default=None, name="security-severity")


class _Configuration(_Part, frozen=True):
    level: str = ""


class _Component(_Part, frozen=True):
    index: int = -1  # of an extension; of the driver without one


class _Rule(_Part, frozen=True):
    id: str = ""
    index: int = -1  # of a rule that a result names: where it stands in its tool
    tool_component: _Component = _Component()
    short_description: _Message = _Message()
    full_description: _Message = _Message()
    message_strings: dict[str, _Message] = {}
    default_configuration: _Configuration = _Configuration()
    properties: _Properties = _Properties()


class _Tool(_Part, frozen=True):
    name: str = UNNAMED
    rules: list[_Rule] = []


class _Tools(_Part, frozen=True):
    driver: _Tool = _Tool()
    extensions: list[_Tool] = []


class _Result(_Part, frozen=True):
    rule_id: str = ""
    rule_index: int = -1
    rule: _Rule = _Rule()
    kind: str = "fail"
    level: str = ""
    message: _Message = _Message()
    locations: list[_Location] = []
    fingerprints: dict[str, str] = {}
    partial_fingerprints: dict[str, str] = {}
    baseline_state: str = ""
    properties: _Properties = _Properties()


class _Run(_Part, frozen=True):
    tool: _Tools = _Tools()
    results: list[_Result] = []
    artifacts: list[_Artifact] = []
    original_uri_base_ids: dict[str, _File] = {}


class _Log(_Part, frozen=True):
    version: Literal["2.1.0"]
    runs: list[_Run]


@dataclass(frozen=True, slots=True)
class Spot:
    """A place that a result names; any part may be missing.

    ``uri`` is the file as the log has it, ``path`` its path from the repository's root, None for one outside
    of it. ``lines`` are the first and the last one, ``column`` counts from 1.
    """

    uri: str
    path: str | None
    lines: tuple[int, int] | None
    symbol: str = ""
    column: int = 0
    code: str = ""

    def __str__(self) -> str:
        """Return ``path:line``, as far as each part is known; the URI of a file that is elsewhere."""
        file = self.path or self.uri
        return f"{file}:{self.lines[0]}" if file and self.lines else file


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A finding of another tool, or of a report."""

    fingerprint: str  # the same whenever the tool finds the same, wherever the lines have moved to
    tool: str  # or the report's path
    rule: str  # the ID of the rule that was broken, or the title as it stands in the report
    text: str  # what the tool says of this finding, or its title
    severity: (
        Severity | None
    )  # by the rule's score, or the level; None where a report states none
    spots: tuple[Spot, ...]  # where it is, the first one being the place to look at
    left_out: str = ""  # why no ticket is to be made of it; empty where one is


@dataclass(frozen=True, kw_only=True, slots=True)
class SarifFinding(Finding):
    """A finding of another tool."""

    about: str  # what the tool says of the rule


def read_log(data: bytes, source: str, roots: Collection[str]) -> list[SarifFinding]:
    """Return the findings of the log in ``data``, each once. ``source`` names where it came from.

    ``roots`` are paths or ``file:`` URIs of the repository's root, now and where the tool ran.

    Raises:
        BadDataError: It is not JSON, not SARIF, or of another version.
    """
    text = data.removeprefix(b"\xef\xbb\xbf")
    try:
        log = decode(_NULL.sub(b"", text) if b"null" in text else text, type=_Log)
    except ValidationError as error:
        raise BadDataError(f"not a log in SARIF 2.1.0: {error}", file=source) from None
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDataError(f"not JSON: {error}", file=source) from None
    # Several runs of a tool have findings in common.
    found: dict[str, SarifFinding] = {}
    for run in log.runs:
        for finding in _RunReader(run, roots).findings():
            found.setdefault(finding.fingerprint, finding)
    return list(found.values())


class _RunReader:
    """The results of one run, with the rules and files that it lists."""

    def __init__(self, run: _Run, roots: Collection[str]) -> None:
        self._run = run
        self._tool = run.tool.driver.name
        self._roots = [path for path in map(absolute_path, roots) if path]
        self._rules: dict[str, _Rule] = {}
        for tool in (run.tool.driver, *run.tool.extensions):
            for rule in tool.rules:
                self._rules.setdefault(rule.id, rule)

    def findings(self) -> Iterator[SarifFinding]:
        """Yield the findings, in their order."""
        ranks = defaultdict[tuple[object, ...], dict[object, int]](dict)
        for result in self._run.results:
            rule = self._rule(result)
            text = _text(result.message, rule)
            about = _text(rule.full_description, rule) or _text(
                rule.short_description, rule
            )
            spots = tuple(map(self._spot, result.locations))
            passed = f"kind {result.kind}" if result.kind in _NOT_A_FINDING else ""
            first = spots[0] if spots else Spot("", None, None)
            identity = self._identity(result, rule.id, text, first)
            # Results with all parts in common are told apart by their order, unless they are one.
            places = ranks[identity]
            rank = places.setdefault((first.lines, first.column), len(places))
            digest = hashlib.sha256(json.dumps((*identity, rank)).encode()).hexdigest()
            yield SarifFinding(
                fingerprint=MARK + digest[:DIGITS],
                tool=self._tool,
                rule=rule.id,
                text=text or about or rule.id,
                severity=_severity(result, rule),
                spots=spots,
                about=about,
                left_out=passed
                or (
                    "baseline state absent" if result.baseline_state == "absent" else ""
                ),
            )

    def _rule(self, result: _Result) -> _Rule:
        """Return the rule of a result by its ID, the beginning of its ID, or its index."""
        tools = self._run.tool
        place = result.rule.tool_component.index
        tool = _at(tools.extensions, place, tools.driver)
        place = max(result.rule_index, result.rule.index)
        at_index = _at(tool.rules, place, _Rule())
        named = result.rule_id or result.rule.id or at_index.id
        whole = self._rules.get(named.rpartition("/")[0], at_index)
        return replace(self._rules.get(named, whole), id=named)

    def _identity(
        self, result: _Result, rule: str, text: str, spot: Spot
    ) -> tuple[object, ...]:
        """Return what identifies the result in any log.

        That is the best of what the tool states: fingerprints, partial fingerprints with the file, or rule,
        file, symbol, text and code.
        """
        path = spot.path or spot.uri
        if own := _usable(result.fingerprints):
            return (self._tool, rule, own)
        if own := _usable(result.partial_fingerprints):
            return (self._tool, rule, path, own)
        # Numbers in the text may count lines.
        words = " ".join(_NUMBER.sub("#", text).split())
        return (self._tool, rule, path, spot.symbol, words, " ".join(spot.code.split()))

    def _spot(self, place: _Location) -> Spot:
        where = place.physical_location
        file = where.artifact_location
        if not file.uri:
            file = _at(self._run.artifacts, file.index, _Artifact(file)).location
        first, last = where.region.start_line, where.region.end_line
        symbol = place.logical_locations[0] if place.logical_locations else _Symbol()
        return Spot(
            uri=file.uri,
            path=self._path(file),
            lines=(first, max(first, last)) if first > 0 else None,
            symbol=symbol.fully_qualified_name or symbol.name,
            column=where.region.start_column,
            code=where.region.snippet.text,
        )

    def _path(self, file: _File) -> str | None:
        """Return the path from the root of the repository; None for what is outside of it."""
        uri = _with_slashes(file.uri)
        base = _with_slashes(
            self._run.original_uri_base_ids.get(file.uri_base_id, _File()).uri
        )
        resolved = (
            uri if _ABSOLUTE.match(uri) or not base else f"{base.rstrip('/')}/{uri}"
        )
        absolute = absolute_path(resolved) or ""
        for root in self._roots:
            if absolute.startswith(f"{root}/"):
                return _relative(absolute.removeprefix(f"{root}/"))
        if runner := _RUNNER.match(absolute):
            return _relative(absolute[runner.end() :])
        # The root may have been elsewhere when the tool ran.
        is_root = file.uri_base_id.strip("%").upper() in _ROOTS
        return _relative(unquote(uri if is_root else resolved, errors="replace"))


def _at(items: Sequence[T], place: int, usual: T) -> T:
    """Return the item of a list to which a log refers, or the usual one."""
    return items[place] if 0 <= place < len(items) else usual


def _relative(path: str) -> str | None:
    """Return a path without detours; None if it leads out of the folder, or is not one line of text."""
    short = posixpath.normpath(path)
    is_outside = (
        short in {".", ".."} or short.startswith("../") or _ABSOLUTE.match(short)
    )
    return short if short.isprintable() and not is_outside else None


def absolute_path(uri: str) -> str | None:
    """Return the path that an absolute path or ``file:`` URI names; None for anything else."""
    text = _with_slashes(uri)
    if found := _FILE.fullmatch(text):
        text = unquote(found["path"], errors="replace")
    return posixpath.normpath(text) if text.startswith("/") else None


def _with_slashes(uri: str) -> str:
    """Return a URI without backslashes, which tools on Windows write in relative paths."""
    return uri.replace("\\", "/")


def _usable(fingerprints: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return fingerprints in a fixed order, without sentences such as one that asks the user to log in."""
    usable = [pair for pair in fingerprints.items() if re.fullmatch(r"\S+", pair[1])]
    return tuple(sorted(usable))


def _text(message: _Message, rule: _Rule) -> str:
    """Return the text of a message, its own or one of its rule; empty without one."""
    text = message.text
    if message.id in rule.message_strings and not text:
        text = rule.message_strings[message.id].text
    if not message.arguments:
        return text
    arguments = dict(enumerate(message.arguments))
    return _GAP.sub(lambda gap: arguments.get(int(gap[1]), gap[0]), text)


def _severity(result: _Result, rule: _Rule) -> Severity:
    """Return how bad a result is: by its score for security, where it or its rule has one, else its level."""
    for properties in (result.properties, rule.properties):
        with suppress(TypeError, ValueError):
            score = float(properties.security_severity)
            if score > 0:
                return next(severity for least, severity in SCORES if score >= least)
    usual = rule.default_configuration.level if result.kind == "fail" else "none"
    return LEVELS.get((result.level or usual).lower(), Severity.P2)
