"""The index of a register: made anew, brought up to date, and read, each against what it cannot do without.

Made anew: ``tickets list`` where there is no index, on one processor, against a process that reads the same
files, takes a digest of each and puts path, digest and text into a database; that understands nothing. On two
processors, the same against itself on one. Brought up to date: a list after one file has changed against one
after none has. Read: a list of what has not changed against a process that asks for the state of each file,
reads a row for each from a database, and understands it as JSON.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import main
from benchmarks.generated import write_register
from benchmarks.processes import environment, on, run, usable
from benchmarks.result import Bound, Number, Result, Size
from benchmarks.rows import write_rows

COUNT = {Size.FULL: 2_000, Size.QUICK: 600, Size.LEAST: 10}
ROUNDS = {Size.FULL: 5, Size.QUICK: 3, Size.LEAST: 1}
MADE, TWO, CHANGED, READ = Bound(40), Bound(0.7), Bound(2.5), Bound(3)
PROCESSORS = 2
SETTLED_SECONDS = 0.1
"""So long after a change, the state of a file tells of every further one."""
LIST = [sys.executable, "-m", "finding_tickets", "list", "--root"]
MADE_FLOOR = """
import hashlib, os, sqlite3, sys

database = sqlite3.connect(sys.argv[2])
database.execute("CREATE TABLE entry (path TEXT PRIMARY KEY, digest BLOB, content BLOB)")
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            content = file.read()
        row = (path, hashlib.sha256(content).digest(), content)
        database.execute("INSERT INTO entry VALUES (?, ?, ?)", row)
database.commit()
"""
READ_FLOOR = """
import json, os, sqlite3, sys

states = [os.stat(os.path.join(folder, name)) for folder, _, names in os.walk(sys.argv[1]) for name in names]
rows = [json.loads(row) for row, in sqlite3.connect(sys.argv[2]).execute("SELECT content FROM ticket")]
if len(rows) != len(states):
    sys.exit("there are other files than rows")
"""


@dataclass(frozen=True)
class Bench:
    """A register with an index and with what the floors need, all in one folder."""

    folder: Path
    env: dict[str, str]

    @property
    def register(self) -> Path:
        """The register's root."""
        return self.folder / "register"

    def listed(self) -> float:
        """Seconds for a list."""
        return run([*LIST, str(self.register)], self.env).wall

    def made(self, processors: int) -> float:
        """Seconds for a list that has to make the index, on so many processors."""
        shutil.rmtree(self.env["XDG_CACHE_HOME"], ignore_errors=True)
        with on(processors):
            return self.listed()

    def changed(self) -> float:
        """Seconds for a list after one file has changed."""
        file = next((self.register / "tickets").rglob("*.md"))
        with file.open("ab") as text:
            text.write(b"\n")
        time.sleep(SETTLED_SECONDS)
        return self.listed()

    def written(self) -> float:
        """Seconds for reading files and writing what is in them to a database, on one processor."""
        database = self.folder / "written.sqlite3"
        database.unlink(missing_ok=True)
        with on(1):
            return self._python(MADE_FLOOR, database)

    def read(self) -> float:
        """Seconds for reading rows and asking for states."""
        return self._python(READ_FLOOR, self.folder / "rows.sqlite3")

    def _python(self, code: str, database: Path) -> float:
        register = str(self.register / "tickets")
        return run([sys.executable, "-c", code, register, str(database)], self.env).wall


def measure(size: Size) -> Iterator[Result]:
    """Everything in turn, after one list that compiles."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(folder, environment(folder))
        write_register(bench.register, COUNT[size])
        time.sleep(SETTLED_SECONDS)
        write_rows(bench.register, folder / "rows.sqlite3", bench.env)
        steps: dict[str, Callable[[], float]] = {
            "written": bench.written,
            "one": lambda: bench.made(1),
            "two": lambda: bench.made(PROCESSORS),
            "listed": bench.listed,
            "changed": bench.changed,
            "read": bench.read,
        }
        rounds = [{step: take() for step, take in steps.items()} for _ in range(ROUNDS[size])]
    yield from results(rounds, f"{COUNT[size]:,} tickets")


def results(rounds: Sequence[Mapping[str, float]], register: str) -> Iterator[Result]:
    """The ratios, each the median of those within a round."""

    def ratio(one: str, other: str) -> float:
        return median(each[one] / each[other] for each in rounds)

    def beside(**numbers: str) -> tuple[Number, ...]:
        took = {step: median(each[step] for each in rounds) for step in rounds[0]}
        return tuple(Number(what, took[step], "s") for step, what in numbers.items())

    yield Result(
        name="index-made",
        what=f"an index of {register} made / files written to a database",
        value=ratio("one", "written"),
        bound=MADE,
        beside=beside(one="an index made", written="read, digested and written"),
    )
    two: dict[str, Any] = {
        "name": "index-two",
        "what": "an index made on two processors / on one",
        "bound": TWO,
    }
    if usable() < PROCESSORS:
        yield Result(**two, missing=f"it needs {PROCESSORS} processors")
    else:
        yield Result(**two, value=ratio("two", "one"), beside=beside(one="on one", two="on two"))
    yield Result(
        name="index-changed",
        what="a list after one file has changed / after none has",
        value=ratio("changed", "listed"),
        bound=CHANGED,
        beside=beside(changed="one changed", listed="none changed"),
    )
    yield Result(
        name="index-read",
        what="a list of what has not changed / rows and states of files",
        value=ratio("listed", "read"),
        bound=READ,
        beside=beside(listed="a list", read="rows and states"),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
