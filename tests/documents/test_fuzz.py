"""Many broken documents are read: no crash, no hang, and what is said of each is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest
from tests.documents import fuzzing
from tests.documents.mutations import SEEDS, document

from finding_tickets.documents.reading import read_document

ROOT = Path(__file__).parents[2]
DOCUMENTS = 100_000
PARTS = 200
"""Of all documents, one part is read; the next change of the reader may be tried on another one."""
READER = [*(ROOT / "src/finding_tickets/documents").rglob("*.py")]
LIMIT = 900.0
"""Seconds, far above the few that it takes, for a reader that hangs where no signal reaches it."""


@pytest.mark.slow
def test_hundreds_of_broken_documents() -> None:
    """Each is a record or a problem; texts, lines and columns fit the bytes, and sections cover them all.

    A fault is printed with the number of its document, from which ``mutations.document`` makes it again.
    """
    code = b"".join(file.read_bytes() for file in sorted(READER))
    part = DOCUMENTS // PARTS
    start = crc32(code) % PARTS * part
    line = [sys.executable, "-m", "tests.documents.fuzzing", str(start), str(start + part)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("data", SEEDS)
def test_mutations_begin_with_documents(data: bytes) -> None:
    """What is broken was a record before, so that there is something to break."""
    found, _ = read_document(data, fuzzing.PATH)
    assert found
    assert [] == list(fuzzing.faults(data))


def test_some_broken_documents() -> None:
    """Of a hundred each is a record or a problem, and what is said of it is true."""
    assert [] == [fault for number in range(100) for fault in fuzzing.faults(document(number))]
