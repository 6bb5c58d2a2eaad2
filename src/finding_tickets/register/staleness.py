"""What the machine measured for a document, and whether that still holds: decided from its inputs alone.

Evidence names the inputs of a verification: files by digest, commits, and versions. It is stale where one of
them is another now. Nothing is planned or imported for that, and a file is read again only where its state
changed.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from finding_tickets.errors import BadDataError
from finding_tickets.ground import __version__
from finding_tickets.ground.files import fixes_folder, safe_name
from finding_tickets.model.vocabulary import SAME_RESULT, Verdict
from finding_tickets.register.files import ABSENT, DiskFiles, File, KeptFiles, as_json, file_in
from finding_tickets.register.intoto import (
    NO_STATEMENT,
    Recorded,
    input_of,
    read_statement,
)

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Remediation
    from finding_tickets.model.verification import Verification

TOOL = "finding-tickets"
TORCH = "torch"
PYTHON = "Python"
ELSEWHERE = frozenset({TORCH, PYTHON})
"""Inputs that differ between environments: evidence of another one is stale here by these alone."""
OWN_PYTHON = ".".join(map(str, sys.version_info[:3]))
"""The version of the Python that the tool runs on."""
REMEDIATION = "Remediation"
KINDS = frozenset({"file", "commit", "version"})
"""The kinds of inputs."""
OF_OLDER_VERSION = "it was recorded by an older version of this tool"


class CodeInputs(NamedTuple):
    """What a verification depends on, as far as the Remediation of a document says it."""

    digest: str = ABSENT
    verifier: str | None = None  # or the file or module that is run in its place
    modules: tuple[str, ...] = ()  # files and dotted names of variants without a revision
    revisions: tuple[str, ...] = ()  # of the other variants
    # Names in claims: variants if the usual folder has such files. None: all files there are variants.
    claimed: tuple[str, ...] | None = None


class RecordedEvidence(NamedTuple):
    """What a file of evidence says, as far as lists and staleness need it."""

    verdict: Verdict
    meter: str
    torch: str
    device: str
    inputs: tuple[Recorded, ...]


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
    environment: tuple[str, ...] = ()  # what is another version or build here, stale by that or not
    problem: BadDataError | None = None  # why evidence could not be read

    @cached_property
    def verification(self) -> Verification | None:
        """The whole verification, which is read when it is asked for."""
        if self.file is None:
            return self.loaded
        from pydantic import ValidationError

        from finding_tickets.model.verification import Verification

        try:
            predicate = json.loads(Path(self.file).read_bytes())["predicate"]
            return Verification.model_validate(predicate["verification"])
        except (OSError, ValueError, LookupError, ValidationError) as error:
            raise BadDataError(f"is no evidence: {error}", file=self.file) from None


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
        self._commits: dict[str, str | None] = {}
        # Many tickets share helpers and packages.
        self._files = DiskFiles(root, digests)

    def current(self, document_id: str, code: CodeInputs | None) -> CurrentVerdict:
        """The verdict on a document from its evidence.

        A fresh verdict on a real GPU outranks a simulated one, and one that decides outranks one that does
        not. Of several like that, the one with the tool's own torch counts. With evidence, but none of it
        fresh, it is stale. ``BadDataError`` where a file of evidence cannot be read, or was edited.
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
            first = min(found, key=lambda each: len(each.changed))
        counts = first.evidence
        is_readable = first.changed != (OF_OLDER_VERSION,)
        return CurrentVerdict(
            counts.verdict if fresh else Verdict.STALE,
            file=first.place if is_readable else None,
            evidence=counts,
            disagreement=_disagreement(
                [each.evidence for each in found if ELSEWHERE.issuperset(each.changed)]
            ),
            changed=first.changed,
            environment=changed_versions(counts.inputs) if counts.meter == "simulated" else (),
        )

    def recorded(self, document_id: str, code: CodeInputs | None) -> list[EvidenceFile]:
        """Return all evidence on a document, that of real GPUs first."""
        if not self.has_evidence(document_id):
            return []
        place = f"{self._folder}/{safe_name(document_id)}"
        found = []
        for name in sorted(self._names(place)):
            if name.endswith(".json"):
                file = self._file(f"{place}/{name}")
                evidence = self._evidence.get(file, _read_recorded)
                changed = self._changed(evidence, document_id, code or CodeInputs())
                found.append(EvidenceFile(file.place, evidence, changed))
        return sorted(found, key=lambda each: each.evidence.meter != "cuda")

    def has_evidence(self, document_id: str) -> bool:
        """Whether there is, or may be, a folder of evidence on a document."""
        with suppress(BadDataError):
            return safe_name(document_id) in self._with_evidence
        return True

    def resolve(self, revisions: Iterable[str]) -> None:
        """Ask git once for the commits of all these revisions, for which it is asked one by one otherwise."""
        if unknown := [name for name in revisions if name not in self._commits]:
            from finding_tickets.ground.commits import resolve_commits

            found = resolve_commits(self._root, unknown)
            self._commits |= {name: found.get(name) for name in unknown}

    def _changed(self, evidence: RecordedEvidence, document_id: str, code: CodeInputs) -> tuple[str, ...]:
        """The names of the inputs of a verification that are others now, or gone, or new; none if fresh.

        Where the Remediation is the same, the files and revisions that it names are among those recorded:
        what cannot be planned leaves no evidence.
        """
        before = {(name, kind): value for name, kind, value in evidence.inputs}
        if (PYTHON, "version") not in before or not all(kind in KINDS for _, kind in before):
            return (OF_OLDER_VERSION,)
        revisions = [name for name, kind in before if kind == "commit"]
        self.resolve(revisions)
        now: dict[tuple[str, str], str | None] = {
            (TOOL, "version"): __version__,
            (REMEDIATION, "file"): code.digest,
            **{(name, "commit"): self._commits[name] for name in revisions},
        }
        changed = [key[0] for key, value in now.items() if before.get(key) != value]
        changed += changed_files(evidence.inputs, self._files)
        usual = self._usual_variants(document_id, code)
        changed += [file for file in usual if (file, "file") not in before]
        # What is simulated depends on what is installed here; a GPU may be on another machine, with its own.
        if evidence.meter == "simulated":
            python = before[PYTHON, "version"]
            is_near = python.split(".")[:2] == OWN_PYTHON.split(".")[:2]
            changed += [
                name for name in changed_versions(evidence.inputs) if not (name == PYTHON and is_near)
            ]
        return tuple(dict.fromkeys(changed))

    def _usual_variants(self, document_id: str, code: CodeInputs) -> list[str]:
        """The files of the usual folder that are variants of a document without being named as such."""
        folder = fixes_folder(document_id)
        if code.claimed is not None:
            files = (f"{folder}/{name}.py" for name in code.claimed)
            return [file for file in files if self._file(file).state]
        names = (name for name in self._names(folder) if name.endswith(".py"))
        return [f"{folder}/{name}" for name in names if not name.startswith("_")]

    @cached_property
    def _with_evidence(self) -> Collection[str]:
        """The folders that hold evidence, each named after an ID."""
        return frozenset(self._names(self._folder))

    def _names(self, folder: str) -> list[str]:
        """What is in a folder of the register; nothing where there is no such folder."""
        try:
            return os.listdir(f"{self._root}/{folder}")  # noqa: PTH208 - names are all it takes
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise BadDataError(f"cannot be read: {error.strerror}", file=folder) from None

    def _file(self, path: str) -> File:
        return file_in(self._root, path)


def changed_files(inputs: Iterable[Recorded], files: DiskFiles) -> list[str]:
    """Return the names of the files among the inputs that are others now, or gone."""
    return [
        name
        for name, kind, value in inputs
        if kind == "file" and name != REMEDIATION and (files.digest(name) or ABSENT) != value
    ]


def changed_versions(inputs: Iterable[Recorded]) -> tuple[str, ...]:
    """Return which of torch and Python have another version beside the tool; what is missing is left out."""
    own = {PYTHON: OWN_PYTHON, TORCH: own_torch()}
    return tuple(
        name for name, kind, value in inputs if kind == "version" and own.get(name) and own[name] != value
    )


def code_inputs(remediation: Remediation | None) -> CodeInputs | None:
    """What verifying a document depends on; None for one without a Remediation."""
    if remediation is None:
        return None
    variants = remediation.variants
    if remediation.run:
        module, refs = remediation.run.target.partition(":")[0], variants.values()
        modules = (module,) if any(ref.revision is None for ref in refs) else ()
        revisions = tuple(dict.fromkeys(ref.revision for ref in refs if ref.revision))
        return CodeInputs(remediation.digest, module, modules, revisions, ())
    names: dict[str, None] = {}
    for claim in remediation.claims:
        compared = claim.metric == SAME_RESULT
        names |= dict.fromkeys([claim.variant, *(re.findall(r"\w+", claim.value) if compared else ())])
    return CodeInputs(
        remediation.digest,
        remediation.verifier,
        tuple(dict.fromkeys(ref.module for ref in variants.values() if not ref.revision)),
        tuple(dict.fromkeys(ref.revision for ref in variants.values() if ref.revision)),
        tuple(name for name in names if name not in variants) if variants else None,
    )


def _read_recorded(file: File) -> RecordedEvidence:
    """What a file of evidence says that decides whether it counts."""
    try:
        statement = read_statement(Path(file.place).read_bytes())
        predicate = statement["predicate"]
        done = predicate["verification"]
        return RecordedEvidence(
            verdict=Verdict(done["verdict"]),
            meter=done["meter"],
            torch=done["torch"],
            device=done["device"],
            inputs=tuple(map(input_of, [*statement["subject"], *predicate["configuration"]])),
        )
    except (OSError, ValueError) as error:
        why = str(error)
    except (LookupError, TypeError, AttributeError):
        why = NO_STATEMENT
    raise BadDataError(
        f"is no evidence: {why}", file=file.path, hint="restore it, or remove it and verify again"
    )


def rank(done: RecordedEvidence | Verification) -> tuple[bool, bool, bool]:
    """To sort by, what counts most first: what decides, then a real GPU's, then of the tool's own torch."""
    return done.verdict is Verdict.INCONCLUSIVE, done.meter != "cuda", done.torch != own_torch()


@cache
def own_torch() -> str:
    """The version of the torch that is installed beside the tool; empty where none is."""
    # What the package says of itself takes a tenth of the time that asking for its metadata takes.
    spec = None
    with suppress(ImportError, ValueError):
        spec = find_spec(TORCH)
    if spec is None:
        return ""
    with suppress(OSError):
        text = Path(spec.origin or "").with_name("version.py").read_text(encoding="utf-8")
        if stated := re.search(r"^__version__ = ['\"]([^'\"+]+)", text, re.MULTILINE):
            return stated[1]
    return ""


def _disagreement(evidence: Collection[RecordedEvidence]) -> str | None:
    """Return the verdicts of environments that differ; of one meter each has its device and torch."""
    if len({one.verdict for one in evidence}) < 2:
        return None
    meters = Counter(one.meter for one in evidence)

    def name(one: RecordedEvidence) -> str:
        return one.meter if meters[one.meter] == 1 else f"{one.meter} ({one.device}, torch {one.torch})"

    return ", ".join(sorted(f"{name(one)}: {one.verdict}" for one in evidence))
