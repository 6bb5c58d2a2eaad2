"""What there is to measure and to time for a ticket: its verifier, its variants and its claims.

None of it is run.
"""

from __future__ import annotations

import difflib
import platform
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.claims.check import ONCE, located, meets, parse_conditions, parse_ratio
from finding_tickets.claims.language import GROWTH, ExpressionError, parse_condition, suggest
from finding_tickets.claims.metrics import CLAIMABLE
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError
from finding_tickets.ground.files import fixes_folder, verifier_path
from finding_tickets.measure.tasks import (
    At,
    Code,
    FunctionPath,
    Job,
    Question,
    ResultPair,
    RunJob,
    TimeJob,
    find_variants,
)
from finding_tickets.model.ticket import Claim, RunCommand
from finding_tickets.model.verification import MeasuredTicket
from finding_tickets.model.vocabulary import SAME_RESULT, SECONDS
from finding_tickets.register.staleness import code_inputs

if TYPE_CHECKING:
    from finding_tickets.ground.commits import Revision

# Stands for all variants that name no revision themselves.
EVERY = "*"
# Stands for the place of a point, in the name of a run that is made twice.
AGAIN = "again"
# The part of the time-out that rounds may take; the rest is for loading and for the round at work.
TIMING_SHARE = 0.5
HOST = "the CPU"


@dataclass(frozen=True)
class Plan:
    """Everything a verification needs to know of a ticket."""

    ticket: str
    document: str  # its path
    root: Path  # what the files of the code are relative to
    verifiers: Path  # what the verifier is relative to
    repository: Path  # the folder in which git knows the revisions
    verifier: str  # empty where there is something to run
    variants: dict[str, FunctionPath]
    revisions: dict[str, Revision] = field(default_factory=dict)  # of variants that are not those at the root
    keep: bool = False  # whether the decision is to keep the code as found
    claims: tuple[Claim, ...] = ()
    trouble: str | None = None  # why nothing can be measured, although nothing is wrong with the document
    run: RunCommand | None = None  # what is run in the place of a verifier
    sweep: tuple[At, ...] = (ONCE,)  # the points that it is run at
    within: str | None = None  # the function that is counted
    stated: str = ""  # where the document says what to run
    seed: int | None = None  # takes the place of the workload's

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the work tree that are known to be run before running anything."""
        here = (source.module for name, source in self.variants.items() if name not in self.revisions)
        files = [self.verifier, *(file for file in here if file.endswith(".py"))]
        return tuple(dict.fromkeys(filter(None, files)))

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of the work tree, by their dotted names, that variants are in."""
        here = (source.module for name, source in self.variants.items() if name not in self.revisions)
        return tuple(module for module in here if not module.endswith(".py"))

    @property
    def comparisons(self) -> tuple[ResultPair, ...]:
        """What the claims about results compare."""
        claims = (claim for claim in self.claims if claim.metric == SAME_RESULT)
        return tuple(dict.fromkeys(ResultPair(each.variant, each.value, each.tolerance) for each in claims))

    @property
    def is_timed(self) -> bool:
        """Whether a claim is about time."""
        return any(claim.metric == SECONDS for claim in self.claims)

    @cached_property
    def code(self) -> dict[str, Code]:
        """The variants at each commit, empty for the work tree, with the folder that their code is in.

        Where a revision cannot be checked out, a ``RevisionError`` says why.
        """
        folders = {"": self.root}
        if self.revisions:
            from finding_tickets.ground.commits import Checkouts

            checkouts = Checkouts(self.repository)
            for revision in self.revisions.values():
                folders.setdefault(revision.commit, checkouts.files(revision))
        code = {commit: Code(str(folder), {}) for commit, folder in folders.items()}
        for name, source in self.variants.items():
            commit = self.revisions[name].commit if name in self.revisions else ""
            code[commit].variants[name] = source
        return {commit: each for commit, each in code.items() if each.variants}

    @property
    def folders(self) -> dict[str, str]:
        """The folder that the code of each variant is in; raises as ``code`` does."""
        return {name: code.folder for code in self.code.values() for name in code.variants}

    def jobs(self, meter: str) -> dict[str, Job]:
        """What workers are asked to measure: each variant by its name, in a process of its own."""
        traced = {claim.variant for claim in self.claims if claim.metric == "graph_breaks"}
        kept = {name for each in self.comparisons for name in (each.variant, each.target)}
        return {
            name: Job(
                root=str(self.verifiers),
                code=self.folders[name],
                verifier=self.verifier,
                variant=name,
                function=source,
                meter=meter,
                graph_breaks=name in traced,
                keeps=name in kept,
                seed=self.seed,
            )
            for name, source in self.variants.items()
        }

    def run_jobs(self, meter: str) -> dict[str, RunJob]:
        """What workers are asked to run: each variant at each point, by the variant and the point's place.

        The first point is run twice on the simulated device, to find costs that differ.
        """
        command, jobs = self.run, dict[str, RunJob]()
        if command is None:
            return jobs
        for name in self.variants:
            for place, at in enumerate(self.sweep):
                jobs[f"{name} {place}"] = RunJob(
                    code=self.folders[name],
                    work_tree=str(self.repository),
                    kind=command.kind,
                    target=_filled(command.target, at),
                    arguments=tuple(_filled(text, at) for text in command.arguments),
                    sweep=() if at == ONCE else (at,),
                    within=self.within or "",
                    stated=self.stated,
                    meter=meter,
                )
            if meter == "simulated":
                jobs[f"{name} {AGAIN}"] = replace(jobs[f"{name} 0"], repeated=True)
        return jobs


def _filled(template: str, at: At) -> str:
    """One argument with the values of a point in its braces."""
    return re.sub(r"\{(\w+)\}", lambda match: str(at.get(match[1], match[0])), template)


def plan(
    document: Document,
    root: Path,
    overrides: Mapping[str, str] | None = None,
    verifiers: Path | None = None,
    commits: Mapping[str, str] | None = None,
    repository: Path | None = None,
) -> Plan | None:
    """How to verify a document of the register at ``root``; None where it has no verifier.

    ``overrides`` are revisions for variants by name, ``*`` for variants that name no revision. The verifier
    is taken from the folder ``verifiers``, by default the root. ``commits`` has the revisions by name that
    git does not know here; it is asked in the folder ``repository``, by default the root.

    Raises:
        BadDataError: A file is missing or outside the root, or a claim cannot be understood.
    """
    place, remediation = verifiers or root, document.remediation
    run = remediation.run if remediation else None
    verifier = "" if run else verifier_of(document, place)
    if verifier is None:
        return None
    refs = remediation.variants if remediation else {}
    claims = remediation.claims if remediation else ()
    overrides = overrides or {}
    missing = ""
    try:
        if verifier:
            _check_file(verifier, place)
        variants = _variants(document, root)
        named: dict[str, str] = {}
        for name, source in variants.items():
            stated = refs[name].revision if name in refs else None
            revision = overrides[name] if name in overrides else stated or overrides.get(EVERY)
            if revision:
                named[name] = revision
            elif run and source.module.endswith(".py") and not (root / source.module).is_file():
                missing = missing or f"{name}: there is no file {source.module} in the work tree"
            elif source.module.endswith(".py"):
                _check_file(source.module, root)
        for claim in claims:
            _check_claim(claim, variants)
    except BadDataError as error:
        if remediation is None:
            raise error.in_file(document.path) from None
        raise error.in_file(remediation.path, remediation.span.line) from None
    repository = repository or root
    revisions, trouble = _resolve(repository, commits or {}, named, variants) if named else ({}, None)
    trouble = trouble or missing or None
    stated = f"{remediation.path}:{run.line}" if remediation and run else ""
    trouble = f"{trouble} ({stated})" if trouble and stated else trouble
    return Plan(
        ticket=document.id.value,
        document=document.path,
        root=root,
        verifiers=place,
        repository=repository,
        verifier=verifier,
        variants=variants,
        revisions=revisions,
        keep=remediation is not None and remediation.decision == "keep",
        claims=claims,
        trouble=trouble if variants else "there is no variant to measure",
        run=run,
        sweep=(remediation.sweep if remediation else ()) or (ONCE,),
        within=remediation.within if remediation else None,
        stated=stated,
    )


def verifier_of(document: Document, root: Path) -> str | None:
    """The verifier that a document names, or what it runs, or the usual one where that exists, or none."""
    if (named := document.remediation) and (named.verifier or named.run):
        return named.verifier or (named.run.target if named.run else None)
    usual = verifier_path(document.id.value)
    return usual if (root / usual).is_file() else None


def places_of(document: Document, root: Path) -> dict[str, str]:
    """Where each variant lives, as ``module:function`` with ``@REV`` where one is stated."""
    refs = document.remediation.variants if document.remediation else {}
    places = {}
    if document.remediation and document.remediation.run:
        return {name: ref.raw for name, ref in refs.items()}
    for name, source in _variants(document, root).items():
        revision = refs[name].revision if name in refs else None
        places[name] = f"{source.module}:{source.function}{f'@{revision}' if revision else ''}"
    return places


def _variants(document: Document, root: Path) -> dict[str, FunctionPath]:
    """The block's variants and those in the usual folder that claims name; without a block, all there."""
    folder, remediation = fixes_folder(document.id.value), document.remediation
    if remediation and remediation.run:
        module, _, function = remediation.run.target.partition(":")
        return dict.fromkeys(remediation.variants, FunctionPath(module, function.removeprefix(":")))
    if remediation is None or not remediation.variants:
        return find_variants(folder, root)
    refs, code = remediation.variants, code_inputs(remediation)
    found = {name: FunctionPath(ref.module, ref.function) for name, ref in refs.items()}
    function = next(iter(refs.values())).function
    for name in (code and code.claimed) or ():
        usual = f"{folder}/{name}.py"
        if (root / usual).is_file():
            found[name] = FunctionPath(usual, function)
    return found


def _resolve(
    repository: Path,
    commits: Mapping[str, str],
    named: Mapping[str, str],
    variants: Mapping[str, FunctionPath],
) -> tuple[dict[str, Revision], str | None]:
    """The revisions of variants, and why they cannot be measured there."""
    # Most tickets name no revision, and git is not asked for them.
    from finding_tickets.ground.commits import Checkouts

    checkouts = Checkouts(repository, commits)
    found: dict[str, Revision] = {}
    for name, text in named.items():
        try:
            revision = found[name] = checkouts.revision(text)
        except RevisionError as error:
            return found, f"{name}: {error}"
        file = variants[name].module
        if not file.endswith(".py") or checkouts.has(revision, file):
            continue
        inside = [folder for folder in checkouts.submodules(revision) if file.startswith(f"{folder}/")]
        why = f"; {inside[0]} is a submodule, whose files are not part of the revision" if inside else ""
        return found, f"{name}: there is no file {file} at {revision}{why}"
    return found, None


def _check_file(file: str, root: Path) -> None:
    path = (root / file).resolve()
    if not path.is_relative_to(root.resolve()):
        raise BadDataError(f"{file} leaves the repository")
    if not path.is_file():
        close = difflib.get_close_matches(path.name, [each.name for each in path.parent.glob("*.py")], n=1)
        nearby = [(path.parent / name).relative_to(root.resolve()).as_posix() for name in close]
        hint = f"did you mean {nearby[0]}?" if nearby else None
        raise BadDataError(f"there is no file {file}", hint=hint)


def _check_claim(claim: Claim, variants: Mapping[str, FunctionPath]) -> None:
    words = [("variant", claim.variant, list(variants)), ("metric", claim.metric, list(CLAIMABLE))]
    if claim.metric == SAME_RESULT:
        words.append(("variant", claim.value, list(variants)))
    for kind, word, known in words:
        if word not in known:
            message = f"claim {claim.id}: unknown {kind} '{word}'"
            raise BadDataError(message, line=claim.line, hint=suggest(word, known))
    if claim.metric == SAME_RESULT and claim.value == claim.variant:
        hint = "name the variant whose results are expected, such as found"
        raise BadDataError(
            f"claim {claim.id}: compares {claim.variant} with itself", line=claim.line, hint=hint
        )
    with located(claim.id, claim.line):
        if claim.metric == SECONDS:
            parse_ratio(claim.value, claim.variant, variants)
        elif claim.metric != SAME_RESULT:
            parse_condition(claim.value)
        for name, condition in parse_conditions(claim.at).items():
            if condition.relation == GROWTH:
                raise ExpressionError(f"{name}: a growth class selects no points")


def time_job(
    todo: Plan, claims: Iterable[Claim], codes: Iterable[Code], measured: MeasuredTicket, timeout: float
) -> TimeJob:
    """What to have a worker time for claims within a time-out, of variants in folders of code.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    asked = questions(claims, measured)
    names = {name for question in asked for name in (question.subject, question.reference)}
    wanted = (Code(each.folder, {n: at for n, at in each.variants.items() if n in names}) for each in codes)
    return TimeJob(
        root=str(todo.verifiers),
        verifier=todo.verifier,
        codes=tuple(each for each in wanted if each.variants),
        device=measured.timed_on,
        device_name=timing_device(measured),
        questions=asked,
        seconds=timeout * TIMING_SHARE,
    )


def questions(claims: Iterable[Claim], measured: MeasuredTicket) -> tuple[Question, ...]:
    """What is to be timed for claims: at every point where both variants ran without an error.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    asked: dict[tuple[str, str, str], Question] = {}
    for claim in claims:
        if claim.metric != SECONDS:
            continue
        with located(claim.id, claim.line):
            ratio, where = (
                parse_ratio(claim.value, claim.variant, measured.variants),
                parse_conditions(claim.at),
            )
            ended = [
                {repr(sample.at) for sample in result.samples if sample.error is None} if result else set()
                for result in map(measured.variants.get, (claim.variant, ratio.reference))
            ]
            # A sweep may have a point twice; it is timed once.
            for place, at in {repr(at): at for at in measured.sweep}.items():
                if all(place in of_variant for of_variant in ended) and meets(at, where):
                    ratio.edges(at)  # raises where the claim has no value
                    key = (claim.variant, ratio.reference, place)
                    asked[key] = Question(claim.variant, ratio.reference, at)
    return tuple(asked.values())


def cannot_time(measured: MeasuredTicket) -> str | None:
    """Why nothing can be timed where a ticket was measured; None where it can."""
    needs_gpu = measured.timed_on == "cuda" and measured.meter != "cuda"
    return "times need a real GPU" if needs_gpu else None


def timing_device(measured: MeasuredTicket) -> str:
    """What times are taken on, in words."""
    if measured.timed_on == "cuda":
        return measured.device
    model = platform.processor() or platform.machine() or "unknown"
    # On Linux, Python knows no more than the architecture.
    with suppress(OSError):
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if named := re.search(r"^model name\s*:\s*(.+?)\s*$", about, re.MULTILINE):
            model = named[1]
    return f"{HOST} ({model}), 1 thread"
