"""Load a register: its documents, what could not be understood, and what is known of them all.

What was read of a file is kept in a store of the user's cache, as its record in JSON and as its entry. It
counts as long as the file, the configured words and the code that reads them are the same.

A Remediation may stand beside its ticket, in a file of its own called ``ID.remediation.yaml``, so that a
ticket can be measured whose file is to stay as it is. The name has the ID as the register spells it, or in
lower case.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from finding_tickets.errors import BadDataError
from finding_tickets.ground import __version__
from finding_tickets.ground.files import verifier_path
from finding_tickets.ground.statements import Statement
from finding_tickets.ground.store import Store
from finding_tickets.model.vocabulary import (
    REMEDIATION_RULES,
    UNSETTLED,
    Level,
    Vocabulary,
)
from finding_tickets.register.config import Config, find_root, folders_of
from finding_tickets.register.entries import (
    Entry,
    StatementKey,
    entry_of,
    find,
    natural,
)
from finding_tickets.register.files import (
    SIDECAR,
    File,
    KeptFiles,
    RawProblem,
    as_json,
    file_in,
    markdown_files,
    pair_sidecars,
    problem_in,
    read_file,
)
from finding_tickets.register.relations import Relations, relations
from finding_tickets.register.staleness import (
    CurrentVerdict,
    RecordedEvidence,
    Verdicts,
)

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.ticket import Problem, Remediation

STORES = "records"
_MOST_REGISTERS = 32
_PACKAGE = Path(__file__).parents[1]
_PARSER = "pyromark"
_MOST_PLACES = 3


class ReadFile(msgspec.Struct, frozen=True, array_like=True):
    """The content of a file: the entry of a document or a remediation, if it is one, and its problems.

    ``ignored`` are the rules that comments in it switch off.
    """

    entry: Entry | None
    problems: list[RawProblem]
    ignored: tuple[str, ...]


class Register:
    """The documents of a repository, sorted by ID as people count, with the problems met in reading them.

    ``entries`` are there at once. Documents, problems, verdicts and texts are looked up when they are asked
    for. ``sidecars`` are the files of remediations beside their tickets, by the paths of these.
    """

    def __init__(
        self,
        root: Path,
        config: Config,
        entries: Iterable[Entry] = (),
        store: Store | None = None,
    ) -> None:
        self.root, self.config, self.entries = root, config, tuple(entries)
        self.today = datetime.now().astimezone().date()
        self.sidecars: dict[str, str] = {}
        self._files: dict[str, ReadFile] = {}
        self._met: list[RawProblem] = []
        self._kept: dict[str, KeptFiles[Any]] = {}
        self._store = store
        self._records = KeptFiles("record", _unpacked, _packed, store)
        digests = self.kept("file digest", str)
        evidence = self.kept("evidence", RecordedEvidence)
        self._verdicts = Verdicts(root, config.evidence, digests, evidence)
        self._measured: dict[str, CurrentVerdict] = {}

    @classmethod
    def of(cls, root: Path, config: Config, documents: Iterable[Document]) -> Register:
        """Make a register of documents that are at hand, in this order."""
        by_path = {document.path: document for document in documents}
        register = cls(root, config, map(entry_of, by_path.values()))
        register._records.at_hand.update(by_path)
        return register

    def read(
        self,
        files: Iterable[File],
        sidecars: Sequence[File],
        problems: list[RawProblem],
    ) -> None:
        """Read the files of the register, those that have changed since they were kept."""
        known = self.kept("entry", ReadFile)
        read = {file.path: known.get(file, self._read) for file in [*files, *sidecars]}
        gone = [path for path in known.before if path not in read]
        known.save(gone)
        self._records.save(gone)
        found = [
            each.entry
            for path, each in read.items()
            if each.entry and not _is_sidecar(path)
        ]
        problems += _duplicates(found)
        names = {file.path for file in sidecars}
        if names:
            self.sidecars = pair_sidecars(
                [(each.path, each.id) for each in found], names, problems
            )
        # A sidecar without a ticket is no more than that.
        for path in names.difference(self.sidecars.values()):
            del read[path]
        entries = []
        for entry in found:
            beside = self.sidecars.get(entry.path)
            other = read[beside].entry if beside else None
            if beside and entry.section_line:
                why = f"the ticket has a Remediation section, and {beside} beside it is one too"
                problems.append(
                    problem_in(
                        entry.path, "remediation-sidecar", why, line=entry.section_line
                    )
                )
            elif other:
                own = {
                    "code": other.code,
                    "claims": other.claims,
                    "place": other.place,
                    "moved": other.moved,
                }
                entry = replace(entry, **own)  # noqa: PLW2901 - the whole one
            entries.append(entry)
        entries.sort(key=lambda entry: (natural(entry.id), entry.path))
        self.entries, self._files, self._met = tuple(entries), read, problems

    def _read(self, file: File) -> ReadFile:
        # Nothing that parses is imported where nothing has changed.
        from finding_tickets.documents.reading import ignored_rules

        now, unread = time.time_ns(), list[RawProblem]()
        data = read_file(file, unread) or b""
        record, found = _parsed(data, file.path, self.config.vocabulary)
        if record is not None:
            self._records.put(file, record, now)
        # What cannot be read says nothing else.
        problems = unread or [each.model_dump(mode="json") for each in found]
        if record is None:
            return ReadFile(None, problems, ())
        return ReadFile(entry_of(record), problems, ignored_rules(data))

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """All documents, in the order of their entries."""
        return tuple(self._whole(entry, self._kept_record) for entry in self.entries)

    def document(self, entry: Entry) -> Document:
        """Return the document of an entry, with the remediation that stands beside it, if one does.

        Raises:
            BadDataError: The file is gone by now, or is no document any more.
        """
        return self._whole(entry, self._record)

    def _whole(self, entry: Entry, record: Callable[[str], Any]) -> Document:
        document: Document = record(entry.path)
        if entry.path in self.sidecars and not document.remediation:
            beside = record(self.sidecars[entry.path])
            document = document.model_copy(update={"remediation": beside})
        return document

    def _kept_record(self, path: str) -> Document | Remediation:
        return self._records.get(file_in(self.root, path), self._parse)

    def _record(self, path: str) -> Document | Remediation:
        # To read one file takes less than to read all that is kept.
        at_hand = self._records.at_hand.get(path)
        return at_hand or self._parse(file_in(self.root, path))

    def _parse(self, file: File) -> Document | Remediation:
        record = _parsed(read_file(file, []) or b"", file.path, self.config.vocabulary)[
            0
        ]
        if record is None:
            raise BadDataError("is no document any more", file=file.path)
        return record

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems with files and IDs, then the problems of each file."""
        from finding_tickets.model.ticket import Problem

        raw = list(self._met)
        for read in self._files.values():
            raw += read.problems
        return tuple(map(Problem.model_validate, raw))

    def problem_levels(self) -> list[tuple[str, str, Level]]:
        """Return file, rule and level of each problem that no comment switches off."""
        raw = list(self._met)
        for read in self._files.values():
            raw += (
                p
                for p in read.problems
                if p["level"] == Level.ERROR or p["rule"] not in read.ignored
            )
        return [(each["file"], each["rule"], Level(each["level"])) for each in raw]

    def problems_of(self, document: Document) -> tuple[Problem, ...]:
        """Return the problems met in reading one document, and the remediation beside it."""
        files = files_of(document)
        return tuple(problem for problem in self.problems if problem.file in files)

    def remediation_error(self, document: Document) -> BadDataError | None:
        """Return the error in the Remediation of a document; None if it was understood."""
        for problem in self.problems_of(document):
            if problem.level is Level.ERROR and problem.rule.startswith(
                REMEDIATION_RULES
            ):
                return problem.as_error
        return None

    def find(self, document_id: str) -> Document:
        """Return the document with this ID, in any case, or at this path. Raise as ``find_entry`` does."""
        return self.document(self.find_entry(document_id))

    def find_entry(self, document_id: str) -> Entry:
        """Return the entry of the document with this ID, in any case, or at this path.

        Raises:
            UsageError: There is none; the message names those that come close.
            BadDataError: There are several.
        """
        return find(self.entries, document_id)

    @cached_property
    def relations(self) -> Relations:
        """The relations of documents to one another, whichever of the two says so."""
        return relations(self.entries)

    @cached_property
    def ids(self) -> dict[str, str]:
        """The IDs as the documents spell them, by the same in lower case and by the paths of files."""
        by_path = {entry.path: entry.id for entry in self.entries}
        return by_path | {entry.id.casefold(): entry.id for entry in self.entries}

    @cached_property
    def places(self) -> dict[StatementKey, Entry]:
        """The first open ticket about each statement."""
        found: dict[StatementKey, Entry] = {}
        for entry in self.entries:
            if entry.place and entry.status in UNSETTLED:
                found.setdefault(entry.place, entry)
        return found

    @cached_property
    def excused(self) -> tuple[Statement, ...]:
        """The statements that may wait: tickets name them as moved, or budgets allow them."""
        found = []
        for entry in self.entries:
            for file, function, code, _ in entry.moved:
                found.append(Statement(file, 0, function, code))
        for budget in self.config.budgets:
            found += [each.statement for each in budget.allow]
        return tuple(found)

    def is_id(self, word: str) -> bool:
        """Return whether a word means a document: one has it as its ID, or it has the form of one."""
        return word.casefold() in self.ids or bool(
            self.config.vocabulary.an_id.fullmatch(word)
        )

    def has_verifier(self, entry: Entry) -> bool:
        """Return whether a document names a verifier or has one in the usual place."""
        return (
            entry.verifier is not None
            or (self.root / verifier_path(entry.id)).is_file()
        )

    def text(self, entry: Entry) -> str:
        """Return the whole text of a document, folded to be searched; empty where it is gone by now."""
        with suppress(OSError):
            return folded(
                (self.root / entry.path).read_bytes().decode(errors="replace")
            )
        return ""

    def measured(self, document: Document | Entry) -> CurrentVerdict:
        """Return what was measured for a document, and where that comes from."""
        entry = document if isinstance(document, Entry) else entry_of(document)
        if entry.path not in self._measured:
            self._measured[entry.path] = self._verdicts.current(entry.id, entry.code)
        return self._measured[entry.path]

    def kept(self, kind: str, type_: Any) -> KeptFiles[Any]:
        """Return what is kept of a kind: values of a type."""
        if kind not in self._kept:
            self._kept[kind] = KeptFiles(kind, as_json(type_), store=self._store)
        return self._kept[kind]

    def save(self) -> None:
        """Keep what was made of files for the next time."""
        for files in self._kept.values():
            files.save()


def load(root: Path | str | None = None, *, cached: bool = True) -> Register:
    """Return the register at ``root``, a repository or a bare folder of Markdown files.

    Without a root (or with the current directory), the nearest repository above the current directory. Unless
    it is ``cached``, every file is read, and nothing is kept.

    Raises:
        UsageError: There is no such folder, or no register.
        BadDataError: The configuration is wrong.
    """
    place = find_root(None if root is None else Path(root))
    config, folders = folders_of(place)
    problems: list[RawProblem] = []
    sidecars: list[File] = []
    below = markdown_files(
        place, folders, problems, largest=config.largest_file, sidecars=sidecars
    )
    files = [file for file in below if not config.is_excluded(file.path)]
    register = Register(
        place, config, store=_store(place, config.vocabulary) if cached else None
    )
    register.read(files, sidecars, problems)
    return register


def _is_sidecar(path: str) -> bool:
    return path.lower().endswith(SIDECAR)


def _parsed(
    data: bytes, path: str, vocabulary: Vocabulary
) -> tuple[Document | Remediation | None, tuple[Problem, ...]]:
    if _is_sidecar(path):
        from finding_tickets.documents.remediation import read_sidecar

        # One that cannot be read is still the remediation of its ticket.
        return read_sidecar(data, path)
    from finding_tickets.documents.reading import read_document

    return read_document(data, path, vocabulary)


def _packed(record: Document | Remediation) -> bytes:
    return zlib.compress(record.model_dump_json().encode(), 1)


def _unpacked(packed: bytes) -> Document | Remediation:
    from finding_tickets.model.ticket import ImplementationReview, Remediation, Ticket

    text = zlib.decompress(packed)
    for kind in (Ticket, ImplementationReview):
        if text.startswith(f'{{"kind":"{kind.model_fields["kind"].default}"'.encode()):
            return kind.model_validate_json(text)
    return Remediation.model_validate_json(text)


def _store(root: Path, vocabulary: Vocabulary) -> Store:
    """Return the store of a register. Other words, and other code, make another key."""
    parser = find_spec(_PARSER)
    library = Path(parser.origin).stat().st_mtime_ns if parser and parser.origin else 0
    sources = []
    for file in sorted(_PACKAGE.rglob("*.py")):
        state = file.stat()
        sources.append((str(file), state.st_size, state.st_mtime_ns))
    versions = f"{__version__} {sys.version_info[:2]} {library}"
    key = repr((os.fsencode(root), vocabulary, versions, sources))
    # Two registers may have one name.
    name = f"{root.name}-{zlib.crc32(os.fsencode(root)):08x}"
    return Store(STORES, name, key, _MOST_REGISTERS)


def _duplicates(entries: Iterable[Entry]) -> Iterator[RawProblem]:
    """Yield a problem for every ID that another document has too, in any case; it says where else."""
    named: dict[str, list[Entry]] = {}
    for entry in entries:
        named.setdefault(entry.id.casefold(), []).append(entry)
    for sharing in named.values():
        for entry in sharing if len(sharing) > 1 else ():
            # Name only the first few places, so that the messages do not grow quadratically.
            places = (
                f"{other.path}:{other.line}" for other in sharing if other is not entry
            )
            others = list(islice(places, _MOST_PLACES))
            more = len(sharing) - 1 - len(others)
            message = f"{entry.id} is also the ID of {', '.join(others)}{f' and {more} more' if more else ''}"
            yield problem_in(entry.path, "duplicate-id", message, line=entry.line)


def files_of(document: Document) -> frozenset[str]:
    """Return the files that a document is read from: its own, and its remediation's."""
    return frozenset(
        [document.path, *([document.remediation.path] if document.remediation else [])]
    )


def folded(text: str) -> str:
    """Return ``text`` without case and with single spaces, so that texts can be searched."""
    return " ".join(text.casefold().split())
