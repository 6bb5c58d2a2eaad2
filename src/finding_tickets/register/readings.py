"""Reading files into rows, with every core where there are many."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import partial

from finding_tickets.markdown.reading import read_document
from finding_tickets.model.problem import Problem
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.files import File, State, is_settled, read_file
from finding_tickets.register.index import Reading
from finding_tickets.register.row import row_of

MANY = 500
"""So many files that further processes take less time to start than they save."""

_CHUNK = 50

Taken = tuple[Reading, State | None]


def read_rows(files: Sequence[File], vocabulary: Vocabulary) -> Iterator[Taken]:
    """What is read of each file, in their order, and its state where a change of it would show in that."""
    read = partial(read_row, vocabulary=vocabulary)
    if len(files) < MANY or (os.cpu_count() or 1) == 1:
        yield from map(read, files)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor() as pool:
        yield from pool.map(read, files, chunksize=_CHUNK)


def read_row(file: File, vocabulary: Vocabulary) -> Taken:
    """What is read of one file, and its state where a change of it would show in that."""
    problems: list[Problem] = []
    now = time.time_ns()
    content = read_file(file, problems)
    if content is None:
        return Reading(None, 0, tuple(problems)), None
    document, found = read_document(content.data, file.path, vocabulary)
    state = content.state if is_settled(content.state, now) else None
    if document is None:
        return Reading(None, 0, found), state
    return Reading(row_of(document), document.id.span.line, found), state
