"""Reading files into rows, with every core where there are many."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from finding_tickets.documents.reading import read_document
from finding_tickets.ground.processors import usable
from finding_tickets.model.problem import Problem
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.files import SIDECAR, File, State, is_settled, read_file
from finding_tickets.register.index import Reading
from finding_tickets.register.particulars import Particulars, claims_of, particulars_of
from finding_tickets.register.row import row_of

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

MANY = 500
"""So many files that further processes take less time to start than they save."""

_CHUNK = 50

Taken = tuple[Reading, State | None]


def read_rows(files: Sequence[File], vocabulary: Vocabulary) -> Iterator[Taken]:
    """What is read of each file, in their order, and its state where a change of it would show in that."""
    read = partial(read_row, vocabulary=vocabulary)
    pool = _pool(usable()) if len(files) >= MANY and usable() > 1 else None
    if pool is None:
        yield from map(read, files)
        return
    try:
        with _interrupts_held_back():
            found = pool.map(read, files, chunksize=_CHUNK)
        yield from found
    finally:
        # Whoever interrupts does not wait for the files that nobody has begun to read.
        pool.shutdown(cancel_futures=True)


def _pool(processes: int) -> ProcessPoolExecutor | None:
    """So many processes; None where the system does not let them talk to each other."""
    from concurrent.futures import ProcessPoolExecutor

    try:
        # An interrupt is for this process, which ends the others.
        return ProcessPoolExecutor(
            processes, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
        )
    except (OSError, ImportError, NotImplementedError):
        return None


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Let interrupts come when the block is left; what is started in it has time to learn to ignore them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def read_row(file: File, vocabulary: Vocabulary) -> Taken:
    """What is read of one file, and its state where a change of it would show in that."""
    problems: list[Problem] = []
    now = time.time_ns()
    content = read_file(file, problems)
    if content is None:
        return Reading(None, 0, tuple(problems)), None
    state = content.state if is_settled(content.state, now) else None
    if file.path.lower().endswith(SIDECAR):
        from finding_tickets.documents.remediation import read_sidecar

        remediation, found = read_sidecar(content.data, file.path)
        beside = Particulars(claims=claims_of(remediation))
        return Reading(None, 0, tuple(found), remediation.verifier, beside), state
    document, found = read_document(content.data, file.path, vocabulary)
    if document is None:
        return Reading(None, 0, found), state
    particulars = particulars_of(document, content.data, vocabulary)
    return Reading(row_of(document), document.id.span.line, found, particulars=particulars), state
