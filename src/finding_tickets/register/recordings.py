"""What traces recorded about the place of a ticket: evidence of a kind of its own, which decides nothing.

Nobody can run a trace again, and what its program rested on is not known. Evidence that decides is ``*.json``
with another type of predicate: a file of one kind is never read as one of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import safe_name
from finding_tickets.model.verification import Recording
from finding_tickets.register.staleness import (
    DiskFiles,
    NoStatementError,
    evidence_folder,
    read_statement,
    write_statement,
)

SUFFIX = ".intoto"
PREDICATE = "urn:finding-tickets:recorded:v1"
NO_RECORDING = "it is no in-toto Statement of a recorded run"
OF_SUBJECT = {"trace", "sha256"}


def name_of(recording: Recording) -> str:
    """The file of a recording within the folder of a ticket's evidence."""
    return safe_name(re.sub(r"[^\w.]+", "-", f"recorded-{recording.device}").lower()) + SUFFIX


def dump(recording: Recording) -> bytes:
    """The bytes of a Statement about the trace; the same recording gives the same bytes."""
    subject = {"name": recording.trace, "digest": {"sha256": recording.sha256}}
    predicate = recording.model_dump(mode="json", exclude={*OF_SUBJECT, "has_changed"})
    return write_statement([subject], predicate, PREDICATE)


def recordings(root: Path, folder: str, ticket: str) -> Iterator[Recording | BadDataError]:
    """The recordings beside the verifications of a ticket, or why one cannot be read."""
    disk, files = DiskFiles(root), []
    # What cannot be listed is told by the reader of the verifications, which lie there too.
    with suppress(OSError):
        files = sorted((root / folder / evidence_folder(ticket, None)).glob(f"*{SUFFIX}"))
    for file in files:
        try:
            statement = read_statement(file.read_bytes(), PREDICATE, NO_RECORDING)
            (subject,) = statement["subject"]
            about = {"trace": subject["name"], "sha256": subject["digest"]["sha256"]}
            recording = Recording.model_validate(statement["predicate"] | about)
            is_same = recording.source is None or disk.digest(recording.source) == recording.source_sha256
            yield recording.model_copy(update={"has_changed": not is_same})
        except (OSError, ValueError, LookupError, TypeError) as error:
            why = error if isinstance(error, OSError | NoStatementError) else NO_RECORDING
            path = file.relative_to(root).as_posix()
            yield BadDataError(f"is no recording: {why}", file=path, hint="restore it, or remove it")
