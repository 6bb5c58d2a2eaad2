"""What was read of each file, kept between runs in the user's cache folder; it may be lost at any time.

An entry counts only while its file is in the state in which it was read, and the register's words and the
code that reads are the same. Whatever is wrong with the index, files are then read as if there were none.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from finding_tickets import __version__
from finding_tickets.ground.cache import cache_folder
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.files import File, State
from finding_tickets.register.particulars import NONE, Claimed, Particulars
from finding_tickets.register.row import Row

PATIENCE = 5.0
"""Seconds to wait for another process that is writing the same index."""

_PACKAGE = Path(__file__).parents[1]
_READERS = ("markdown", "model", "register", "register/rules")
_PARSER = "pyromark"
_KEYS = "CREATE TABLE IF NOT EXISTS reader (key BLOB NOT NULL)"
_ENTRIES = """
CREATE TABLE entry (
    path BLOB PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL, particulars BLOB NOT NULL
)
"""
# Errors that say nothing against the file: another process is writing, or there is no room.
_PASSING = frozenset(
    [
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
    ]
)
_PRIMARY = 0xFF
# The message about a damaged file may quote bytes of it that are not text.
_ERRORS = (sqlite3.Error, UnicodeDecodeError)


class Reading(NamedTuple):
    """What was read of a file: its row and the line of its ID, if it is a document, and the problems met.

    ``verifier`` is the one that a remediation names which stands in a file of its own. ``particulars`` may be
    those of any document where nobody asked for them.
    """

    row: Row | None
    line: int
    problems: tuple[Problem, ...]
    verifier: str | None = None
    particulars: Particulars = NONE


class Known(NamedTuple):
    """The readings that still count, by path, and the paths of entries whose files are gone."""

    readings: dict[str, Reading]
    gone: list[str]


class Index:
    """The index in ``file``, whose entries count for those who read in the way that ``key`` describes."""

    def __init__(self, file: Path, key: str) -> None:
        self._file = file
        self._key = key.encode(errors="surrogateescape")

    def known(self, files: Iterable[File], *, whole: bool = False) -> Known:
        """What the index knows of ``files``; particulars only if the readings are to be ``whole``."""
        states = {file.path: file.state for file in files}
        known = Known({}, [])
        try:
            with closing(self._connect("rw")) as database:
                database.execute("BEGIN")
                for path, content, particulars in self._entries(database):
                    state, *reading = json.loads(content)
                    if path not in states:
                        known.gone.append(path)
                    elif states[path] == tuple(state):
                        also = _particulars(path, particulars) if whole and particulars else NONE
                        known.readings[path] = _reading(path, *reading, particulars=also)
        except _ERRORS as error:
            self._mend(error)
        return known

    def keep(self, read: Mapping[str, tuple[State, Reading]], gone: Iterable[str]) -> None:
        """Remember what was read of files in a state, and forget those that are gone."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(self._connect("rwc")) as database:
                # The index need not outlive a power failure; what is then torn is found by its checksum.
                database.executescript(f"PRAGMA synchronous = OFF; {_KEYS}")
                database.execute("BEGIN IMMEDIATE")
                if not self._is_ours(database):
                    # Another reader may have had other columns.
                    database.execute("DROP TABLE IF EXISTS entry")
                    database.execute(_ENTRIES)
                    database.execute("DELETE FROM reader")
                    database.execute("INSERT INTO reader VALUES (?)", [self._key])
                database.executemany(
                    "DELETE FROM entry WHERE path = ?", ([os.fsencode(path)] for path in gone)
                )
                entries = (_entry(path, *taken) for path, taken in read.items())
                database.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", entries)
                database.execute("COMMIT")
        except _ERRORS as error:
            self._mend(error)
        except OSError:
            pass

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"{self._file.absolute().as_uri()}?mode={mode}"
        database = sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)
        # There is no text in a sound index, and what is in a damaged one need not be UTF-8.
        database.text_factory = bytes
        return database

    def _is_ours(self, database: sqlite3.Connection) -> bool:
        return database.execute("SELECT key FROM reader").fetchall() == [(self._key,)]

    def _entries(self, database: sqlite3.Connection) -> Iterator[tuple[str, bytes, bytes]]:
        """Path, content and particulars of every entry that is as it was written."""
        if not self._is_ours(database):
            return
        rows = database.execute("SELECT path, content, particulars, checksum FROM entry")
        for path, content, particulars, checksum in rows:
            are_bytes = all(isinstance(each, bytes) for each in (path, content, particulars))
            if are_bytes and checksum == _checksum(path, content, particulars):
                yield os.fsdecode(path), content, particulars

    def _mend(self, error: Exception) -> None:
        """Remove an index that is damaged, so that the next one to be kept is sound."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
        if code & _PRIMARY not in _PASSING:
            for suffix in ("", "-journal", "-wal", "-shm"):
                with suppress(OSError):
                    Path(f"{self._file}{suffix}").unlink()


def index_of(root: Path, vocabulary: Vocabulary) -> Index | None:
    """The index of the register at ``root``; None where the user has no folder for such files."""
    folder = cache_folder()
    if folder is None:
        return None
    place = os.fsencode(root)
    return Index(
        folder / f"{root.name}-{zlib.crc32(place):08x}.sqlite3", f"{root}\n{_reader()}\n{vocabulary!r}"
    )


def _reader() -> str:
    """What a reading depends on beside the register's words: versions, and the state of the code itself."""
    parser = find_spec(_PARSER)
    files = [file for room in _READERS for file in os.scandir(_PACKAGE / room) if file.name.endswith(".py")]
    code = sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    library = Path(parser.origin).stat().st_mtime_ns if parser and parser.origin else 0
    return f"{__version__} {sys.version_info[:2]} {library} {code}"


def _checksum(path: bytes, content: bytes, particulars: bytes) -> int:
    return zlib.crc32(particulars, zlib.crc32(content, zlib.crc32(path)))


def _entry(path: str, state: State, reading: Reading) -> tuple[bytes, int, bytes, bytes]:
    row, line, problems, verifier, particulars = reading
    values = None if row is None else [getattr(row, name) for name in Row.__slots__]
    content = json.dumps([state, values, line, _told(problems), verifier]).encode()
    name, apart = os.fsencode(path), _apart(particulars)
    return name, _checksum(name, content, apart), content, apart


def _told(problems: Iterable[Problem]) -> list[list[Any]]:
    return [[each.level, each.rule, each.line, each.column, each.message, each.hint] for each in problems]


def _apart(particulars: Particulars) -> bytes:
    """Particulars as bytes; none for the most frequent ones."""
    contradictions, ignored, claims = particulars
    return json.dumps([_told(contradictions), ignored, claims]).encode() if particulars != NONE else b""


def _reading(
    path: str,
    values: list[Any] | None,
    line: int,
    told: list[list[Any]],
    verifier: str | None,
    *,
    particulars: Particulars,
) -> Reading:
    fields: list[Any] = [_frozen(each) if type(each) is list else each for each in values or ()]
    row = Row(*fields) if fields else None
    return Reading(row, line, _problems(path, told), verifier, particulars)


def _problems(path: str, told: list[list[Any]]) -> tuple[Problem, ...]:
    return tuple(
        Problem(level=Level(level), rule=rule, file=path, line=at, column=column, message=message, hint=hint)
        for level, rule, at, column, message, hint in told
    )


def _particulars(path: str, content: bytes) -> Particulars:
    contradictions, ignored, claims = json.loads(content)
    return Particulars(
        _problems(path, contradictions), tuple(ignored), tuple(Claimed(*each) for each in claims)
    )


def _frozen(values: list[Any]) -> tuple[Any, ...]:
    """JSON has lists where a row has tuples, and tuples of tuples."""
    return tuple(tuple(each) if type(each) is list else each for each in values)
