"""Recorded verifications: one deterministic file per document and environment, and whether it still holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import replace
from finding_tickets.ground.imports import reach
from finding_tickets.ground.paths import safe_name
from finding_tickets.ground.version import __version__
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Evidence, Input, Verification
from finding_tickets.register.staleness import (
    ABSENT,
    REMEDIATION,
    TOOL,
    TORCH,
    CurrentVerdict,
    Verdicts,
    code_inputs,
)
from finding_tickets.verify.cells import Cell
from finding_tickets.verify.intoto import NoStatementError, written
from finding_tickets.verify.intoto import read as read_statement
from finding_tickets.verify.plan import Plan

_AS_THEY_ARE: Mapping[str, str] = {}


def current_verdict(document: Document, root: Path, folder: str = "evidence") -> CurrentVerdict:
    """The verdict on a document from its evidence in ``folder``; nothing that it speaks of is imported.

    Raises:
        BadDataError: A file of evidence cannot be read, or was edited.
    """
    return Verdicts(root, folder).current(document.id.value, code_inputs(document.remediation))


def in_cells(
    document: Document, root: Path, folder: str, cells: Sequence[Cell]
) -> dict[Cell, CurrentVerdict]:
    """What is known of a document in each cell of a matrix, from its evidence alone.

    Evidence of a cell is not stale because the torch beside the tool is another one.

    Raises:
        BadDataError: A file of evidence cannot be read, or was edited.
    """
    known: dict[Cell, CurrentVerdict] = {}
    verdicts, code = Verdicts(root, folder), code_inputs(document.remediation)
    for revision in dict.fromkeys(cell.revision for cell in cells):
        recorded = verdicts.recorded(document.id.value, code, revision, any_torch=True)
        for cell in (cell for cell in cells if cell.revision == revision):
            found = (
                CurrentVerdict(Verdict.STALE if changed else done.verdict, None, file, done, changed=changed)
                for file, done, changed in recorded
                if cell.has(done)
            )
            known[cell] = min(found, key=_doubt, default=CurrentVerdict())
    return known


def _doubt(current: CurrentVerdict) -> tuple[bool, bool]:
    """What is fresh comes first, and of that what decides."""
    return current.verdict is Verdict.STALE, current.verdict is Verdict.INCONCLUSIVE


def read(ticket: str, root: Path, folder: str, revision: str | None = None) -> list[Evidence]:
    """All evidence on a ticket in the work tree, or at a revision; that of real GPUs first.

    Raises:
        BadDataError: A file is not what ``write`` writes.
    """
    files = sorted((root / folder / _folder(ticket, revision)).glob("*.json"))
    recorded = [_read(file, root) for file in files]
    return sorted(recorded, key=lambda evidence: evidence.verification.meter != "cuda")


def recorded_as(evidence: Evidence, root: Path, folder: str) -> Evidence | None:
    """What is recorded in the file that evidence would be written to; None where that is no evidence."""
    try:
        return read_statement((root / folder / name_of(evidence.verification)).read_bytes())
    except (OSError, NoStatementError):
        return None


def name_of(done: Verification) -> str:
    """The file of a verification within the folder of evidence; those at a revision have a folder of it."""
    name = safe_name(f"{done.meter}-torch{done.torch}-{done.device}")
    return f"{_folder(done.ticket, done.revision)}/{name}.json"


def _folder(ticket: str, revision: str | None) -> str:
    return "/".join(safe_name(part) for part in (ticket, revision) if part)


def write(evidence: Evidence, root: Path, folder: str) -> Path:
    """Record evidence, aside and then in one step; a file that already says the same is not touched."""
    file = root / folder / name_of(evidence.verification)
    content = written(evidence)
    if not file.is_file() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, content, mode=0o644)
    return file


def inputs(
    planned: Plan,
    document: Document,
    done: Verification,
    imported: Iterable[str] = (),
    digests: Mapping[str, str] = _AS_THEY_ARE,
) -> tuple[Input, ...]:
    """What a verification depends on: versions of what measures, the Remediation section, commits and code.

    ``imported`` are files of the work tree, relative to its root, beyond those that the plan knows. Where
    nothing was measured nobody knows them, and what could be imported counts. ``digests`` are those of files
    as they were measured; the others are taken as they are now. Code at a revision is known by its commit.
    """
    subjects = set(planned.files) - {planned.verifier}
    revisions = {str(revision): revision.commit for revision in planned.revisions.values()}
    files = sorted({*planned.files, *(imported if done.variants else importable(planned))})

    def value(name: str) -> str:
        return digests.get(name) or digest(planned.root / name)

    return (
        Input(name=TOOL, kind="version", value=__version__),
        Input(name=TORCH, kind="version", value=done.torch),
        Input(name=REMEDIATION, kind="file", value=_remediation_digest(document)),
        *(Input(name=name, kind="commit", value=revisions[name]) for name in sorted(revisions)),
        *(Input(name=name, kind="file", value=value(name), is_subject=name in subjects) for name in files),
    )


def importable(planned: Plan) -> Iterator[str]:
    """The files of the work tree that could be imported, as far as the text of the code says."""
    here = (source.module for name, source in planned.variants.items() if name not in planned.revisions)
    modules = (module for module in here if not module.endswith(".py"))

    def read(path: str) -> bytes | None:
        file = planned.root / path
        return file.read_bytes() if file.is_file() else None

    return (path for path in reach(read, planned.files, modules) if (planned.root / path).is_file())


def _remediation_digest(document: Document) -> str:
    return document.remediation.digest if document.remediation else ABSENT


def digest(file: Path) -> str:
    """The SHA-256 of a file, that of nothing where there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ABSENT


def _read(file: Path, root: Path) -> Evidence:
    try:
        return read_statement(file.read_bytes())
    except (OSError, NoStatementError) as error:
        raise BadDataError(
            f"is no evidence: {error}",
            file=file.relative_to(root).as_posix(),
            hint="restore it, or remove it and verify again",
        ) from None
