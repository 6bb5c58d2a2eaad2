"""Recorded verifications: one deterministic file for each ticket and environment, and whether it still holds.

A file is an in-toto Statement with the test-result predicate, https://github.com/in-toto/attestation: the
subjects are the variants in the work tree, the configuration is everything else that the result depends on.
What the predicate has no key for stands beside its own ones: the whole verification, and a digest by which an
edit of the file is found out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError
from finding_tickets.ground import __version__
from finding_tickets.ground.files import replace, safe_name
from finding_tickets.model.verification import Evidence, Input, Verification
from finding_tickets.model.vocabulary import SECONDS
from finding_tickets.register.staleness import (
    ABSENT,
    NO_STATEMENT,
    REMEDIATION,
    TOOL,
    TORCH,
    CurrentVerdict,
    NoStatementError,
    Verdicts,
    code_inputs,
    evidence_folder,
    input_of,
    read_statement,
    resource,
    write_statement,
)
from finding_tickets.verify.plan import Plan


def dump(evidence: Evidence) -> bytes:
    """The bytes of a Statement; the same evidence gives the same bytes."""
    claims = evidence.verification.claims
    failed = [claim.id for claim in claims if claim.is_surprise]
    is_passed = bool(claims) and all(claim.as_expected for claim in claims)
    # Timings are never kept. That there is no revision says no more than that it is of the work tree.
    left_out = {"timings"} if evidence.verification.revision else {"timings", "revision"}
    predicate: dict[str, Any] = {
        "result": "FAILED" if failed else "PASSED" if is_passed else "WARNED",
        "configuration": [resource(each) for each in evidence.inputs if not each.is_subject],
        "passedTests": [claim.id for claim in claims if claim.as_expected],
        "warnedTests": [claim.id for claim in claims if claim.holds is None],
        "failedTests": failed,
        "verification": evidence.verification.model_dump(mode="json", exclude=left_out),
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
    return f"{evidence_folder(verification.ticket, verification.revision)}/{name}.json"


def write(evidence: Evidence, root: Path, folder: str) -> Evidence:
    """Record evidence, aside and then in one step; a file that already says the same is not touched.

    Returns:
        What is recorded then: a timing that decides nothing says nothing against an earlier one that did, if
        the inputs are the same.

    Raises:
        OSError: The file cannot be written.
    """
    file = root / folder / name_of(evidence.verification)
    before = file.read_bytes() if file.is_file() else None
    with suppress(NoStatementError):
        evidence = _keep_decided_times(evidence, load(before)) if before else evidence
    content = dump(evidence)
    if content != before:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, content, mode=0o644)
    return evidence


def _keep_decided_times(now: Evidence, before: Evidence) -> Evidence:
    old, new = before.verification, now.verification
    if before.inputs != now.inputs or [one.id for one in old.claims] != [one.id for one in new.claims]:
        return now
    claims = tuple(
        earlier if claim.metric == SECONDS and claim.holds is None and earlier.holds is not None else claim
        for earlier, claim in zip(old.claims, new.claims, strict=True)
    )
    same = {"claims": claims, "verdict": old.verdict, "reason": old.reason}
    return before if new.model_copy(update=same) == old else now


def read(ticket: str, root: Path, folder: str, revision: str | None = None) -> list[Evidence]:
    """All evidence on a ticket in the work tree, or at a revision; that of real GPUs first.

    Raises:
        BadDataError: A file is not what ``write`` writes.
    """
    recorded = []
    for file in sorted((root / folder / evidence_folder(ticket, revision)).glob("*.json")):
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


def inputs(
    planned: Plan,
    document: Document,
    done: Verification,
    imported: Iterable[str] = (),
    digests: Mapping[str, str] | None = None,
) -> tuple[Input, ...]:
    """What a verification depends on: versions of what measures, the Remediation section, commits and code.

    ``imported`` are files of the work tree, relative to its root, beyond those that the plan knows. Where
    nothing was measured nobody knows them, and what could be imported counts. ``digests`` are those of files
    as they were measured; the others are taken as they are now. Code at a revision is known by its commit.
    """
    known = digests or {}
    subjects = set(planned.files) - {planned.verifier}
    revisions = {str(revision): revision.commit for revision in planned.revisions.values()}
    files = sorted({*planned.files, *(imported if done.variants else importable(planned))})
    remediation = document.remediation.digest if document.remediation else ABSENT
    return (
        Input(name=TOOL, kind="version", value=__version__),
        Input(name=TORCH, kind="version", value=done.torch),
        Input(name=REMEDIATION, kind="file", value=remediation),
        *(Input(name=name, kind="commit", value=revisions[name]) for name in sorted(revisions)),
        *(
            Input(
                name=name,
                kind="file",
                value=known.get(name) or digest(planned.root / name),
                is_subject=name in subjects,
            )
            for name in files
        ),
    )


def importable(planned: Plan) -> Iterator[str]:
    """The files of the work tree that could be imported, as far as the text of the code says."""
    # Most verifications have run, and know what they imported.
    from finding_tickets.ground.imports import reach

    def read_text(path: str) -> bytes | None:
        file = planned.root / path
        return file.read_bytes() if file.is_file() else None

    paths = reach(read_text, planned.files, planned.modules)
    return (path for path in paths if (planned.root / path).is_file())


def digest(file: Path) -> str:
    """The SHA-256 of a file, that of nothing where there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ABSENT
