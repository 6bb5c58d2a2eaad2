"""Reading files into rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from finding_tickets.documents.reading import read_document
from finding_tickets.model.problem import Problem
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.files import SIDECAR, File, State, is_settled, read_file
from finding_tickets.register.index import Reading
from finding_tickets.register.particulars import Particulars, claims_of, particulars_of
from finding_tickets.register.row import row_of

Taken = tuple[Reading, State | None]


def read_rows(files: Sequence[File], vocabulary: Vocabulary) -> Iterator[Taken]:
    """What is read of each file, in their order, and its state where a change of it would show in that."""
    return (read_row(file, vocabulary) for file in files)


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
