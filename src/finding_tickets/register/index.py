"""The documents of a register in short, a row each, read again only where a file has changed.

What was read is kept between runs in the user's cache. An entry counts only while its file is in the state in
which it was read and the register's words and the code that reads are the same. Whatever is wrong with the
index, files are then read as if there were none.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from finding_tickets.errors import BadDataError
from finding_tickets.ground.cache import read_entry, write_entry
from finding_tickets.ground.version import __version__
from finding_tickets.model.problem import Problem
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.config import Config
from finding_tickets.register.disposition import outcome_of
from finding_tickets.register.files import (
    SIDECAR,
    File,
    State,
    is_settled,
    markdown_files,
    pair_sidecars,
    read_file,
)
from finding_tickets.register.identifiers import IdPlace, duplicates, find, natural
from finding_tickets.register.root import chosen_root, folders_of
from finding_tickets.register.staleness import (
    CodeInputs,
    CurrentVerdict,
    KnownFiles,
    RecordedEvidence,
    Verdicts,
    code_inputs,
)

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.remediation import Claim
    from finding_tickets.model.ticket import Ticket

CACHE = "index"
_KEEP = 32
_PACKAGE = Path(__file__).parents[1]
_READERS = ("documents", "model", "register", "lint", "lint/rules")
_PARSER = "pyromark"
_CHECKSUM = 4
"""Bytes in front of an index that find out where it was damaged."""


@dataclass(frozen=True, slots=True)
class Row:
    """A document without its text; what it does not state is None, 0 or empty.

    Attributes:
        kind: ``finding`` or ``review``.
        path: The file, from the register's root.
        id: As the register spells it, in upper case.
        title: Without the words that only say what kind of document it is.
        severity: ``P0`` (worst) to ``P4``.
        status: The vocabulary's word.
        outcome: The vocabulary's word, by the metadata or else by the section Resolution.
        batch: The number of the batch.
        agent: Who found it.
        assignee: Who is to resolve it.
        domains: The parts of the code that it belongs to, each once.
        categories: Those that are ticked.
        files: Paths of its locations, each once.
        reviews: Pairs of the reviewer, if named, and the vocabulary's opinion, else the verdict as written.
        related: Pairs of an ID and the relationship, in the order of the document.
        created: The date as it is written.
        updated: The date as it is written.
        done: Items of the checklist that are ticked.
        undone: Items of the checklist that are not.
        summary: The summary as it is written.
        code: What verifying it depends on, by its Remediation.
    """

    kind: str
    path: str
    id: str
    title: str
    severity: str | None = None
    status: str | None = None
    outcome: str | None = None
    batch: int | None = None
    agent: str | None = None
    assignee: str | None = None
    domains: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    reviews: tuple[tuple[str | None, str], ...] = ()
    related: tuple[tuple[str, str], ...] = ()
    created: str | None = None
    updated: str | None = None
    done: int = 0
    undone: int = 0
    summary: str | None = None
    code: CodeInputs | None = None

    @property
    def verifier(self) -> str | None:
        """The file that its Remediation names; the usual one is not looked for."""
        return self.code.verifier if self.code else None


class StatedClaim(NamedTuple):
    """A claim of a remediation; ``where`` are the points of the sweep at which it is made if not at all."""

    variant: str
    metric: str
    value: str
    where: str = ""

    @property
    def text(self) -> str:
        """The value, and where it is claimed."""
        return f"{self.value} where {self.where}" if self.where else self.value


class IndexExtras(NamedTuple):
    """What of one document only reports ask for; most documents have none of it.

    Attributes:
        contradictions: Where it contradicts itself, and no comment has that ignored.
        ignored: The rules that a comment has lint ignore in it, with a reason.
        claims: Those of its remediation, in their order.
    """

    contradictions: tuple[Problem, ...] = ()
    ignored: tuple[str, ...] = ()
    claims: tuple[StatedClaim, ...] = ()


Examine = Callable[["Document", bytes, Vocabulary], tuple[tuple[Problem, ...], tuple[str, ...]]]
"""Finds the contradictions of a document, and the rules that it has lint ignore."""


class IndexEntry(msgspec.Struct, frozen=True, array_like=True):
    """What was read of a file in a state: a document, the remediation beside one, or problems alone.

    ``line`` is that of the ID. ``extras`` are None where nobody asked for them.
    """

    state: State | None
    row: Row | None = None
    line: int = 0
    problems: tuple[Problem, ...] = ()
    code: CodeInputs | None = None
    extras: IndexExtras | None = None


class IndexFile(msgspec.Struct, array_like=True):
    """All that is kept for a register, by the paths of files from its root; ``key`` says how it was read."""

    key: str
    entries: dict[str, IndexEntry] = {}
    evidence: dict[str, tuple[State, RecordedEvidence]] = {}
    digests: dict[str, tuple[State, str]] = {}


@dataclass(frozen=True)
class Listing:
    """The rows of a register, sorted by ID as people count, with the problems met in reading them.

    ``verdicts`` and ``extras`` are by the path of the document, for those that have some, where they were
    asked for.
    """

    root: Path
    config: Config
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    verdicts: Mapping[str, CurrentVerdict] | None = None
    extras: Mapping[str, IndexExtras] = field(default_factory=dict)

    def find(self, document_id: str) -> Row:
        """The row of the document with this ID, in any case, or at this path.

        Raises:
            UsageError: There is none; the hint names those that come close.
            BadDataError: There are several; the message names their files.
        """
        return find(((row.id, row.path, row) for row in self.rows), document_id)


def list_rows(
    root: Path | None = None, *, indexed: bool = True, measured: bool = False, examine: Examine | None = None
) -> Listing:
    """The rows of the register at ``root``, which is chosen as ``load`` chooses it.

    With ``indexed``, what an earlier call has read of a file that is still the same is not read again.
    With ``measured`` the verdicts are there, and with ``examine`` the extras.

    Raises:
        UsageError: There is no such folder, or no register.
        BadDataError: The configuration is wrong.
    """
    place = chosen_root(root)
    config, folders = folders_of(place)
    problems: list[Problem] = []
    sidecars: list[File] = []
    largest = config.largest_file
    files = list(markdown_files(place, folders, problems, largest=largest, sidecars=sidecars))
    # Two registers may have one name.
    name = f"{place.name}-{zlib.crc32(os.fsencode(place)):08x}"
    known = _read_index(name, _key(place, config.vocabulary)) if indexed else IndexFile("")
    entries: dict[str, IndexEntry] = {}
    for file in [*files, *sidecars]:
        # An entry without extras is no use to whoever asks for them, and has all that others ask for.
        entry = known.entries.get(file.path)
        complete = entry and (examine is None or entry.extras is not None)
        if not entry or entry.state != file.state or not complete:
            entry = _read(file, config.vocabulary, examine)
        entries[file.path] = entry
    problems += (problem for file in files for problem in entries[file.path].problems)
    found = [(row, entries[file.path]) for file in files if (row := entries[file.path].row)]
    problems += duplicates(IdPlace(row.id, row.path, entry.line) for row, entry in found)
    beside = {file.path: entries[file.path] for file in sidecars}
    pairs = pair_sidecars(((row.path, row.id) for row, _ in found), beside, problems)
    problems += (problem for name in pairs.values() for problem in beside[name].problems)
    rows, extras = [], {}
    for row, entry in found:
        sidecar = beside[pairs[row.path]] if row.path in pairs else None
        rows.append(replace(row, code=row.code or sidecar.code) if sidecar else row)
        own = entry.extras or IndexExtras()
        other = (sidecar.extras if sidecar else None) or IndexExtras()
        if (both := own._replace(claims=own.claims or other.claims)) != IndexExtras() and examine:
            extras[row.path] = both
    rows.sort(key=lambda row: (natural(row.id), row.path))
    learned = KnownFiles(place, known.digests, known.evidence)
    verdicts = _verdicts(rows, Verdicts(place, config.evidence, learned)) if measured else None
    if measured:
        learned.forget_unused()
    # Entries of files that are gone, or may change once more unseen, are not kept.
    kept = {path: entry for path, entry in entries.items() if entry.state}
    if indexed and (learned.has_learned or kept != known.entries):
        _write_index(name, IndexFile(known.key, kept, learned.evidence, learned.digests))
    return Listing(place, config, tuple(rows), tuple(problems), verdicts, extras)


def row_of(document: Document) -> Row:
    """The row of a document: a summary derived from the record."""
    done = sum(item.done for item in document.checklist)
    row = Row(
        kind=document.kind,
        path=document.path,
        id=document.id.value,
        title=document.title.value,
        files=_once(location.file for location in document.locations),
        done=done,
        undone=len(document.checklist) - done,
        code=code_inputs(document.remediation),
    )
    if document.kind == "finding":
        return _with_finding(row, document)
    # A review is itself the one review that there is.
    stated = document.reviewer or document.verdict
    said = (_value(document.reviewer), _value(document.verdict) or "")
    return replace(row, reviews=(said,) if stated else (), created=_value(document.date))


def stated_claim(claim: Claim) -> StatedClaim:
    """A claim without what only a measurement needs."""
    where = ", ".join(f"{name} {condition}" for name, condition in claim.at.items())
    return StatedClaim(claim.variant, claim.metric, claim.value, where)


def _with_finding(row: Row, ticket: Ticket) -> Row:
    outcome = outcome_of(ticket)
    return replace(
        row,
        severity=_value(ticket.severity),
        status=_value(ticket.status),
        outcome=outcome.value if outcome else None,
        batch=ticket.batch.value if ticket.batch else None,
        agent=_value(ticket.agent),
        assignee=_value(ticket.assignee),
        domains=_once(each.value for each in ticket.domains),
        categories=tuple(category.name for category in ticket.categories if category.ticked),
        reviews=tuple(
            (_value(each.reviewer), _value(each.opinion) or each.verdict.value) for each in ticket.reviews
        ),
        related=tuple((relation.id, relation.relationship.value) for relation in ticket.related),
        created=_value(ticket.created),
        updated=_value(ticket.updated),
        summary=ticket.summary.raw if ticket.summary else None,
    )


def _value(stated: Any) -> str | None:
    value = stated.value if stated else None
    return value.value if isinstance(value, Enum) else value


def _once(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _read(file: File, vocabulary: Vocabulary, examine: Examine | None) -> IndexEntry:
    """What is read of one file, with its state where a change of it would show in that."""
    # Nothing that parses is imported where nothing has changed.
    from finding_tickets.documents.reading import read_document

    problems: list[Problem] = []
    now = time.time_ns()
    content = read_file(file, problems)
    if content is None:
        return IndexEntry(None, problems=tuple(problems))
    state = content.state if is_settled(content.state, now) else None
    if file.path.lower().endswith(SIDECAR):
        from finding_tickets.documents.remediation import read_sidecar

        remediation, found = read_sidecar(content.data, file.path)
        beside = IndexExtras(claims=tuple(map(stated_claim, remediation.claims)))
        return IndexEntry(state, problems=tuple(found), code=code_inputs(remediation), extras=beside)
    document, found = read_document(content.data, file.path, vocabulary)
    if document is None:
        return IndexEntry(state, problems=found, extras=IndexExtras())
    extras = None
    if examine:
        stated = document.remediation.claims if document.remediation else ()
        extras = IndexExtras(*examine(document, content.data, vocabulary), tuple(map(stated_claim, stated)))
    return IndexEntry(state, row_of(document), document.id.span.line, found, extras=extras)


def _verdicts(rows: Iterable[Row], verdicts: Verdicts) -> dict[str, CurrentVerdict]:
    """The verdict on each document that there is evidence on."""
    found: dict[str, CurrentVerdict] = {}
    measured = [row for row in rows if verdicts.has_evidence(row.id)]
    verdicts.resolve(row.code for row in measured if row.code)
    for row in measured:
        try:
            current = verdicts.current(row.id, row.code)
        except BadDataError as error:
            current = CurrentVerdict(problem=error)
        if current.evidence or current.problem:
            found[row.path] = current
    return found


def _key(root: Path, vocabulary: Vocabulary) -> str:
    """What a reading depends on beside the file: the register's words, versions, and the code itself."""
    parser = find_spec(_PARSER)
    files = [file for room in _READERS for file in os.scandir(_PACKAGE / room) if file.name.endswith(".py")]
    code = sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    library = Path(parser.origin).stat().st_mtime_ns if parser and parser.origin else 0
    versions = f"{__version__} {sys.version_info[:2]} {library}"
    return repr((os.fsencode(root), vocabulary, versions, code))


def _read_index(name: str, key: str) -> IndexFile:
    """The index of this name, empty where there is none for this key or it is damaged."""
    content = read_entry(CACHE, name)
    if content and zlib.crc32(content[_CHECKSUM:]).to_bytes(_CHECKSUM) == content[:_CHECKSUM]:
        try:
            found = msgspec.msgpack.decode(content[_CHECKSUM:], type=IndexFile)
        except (msgspec.MsgspecError, RecursionError):
            return IndexFile(key)
        if found.key == key:
            return found
    return IndexFile(key)


def _write_index(name: str, index: IndexFile) -> None:
    # Of a file whose name is no text nothing can be kept.
    index.entries = {path: entry for path, entry in index.entries.items() if path.isprintable()}
    try:
        content = msgspec.msgpack.encode(index)
    except UnicodeEncodeError:
        return
    write_entry(CACHE, name, zlib.crc32(content).to_bytes(_CHECKSUM) + content, _KEEP)
