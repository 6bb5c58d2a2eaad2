"""Recorded verifications: one small deterministic file for each ticket and environment.

It has what was measured and claimed as facts, a line each, and the inputs that it depends on.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.ground import __version__
from finding_tickets.ground.files import fixes_folder, replace, safe_name
from finding_tickets.measure.tasks import belongs_to
from finding_tickets.model.verification import Evidence, Input, Verification
from finding_tickets.register.files import ABSENT, DiskFiles, state_of
from finding_tickets.register.recorded import (
    read_facts,
    verification_facts,
    verification_in,
    write_facts,
)
from finding_tickets.register.staleness import (
    OWN_PYTHON,
    PYTHON,
    TOOL,
    TORCH,
    variant_files,
)
from finding_tickets.verify.plan import Plan

if TYPE_CHECKING:
    from finding_tickets.measure.processes.isolation import TaskOutcome

# Let git keep the lines of both branches; the digest tells that the file is of neither.
ATTRIBUTES = "* merge=union\n"
_CACHED = re.compile(r"__pycache__/([^/.]+)\.[^/]*\.pyc$")


def dump(evidence: Evidence) -> bytes:
    """Return the file of evidence; the same evidence gives the same bytes."""
    inputs = [["input", each.kind, each.name, each.value] for each in evidence.inputs]
    return write_facts([*verification_facts(evidence.verification), *inputs])


def load(content: bytes) -> Evidence:
    """Return the evidence in a file.

    Raises:
        NotEvidenceError: An older version wrote it, or it is not as it was written.
    """
    facts = read_facts(content)
    inputs = tuple(
        Input(kind=kind, name=name, value=value) for kind, name, value in facts["input"]
    )
    return Evidence(inputs=inputs, verification=verification_in(facts))


def name_of(verification: Verification) -> str:
    """Return the file of a verification within the folder of evidence."""
    name = safe_name(
        f"{verification.meter}-torch{verification.torch}-{verification.device}"
    )
    return f"{safe_name(verification.ticket)}/{name}.json"


def write(evidence: Evidence, root: Path, folder: str) -> None:
    """Record evidence, aside and then in one step; a file that already has it is not touched.

    Raises:
        OSError: The file cannot be written.
    """
    file = root / folder / name_of(evidence.verification)
    if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root)):
        raise OSError(errno.EXDEV, "the link leaves the repository", str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    for path, content in (
        (file, dump(evidence)),
        (root / folder / ".gitattributes", ATTRIBUTES.encode()),
    ):
        if not path.is_file() or path.read_bytes() != content:
            replace(path, content, mode=0o644)


def collect_inputs(
    planned: Plan, done: Verification, files: Iterable[Input]
) -> tuple[Input, ...]:
    """Return what a verification depends on: versions, the Remediation section, commits, and ``files``.

    Code at a revision is known by its commit.
    """
    remediation = planned.document.remediation
    folder = fixes_folder(planned.document.id.value)
    inputs = [
        Input(kind="version", name=TOOL, value=__version__),
        Input(kind="version", name=TORCH, value=done.torch),
        Input(kind="version", name=PYTHON, value=OWN_PYTHON),
        Input(
            kind="remediation",
            name="Remediation",
            value=remediation.digest if remediation else ABSENT,
        ),
    ]
    if not planned.run:
        # Another file there may be another variant.
        inputs.append(
            Input(kind="folder", name=folder, value=variant_files(planned.root, folder))
        )
    commits = {
        str(revision): revision.commit for revision in planned.revisions.values()
    }
    inputs += [
        Input(kind="commit", name=name, value=commits[name]) for name in sorted(commits)
    ]
    return (*inputs, *files)


def file_inputs(
    outcomes: Iterable[TaskOutcome], planned: Plan, elsewhere: Collection[str] = ()
) -> list[Input]:
    """Return the files of the work tree that the runs of a plan depend on, by their digests.

    A file that was edited after a run used it gets the digest of no file: what was measured is unknown.
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
        inputs.append(Input(kind="file", name=name, value=value or ABSENT))
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
    written = {
        file.path
        for outcome in outcomes
        for file in outcome.used.files
        if file.is_written
    }
    data = {path for path in written if not path.endswith(".py")}
    places = [*elsewhere, sys.prefix, sys.base_prefix]
    foreign = [Path(place) for place in places if Path(place).is_relative_to(root)]
    found: dict[str, set[tuple[int, int]]] = {}
    for outcome in outcomes:
        for file in outcome.used.files:
            path = Path(file.path)
            if (
                file.is_written
                or file.path in data
                or file.changed >= outcome.used.begin
            ):
                continue
            if not belongs_to(root, path) or any(
                path.is_relative_to(folder) for folder in foreign
            ):
                continue
            name = path.relative_to(root).as_posix()
            if match := _CACHED.search(name):
                # pytest keeps the bytecode of tests, and runs it as long as it is that of the source.
                found.setdefault(f"{name[: match.start()]}{match[1]}.py", set())
            elif not name.startswith(".git/"):
                found.setdefault(name, set()).add((file.size, file.modified))
    return found
