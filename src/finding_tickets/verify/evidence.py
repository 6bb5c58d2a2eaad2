"""Recorded verifications: one deterministic file per document and environment, and whether it still holds."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from finding_tickets import __version__
from finding_tickets.errors import BadDataError
from finding_tickets.markdown.reading import Document
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.register.convention import safe_name
from finding_tickets.verify.plan import Plan, plan

TOOL = "finding-tickets"
REMEDIATION = "remediation"
REVISION = "revision "
MISSING = "missing"


@dataclass(frozen=True)
class Current:
    """The verdict that counts now, the verification it comes from, and where fresh ones disagree."""

    verdict: Verdict
    verification: Verification | None = None
    disagreement: str | None = None


def current_verdict(document: Document, root: Path, folder: str = "evidence") -> Current:
    """The verdict on a document from its evidence in ``folder``; nothing that it speaks of is imported.

    A fresh verdict on a real GPU outranks a simulated one, and one that decides outranks one that does not.
    With evidence, but none of it fresh, it is stale.

    Raises:
        BadDataError: A file of evidence cannot be read.
    """
    recorded = read(document.id.value, root, folder)
    if not recorded:
        return Current(Verdict.UNVERIFIED)
    fresh = [evidence.verification for evidence in recorded if is_fresh(evidence, document, root)]
    if not fresh:
        return Current(Verdict.STALE, recorded[0].verification)
    disagree = {f"{one.meter}: {one.verdict}" for one in fresh} if len({o.verdict for o in fresh}) > 1 else ()
    counts = min(fresh, key=lambda one: one.verdict is Verdict.INCONCLUSIVE)
    return Current(counts.verdict, counts, ", ".join(sorted(disagree)) or None)


def read(ticket: str, root: Path, folder: str) -> list[Evidence]:
    """All evidence on a ticket, that of real GPUs first.

    Raises:
        BadDataError: A file is not what ``write`` writes.
    """
    files = sorted((root / folder / safe_name(ticket)).glob("*.json"))
    recorded = [_read(file, root) for file in files]
    return sorted(recorded, key=lambda evidence: evidence.verification.meter != "cuda")


def write(evidence: Evidence, root: Path, folder: str) -> Path:
    """Record evidence, aside and then in one step; a file that already says the same is not touched."""
    done = evidence.verification
    name = safe_name(f"{done.meter}-torch{done.torch}-{done.device}")
    file = root / folder / safe_name(done.ticket) / f"{name}.json"
    content = (evidence.model_dump_json(indent=1) + "\n").encode()
    if not file.is_file() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, content)
    return file


def is_fresh(evidence: Evidence, document: Document, root: Path) -> bool:
    """Whether everything a verification depended on is still as it was."""
    try:
        planned = plan(document, root)
    except BadDataError:
        return False
    return planned is not None and evidence.inputs == inputs(planned, document, evidence.inputs)


def inputs(planned: Plan, document: Document, files: Iterable[str] = ()) -> dict[str, str]:
    """The digests of the Remediation block, the plan's files and further ones, the commits, and the version.

    Code at a revision is known by its commit.
    """
    names = {*planned.files, *(name for name in files if not name.startswith(REVISION))} - {TOOL, REMEDIATION}
    revisions = {f"{REVISION}{revision}": revision.commit for revision in planned.revisions.values()}
    return {
        TOOL: __version__,
        REMEDIATION: _remediation_digest(document, planned.root),
        **{name: revisions[name] for name in sorted(revisions)},
        **{name: _digest(planned.root / name) for name in sorted(names)},
    }


def _remediation_digest(document: Document, root: Path) -> str:
    if document.remediation is None:
        return MISSING
    span = document.remediation.span
    return hashlib.sha256((root / document.path).read_bytes()[span.start : span.end]).hexdigest()


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else MISSING


def _read(file: Path, root: Path) -> Evidence:
    try:
        return Evidence.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise BadDataError(
            f"is no evidence: {reason}",
            file=file.relative_to(root).as_posix(),
            hint="delete it and verify again",
        ) from None


def _replace(file: Path, content: bytes) -> None:
    descriptor, aside = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(aside).chmod(0o644)
        Path(aside).replace(file)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
