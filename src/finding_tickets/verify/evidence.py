"""Recorded verifications: one deterministic file for each ticket and environment, and whether it still holds.

A file is an in-toto Statement with the test-result predicate, https://github.com/in-toto/attestation: the
subjects are the variants in the work tree, the configuration is everything else that the result depends on.
What the predicate has no key for stands beside its own ones: the whole verification, and a digest by which an
edit of the file is found out.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground import __version__
from finding_tickets.ground.files import replace, safe_name
from finding_tickets.measure.tasks import belongs_to
from finding_tickets.model.verification import Evidence, Input, Verification
from finding_tickets.register.files import ABSENT, DiskFiles, state_of
from finding_tickets.register.intoto import (
    NO_STATEMENT,
    NoStatementError,
    input_of,
    read_statement,
    resource,
    write_statement,
)
from finding_tickets.register.staleness import (
    KINDS,
    OF_OLDER_VERSION,
    OWN_PYTHON,
    PYTHON,
    REMEDIATION,
    TOOL,
    TORCH,
    CurrentVerdict,
    Verdicts,
    code_inputs,
)
from finding_tickets.verify.plan import Plan

if TYPE_CHECKING:
    from finding_tickets.measure.processes.isolation import TaskOutcome

_CACHED = re.compile(r"__pycache__/([^/.]+)\.[^/]*\.pyc$")


def dump(evidence: Evidence) -> bytes:
    """The bytes of a Statement; the same evidence gives the same bytes."""
    claims = evidence.verification.claims
    failed = [claim.id for claim in claims if claim.is_surprise]
    is_passed = bool(claims) and all(claim.as_expected for claim in claims)
    # Operations are never kept.
    exclude: dict[str, Any] = {"variants": {name: {"operations"} for name in evidence.verification.variants}}
    predicate: dict[str, Any] = {
        "result": "FAILED" if failed else "PASSED" if is_passed else "WARNED",
        "configuration": [resource(each) for each in evidence.inputs if not each.is_subject],
        "passedTests": [claim.id for claim in claims if claim.as_expected],
        "warnedTests": [claim.id for claim in claims if claim.holds is None],
        "failedTests": failed,
        "verification": evidence.verification.model_dump(mode="json", exclude=exclude),
    }
    return write_statement((resource(each) for each in evidence.inputs if each.is_subject), predicate)


def load(content: bytes) -> Evidence:
    """The evidence in a Statement.

    Raises:
        NoStatementError: It is none, or it was edited.
    """
    statement = read_statement(content)
    try:
        predicate = statement["predicate"]
        inputs = [
            {"name": name, "kind": kind, "value": value, "is_subject": is_subject}
            for place, is_subject in ((statement["subject"], True), (predicate["configuration"], False))
            for name, kind, value in map(input_of, place)
        ]
        if any(each["kind"] not in KINDS for each in inputs):
            raise NoStatementError(OF_OLDER_VERSION)
        return Evidence.model_validate({"inputs": inputs, "verification": predicate["verification"]})
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(str(part) for part in wrong["loc"] if part != "verification")
        raise NoStatementError(f"{place}: {wrong['msg']}") from None
    except (LookupError, TypeError, AttributeError):
        raise NoStatementError(NO_STATEMENT) from None


def name_of(verification: Verification) -> str:
    """The file of a verification within the folder of evidence."""
    name = safe_name(f"{verification.meter}-torch{verification.torch}-{verification.device}")
    return f"{safe_name(verification.ticket)}/{name}.json"


def write(evidence: Evidence, root: Path, folder: str) -> None:
    """Record evidence, aside and then in one step; a file that already says the same is not touched.

    Raises:
        OSError: The file cannot be written.
    """
    file = root / folder / name_of(evidence.verification)
    if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root)):
        raise OSError(errno.EXDEV, "the link leaves the repository", str(file))
    content = dump(evidence)
    if not file.is_file() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, content, mode=0o644)


def read(ticket: str, root: Path, folder: str) -> list[Evidence]:
    """All evidence on a ticket in the work tree; that of real GPUs first.

    Raises:
        BadDataError: A file is not what ``write`` writes.
    """
    recorded = []
    for file in sorted((root / folder / safe_name(ticket)).glob("*.json")):
        try:
            recorded.append(load(file.read_bytes()))
        except (OSError, NoStatementError) as error:
            raise BadDataError(
                f"is no evidence: {error}",
                file=file.relative_to(root).as_posix(),
                hint="restore it, or remove it and verify again",
            ) from None
    return sorted(recorded, key=lambda evidence: evidence.verification.meter != "cuda")


def current_verdict(document: Document, root: Path, folder: str = "evidence") -> CurrentVerdict:
    """The verdict on a document from its evidence in ``folder``; nothing that it speaks of is imported.

    Raises:
        BadDataError: A file of evidence cannot be read, or was edited.
    """
    return Verdicts(root, folder).current(document.id.value, code_inputs(document.remediation))


def collect_inputs(
    planned: Plan, document: Document, done: Verification, files: Iterable[Input]
) -> tuple[Input, ...]:
    """Return what a verification depends on: versions, the Remediation section, commits, and ``files``.

    Code at a revision is known by its commit.
    """
    subjects = set(planned.files) - {planned.verifier}
    revisions = {str(revision): revision.commit for revision in planned.revisions.values()}
    remediation = document.remediation.digest if document.remediation else ABSENT
    return (
        Input(name=TOOL, kind="version", value=__version__),
        Input(name=TORCH, kind="version", value=done.torch),
        Input(name=PYTHON, kind="version", value=OWN_PYTHON),
        Input(name=REMEDIATION, kind="file", value=remediation),
        *(Input(name=name, kind="commit", value=revisions[name]) for name in sorted(revisions)),
        *(each.model_copy(update={"is_subject": each.name in subjects}) for each in files),
    )


def file_inputs(
    outcomes: Iterable[TaskOutcome], planned: Plan, elsewhere: Collection[str] = ()
) -> list[Input]:
    """Return the files of the work tree that the runs of a plan depend on, by their digests.

    A file that was edited after a run used it has the digest of no file: nobody can say what was measured.
    """
    root, disk = planned.root, DiskFiles(planned.root)
    used = collect_files(outcomes, root, elsewhere)
    for name in planned.files:
        # The verifier may come from another folder than the code.
        if name != planned.verifier or planned.verifiers == root:
            used.setdefault(name, set())
    inputs = []
    for name in sorted(used):
        now = state_of(f"{root}/{name}")
        is_edited = now and used[name] - {(now.size, now.modified)}
        value = None if is_edited else disk.digest(name)
        inputs.append(Input(name=name, kind="file", value=value or ABSENT))
    return inputs


def collect_files(
    outcomes: Iterable[TaskOutcome], root: Path, elsewhere: Collection[str] = ()
) -> dict[str, set[tuple[int, int]]]:
    """Return the files below ``root`` that runs depend on, by their paths from there.

    Each has the sizes and the times of modification that the runs found. ``elsewhere`` are folders that are
    known otherwise. Data that a run writes is not an input, nor is a file that changed after the run began
    and before it was used: C code of the run may have written it.
    """
    outcomes = list(outcomes)
    written = {file.path for outcome in outcomes for file in outcome.used.files if file.is_written}
    data = {path for path in written if not path.endswith(".py")}
    places = [*elsewhere, sys.prefix, sys.base_prefix]
    foreign = [Path(place) for place in places if Path(place).is_relative_to(root)]
    found: dict[str, set[tuple[int, int]]] = {}
    for outcome in outcomes:
        for file in outcome.used.files:
            path = Path(file.path)
            if file.is_written or file.path in data or file.changed >= outcome.used.begin:
                continue
            if not belongs_to(root, path) or any(path.is_relative_to(folder) for folder in foreign):
                continue
            name = path.relative_to(root).as_posix()
            if match := _CACHED.search(name):
                # pytest keeps the bytecode of tests, and runs it as long as it is that of the source.
                found.setdefault(f"{name[: match.start()]}{match[1]}.py", set())
            elif not name.startswith(".git/"):
                found.setdefault(name, set()).add((file.size, file.modified))
    return found
