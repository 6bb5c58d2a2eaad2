"""Reads many broken documents, and says of which something is not as it must be.

``python -m tests.documents.fuzzing 0 1000000`` reads more of them than the tests do, and prints numbers:
``tests.documents.mutations.document`` makes the document of a number again.
"""

from __future__ import annotations

import signal
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from types import FrameType
from typing import Any

from pydantic import BaseModel
from tests.documents.mutations import document

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Problem, Section, Span, Text

PATH = "tickets/A-1.md"
SECONDS = 20.0
"""A document is read in a millisecond; one that takes this long, however busy the machine, never ends."""
SHOWN = 20
_LEAVES = (str, int, float, Span, type(None))


def faults(data: bytes) -> Iterator[str]:
    """Everything that is wrong with what was read of a document."""
    found, problems = read_document(data, PATH)
    ended = (line for line in data.splitlines(keepends=True) if line.endswith((b"\r", b"\n")))
    starts = [0, *accumulate(map(len, ended))]
    if found is None and not problems:
        yield "neither a record nor a problem"
    for problem in problems:
        yield from _of_problem(problem, data, starts)
    for text in texts(found):
        yield from _of_text(text, data, starts)
    if found is not None:
        yield from _of_sections(found.sections, len(data))


def texts(value: Any) -> Iterator[Text]:
    """Every text in a record, however deep."""
    if isinstance(value, Text):
        yield value
    if isinstance(value, BaseModel):
        value = [getattr(value, name) for name in type(value).model_fields]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for each in value:
        if not isinstance(each, _LEAVES):
            yield from texts(each)


def _of_text(text: Text, data: bytes, starts: list[int]) -> Iterator[str]:
    start, end = text.span.start, text.span.end
    if not 0 <= start <= end <= len(data):
        yield f"[{start}, {end}) is not in the file"
    elif data[start:end] != text.raw.encode():
        yield f"{text.raw!r} is not what stands at [{start}, {end})"
    if text.span.line != _line(starts, start):
        yield f"byte {start} is not on line {text.span.line}"


def _of_sections(sections: Sequence[Section], size: int) -> Iterator[str]:
    at = 0
    for section in sections:
        if (section.heading.start, section.body.span.start) != (at, section.heading.end):
            yield f"a section does not go on at {at}"
        at = section.body.span.end
    if at != size:
        yield f"the sections end at {at} of {size}"


def _of_problem(problem: Problem, data: bytes, starts: list[int]) -> Iterator[str]:
    if problem.file != PATH or not problem.message:
        yield f"{problem} does not say what is wrong where"
    if not 1 <= problem.line <= _line(starts, len(data)):
        yield f"{problem} is not in the file"
    else:
        start, end = [*starts, len(data)][problem.line - 1 : problem.line + 1]
        if not 1 <= problem.column <= end - start + 1:
            yield f"{problem} is not on its line"


def _line(starts: list[int], offset: int) -> int:
    """The line that a byte is on; the end of a file is on the line that its last line end begins."""
    return bisect_right(starts, offset)


def main(first: int, last: int) -> int:
    """Read the documents with numbers in ``[first, last)``; 1 where something is wrong, which is printed."""
    signal.signal(signal.SIGALRM, _too_long)
    shown = 0
    for number in range(first, last):
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            wrong = list(faults(document(number)))
        except Exception as error:
            wrong = [f"{type(error).__name__}: {error}"]
        for fault in wrong:
            print(f"{number}: {fault}")
            shown += 1
        if shown >= SHOWN:
            break
    signal.setitimer(signal.ITIMER_REAL, 0)
    return 1 if shown else 0


def _too_long(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
    raise TimeoutError(f"not read within {SECONDS:g} s")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
