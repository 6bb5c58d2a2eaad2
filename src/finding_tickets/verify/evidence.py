"""Recorded verifications: one deterministic file per document and environment, and whether it still holds."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from finding_tickets import __version__
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground.replacing import replace
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Evidence, Input, Verification
from finding_tickets.register.convention import safe_name
from finding_tickets.verify.cells import Cell
from finding_tickets.verify.imports import reach
from finding_tickets.verify.intoto import NoStatementError, written
from finding_tickets.verify.intoto import read as read_statement
from finding_tickets.verify.plan import EVERY, Plan, plan

# Looking a package up takes as long as reading a file of evidence.
version = cache(metadata.version)

TOOL = "finding-tickets"
TORCH = "torch"
REMEDIATION = "Remediation"
ABSENT = hashlib.sha256(b"").hexdigest()
_AS_THEY_ARE: Mapping[str, str] = {}


@dataclass(frozen=True)
class Current:
    """The verdict that counts now, the verification it comes from, and where fresh ones disagree.

    ``changed`` names the inputs that are others now, where all evidence is stale.
    """

    verdict: Verdict
    verification: Verification | None = None
    disagreement: str | None = None
    changed: tuple[str, ...] = ()


def current_verdict(document: Document, root: Path, folder: str = "evidence") -> Current:
    """The verdict on a document from its evidence in ``folder``; nothing that it speaks of is imported.

    A fresh verdict on a real GPU outranks a simulated one, and one that decides outranks one that does not.
    Of several like that, the one with the tool's own torch counts. With evidence, but none of it fresh, it is
    stale.

    Raises:
        BadDataError: A file of evidence cannot be read, or was edited.
    """
    recorded = read(document.id.value, root, folder)
    if not recorded:
        return Current(Verdict.UNVERIFIED)
    planned = _planned(document, root)
    changes = [_changed(evidence, document, planned, _torch_of(evidence)) for evidence in recorded]
    fresh = [evidence.verification for evidence, names in zip(recorded, changes, strict=True) if not names]
    if not fresh:
        # Evidence of another version of torch says least about what has changed here.
        nearest = min(range(len(recorded)), key=lambda place: len(changes[place]))
        return Current(Verdict.STALE, recorded[nearest].verification, changed=changes[nearest])
    counts = min(fresh, key=rank)
    return Current(counts.verdict, counts, _disagreement(fresh))


def rank(done: Verification) -> tuple[bool, bool, bool]:
    """To sort by, what counts most first: what decides, then a real GPU's, then of the tool's own torch."""
    return done.verdict is Verdict.INCONCLUSIVE, done.meter != "cuda", done.torch != own_torch()


def _disagreement(fresh: Sequence[Verification]) -> str | None:
    """The verdicts where they differ, each by its meter, and by device and torch where it has several."""
    if len({one.verdict for one in fresh}) == 1:
        return None
    meters = Counter(one.meter for one in fresh)

    def name(one: Verification) -> str:
        return one.meter if meters[one.meter] == 1 else f"{one.meter} ({one.device}, torch {one.torch})"

    return ", ".join(sorted(f"{name(one)}: {one.verdict}" for one in fresh))


def in_cells(document: Document, root: Path, folder: str, cells: Sequence[Cell]) -> dict[Cell, Current]:
    """What is known of a document in each cell of a matrix, from its evidence alone.

    Evidence of a cell is not stale because the torch beside the tool is another one.

    Raises:
        BadDataError: A file of evidence cannot be read, or was edited.
    """
    known: dict[Cell, Current] = {}
    for revision in dict.fromkeys(cell.revision for cell in cells):
        recorded = read(document.id.value, root, folder, revision)
        planned = _planned(document, root, revision) if recorded else ""
        for cell in (cell for cell in cells if cell.revision == revision):
            here = [evidence for evidence in recorded if cell.has(evidence.verification)]
            found = (_in_cell(evidence, document, planned) for evidence in here)
            known[cell] = min(found, key=_doubt, default=Current(Verdict.UNVERIFIED))
    return known


def _in_cell(evidence: Evidence, document: Document, planned: Plan | str) -> Current:
    done = evidence.verification
    changed = _changed(evidence, document, planned, done.torch)
    return Current(Verdict.STALE if changed else done.verdict, done, changed=changed)


def _doubt(current: Current) -> tuple[bool, bool]:
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


def _planned(document: Document, root: Path, revision: str | None = None) -> Plan | str:
    """What would be measured now, or why nothing would; at a revision, of what names none itself."""
    try:
        overrides = {EVERY: revision} if revision else {}
        return plan(document, root, overrides) or "the verifier, which is gone"
    except BadDataError as error:
        return f"{error.file or document.path} ({error.message})"


def _changed(evidence: Evidence, document: Document, planned: Plan | str, torch: str) -> tuple[str, ...]:
    """The names of the inputs of a verification that are others now, or gone, or new; none if it is fresh.

    ``torch`` is the version that it would be measured with.
    """
    if isinstance(planned, str):
        return (planned,)
    files = [each.name for each in evidence.inputs if each.kind == "file" and each.name != REMEDIATION]
    before = {(each.name, each.kind): each.value for each in evidence.inputs}
    again = evidence.verification.model_copy(update={"torch": torch})
    current = inputs(planned, document, again, files)
    now = {(each.name, each.kind): each.value for each in current}
    names = dict.fromkeys([*before, *now])
    imported = [file for file in files if file not in planned.files]
    changed = (key[0] for key in names if before.get(key) != now.get(key))
    return (*changed, *_shadows(imported, planned.root))


def _shadows(imported: Iterable[str], root: Path) -> Iterator[str]:
    """The packages that Python would import now in the place of modules of the same name beside them."""
    for file in imported:
        package = f"{file.removesuffix('.py')}/__init__.py"
        if file.endswith(".py") and (root / package).is_file():
            yield package


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


def own_torch() -> str:
    """The version of the torch that is installed beside the tool."""
    return version(TORCH).split("+")[0]


def _torch_of(evidence: Evidence) -> str:
    """The version to measure with again; a real GPU may be on another machine, with a torch of its own."""
    done = evidence.verification
    return own_torch() if done.meter == "simulated" else done.torch


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
