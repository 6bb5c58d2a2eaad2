"""Keep values made from files in one sqlite file of the cache, as long as the files stay the same.

A store is a help and no truth: one that is missing, damaged or of another version is made anew, and where
nothing can be kept, everything is made again each time.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from finding_tickets.ground.cache import entry_path

# Raised by sqlite for a damaged file, a full disk or a lock that another process keeps; and by the disk.
ERRORS = (sqlite3.Error, OSError)
WAIT_SECONDS = 5.0
# Another process writes, the disk is full, or nothing can be written here.
_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
}
_SCHEMA = """
create table if not exists kept (
    kind text, path text, state text, value blob, checksum integer, primary key (kind, path)
) without rowid
"""

# By the paths of files, the state in which each was read, and what was made of it.
Kept = Mapping[str, tuple[str, bytes]]


class Store:
    """The store called ``name``; what was kept under another ``key`` does not count.

    ``most`` stores stay in the cache, those used last.
    """

    def __init__(self, folder: str, name: str, key: str, most: int) -> None:
        self._key = key
        self._file = entry_path(folder, name, most)

    def read(self, kind: str) -> dict[str, tuple[str, bytes]]:
        """Return all that is kept of a kind; nothing where the store cannot be read."""
        found = {}
        with suppress(*ERRORS), self._opened() as connection:
            rows = connection.execute(
                "select path, state, value, checksum from kept where kind = ?", (kind,)
            )
            for path, state, value, checksum in rows:
                if checksum == _checksum(path, state, value):
                    found[path] = state, value
        return found

    def write(self, kind: str, new: Kept, gone: Iterable[str] = ()) -> None:
        """Keep new values of a kind, and forget files that are gone. Ignore failures."""
        rows = []
        for path, (state, value) in new.items():
            if path.isprintable():
                rows.append((kind, path, state, value, _checksum(path, state, value)))
        old = [(kind, path) for path in gone if path.isprintable()]
        if not rows and not old:
            return
        with suppress(*ERRORS), self._opened() as connection:
            connection.executemany("delete from kept where kind = ? and path = ?", old)
            connection.executemany(
                "insert or replace into kept values (?, ?, ?, ?, ?)", rows
            )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the store, and commit at the end of the block. One that is not of this key is emptied first.

        Raises:
            OSError, sqlite3.Error: It cannot be opened or made.
        """
        if self._file is None:
            raise OSError
        connection = sqlite3.connect(self._file, timeout=WAIT_SECONDS)
        try:
            # What a crash of the machine takes can be made again.
            connection.execute("pragma synchronous = off")
            key = zlib.crc32(self._key.encode(errors="surrogateescape")) >> 1
            if connection.execute("pragma user_version").fetchone() != (key,):
                connection.execute("drop table if exists kept")
                connection.execute(_SCHEMA)
                connection.execute(f"pragma user_version = {key}")
            with connection:
                yield connection
        except sqlite3.Error as error:
            # A store that is damaged is made anew by the next one to use it.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _PASSING:
                self._file.unlink(missing_ok=True)
            raise
        finally:
            connection.close()


def _checksum(path: str, state: str, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(f"{path} {state}".encode(errors="replace")))
