"""Find the evidence of a document, and decide from its inputs alone whether it is current.

Evidence names the inputs of a verification: files by digest, commits, and versions. It is stale where one of
them is another now. Nothing is planned or imported for that, and a file is read again only where its state
changed.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from finding_tickets.errors import RevisionError
from finding_tickets.ground import __version__
from finding_tickets.ground.files import safe_name
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.files import (
    ABSENT,
    DiskFiles,
    File,
    KeptFiles,
    as_json,
    file_in,
)
from finding_tickets.register.recorded import (
    NOT_AS_RECORDED,
    NotEvidenceError,
    read_facts,
    verification_in,
)

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Remediation
    from finding_tickets.model.verification import Verification

TOOL = "finding-tickets"
TORCH = "torch"
PYTHON = "Python"
# Inputs that differ between environments: evidence of another one is stale here by these alone.
ELSEWHERE = frozenset({TORCH, PYTHON})
# The version of the Python that the tool runs on; code costs the same with each of its patches.
OWN_PYTHON = ".".join(map(str, sys.version_info[:2]))


class CodeInputs(NamedTuple):
    """The parts of a Remediation that a list needs."""

    digest: str = ABSENT
    verifier: str | None = None  # or the file or module that is run in its place


class RecordedEvidence(NamedTuple):
    """The content of a file of evidence, as far as lists and staleness need it."""

    verdict: Verdict = Verdict.STALE
    meter: str = ""
    torch: str = ""
    device: str = ""
    inputs: tuple[
        tuple[str, str, str], ...
    ] = ()  # the kind, the name and the value of each
    problem: str = ""  # why nothing of the file is believed


class EvidenceFile(NamedTuple):
    """A file of evidence, and the names of its inputs that have changed since."""

    place: str
    evidence: RecordedEvidence
    changed: tuple[str, ...]


@dataclass(frozen=True)
class CurrentVerdict:
    """The verdict that counts now, and where it comes from."""

    verdict: Verdict = Verdict.UNVERIFIED
    loaded: Verification | None = None  # where it is at hand already
    file: str | None = None  # the evidence that the verdict comes from
    evidence: RecordedEvidence | None = None
    disagreement: str | None = None  # the verdicts of meters that differ
    changed: tuple[str, ...] = ()  # the inputs that made all evidence stale

    @cached_property
    def verification(self) -> Verification | None:
        """The whole verification, which is read when it is asked for."""
        if self.file is None:
            return self.loaded
        return verification_in(read_facts(Path(self.file).read_bytes()))


class Verdicts:
    """The verdicts on the documents of the register at ``root``, from its folder of evidence.

    ``digests`` and ``evidence`` are what is known of files from before.
    """

    def __init__(
        self,
        root: Path,
        folder: str,
        digests: KeptFiles[str] | None = None,
        evidence: KeptFiles[RecordedEvidence] | None = None,
    ) -> None:
        self._root, self._folder = root, folder
        self._evidence = evidence or KeptFiles("evidence", as_json(RecordedEvidence))
        self._commit = cache(self._resolve)
        # Many tickets share helpers and packages.
        self._files = DiskFiles(root, digests)

    def current(self, document_id: str, code: CodeInputs | None) -> CurrentVerdict:
        """Return the verdict on a document from its evidence.

        A fresh verdict on a real GPU outranks a simulated one, and one that decides outranks one that does
        not. Of several like that, the one with the tool's own torch counts. With evidence, but none of it
        fresh, it is stale.
        """
        found = self.recorded(document_id, code)
        if not found:
            return CurrentVerdict()
        fresh = [each for each in found if not each.changed]
        if fresh:
            # Evidence of several meters may all be fresh, and disagree.
            first = min(fresh, key=lambda each: rank(each.evidence))
        else:
            # Evidence of another version of torch says least about what has changed here.
            first = min(
                found, key=lambda each: (bool(each.evidence.problem), len(each.changed))
            )
        near = [each.evidence for each in found if ELSEWHERE.issuperset(each.changed)]
        return CurrentVerdict(
            first.evidence.verdict if fresh else Verdict.STALE,
            file=None if first.evidence.problem else first.place,
            evidence=first.evidence,
            disagreement=_disagreement(near),
            changed=first.changed,
        )

    def recorded(self, document_id: str, code: CodeInputs | None) -> list[EvidenceFile]:
        """Return all evidence on a document, from real GPUs first."""
        folder = safe_name(document_id)
        if folder not in self._with_evidence:
            return []
        found = []
        for name in self._names(f"{self._folder}/{folder}"):
            if name.endswith(".json"):
                file = file_in(self._root, f"{self._folder}/{folder}/{name}")
                evidence = self._evidence.get(file, _read_recorded)
                changed = self._changed(evidence, (code or CodeInputs()).digest)
                found.append(EvidenceFile(file.place, evidence, changed))
        return sorted(found, key=lambda each: each.evidence.meter != "cuda")

    def _changed(self, evidence: RecordedEvidence, remediation: str) -> tuple[str, ...]:
        """Return the names of the inputs that are others now, or gone; none if evidence is fresh."""
        if evidence.problem:
            return (evidence.problem,)
        versions = {TOOL: __version__}
        # What is simulated depends on what is installed here; a GPU may be on another machine, with its own.
        if evidence.meter == "simulated":
            versions |= {TORCH: own_torch(), PYTHON: OWN_PYTHON}
        changed = []
        for kind, name, before in evidence.inputs:
            now: str | None
            if kind == "file":
                now = self._files.digest(name) or ABSENT
            elif kind == "folder":
                now = variant_files(self._root, name)
            elif kind == "commit":
                # A part of a commit's hash never means another one.
                now = before if before.startswith(name) else self._commit(name)
            else:
                now = (
                    remediation
                    if kind == "remediation"
                    else versions.get(name) or before
                )
            if now != before:
                changed.append(name)
        return tuple(changed)

    def _resolve(self, revision: str) -> str | None:
        from finding_tickets.ground.commits import Checkouts

        try:
            return Checkouts(self._root).revision(revision).commit
        except RevisionError:
            return None

    @cached_property
    def _with_evidence(self) -> Collection[str]:
        """The folders that hold evidence, each named after an ID."""
        return frozenset(self._names(self._folder))

    def _names(self, folder: str) -> list[str]:
        """Return what is in a folder of the register, sorted; nothing if it cannot be read."""
        with suppress(OSError):
            return sorted(os.listdir(f"{self._root}/{folder}"))  # noqa: PTH208 - names are all it takes
        return []


def variant_files(root: Path, folder: str) -> str:
    """Return the names of the files in a ticket's usual folder that may be variants."""
    return " ".join(sorted(file.name for file in (root / folder).glob("[!_]*.py")))


def code_inputs(remediation: Remediation | None) -> CodeInputs | None:
    """Return what a list needs of a Remediation; None for a document without one."""
    if remediation is None:
        return None
    run = remediation.run
    verifier = run.target.partition(":")[0] if run else remediation.verifier
    return CodeInputs(remediation.digest, verifier)


def _read_recorded(file: File) -> RecordedEvidence:
    """Read what a file of evidence says that decides whether it counts."""
    try:
        facts = read_facts(Path(file.place).read_bytes())
        ((stated,),) = facts["verdict"]
        inputs = tuple((kind, name, value) for kind, name, value in facts["input"])
        return RecordedEvidence(
            verdict=Verdict(stated["verdict"]),
            meter=stated["meter"],
            torch=stated["torch"],
            device=stated["device"],
            inputs=inputs,
        )
    except NotEvidenceError as error:
        return RecordedEvidence(problem=str(error))
    except (OSError, ValueError):
        return RecordedEvidence(problem=NOT_AS_RECORDED)


def rank(done: RecordedEvidence | Verification) -> tuple[bool, bool, bool]:
    """Return a key to sort by: what decides comes first, then real GPUs, then the tool's own torch."""
    return (
        done.verdict is Verdict.INCONCLUSIVE,
        done.meter != "cuda",
        done.torch != own_torch(),
    )


@cache
def own_torch() -> str:
    """Return the version of the installed torch; empty without one."""
    # What the package says of itself takes a tenth of the time that asking for its metadata takes.
    spec = None
    with suppress(ImportError, ValueError):
        spec = find_spec(TORCH)
    if spec is None:
        return ""
    with suppress(OSError):
        text = (
            Path(spec.origin or "").with_name("version.py").read_text(encoding="utf-8")
        )
        if stated := re.search(r"^__version__ = ['\"]([^'\"+]+)", text, re.MULTILINE):
            return stated[1]
    return ""


def _disagreement(evidence: Collection[RecordedEvidence]) -> str | None:
    """Return the verdicts of environments that differ; of one meter each has its device and torch."""
    if len({one.verdict for one in evidence}) < 2:
        return None
    meters = Counter(one.meter for one in evidence)

    def name(one: RecordedEvidence) -> str:
        return (
            one.meter
            if meters[one.meter] == 1
            else f"{one.meter} ({one.device}, torch {one.torch})"
        )

    return ", ".join(sorted(f"{name(one)}: {one.verdict}" for one in evidence))
