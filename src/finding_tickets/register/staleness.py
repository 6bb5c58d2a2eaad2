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
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from finding_tickets.errors import BadDataError
from finding_tickets.ground.paths import fixes_folder, safe_name, verifier_path
from finding_tickets.ground.version import __version__
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS, Verdict
from finding_tickets.register.files import State, is_settled, state_of

if TYPE_CHECKING:
    from finding_tickets.model.remediation import Remediation
    from finding_tickets.model.verification import Verification

TOOL = "finding-tickets"
TORCH = "torch"
REMEDIATION = "Remediation"
ABSENT = hashlib.sha256(b"").hexdigest()
NO_STATEMENT = "it is no in-toto Statement of a test result"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"


class CodeInputs(NamedTuple):
    """What a verification depends on, as far as the Remediation of a document says it.

    Attributes:
        digest: The SHA-256 of the Remediation.
        verifier: The file that it names, if it names one.
        variants: The name, module and revision of each variant that it names.
        claimed: Names in claims, which are variants if the usual folder has such files.
    """

    digest: str = ABSENT
    verifier: str | None = None
    variants: tuple[tuple[str, str, str | None], ...] = ()
    claimed: tuple[str, ...] = ()


NO_REMEDIATION = CodeInputs()


class RecordedEvidence(NamedTuple):
    """What a file of evidence says, as far as lists and staleness need it.

    Attributes:
        ran: Whether a variant was measured; else nobody knows what would have been imported.
        is_timed: Whether a claim was decided by times.
        inputs: The name, kind (``version``, ``file`` or ``commit``) and value of each input.
        importable: Where nothing ran, all paths that the code of the inputs could import.
    """

    verdict: Verdict
    meter: str
    torch: str
    device: str
    revision: str | None
    ran: bool
    is_timed: bool
    inputs: tuple[tuple[str, str, str], ...]
    importable: tuple[str, ...] = ()


@dataclass(frozen=True)
class CurrentVerdict:
    """The verdict that counts now, and where it comes from.

    Attributes:
        verdict: The verdict.
        loaded: The verification that it comes from, where it is at hand already.
        file: The file of evidence that it comes from, if there is one.
        evidence: What that file says.
        disagreement: The verdicts of meters that differ.
        changed: The inputs that made all evidence stale.
        problem: Why evidence could not be read.
    """

    verdict: Verdict = Verdict.UNVERIFIED
    loaded: Verification | None = None
    file: str | None = None
    evidence: RecordedEvidence | None = None
    disagreement: str | None = None
    changed: tuple[str, ...] = ()
    problem: BadDataError | None = None

    @cached_property
    def verification(self) -> Verification | None:
        """The whole verification, which is read when it is asked for.

        Raises:
            BadDataError: The file cannot be read any more.
        """
        if self.file is None:
            return self.loaded
        from pydantic import ValidationError

        from finding_tickets.model.verification import Verification

        try:
            predicate = json.loads(Path(self.file).read_bytes())["predicate"]
            return Verification.model_validate(predicate["verification"])
        except (OSError, ValueError, LookupError, ValidationError) as error:
            raise BadDataError(f"is no evidence: {error}", file=self.file) from None


class KnownFiles:
    """Digests of files and what evidence says, by the states of the files; ``root`` is what paths start from.

    ``digests`` and ``evidence`` are what was known before; ``has_learned`` says whether more is known now.
    """

    def __init__(
        self,
        root: Path,
        digests: Mapping[str, tuple[State, str]] | None = None,
        evidence: Mapping[str, tuple[State, RecordedEvidence]] | None = None,
    ) -> None:
        self.root = root
        self.digests = dict(digests or {})
        self.evidence = dict(evidence or {})
        self.has_learned = False
        self._now: dict[str, str] = {}
        self._read: set[str] = set()
        self._commits: dict[str, str | None] = {}

    def digest(self, path: str) -> str:
        """The SHA-256 of a file now, that of nothing where there is none."""
        if path not in self._now:
            now, state, known = time_ns(), state_of(f"{self.root}/{path}"), self.digests.get(path)
            if state is None:
                self._now[path] = ABSENT
            elif known and known[0] == state:
                self._now[path] = known[1]
            else:
                try:
                    content = (self.root / path).read_bytes()
                except OSError as error:
                    raise BadDataError(f"cannot be read: {error.strerror}", file=path) from None
                self._now[path] = hashlib.sha256(content).hexdigest()
                if is_settled(state, now) and state_of(f"{self.root}/{path}") == state:
                    self.digests[path] = state, self._now[path]
                    self.has_learned = True
        return self._now[path]

    def exists(self, path: str) -> bool:
        """Whether there is a file now, which may be empty."""
        return state_of(f"{self.root}/{path}") is not None

    def recorded(self, path: str, code: CodeInputs) -> RecordedEvidence:
        """What a file of evidence says of a document with this code.

        Raises:
            BadDataError: It is no evidence, or was edited.
        """
        self._read.add(path)
        now, state, known = time_ns(), state_of(f"{self.root}/{path}"), self.evidence.get(path)
        if known and known[0] == state:
            return known[1]
        try:
            recorded = read_recorded((self.root / path).read_bytes())
        except (OSError, ValueError) as error:
            hint = "restore it, or remove it and verify again"
            raise BadDataError(f"is no evidence: {error}", file=path, hint=hint) from None
        if not recorded.ran:
            files = {name: value for name, kind, value in recorded.inputs if kind == "file"}
            files.pop(REMEDIATION, None)
            if any(self.digest(name) != value for name, value in files.items()):
                # What other code could import says nothing; it is stale as it is.
                return recorded
            recorded = recorded._replace(importable=_importable(self.root, files, code))
        if state and is_settled(state, now) and state_of(f"{self.root}/{path}") == state:
            self.evidence[path] = state, recorded
            self.has_learned = True
        return recorded

    def forget_unused(self) -> None:
        """Know no more than what was asked for, so that files that are gone are forgotten."""
        digests = {path: known for path, known in self.digests.items() if path in self._now}
        evidence = {path: known for path, known in self.evidence.items() if path in self._read}
        self.has_learned |= len(digests) < len(self.digests) or len(evidence) < len(self.evidence)
        self.digests, self.evidence = digests, evidence

    def resolve(self, revisions: Iterable[str]) -> None:
        """Ask git once for the commits of all these revisions."""
        unknown = [name for name in revisions if name not in self._commits]
        if unknown:
            from finding_tickets.ground.checkouts import resolve_commits

            found = resolve_commits(self.root, unknown)
            self._commits |= {name: found.get(name) for name in unknown}

    def commit(self, revision: str) -> str | None:
        """The commit that a revision names now; None where it names none, or several."""
        self.resolve([revision])
        return self._commits[revision]


class Verdicts:
    """The verdicts on the documents of a register, from its folder of evidence."""

    def __init__(self, root: Path, folder: str, files: KnownFiles | None = None) -> None:
        self._root, self._folder = root, folder
        self._files = files or KnownFiles(root)

    @cached_property
    def _with_evidence(self) -> Collection[str] | None:
        """The folders that hold evidence, each named after an ID; None where they cannot be listed."""
        try:
            return frozenset(os.listdir(self._root / self._folder))  # noqa: PTH208 - names are all it takes
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
        except OSError:
            return None

    def has_evidence(self, document_id: str) -> bool:
        """Whether there is, or may be, a folder of evidence on a document."""
        return self._with_evidence is None or safe_name(document_id) in self._with_evidence

    def resolve(self, codes: Iterable[CodeInputs]) -> None:
        """Ask git once for all revisions that documents name, for which it is asked one by one otherwise."""
        self._files.resolve({stated for code in codes for _, _, stated in code.variants if stated})

    def current(self, document_id: str, code: CodeInputs | None) -> CurrentVerdict:
        """The verdict on a document from its evidence.

        A fresh verdict on a real GPU outranks a simulated one, and one that decides outranks one that does
        not. Of several like that, the one with the tool's own torch counts. With evidence, but none of it
        fresh, it is stale.

        Raises:
            BadDataError: A file of evidence cannot be read, or was edited.
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

        Raises:
            BadDataError: A file of evidence cannot be read, or was edited.
        """
        if not self.has_evidence(document_id):
            return []
        place = "/".join([self._folder, safe_name(document_id), *([safe_name(revision)] if revision else [])])
        try:
            names = sorted(os.listdir(f"{self._root}/{place}"))  # noqa: PTH208 - names are all it takes
        except OSError as error:
            if isinstance(error, FileNotFoundError | NotADirectoryError):
                return []
            raise BadDataError(f"cannot be read: {error.strerror}", file=place) from None
        paths = [f"{place}/{each}" for each in names if each.endswith(".json")]
        found = []
        for path in paths:
            evidence = self._files.recorded(path, code or NO_REMEDIATION)
            changed = tuple(self._changed(evidence, document_id, code or NO_REMEDIATION, any_torch))
            found.append((f"{self._root}/{path}", evidence, changed))
        return sorted(found, key=lambda each: each[1].meter != "cuda")

    def _changed(
        self, evidence: RecordedEvidence, document_id: str, code: CodeInputs, any_torch: bool
    ) -> Iterator[str]:
        """The names of the inputs of a verification that are others now, or gone, or new; none if fresh."""
        if not code.verifier and not self._files.exists(verifier_path(document_id)):
            yield "the verifier, which is gone"
            return
        before = {(name, kind): value for name, kind, value in evidence.inputs}
        # What is simulated depends on the torch here; a GPU may be on another machine, with its own.
        own = evidence.meter == "simulated" and not any_torch
        now = {
            (TOOL, "version"): __version__,
            (TORCH, "version"): own_torch() if own else evidence.torch,
            (REMEDIATION, "file"): code.digest,
        }
        known, named = _code_of(self._root, document_id, code, evidence.revision)
        for place, (revision, module) in enumerate(named, 1):
            commit = self._files.commit(revision)
            if commit is None:
                break
            now[revision, "commit"] = commit
            # A variant whose file is not there ends a plan: evidence knows nothing of those behind it.
            is_last = all((behind, "commit") in before for behind, _ in named[place:])
            if not is_last and module.endswith(".py") and not _has(self._root, revision, commit, module):
                break
        recorded = [name for name, kind, _ in evidence.inputs if kind == "file" and name != REMEDIATION]
        files = {*known, *recorded}
        if not evidence.ran:
            files |= {path for path in evidence.importable if self._files.exists(path)}
        now |= {(name, "file"): self._files.digest(name) for name in sorted(files)}
        yield from (key[0] for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key))
        for file in recorded:
            # Python would import a package in the place of a module of the same name beside it.
            package = f"{file.removesuffix('.py')}/__init__.py"
            if file not in known and file.endswith(".py") and self._files.exists(package):
                yield package


def code_inputs(remediation: Remediation | None) -> CodeInputs | None:
    """What verifying a document depends on; None for one without a Remediation."""
    if remediation is None:
        return None
    names: dict[str, None] = {}
    for claim in remediation.claims:
        compared = claim.metric in {SAME_RESULT, SECONDS}
        names |= dict.fromkeys([claim.variant, *(re.findall(r"\w+", claim.value) if compared else ())])
    variants = remediation.variants
    return CodeInputs(
        remediation.digest,
        remediation.verifier,
        tuple((name, ref.module, ref.revision) for name, ref in variants.items()),
        tuple(name for name in names if name not in variants),
    )


class NoStatementError(ValueError):
    """Why some bytes are no evidence, in a few words."""


def read_statement(content: bytes) -> dict[str, Any]:
    """The in-toto Statement of a test result in some bytes, as it was written.

    Raises:
        NoStatementError: It is none, or it was edited.
    """
    try:
        statement: dict[str, Any] = json.loads(content)
    except ValueError:
        raise NoStatementError("it is no JSON") from None
    try:
        if (statement["_type"], statement["predicateType"]) != (STATEMENT, PREDICATE):
            raise NoStatementError(NO_STATEMENT)
        if statement["predicate"].pop("contentDigest")["sha256"] != content_digest(statement):
            raise NoStatementError("it was edited: its content is not what its digest says")
    except (LookupError, TypeError, AttributeError):
        raise NoStatementError(NO_STATEMENT) from None
    return statement


def read_recorded(content: bytes) -> RecordedEvidence:
    """What evidence says that decides whether it counts.

    Raises:
        NoStatementError: It is none, or it was edited.
    """
    statement = read_statement(content)
    try:
        predicate = statement["predicate"]
        done = predicate["verification"]
        return RecordedEvidence(
            verdict=Verdict(done["verdict"]),
            meter=done["meter"],
            torch=done["torch"],
            device=done["device"],
            revision=done.get("revision"),
            ran=bool(done["variants"]),
            is_timed=any(
                claim["metric"] == SECONDS and claim["holds"] is not None for claim in done["claims"]
            ),
            inputs=tuple(map(input_of, [*statement["subject"], *predicate["configuration"]])),
        )
    except (LookupError, TypeError, AttributeError):
        raise NoStatementError(NO_STATEMENT) from None


def content_digest(statement: Mapping[str, Any]) -> str:
    """The SHA-256 of a Statement without the digest that it carries itself."""
    plain = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(plain.encode()).hexdigest()


def rank(done: RecordedEvidence | Verification) -> tuple[bool, bool, bool]:
    """To sort by, what counts most first: what decides, then a real GPU's, then of the tool's own torch."""
    return done.verdict is Verdict.INCONCLUSIVE, done.meter != "cuda", done.torch != own_torch()


@cache
def own_torch() -> str:
    """The version of the torch that is installed beside the tool."""
    # What the package says of itself takes a tenth of the time that asking for its metadata takes.
    spec = find_spec(TORCH)
    if spec and spec.origin:
        with suppress(OSError):
            text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
            if stated := re.search(r"^__version__ = ['\"]([^'\"+]+)", text, re.MULTILINE):
                return stated[1]
    from importlib import metadata

    return metadata.version(TORCH).split("+")[0]


def input_of(resource: Mapping[str, Any]) -> tuple[str, str, str]:
    """Name, kind and value of a resource descriptor."""
    if "annotations" in resource:
        return resource["name"], "version", resource["annotations"]["version"]
    kind = "commit" if "gitCommit" in resource["digest"] else "file"
    return resource["name"], kind, resource["digest"]["gitCommit" if kind == "commit" else "sha256"]


def _code_of(
    root: Path, document_id: str, code: CodeInputs, at: str | None
) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """The files of the work tree that are run, and the revisions of the other variants with their modules.

    ``at`` is the revision of variants that name none; None for the work tree.
    """
    usual, folder = verifier_path(document_id), fixes_folder(document_id)
    variants = list(code.variants)
    if variants:
        paths = ((name, f"{folder}/{name}.py") for name in code.claimed)
        variants += [(name, path, None) for name, path in paths if os.path.isfile(root / path)]  # noqa: PTH113
    else:
        try:
            names = sorted(os.listdir(f"{root}/{folder}"))  # noqa: PTH208 - names are all it takes
        except OSError:
            names = []
        public = (each for each in names if each.endswith(".py") and not each.startswith("_"))
        variants = [(each, f"{folder}/{each}", None) for each in public]
    files = dict.fromkeys([code.verifier or usual])
    files |= {module: None for _, module, stated in variants if not (stated or at) and module.endswith(".py")}
    named = [(stated or at or "", module) for _, module, stated in variants if stated or at]
    return tuple(files), list(dict.fromkeys(named))


def _has(root: Path, revision: str, commit: str, file: str) -> bool:
    from finding_tickets.ground.checkouts import Checkouts, Revision

    return Checkouts(root).has(Revision(revision, commit), file)


def _importable(root: Path, files: Iterable[str], code: CodeInputs) -> tuple[str, ...]:
    """All paths that code could import, whether or not something is there."""
    from finding_tickets.ground.imports import reach

    def read(path: str) -> bytes | None:
        file = root / path
        return file.read_bytes() if file.is_file() else None

    modules = (module for _, module, stated in code.variants if not stated and not module.endswith(".py"))
    return reach(read, files, modules)


def _disagreement(fresh: Collection[RecordedEvidence]) -> str | None:
    """The verdicts where they differ, each by its meter, and by device and torch where it has several."""
    if len({one.verdict for one in fresh}) == 1:
        return None
    meters = Counter(one.meter for one in fresh)

    def name(one: RecordedEvidence) -> str:
        return one.meter if meters[one.meter] == 1 else f"{one.meter} ({one.device}, torch {one.torch})"

    return ", ".join(sorted(f"{name(one)}: {one.verdict}" for one in fresh))
