"""What ``tickets list`` tells of each ticket, in a database: where floors of what reads the index begin."""

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
    listing = [sys.executable, "-m", "finding_tickets", "list", "--format", "json", "--root", str(register)]
    # Generated tickets have something in them that lists complain of, and still show.
    listed = subprocess.run(listing, check=False, capture_output=True, env=env).stdout
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE ticket (content TEXT)")
        rows = ([json.dumps(ticket)] for ticket in json.loads(listed)["data"])
        connection.executemany("INSERT INTO ticket VALUES (?)", rows)
