"""The index of a register: made anew, brought up to date, and read, each against what it cannot do without.

Made anew: ``tickets list`` where there is no index, on one processor, against a process that reads the same
files, takes a digest of each and puts path, digest and text into a database; that understands nothing.
Brought up to date: a list after one file has changed against one after none has. Read: a list of what has not
changed against a process that asks for the state of each file, reads a row for each from a database, and
understands it as JSON.
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

from benchmarks.command import main
from benchmarks.generated import write_register
from benchmarks.processes import Run, environment, on, run
from benchmarks.result import Bound, Number, Result, Size
from benchmarks.rows import write_rows

COUNT = {Size.FULL: 2_000, Size.QUICK: 600, Size.LEAST: 10}
ROUNDS = {Size.FULL: 5, Size.QUICK: 3, Size.LEAST: 1}
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
class Claim:
    """A step and what it is compared with, by the time of processors."""

    name: str
    what: str
    ours: str
    theirs: str
    bound: Bound


WRITTEN, READ = "written to a database", "rows and states"
MADE = "an index made"
LISTED, CHANGED = "a list", "a list after a change"
CLAIMS = (
    Claim(
        "index-made",
        "an index of a register made / its files written to a database",
        MADE,
        WRITTEN,
        Bound(60),
    ),
    Claim("index-changed", "a list after one file has changed / after none has", CHANGED, LISTED, Bound(2.5)),
    Claim("index-read", "a list after none has changed / rows and states of files", LISTED, READ, Bound(3)),
)


@dataclass(frozen=True)
class Bench:
    """A register with an index and with what the floors need, all in one folder."""

    folder: Path
    env: dict[str, str]

    @property
    def register(self) -> Path:
        """The register's root."""
        return self.folder / "register"

    def listed(self) -> Run:
        """A list."""
        return run([*LIST, str(self.register)], self.env)

    def made(self) -> Run:
        """A list that has to make the index, on one processor."""
        shutil.rmtree(self.env["XDG_CACHE_HOME"], ignore_errors=True)
        with on(1):
            return self.listed()

    def changed(self) -> Run:
        """A list after one file has changed."""
        file = next((self.register / "tickets").rglob("*.md"))
        with file.open("ab") as text:
            text.write(b"\n")
        time.sleep(SETTLED_SECONDS)
        return self.listed()

    def written(self) -> Run:
        """Reading files and writing what is in them to a database, on one processor."""
        database = self.folder / "written.sqlite3"
        database.unlink(missing_ok=True)
        with on(1):
            return self._python(MADE_FLOOR, database)

    def read(self) -> Run:
        """Reading rows and asking for states."""
        return self._python(READ_FLOOR, self.folder / "rows.sqlite3")

    def _python(self, code: str, database: Path) -> Run:
        register = str(self.register / "tickets")
        return run([sys.executable, "-c", code, register, str(database)], self.env)


def measure(size: Size) -> Iterator[Result]:
    """Everything in turn, after one list that compiles."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(folder, environment(folder))
        write_register(bench.register, COUNT[size])
        time.sleep(SETTLED_SECONDS)
        write_rows(bench.register, folder / "rows.sqlite3", bench.env)
        steps: dict[str, Callable[[], Run]] = {
            WRITTEN: bench.written,
            MADE: bench.made,
            LISTED: bench.listed,
            CHANGED: bench.changed,
            READ: bench.read,
        }
        rounds = [{step: take() for step, take in steps.items()} for _ in range(ROUNDS[size])]
    for claim in CLAIMS:
        yield result(claim, rounds, f"{COUNT[size]:,} tickets")


def result(claim: Claim, rounds: Sequence[Mapping[str, Run]], register: str) -> Result:
    """The median of the ratios within each round."""
    times = [[each[step].processor for step in (claim.ours, claim.theirs)] for each in rounds]
    ours, theirs = (median(seconds) for seconds in zip(*times, strict=True))
    return Result(
        name=claim.name,
        what=claim.what,
        bound=claim.bound,
        value=median(one / other for one, other in times),
        beside=(Number(f"{claim.ours}, {register}", ours, "s"), Number(claim.theirs, theirs, "s")),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
