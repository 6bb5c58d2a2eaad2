"""Many broken documents are read: no crash, no hang, and what is said of each is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from tests.documents import fuzzing
from tests.documents.mutations import SEEDS, document

from finding_tickets.documents.reading import read_document

ROOT = Path(__file__).parents[2]
DOCUMENTS = 100_000
PARTS = 25
"""Of all documents, one part is read; the next change of the reader may be tried on another one."""
PROCESSES = 2
READER = [*(ROOT / "src/finding_tickets/documents").rglob("*.py")]
LIMIT = 900.0
"""Seconds, far above the few that it takes, for a reader that hangs where no signal reaches it."""


@pytest.mark.slow
def test_broken_documents_by_the_thousand() -> None:
    """Each is a record or a problem; texts, lines and columns fit the bytes, and sections cover them all.

    A fault is printed with the number of its document, from which ``mutations.document`` makes it again.
    """
    code = b"".join(file.read_bytes() for file in sorted(READER))
    part, share = DOCUMENTS // PARTS, DOCUMENTS // PARTS // PROCESSES
    start = crc32(code) % PARTS * part
    ranges = [(str(first), str(first + share)) for first in range(start, start + part, share)]
    line = [sys.executable, "-m", "tests.documents.fuzzing"]
    running = [
        subprocess.Popen(
            [*line, *numbers], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
        )
        for numbers in ranges
    ]
    printed = [process.communicate(timeout=LIMIT)[0] for process in running]
    assert ([""] * PROCESSES, [0] * PROCESSES) == (printed, [process.returncode for process in running])


def test_a_number_makes_the_same_document_again() -> None:
    """What was found once can be looked at again; hardly any two numbers make the same document."""
    assert [document(number) for number in range(100)] == [document(number) for number in range(100)]
    # Of the twenty mutations one alone, to truncate, makes a file of nothing; then few can be the same.
    assert len({document(number) for number in range(1000)}) > 900


@pytest.mark.parametrize("data", SEEDS)
def test_mutations_begin_with_documents(data: bytes) -> None:
    """What is broken was a record before, so that there is something to break."""
    found, _ = read_document(data, fuzzing.PATH)
    assert found
    assert [] == list(fuzzing.faults(data))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"raw": "other"}, "'other' is not what stands at"),
        ({"start": 9, "end": 8}, "[9, 8) is not in the file"),
        ({"end": 10**6}, ", 1000000) is not in the file"),
        ({"line": 99}, "is not on line 99"),
    ],
)
def test_a_wrong_text_is_noticed(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], fault: str
) -> None:
    """The check would see a reader that gives a text bytes which are not its own."""
    data = SEEDS[0]
    found, _ = read_document(data, fuzzing.PATH)
    assert found
    span = found.title.span._replace(**{key: value for key, value in changes.items() if key != "raw"})
    title = found.title.model_copy(update={"span": span, "raw": changes.get("raw", found.title.raw)})
    wrong = found.model_copy(update={"title": title})
    monkeypatch.setattr(fuzzing, "read_document", lambda *_: (wrong, ()))
    assert any(fault in each for each in fuzzing.faults(data))


def test_missing_sections_and_silence_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check would see bytes that are in no section, and a file of which nothing is said."""
    data = SEEDS[0]
    found, _ = read_document(data, fuzzing.PATH)
    assert found
    for sections, fault in (
        (found.sections[:-1], "the sections end at"),
        (found.sections[1:], "a section does not go on at 0"),
    ):
        wrong = found.model_copy(update={"sections": sections})
        monkeypatch.setattr(fuzzing, "read_document", lambda *_, wrong=wrong: (wrong, ()))
        assert fault in next(fuzzing.faults(data))
    monkeypatch.setattr(fuzzing, "read_document", lambda *_: (None, ()))
    assert ["neither a record nor a problem"] == list(fuzzing.faults(data))
