"""Evidence as files: in-toto Statements of two kinds, what was measured and what a trace recorded.

What a trace recorded about the place of a ticket decides nothing: nobody can run a trace again, and what its
program rested on is not known. A verification is ``*.json``, a recording has another suffix and another type
of predicate: a file of one kind is never read as one of the other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import safe_name
from finding_tickets.register.files import DiskFiles

if TYPE_CHECKING:
    from finding_tickets.model.verification import Input, Recording

STATEMENT = "https://in-toto.io/Statement/v1"
MEASURED, RECORDED = "https://in-toto.io/attestation/test-result/v0.1", "urn:finding-tickets:recorded:v1"
NO_STATEMENT = "it is no in-toto Statement of a test result"
NO_RECORDING = "it is no in-toto Statement of a recorded run"
RECORDING = ".intoto"

Recorded = tuple[str, str, str]
"""The name, kind and value of an input."""


def evidence_folder(ticket: str, revision: str | None) -> str:
    """The folder of a ticket within that of all evidence; each revision has one of its own."""
    return "/".join(safe_name(part) for part in (ticket, revision) if part)


def recorded_of(inputs: Iterable[Input]) -> tuple[Recorded, ...]:
    """Inputs as lists and staleness need them."""
    return tuple((each.name, each.kind, each.value) for each in inputs)


class NoStatementError(ValueError):
    """Why some bytes are no evidence, in a few words."""


def read_statement(content: bytes, kind: str = MEASURED) -> dict[str, Any]:
    """The in-toto Statement of a kind in some bytes; ``NoStatementError`` for none or an edited one."""
    none = NO_STATEMENT if kind == MEASURED else NO_RECORDING
    try:
        statement: dict[str, Any] = json.loads(content)
    except ValueError:
        raise NoStatementError("it is no JSON") from None
    try:
        if (statement["_type"], statement["predicateType"]) != (STATEMENT, kind):
            raise NoStatementError(none)
        if statement["predicate"].pop("contentDigest")["sha256"] != _content_digest(statement):
            raise NoStatementError("it was edited: its content is not what its digest says")
    except (LookupError, TypeError, AttributeError):
        raise NoStatementError(none) from None
    return statement


def write_statement(subjects: Iterable[Any], predicate: Mapping[str, Any], kind: str = MEASURED) -> bytes:
    """The bytes of a Statement that ``read_statement`` reads; the same content gives the same bytes."""
    statement: dict[str, Any] = {
        "_type": STATEMENT,
        "subject": list(subjects),
        "predicateType": kind,
        "predicate": dict(predicate),
    }
    statement["predicate"]["contentDigest"] = {"sha256": _content_digest(statement)}
    return (json.dumps(statement, indent=1, ensure_ascii=False) + "\n").encode()


def _content_digest(statement: Mapping[str, Any]) -> str:
    """The SHA-256 of a Statement without the digest that it carries itself."""
    plain = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def input_of(descriptor: Mapping[str, Any]) -> Recorded:
    """Name, kind and value of a resource descriptor."""
    name, digests, said = (descriptor.get(key, {}) for key in ("name", "digest", "annotations"))
    if "files" in said:
        files = (
            f"{folder}/{file}".removeprefix("./")
            for folder in said["files"]
            for file in said["files"][folder].split(" / ")
        )
        return name, "package", "\n".join([said["version"], digests["sha256"], *sorted(files)])
    if digests:
        kind = "commit" if "gitCommit" in digests else "file"
        return name, kind, digests["gitCommit" if kind == "commit" else "sha256"]
    ((kind, value),) = said.items()
    return name, kind, value


def resource(given: Input) -> dict[str, Any]:
    """A resource descriptor: by digest, by commit, or in words where there is nothing to digest."""
    if given.kind == "package":
        version, digest, *files = given.value.split("\n")
        folders: dict[str, str] = {}
        for file in files:
            folder, _, name = file.rpartition("/")
            folders[folder or "."] = " / ".join(filter(None, [folders.get(folder or "."), name]))
        said = {"version": version, "files": folders}
        return {"name": given.name, "digest": {"sha256": digest}, "annotations": said}
    if given.kind in {"file", "commit"}:
        kind = "gitCommit" if given.kind == "commit" else "sha256"
        return {"name": given.name, "digest": {kind: given.value}}
    return {"name": given.name, "annotations": {given.kind: given.value}}


def recording_name(recording: Recording) -> str:
    """The file of a recording within the folder of a ticket's evidence."""
    return safe_name(re.sub(r"[^\w.]+", "-", f"recorded-{recording.device}").lower()) + RECORDING


def dump_recording(recording: Recording) -> bytes:
    """The bytes of a Statement about the trace; the same recording gives the same bytes."""
    subject = {"name": recording.trace, "digest": {"sha256": recording.sha256}}
    predicate = recording.model_dump(mode="json", exclude={"trace", "sha256", "has_changed"})
    return write_statement([subject], predicate, RECORDED)


def recordings(root: Path, folder: str, ticket: str) -> Iterator[Recording | BadDataError]:
    """The recordings beside the verifications of a ticket, or why one cannot be read."""
    # Lists load none of the records.
    from finding_tickets.model.verification import Recording

    disk, files = DiskFiles(root), []
    # The reader of verifications, which are in the same folder, reports one that cannot be listed.
    with suppress(OSError):
        files = sorted((root / folder / evidence_folder(ticket, None)).glob(f"*{RECORDING}"))
    for file in files:
        try:
            statement = read_statement(file.read_bytes(), RECORDED)
            (subject,) = statement["subject"]
            about = {"trace": subject["name"], "sha256": subject["digest"]["sha256"]}
            recording = Recording.model_validate(statement["predicate"] | about)
            is_same = recording.source is None or disk.digest(recording.source) == recording.source_sha256
            yield recording.model_copy(update={"has_changed": not is_same})
        except (OSError, ValueError, LookupError, TypeError) as error:
            why = error if isinstance(error, OSError | NoStatementError) else NO_RECORDING
            path = file.relative_to(root).as_posix()
            yield BadDataError(f"is no recording: {why}", file=path, hint="restore it, or remove it")
