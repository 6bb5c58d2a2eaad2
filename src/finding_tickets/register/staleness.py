"""What the machine measured for a document, and whether that still holds: decided from digests alone.

Evidence names the inputs of a verification with their digests. It is stale where one of them is another now,
gone, or new. Nothing is planned or imported for that, and a file is read again only where its state changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from finding_tickets.errors import BadDataError
from finding_tickets.ground import __version__
from finding_tickets.ground.files import fixes_folder, safe_name, verifier_path
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS, Verdict
from finding_tickets.register.files import File, KnownFiles, State, state_of

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Remediation
    from finding_tickets.model.verification import Input, Verification

TOOL = "finding-tickets"
TORCH = "torch"
REMEDIATION = "Remediation"
ABSENT = hashlib.sha256(b"").hexdigest()
NO_STATEMENT = "it is no in-toto Statement of a test result"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"


def evidence_folder(ticket: str, revision: str | None) -> str:
    """The folder of a ticket within that of all evidence; each revision has one of its own."""
    return "/".join(safe_name(part) for part in (ticket, revision) if part)


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
    revision: str | None
    ran: bool  # if no variant was measured, nobody knows what would have been imported
    is_timed: bool  # a claim was decided by times
    inputs: tuple[tuple[str, str, str], ...]  # name, kind (version, file or commit) and value


@dataclass(frozen=True)
class CurrentVerdict:
    """The verdict that counts now, and where it comes from."""

    verdict: Verdict = Verdict.UNVERIFIED
    loaded: Verification | None = None  # where it is at hand already
    file: str | None = None  # the evidence that the verdict comes from
    evidence: RecordedEvidence | None = None
    disagreement: str | None = None  # the verdicts of meters that differ
    changed: tuple[str, ...] = ()  # the inputs that made all evidence stale
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

    ``digests`` and ``evidence`` are what an earlier run knew of files, by their paths.
    """

    def __init__(
        self,
        root: Path,
        folder: str,
        digests: Mapping[str, tuple[State, str]] | None = None,
        evidence: Mapping[str, tuple[State, RecordedEvidence]] | None = None,
    ) -> None:
        self._root, self._folder = root, folder
        self.digests, self.evidence = KnownFiles(digests or {}), KnownFiles(evidence or {})
        self._commits: dict[str, str | None] = {}
        # Many tickets share helpers.
        self._digest = cache(self._digest_now)

    def current(self, document_id: str, code: CodeInputs | None) -> CurrentVerdict:
        """The verdict on a document from its evidence.

        A fresh verdict on a real GPU outranks a simulated one, and one that decides outranks one that does
        not. Of several like that, the one with the tool's own torch counts. With evidence, but none of it
        fresh, it is stale. ``BadDataError`` where a file of evidence cannot be read, or was edited.
        """
        found = self.recorded(document_id, code)
        fresh = [(file, evidence) for file, evidence, changed in found if not changed]
        if fresh:
            # Evidence of several meters may all be fresh, and disagree.
            file, counts = min(fresh, key=lambda each: rank(each[1]))
            disagreement = _disagreement([each for _, each in fresh])
            return CurrentVerdict(counts.verdict, None, file, counts, disagreement)
        if found:
            # Evidence of another version of torch says least about what has changed here.
            file, nearest, changed = min(found, key=lambda each: len(each[2]))
            return CurrentVerdict(Verdict.STALE, None, file, nearest, changed=changed)
        return CurrentVerdict()

    def recorded(
        self,
        document_id: str,
        code: CodeInputs | None,
        revision: str | None = None,
        *,
        any_torch: bool = False,
    ) -> list[tuple[str, RecordedEvidence, tuple[str, ...]]]:
        """All evidence on a document in the work tree, or at a revision, with the inputs that have changed.

        That of real GPUs comes first. With ``any_torch`` it is not stale because the tool has another torch.
        """
        if not self.has_evidence(document_id):
            return []
        place = f"{self._folder}/{evidence_folder(document_id, revision)}"
        found = []
        for name in sorted(self._names(place)):
            if name.endswith(".json"):
                file = self._file(f"{place}/{name}")
                evidence = self.evidence.get(file, _read_recorded)
                changed = self._changed(evidence, document_id, code or CodeInputs(), any_torch)
                found.append((file.place, evidence, changed))
        return sorted(found, key=lambda each: each[1].meter != "cuda")

    def has_evidence(self, document_id: str) -> bool:
        """Whether there is, or may be, a folder of evidence on a document."""
        with suppress(BadDataError):
            return safe_name(document_id) in self._with_evidence
        return True

    def resolve(self, revisions: Iterable[str]) -> None:
        """Ask git once for the commits of all these revisions, for which it is asked one by one otherwise."""
        if unknown := [name for name in revisions if name not in self._commits]:
            from finding_tickets.ground.checkouts import resolve_commits

            found = resolve_commits(self._root, unknown)
            self._commits |= {name: found.get(name) for name in unknown}

    def _changed(
        self, evidence: RecordedEvidence, document_id: str, code: CodeInputs, any_torch: bool
    ) -> tuple[str, ...]:
        """The names of the inputs of a verification that are others now, or gone, or new; none if fresh.

        Where the Remediation is the same, the files and revisions that it names are among those recorded:
        what cannot be planned leaves no evidence.
        """
        before = {(name, kind): value for name, kind, value in evidence.inputs}
        recorded = [name for name, kind in before if kind == "file" and name != REMEDIATION]
        # What is simulated depends on the torch here, if there is one; a GPU may be on another machine, with
        # its own.
        own = evidence.meter == "simulated" and not any_torch and own_torch()
        now: dict[tuple[str, str], str | None] = {
            (TOOL, "version"): __version__,
            (TORCH, "version"): own_torch() if own else evidence.torch,
            (REMEDIATION, "file"): code.digest,
        }
        revisions = [name for name, kind in before if kind == "commit"]
        self.resolve(revisions)
        now |= {(name, "commit"): self._commits[name] for name in revisions}
        usual = [] if evidence.revision else self._usual_variants(document_id, code)
        now |= {(name, "file"): self._digest(name) for name in sorted({*recorded, *usual})}
        changed = [key[0] for key in {**before, **now} if before.get(key) != now.get(key)]
        # Python would import a package in the place of a module of the same name beside it. What a plan names
        # is loaded by its path.
        by_path = {code.verifier or verifier_path(document_id), *code.modules, *usual}
        modules = (name.removesuffix(".py") for name in recorded if name not in by_path)
        changed += filter(self._exists, (f"{module}/__init__.py" for module in modules))
        if not evidence.ran and not changed:
            new = (path for path in self._importable(recorded, code) if path not in recorded)
            changed += filter(self._exists, new)
        return tuple(changed)

    def _usual_variants(self, document_id: str, code: CodeInputs) -> list[str]:
        """The files of the usual folder that are variants of a document without being named as such."""
        folder = fixes_folder(document_id)
        if code.claimed is not None:
            return list(filter(self._exists, (f"{folder}/{name}.py" for name in code.claimed)))
        names = (name for name in self._names(folder) if name.endswith(".py"))
        return [f"{folder}/{name}" for name in names if not name.startswith("_")]

    def _importable(self, files: Iterable[str], code: CodeInputs) -> tuple[str, ...]:
        """All paths that code could import, whether or not something is there."""
        from finding_tickets.ground.imports import reach

        def read(path: str) -> bytes | None:
            return (self._root / path).read_bytes() if self._exists(path) else None

        return reach(read, files, (module for module in code.modules if not module.endswith(".py")))

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
        place = f"{self._root}/{path}"
        return File(path, place, state_of(place))

    def _exists(self, path: str) -> bool:
        return self._file(path).state is not None

    def _digest_now(self, path: str) -> str:
        """The SHA-256 of a file, that of nothing where there is none."""
        file = self._file(path)
        return self.digests.get(file, _sha256) if file.state else ABSENT


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
        compared = claim.metric in {SAME_RESULT, SECONDS}
        names |= dict.fromkeys([claim.variant, *(re.findall(r"\w+", claim.value) if compared else ())])
    return CodeInputs(
        remediation.digest,
        remediation.verifier,
        tuple(dict.fromkeys(ref.module for ref in variants.values() if not ref.revision)),
        tuple(dict.fromkeys(ref.revision for ref in variants.values() if ref.revision)),
        tuple(name for name in names if name not in variants) if variants else None,
    )


class NoStatementError(ValueError):
    """Why some bytes are no evidence, in a few words."""


def read_statement(content: bytes) -> dict[str, Any]:
    """The in-toto Statement of a test result in some bytes; ``NoStatementError`` if none, or if edited."""
    try:
        statement: dict[str, Any] = json.loads(content)
    except ValueError:
        raise NoStatementError("it is no JSON") from None
    try:
        if (statement["_type"], statement["predicateType"]) != (STATEMENT, PREDICATE):
            raise NoStatementError(NO_STATEMENT)
        if statement["predicate"].pop("contentDigest")["sha256"] != _content_digest(statement):
            raise NoStatementError("it was edited: its content is not what its digest says")
    except (LookupError, TypeError, AttributeError):
        raise NoStatementError(NO_STATEMENT) from None
    return statement


def write_statement(subjects: Iterable[Any], predicate: Mapping[str, Any]) -> bytes:
    """The bytes of a Statement that ``read_statement`` reads; the same content gives the same bytes."""
    statement: dict[str, Any] = {
        "_type": STATEMENT,
        "subject": list(subjects),
        "predicateType": PREDICATE,
        "predicate": dict(predicate),
    }
    statement["predicate"]["contentDigest"] = {"sha256": _content_digest(statement)}
    return (json.dumps(statement, indent=1, ensure_ascii=False) + "\n").encode()


def _content_digest(statement: Mapping[str, Any]) -> str:
    """The SHA-256 of a Statement without the digest that it carries itself."""
    plain = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def input_of(descriptor: Mapping[str, Any]) -> tuple[str, str, str]:
    """Name, kind and value of a resource descriptor."""
    if "annotations" in descriptor:
        return descriptor["name"], "version", descriptor["annotations"]["version"]
    kind = "commit" if "gitCommit" in descriptor["digest"] else "file"
    return descriptor["name"], kind, descriptor["digest"]["gitCommit" if kind == "commit" else "sha256"]


def resource(given: Input) -> dict[str, Any]:
    """A resource descriptor: by digest, by commit, or by version where there is nothing to digest."""
    if given.kind == "version":
        return {"name": given.name, "annotations": {"version": given.value}}
    return {"name": given.name, "digest": {"gitCommit" if given.kind == "commit" else "sha256": given.value}}


def _sha256(file: File) -> str:
    try:
        return hashlib.sha256(Path(file.place).read_bytes()).hexdigest()
    except OSError as error:
        raise BadDataError(f"cannot be read: {error.strerror}", file=file.path) from None


def _read_recorded(file: File) -> RecordedEvidence:
    """What a file of evidence says that decides whether it counts."""
    try:
        statement = read_statement(Path(file.place).read_bytes())
        predicate = statement["predicate"]
        done = predicate["verification"]
        claims = [(claim["metric"], claim["holds"]) for claim in done["claims"]]
        return RecordedEvidence(
            verdict=Verdict(done["verdict"]),
            meter=done["meter"],
            torch=done["torch"],
            device=done["device"],
            revision=done.get("revision"),
            ran=bool(done["variants"]),
            is_timed=any(metric == SECONDS and holds is not None for metric, holds in claims),
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
    from importlib import metadata

    with suppress(metadata.PackageNotFoundError):
        return metadata.version(TORCH).split("+")[0]
    return ""


def _disagreement(fresh: Collection[RecordedEvidence]) -> str | None:
    """The verdicts where they differ, each by its meter, and by device and torch where it has several."""
    if len({one.verdict for one in fresh}) == 1:
        return None
    meters = Counter(one.meter for one in fresh)

    def name(one: RecordedEvidence) -> str:
        return one.meter if meters[one.meter] == 1 else f"{one.meter} ({one.device}, torch {one.torch})"

    return ", ".join(sorted(f"{name(one)}: {one.verdict}" for one in fresh))
