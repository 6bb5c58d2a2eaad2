"""Find the commits that brought a defect in, mended it and brought it back: the claims held to each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from finding_tickets import __version__
from finding_tickets.claims.check import check
from finding_tickets.claims.expressions import Comparison
from finding_tickets.claims.grammar import parse_condition
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, UsageError
from finding_tickets.ground.checkouts import Revision, RevisionError
from finding_tickets.ground.folders import release
from finding_tickets.history.kept import installed
from finding_tickets.history.lineage import Stage, gaps, lineage
from finding_tickets.history.remembered import digest, key_of, recall, remember
from finding_tickets.measure.environment import devices
from finding_tickets.measure.isolation import Isolation, Outcome, Task
from finding_tickets.measure.report import Job
from finding_tickets.measure.source import Source
from finding_tickets.measure.tasks import Measured
from finding_tickets.model.remediation import SAME_RESULT, SECONDS, Claim
from finding_tickets.model.verification import ClaimResult
from finding_tickets.register.history import Commit
from finding_tickets.verify.imports import module_of, reach
from finding_tickets.verify.jobs import jobs
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.session import Settings
from finding_tickets.verify.verdict import FIX

TARGET = f"{__name__}:measure"
OLDER = "the defect is older than the commits that were looked at"
EQUAL = "=="
AT_ONCE = 16
"""Commits that are checked out together, and needed no longer than they are measured."""

COMPARING = frozenset({SAME_RESULT, SECONDS})
"""Metrics whose claims compare with another variant, which a commit does not have."""


class State(StrEnum):
    """Whether the claims about the code hold at a commit; changed: nor do those about the fix."""

    DEFECT = "defect"
    CHANGED = "changed"
    CLEAN = "clean"
    SKIPPED = "skipped"


class Turn(StrEnum):
    """What a commit did to the defect."""

    INTRODUCED = "introduced"
    CHANGED = "changed"
    FIXED = "fixed"
    BROUGHT_BACK = "brought back"


@dataclass(frozen=True)
class Step:
    """A commit that touched what the code is made of, and what was found there.

    ``laws`` are those of the metrics that the claims speak of. ``reason`` is why the commit was skipped or
    which claims are false. ``suspects`` are the skipped commits before a turn that may have made it as well.
    """

    commit: Commit
    place: str | None
    state: State
    laws: Mapping[str, str]
    reason: str = ""
    turn: Turn | None = None
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bisected:
    """The steps, oldest first, how many commits there were and were measured now, and what is not known."""

    ticket: str
    variant: str
    steps: tuple[Step, ...]
    commits: int
    measured: int
    gaps: tuple[str, ...]


def bisect(
    document: Document,
    isolation: Isolation,
    settings: Settings,
    *,
    variant: str,
    good: str | None,
    bad: str,
    tell: Callable[[str], None],
) -> Bisected:
    """Hold the claims about a variant to its code at every commit that may have changed it.

    A commit is measured unless all that a measured one rests on is the same in it: the files that it
    imported, and those that it would have if they were there. ``tell`` is told of each measurement. What was
    measured is remembered, and not measured again.

    Raises:
        UsageError: There is nothing to hold to the commits, or the revisions make no range.
        BadDataError: A claim cannot be understood.
    """
    todo, mended = _planned(document, settings, variant)
    line = lineage(settings.root, todo.variants[variant], good, bad)
    found = line.stages
    if not any(stage.place for stage in found):
        at = todo.variants[variant]
        raise UsageError(f"{at.module}:{at.function} is in none of {len(found)} commits", hint="commit it")
    search = _Search(todo, variant, isolation, settings, tell)
    known = search.run(found)
    steps = tuple(
        _steps(found, known, lambda result: _judged(todo, variant, mended, result), begun=line.begun)
    )
    older = (OLDER,) if _is_older(steps) else ()
    return Bisected(todo.ticket, variant, steps, len(found), search.measured, (*older, *gaps(settings.root)))


def measure(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure a job, in a process of its own; also the paths of the code that it rests on."""
    from finding_tickets.measure.loading import imported_files
    from finding_tickets.measure.run import measure as run
    from finding_tickets.measure.tasks import fitted, job_of

    job = job_of(payload)
    return {"measured": fitted(run(job)), "code": _rested_on(job, imported_files(Path(job.code)))}


def _rested_on(job: Job, imported: Sequence[str]) -> list[str]:
    """The files that were imported, what would have been if it were there, and where links of these lead."""
    code = Path(job.code)

    def read(path: str) -> bytes | None:
        file = Path(job.root if path == job.verifier else code, path)
        return file.read_bytes() if file.is_file() else None

    could = reach(read, (job.verifier, *imported), map(module_of, imported))
    missing = (path for path in could if path != job.verifier and not (code / path).exists())
    paths = {*imported, *missing}
    above = {str(folder) for path in imported for folder in PurePosixPath(path).parents}
    links = {folder for folder in above if (code / folder).is_symlink()}
    whole = os.path.realpath(code)
    return sorted(paths | links | {os.path.relpath(os.path.realpath(code / path), whole) for path in paths})


def _planned(document: Document, settings: Settings, variant: str) -> tuple[Plan, tuple[Claim, ...]]:
    """The plan of the document with one variant and the claims that need no other.

    Beside it, what is claimed of the fix about the same metrics.
    """
    todo = plan(document, settings.root, dict.fromkeys([variant], "HEAD"), settings.verifiers)
    name = document.id.value
    if todo is None:
        raise UsageError(f"{name} has no verifier", hint="bisect holds claims to commits")
    if variant not in todo.variants:
        raise UsageError(f"{name} has no variant {variant}", hint=f"one of {', '.join(todo.variants)}")
    claims = tuple(
        claim for claim in todo.claims if claim.variant == variant and claim.metric not in COMPARING
    )
    if not claims:
        raise UsageError(f"{name} claims nothing about {variant} that can be held to commits")
    metrics = {claim.metric for claim in claims}
    mended = tuple(
        claim for claim in todo.claims if claim.variant == FIX != variant and claim.metric in metrics
    )
    alone = replace(
        todo, variants={variant: todo.variants[variant]}, claims=claims, revisions={}, trouble=None
    )
    return alone, mended


@dataclass(frozen=True)
class _Result:
    """What a process returned for a commit: a measurement and what it rests on, or why there is none."""

    measured: Measured | None
    code: tuple[str, ...]
    reason: str

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> _Result:
        if value.get("reason"):
            return cls(None, (), str(value["reason"]))
        try:
            return cls(TypeAdapter(Measured).validate_python(value["measured"]), tuple(value["code"]), "")
        except (ValidationError, KeyError, TypeError) as error:
            return cls(None, (), f"what came back is no measurement: {str(error).splitlines()[0]}")


class _Search:
    """Measures as few commits as tell of all."""

    def __init__(
        self, todo: Plan, variant: str, isolation: Isolation, settings: Settings, tell: Callable[[str], None]
    ) -> None:
        self._todo = todo
        self._variant = variant
        self._isolation = isolation
        self._settings = settings
        self._devices = devices(isolation, settings)
        self._verifier = digest(todo.verifiers / todo.verifier)
        self._tell = tell
        self.measured = 0

    def run(self, found: Sequence[Stage]) -> dict[str, _Result]:
        """A result for every commit, by its id; that of a commit with the same code counts for others."""
        known: dict[str, _Result] = {}
        measured: list[tuple[Stage, _Result]] = []
        open_now = [stage for stage in reversed(found) if stage.place]
        while open_now:
            measured += self._results(self._next(open_now, measured))
            for stage in open_now:
                for other, result in measured:
                    if stage.commit.id not in known and _same_code(stage, other, result):
                        known[stage.commit.id] = result
            open_now = [stage for stage in open_now if stage.commit.id not in known]
        return known

    def _next(self, open_now: Sequence[Stage], measured: Sequence[tuple[Stage, _Result]]) -> list[Stage]:
        """The newest alone at first; then one of each kind, as far as is known which files matter."""
        files = sorted({file for _, result in measured for file in result.code})
        if not files:
            return list(open_now[:1])
        kinds: dict[tuple[str | None, ...], Stage] = {}
        for stage in open_now:
            kinds.setdefault((stage.place, *(stage.blobs.get(file) for file in files)), stage)
        return list(kinds.values())[:AT_ONCE]

    def _results(self, wanted: Iterable[Stage]) -> Iterator[tuple[Stage, _Result]]:
        release()
        tasks: dict[str, Task] = {}
        stages_by_id = {}
        for stage in wanted:
            if kept := self._recalled(stage):
                yield stage, _Result.of(kept)
                continue
            try:
                tasks[stage.commit.id] = self._task(stage)
                stages_by_id[stage.commit.id] = stage
            except RevisionError as error:
                yield stage, _Result(None, (), str(error))
        for commit, outcome in self._isolation.run(tasks):
            stage = stages_by_id[commit]
            self.measured += 1
            self._tell(f"measured {commit[:10]} {stage.commit.subject}")
            yield stage, _Result.of(self._kept(stage, outcome))

    def _task(self, stage: Stage) -> Task:
        at = self._todo.variants[self._variant]
        there = replace(
            self._todo,
            variants={self._variant: Source(stage.place or at.module, at.function)},
            revisions={self._variant: Revision(stage.commit.id[:10], stage.commit.id)},
        )
        (job,) = jobs(there, self._settings.meter, Path()).values()
        return Task(
            target=TARGET,
            payload=asdict(job),
            root=self._settings.root,
            timeout=self._settings.timeout,
            memory=self._settings.memory,
            code=Path(job.code),
        )

    def _recalled(self, stage: Stage) -> Mapping[str, Any] | None:
        """What is remembered of a commit; a failure may come from the packages that were installed then."""
        kept = recall(self._key(stage), self._settings.root)
        return kept if kept and kept.get("installed", installed()) == installed() else None

    def _kept(self, stage: Stage, outcome: Outcome) -> Mapping[str, Any]:
        """What came of a commit, remembered unless it was not for the commit's own sake."""
        value: Mapping[str, Any] = {"reason": outcome.reason, "installed": installed()}
        if outcome.reason is None:
            value = outcome.value if isinstance(outcome.value, dict) else {}
        measured = _Result.of(value).measured
        files = {self._todo.verifier: self._verifier, **(measured.report.files if measured else {})}
        # A failure on a GPU may be the GPU's.
        if not (outcome.never_ran or (outcome.reason and self._settings.meter == "cuda")):
            remember(self._key(stage), value, files)
        return value

    def _key(self, stage: Stage) -> str:
        settings = self._settings
        return key_of(
            stage.commit.id,
            stage.place,
            self._todo.variants[self._variant].function,
            self._variant,
            self._todo.verifier,
            str(self._todo.verifiers),
            [claim.metric == "graph_breaks" for claim in self._todo.claims],
            (settings.meter, self._devices, settings.timeout, settings.memory),
            (__version__, version("torch")),
        )


def _same_code(stage: Stage, other: Stage, result: _Result) -> bool:
    """Whether a commit has all that was measured at another one."""
    if stage.place != other.place:
        return False
    if not result.code:
        return stage.blobs == other.blobs
    return all(stage.blobs.get(file) == other.blobs.get(file) for file in result.code)


_Judged = tuple[State, Mapping[str, str], str]


def _judged(todo: Plan, variant: str, mended: Sequence[Claim], result: _Result) -> _Judged:
    """Whether the claims hold, the laws of what they speak of, and what is false or why nothing is known."""
    if result.measured is None:
        return State.SKIPPED, {}, result.reason
    report = result.measured.report
    try:
        claims = check(todo.claims, report)
        of_fix = check([_at_most(claim, variant) for claim in mended], report)
    except BadDataError as error:
        raise BadDataError(error.message, file=todo.document, line=error.line, hint=error.hint) from None
    fits = result.measured.metrics[variant]
    laws = {claim.metric: str(fits[claim.metric]) for claim in claims if claim.metric in fits}
    false = [claim for claim in claims if claim.is_surprise]
    open_claims = [claim for claim in claims if claim.holds is None]
    if false:
        reason = f"not as claimed: {', '.join(claim.id for claim in false)}"
        neither = [claim for claim, held in zip(mended, of_fix, strict=True) if held.is_surprise]
        if neither:
            return State.CHANGED, laws, f"{reason}, {', '.join(claim.id for claim in neither)}"
        return State.CLEAN, laws, reason
    if open_claims:
        return State.SKIPPED, laws, _unchecked(open_claims)
    return State.DEFECT, laws, ""


def _at_most(claim: Claim, variant: str) -> Claim:
    """A claim about the fix, made of another variant, which may also cost less."""
    condition = parse_condition(claim.value)
    is_exact = isinstance(condition, Comparison) and condition.symbol == EQUAL
    value = f"<= {claim.value.strip().removeprefix(EQUAL)}" if is_exact else claim.value
    return claim.model_copy(update={"variant": variant, "value": value})


def _unchecked(claims: Sequence[ClaimResult]) -> str:
    return f"not checked: {claims[0].id}: {claims[0].measured}"


def _steps(
    found: Sequence[Stage],
    known: Mapping[str, _Result],
    judge: Callable[[_Result], _Judged],
    *,
    begun: bool,
) -> Iterator[Step]:
    """The commits at which the code was another one than before, oldest first, with what each one did.

    ``begun`` says whether there was no code before the first one, and so no defect.
    """
    before: State | None = State.CLEAN if begun else None
    last: tuple[str | None, _Result] | None = None
    ever = False
    skipped: list[str] = []
    for stage in found:
        result = known.get(stage.commit.id) or _Result(None, (), stage.reason)
        if last and last[0] == stage.place and (last[1] is result or not stage.place):
            continue
        last = stage.place, result
        state, laws, reason = judge(result)
        if state is State.SKIPPED:
            skipped.append(stage.commit.id)
            yield Step(stage.commit, stage.place, state, laws, reason)
            continue
        turn = _turn(before, state, ever=ever)
        yield Step(stage.commit, stage.place, state, laws, reason, turn, tuple(skipped) if turn else ())
        before, ever, skipped = state, ever or state is State.DEFECT, []


def _is_older(steps: Sequence[Step]) -> bool:
    decided = next((step for step in steps if step.state is not State.SKIPPED), None)
    return decided is not None and decided.state is State.DEFECT and decided.turn is None


def _turn(before: State | None, now: State, *, ever: bool) -> Turn | None:
    if now is State.DEFECT and before in {State.CLEAN, State.CHANGED}:
        return Turn.BROUGHT_BACK if ever else Turn.INTRODUCED
    if before is now or not ever:
        return None
    return Turn.FIXED if now is State.CLEAN else Turn.CHANGED
