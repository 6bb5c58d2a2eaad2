"""What ``tickets list`` tells of each ticket, in a database: where floors of what reads the index begin.

``python -m benchmarks.rows REGISTER DATABASE`` makes it, in a process of its own: those that are measured
begin with the memory of the one that starts them.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path


def write_rows(register: Path, database: Path, env: Mapping[str, str]) -> None:
    """A table ``ticket`` with JSON in a row for each ticket of the register, which is read for that."""
    command = [sys.executable, "-m", "benchmarks.rows", str(register), str(database)]
    subprocess.run(command, check=True, env=env)


def main(register: str, database: str) -> None:
    """Read the register and write the table."""
    listing = [sys.executable, "-m", "finding_tickets", "list", "--format", "json", "--root", register]
    # Generated tickets have something in them that lists complain of, and still show.
    listed = subprocess.run(listing, check=False, capture_output=True).stdout
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE ticket (content TEXT)")
        rows = ([json.dumps(ticket)] for ticket in json.loads(listed)["data"])
        connection.executemany("INSERT INTO ticket VALUES (?)", rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
