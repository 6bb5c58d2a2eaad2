"""An index of the register's documents: one row each, reread only if its file has changed.

Rows are kept between runs in the user's cache. One is used only if its file, the configured words and the
code that reads them are unchanged. A damaged index is ignored.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground import __version__
from finding_tickets.ground.cache import read_entry, write_entry
from finding_tickets.model.vocabulary import Level, Outcome, Vocabulary
from finding_tickets.register.config import Config, find_root, folders_of
from finding_tickets.register.files import (
    SIDECAR,
    UNREADABLE,
    File,
    FileProblem,
    KnownFiles,
    State,
    markdown_files,
    pair_sidecars,
    read_file,
)
from finding_tickets.register.staleness import (
    CodeInputs,
    CurrentVerdict,
    RecordedEvidence,
    Verdicts,
    code_inputs,
)

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.ticket import Problem, Remediation

CACHE = "index"
_MOST_REGISTERS = 32
_PACKAGE = Path(__file__).parents[1]
_READERS = ("claims", "documents", "ground", "lint", "lint/rules", "model", "register")
"""The folders whose code decides what is read of a file; the contradictions come from ``lint``."""
_PARSER = "pyromark"
_CHECKSUM = 4
"""Bytes in front of an index that show whether it was damaged."""
_MOST_PLACES = 3
_SUGGESTIONS = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """A document without its text; what it does not state is None, 0 or empty."""

    kind: str  # finding or review
    path: str
    id: str
    title: str
    severity: str | None = None
    status: str | None = None
    outcome: str | None = None  # by the metadata, or else by the section Resolution
    batch: int | None = None
    agent: str | None = None
    assignee: str | None = None
    domains: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # those that are ticked
    files: tuple[str, ...] = ()  # of its locations, each once
    reviews: tuple[tuple[str | None, str], ...] = ()  # who, and the opinion or else the verdict as written
    related: tuple[tuple[str, str], ...] = ()  # IDs and relationships, in the order of the document
    created: str | None = None  # dates are as they are written
    updated: str | None = None
    done: int = 0  # items of the checklist that are ticked
    undone: int = 0
    summary: str | None = None
    code: CodeInputs | None = None  # what verifying it depends on, by its Remediation
    filed: bool = False  # whether status or outcome are not the document's own, but its folder's

    @property
    def verifier(self) -> str | None:
        """The file that its Remediation names; the usual one is not looked for."""
        return self.code.verifier if self.code else None


class StatedClaim(NamedTuple):
    """A claim of a remediation: what is claimed, and whether of every point."""

    variant: str
    metric: str
    text: str
    is_everywhere: bool = True


class IndexExtras(NamedTuple):
    """What only reports need to know of a document; most documents have none of it."""

    # The fields of problems, without those that a comment has ignored.
    contradictions: tuple[dict[str, Any], ...] = ()
    ignored: tuple[str, ...] = ()  # the rules that a comment has lint ignore in it, with a reason
    claims: tuple[StatedClaim, ...] = ()


Examine = Callable[["Document", bytes, Vocabulary], tuple[tuple["Problem", ...], tuple[str, ...]]]
"""Finds the contradictions of a document, and the rules that its comments have lint ignore."""


class IndexEntry(msgspec.Struct, frozen=True, array_like=True):
    """What was read of a file: a document, the remediation beside one, or problems alone."""

    row: Row | None = None
    line: int = 0  # of the ID
    section_line: int = 0  # of the Remediation section, if there is one
    problems: tuple[FileProblem, ...] = ()  # without those that a comment has lint ignore
    code: CodeInputs | None = None  # of a remediation beside its ticket
    # None for a document whose extras were not asked for; sidecars and other files always have them.
    extras: IndexExtras | None = None


class IndexFile(msgspec.Struct, array_like=True):
    """All that is kept for a register, by the paths of files from its root; ``key`` says how it was read."""

    key: str
    entries: dict[str, tuple[State, IndexEntry]] = {}
    evidence: dict[str, tuple[State, RecordedEvidence]] = {}
    digests: dict[str, tuple[State, str]] = {}


@dataclass(frozen=True)
class Listing:
    """The rows of a register, sorted by ID as people count, with the problems met in reading them.

    ``sidecars`` are the files of remediations that stand beside their documents, by the paths of these.
    ``verdicts`` and ``extras`` are by the path of the document too, for those that have some, where they were
    asked for.
    """

    root: Path
    config: Config
    rows: tuple[Row, ...]
    problems: tuple[FileProblem, ...]
    sidecars: Mapping[str, str] = field(default_factory=dict)
    verdicts: Mapping[str, CurrentVerdict] | None = None
    extras: Mapping[str, IndexExtras] = field(default_factory=dict)

    def find(self, document_id: str) -> Row:
        """The row of the document with this ID, in any case, or at this path."""
        return find(((row.id, row.path, row) for row in self.rows), document_id)


def list_rows(
    root: Path | None = None,
    *,
    indexed: bool = True,
    measured: bool = False,
    examine: Examine | None = None,
    parsed: dict[str, Document | Remediation] | None = None,
    met: list[Problem] | None = None,
) -> Listing:
    """The rows of the register at ``root``, which is chosen as ``load`` chooses it.

    Args:
        root: The register, or None for the one around the working directory.
        indexed: Take unchanged files from the index, and update it; else read every file and leave it alone.
        measured: Also look up the verdict on each document.
        examine: Also collect the extras of each document, with the contradictions that this finds.
        parsed: Gets the record of each file that had to be read, by its path.
        met: Gets the problems with files and IDs, and those of each file that had to be read.
    """
    place = find_root(root)
    config, folders = folders_of(place)
    problems: list[FileProblem] = []
    sidecars: list[File] = []
    below = markdown_files(place, folders, problems, largest=config.largest_file, sidecars=sidecars)
    files = [file for file in below if not config.is_excluded(file.path)]
    # Two registers may have one name.
    name = f"{place.name}-{zlib.crc32(os.fsencode(place)):08x}"
    index = _read_index(name, place, config.vocabulary) if indexed else IndexFile("")
    # A caller that asks for extras cannot use an entry without them; any entry serves the others.
    known = KnownFiles({p: e for p, e in index.entries.items() if not examine or e[1].extras is not None})
    inside: list[Problem] = []
    read = partial(_read, vocabulary=config.vocabulary, examine=examine, parsed=parsed, met=inside)
    entries = {file.path: known.get(file, read) for file in [*files, *sidecars]}
    found = [(row, entries[file.path]) for file in files if (row := entries[file.path].row)]
    problems += (problem for file in files for problem in entries[file.path].problems)
    problems += _duplicates(found)
    ids = [(row.path, row.id) for row, _ in found]
    pairs = pair_sidecars(ids, {file.path for file in sidecars}, problems) if sidecars else {}
    rows, extras = [], {}
    for row, entry in found:
        beside = IndexEntry()
        if row.path in pairs:
            beside = entries[pairs[row.path]]
            problems += beside.problems
            if entry.section_line:
                why = f"the ticket has a Remediation section, and {pairs[row.path]} beside it is one too"
                problems.append(FileProblem(row.path, "remediation-sidecar", why, line=entry.section_line))
        rows.append(replace(row, code=beside.code) if beside.code and not row.code else row)
        if examine:
            own, other = entry.extras or IndexExtras(), beside.extras or IndexExtras()
            if any(both := own._replace(claims=own.claims or other.claims)):
                extras[row.path] = both
    rows.sort(key=lambda row: (natural(row.id), row.path))
    verdicts = Verdicts(place, config.evidence, index.digests, index.evidence) if measured else None
    current = _current(rows, verdicts) if verdicts else None
    if met is not None:
        # A sidecar without a ticket is no more than that.
        lone = {file.path for file in sidecars}.difference(pairs.values())
        met += (problem.record for problem in problems if problem.message)
        met += (problem for problem in inside if problem.file not in lone)
    # What could not be read may be readable the next time although nothing shows in its state.
    unread = {problem.file for problem in problems if problem.rule == UNREADABLE}
    sound = {path: entry for path, entry in known.kept.items() if path not in unread}
    kept = IndexFile(index.key, sound, index.evidence, index.digests)
    if verdicts:
        kept.evidence, kept.digests = verdicts.evidence.kept, verdicts.digests.kept
    if indexed and kept != index:
        # A message may name a file whose name is no text: then nothing is kept.
        with suppress(UnicodeEncodeError):
            content = msgspec.msgpack.encode(kept)
            checksum = zlib.crc32(content).to_bytes(_CHECKSUM)
            write_entry(CACHE, name, checksum + content, _MOST_REGISTERS)
    return Listing(place, config, tuple(rows), tuple(problems), pairs, current, extras)


def _read(
    file: File,
    vocabulary: Vocabulary,
    examine: Examine | None,
    parsed: dict[str, Document | Remediation] | None,
    met: list[Problem],
) -> IndexEntry:
    # Nothing that parses is imported where nothing has changed.
    from finding_tickets.documents.reading import ignored_rules, read_document

    record: Document | Remediation | None
    unread: list[FileProblem] = []
    data = read_file(file, unread)
    if file.path.lower().endswith(SIDECAR):
        from finding_tickets.documents.remediation import read_sidecar

        # One that cannot be read is still the remediation of its ticket.
        record, problems = read_sidecar(data or b"", file.path)
        extras = IndexExtras(claims=_stated_claims(record))
        entry = IndexEntry(code=code_inputs(record), extras=extras)
    else:
        record, problems = read_document(data or b"", file.path, vocabulary)
        entry = IndexEntry(extras=IndexExtras())
        if record is not None:
            section = record.remediation
            examined = None
            if examine:
                found, ignored = examine(record, data or b"", vocabulary)
                fields = tuple(problem.model_dump(mode="json") for problem in found)
                examined = IndexExtras(fields, ignored, _stated_claims(section))
            line, at = record.id.span.line, section.span.line if section else 0
            entry = IndexEntry(row_of(record), line, at, extras=examined)
    if parsed is not None and record is not None:
        parsed[file.path] = record
    # What cannot be read says nothing else; no comment has lint ignore an error.
    problems = tuple(each.record for each in unread) or problems
    if not problems:
        return entry
    met += problems
    ignored = ignored_rules(data or b"")
    wanted = (each for each in problems if each.level is Level.ERROR or each.rule not in ignored)
    indexed = tuple(FileProblem(each.file, each.rule, level=each.level) for each in wanted)
    return msgspec.structs.replace(entry, problems=indexed)


def row_of(document: Document) -> Row:
    """The row of a document: a summary derived from the record."""
    done = sum(item.done for item in document.checklist)
    row = Row(
        kind=document.kind,
        path=document.path,
        id=document.id.value,
        title=document.title.value,
        files=_unique(location.file for location in document.locations),
        done=done,
        undone=len(document.checklist) - done,
        code=code_inputs(document.remediation),
    )
    if document.kind != "finding":
        # A review document counts as its own single review.
        stated = document.reviewer or document.verdict
        said = (_stated_text(document.reviewer), _stated_text(document.verdict) or "")
        return replace(row, reviews=(said,) if stated else (), created=_stated_text(document.date))
    outcome = outcome_of(document)
    return replace(
        row,
        severity=_stated_text(document.severity),
        status=_stated_text(document.status),
        outcome=outcome.value if outcome else None,
        batch=document.batch.value if document.batch else None,
        agent=_stated_text(document.agent),
        assignee=_stated_text(document.assignee),
        domains=_unique(each.value for each in document.domains),
        categories=tuple(category.name for category in document.categories if category.ticked),
        reviews=tuple(
            (_stated_text(each.reviewer), _stated_text(each.opinion) or each.verdict.value)
            for each in document.reviews
        ),
        related=tuple((relation.id, relation.relationship.value) for relation in document.related),
        created=_stated_text(document.created),
        updated=_stated_text(document.updated),
        summary=document.summary.raw if document.summary else None,
        filed=any(each is not None and not each.raw for each in (document.status, document.outcome)),
    )


def _stated_claims(remediation: Remediation | None) -> tuple[StatedClaim, ...]:
    claims = remediation.claims if remediation else ()
    return tuple(StatedClaim(each.variant, each.metric, each.text, not each.at) for each in claims)


def outcome_of(document: Document) -> Outcome | None:
    """How a finding was resolved: by its metadata, else by its section Resolution."""
    if document.kind != "finding":
        return None
    if document.outcome and document.outcome.value:
        return document.outcome.value
    return document.resolution.outcome if document.resolution else None


def _stated_text(stated: Any) -> str | None:
    value = stated.value if stated else None
    return value.value if isinstance(value, Enum) else value


def _unique(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _current(rows: Sequence[Row], verdicts: Verdicts) -> dict[str, CurrentVerdict]:
    """The verdict on each document that there is evidence on."""
    found: dict[str, CurrentVerdict] = {}
    measured = [row for row in rows if verdicts.has_evidence(row.id)]
    verdicts.resolve(dict.fromkeys(name for row in measured if row.code for name in row.code.revisions))
    for row in measured:
        try:
            current = verdicts.current(row.id, row.code)
        except BadDataError as error:
            current = CurrentVerdict(problem=error)
        if current.evidence or current.problem:
            found[row.path] = current
    return found


def _duplicates(found: Iterable[tuple[Row, IndexEntry]]) -> Iterator[FileProblem]:
    """A problem for every ID that another document has too, in any case; it says where else."""
    named: dict[str, list[tuple[Row, int]]] = {}
    for row, entry in found:
        named.setdefault(row.id.casefold(), []).append((row, entry.line))
    for sharing in named.values():
        for row, line in sharing if len(sharing) > 1 else ():
            # Name only the first few places, so that the messages do not grow quadratically.
            places = (f"{other.path}:{at}" for other, at in sharing if other is not row)
            others = list(islice(places, _MOST_PLACES))
            more = len(sharing) - 1 - len(others)
            message = f"{row.id} is also the ID of {', '.join(others)}{f' and {more} more' if more else ''}"
            yield FileProblem(row.path, "duplicate-id", message, line=line)


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers within text by their value, however long: ``B2`` before ``B10``."""
    pieces = re.split(r"([0-9]+)", text.upper())
    # Of two numbers without leading zeros, the longer one is greater.
    bare = (piece.lstrip("0") if at % 2 else piece for at, piece in enumerate(pieces))
    return tuple((len(piece) if at % 2 else 0, piece) for at, piece in enumerate(bare))


def find(named: Iterable[tuple[str, str, T]], document_id: str) -> T:
    """What has this ID, in any case, or this path; ``named`` lists IDs, paths and what they belong to.

    Raises:
        UsageError: There is none; the hint names similar ones.
        BadDataError: There are several; the message names their files.
    """
    known = list(named)
    wanted = document_id.strip().casefold()
    path = document_id.strip().removeprefix("./")
    found = [each for each in known if each[0].casefold() == wanted or each[1] == path]
    if len(found) > 1:
        files = ", ".join(path for _, path, _ in found)
        hint = "name one by its path, or give it another ID"
        raise BadDataError(f"{found[0][0]} is the ID of several documents: {files}", hint=hint)
    if not found:
        hint = hint_for([name for name, _, _ in known], wanted)
        raise UsageError(f"no document has the ID {document_id!r}", hint=hint)
    return found[0][2]


def hint_for(ids: Sequence[str], wanted: str) -> str:
    """The hint where no document has an ID: those of ``ids`` that begin with it, or resemble it."""
    if not ids:
        return "the register is empty"
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in ids}
    begin = [name for name in folded if wanted and name.startswith(wanted)]
    close = begin or get_close_matches(wanted, folded, n=_SUGGESTIONS)
    names = [folded[name] for name in close[:_SUGGESTIONS]]
    return f"did you mean {', '.join(names)}?" if names else "tickets list shows them all"


def _read_index(name: str, root: Path, vocabulary: Vocabulary) -> IndexFile:
    """The index of this name; an empty one if it is missing, damaged or was written under another key."""
    parser = find_spec(_PARSER)
    files = [(room, file) for room in _READERS for file in os.scandir(_PACKAGE / room)]
    states = ((room, file.name, file.stat()) for room, file in files if file.name.endswith(".py"))
    sources = sorted((room, name, state.st_size, state.st_mtime_ns) for room, name, state in states)
    library = Path(parser.origin).stat().st_mtime_ns if parser and parser.origin else 0
    versions = f"{__version__} {sys.version_info[:2]} {library}"
    key = repr((os.fsencode(root), vocabulary, versions, sources))
    content = read_entry(CACHE, name) or b""
    if zlib.crc32(content[_CHECKSUM:]).to_bytes(_CHECKSUM) == content[:_CHECKSUM]:
        with suppress(msgspec.MsgspecError, RecursionError):
            found = msgspec.msgpack.decode(content[_CHECKSUM:], type=IndexFile)
            if found.key == key:
                return found
    return IndexFile(key)
