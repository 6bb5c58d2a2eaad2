"""Verify documents: plan each, measure them apart from each other, judge what came back, record it."""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from finding_tickets.claims.check import named_at
from finding_tickets.claims.laws import CountedRun, Place, fitted
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UnreachableError
from finding_tickets.ground.statements import Statement
from finding_tickets.measure import tasks
from finding_tickets.measure.processes.isolation import Isolation, Task, TaskOutcome
from finding_tickets.measure.tasks import Further
from finding_tickets.model.verification import (
    Evidence,
    MeasuredRun,
    MeasuredTicket,
    ResultCheck,
    VariantResult,
    Verification,
)
from finding_tickets.model.vocabulary import OUTCOME, Verdict
from finding_tickets.register.disposition import is_fixed, status_of
from finding_tickets.register.entries import outcome_of
from finding_tickets.register.staleness import own_torch
from finding_tickets.verify.evidence import collect_files, collect_inputs, file_inputs, write
from finding_tickets.verify.judge import (
    DECIDING,
    FIX,
    FOUND,
    MEASURED,
    answer_of,
    claim_same_result,
    judge,
    open_claims,
)
from finding_tickets.verify.places import PlacedRuns, find_place, measure_place
from finding_tickets.verify.plan import AGAIN, BASE, WHOLE, Plan, plan

_RUN = TypeAdapter(MeasuredRun)
AGREEMENTS = TypeAdapter(tuple[ResultCheck, ...])
# Names the comparison among the parts of a ticket that are measured: no variant is called that.
COMPARED = ""
OTHER_COSTS = ("syncs", "implicit_syncs", "launches", "h2d", "h2d_bytes", "d2h", "d2h_bytes", "peak_bytes")
MORE = 1.1
"""A fix that costs no more than this part of the code as found is not said to cost more."""
LONGEST_LINE = 200
"""Letters of a line of code that are kept."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a verification; the limits apply to each document."""

    root: Path
    evidence: str  # the folder of it, below the root
    meter: str
    timeout: float  # seconds
    memory: int  # bytes
    # Revisions of variants, as ``plan`` takes them; what is measured there is no evidence.
    overrides: Mapping[str, str] = field(default_factory=dict)
    verifiers: Path | None = None  # the root that verifiers are taken from, if not that of the code
    record: bool = True  # whether evidence is written
    seed: int | None = None  # takes the place of the workload's; what is measured with it is no evidence
    further: Further = ""  # the points that are added to those of the sweep
    repository: Path | None = None  # where git knows revisions, if that is not the root
    operations: bool = False  # whether to tell what each operation costs, which is no evidence
    # Statements that tickets of the register name as moved, and that budgets allow: no new waits of others.
    excused: tuple[Statement, ...] = ()
    # Whether to compare what found and fix leave behind, of what is run, and to refuse every new wait. By
    # default a difference and a rare wait are no fault of a ticket that is closed as fixed: code goes on.
    outcomes: bool | None = None
    # Makes another document and plan of those that were measured, before these are judged and recorded; or
    # nothing, and then nothing is recorded.
    amend: Callable[[Plan, MeasuredTicket], tuple[Document, Plan] | None] | None = None

    def task(self, target: str, payload: Any = None, code: Path | None = None) -> Task:
        """Return the task of a worker within these limits."""
        return Task(
            target=target,
            payload=payload,
            root=self.root,
            timeout=self.timeout,
            memory=self.memory,
            code=code,
            alone=self.meter == "cuda",
        )


@dataclass(frozen=True)
class Verified:
    """The result of verifying a document."""

    document: Document
    verification: Verification | None = None
    error: BadDataError | None = None  # what kept it from being measured or recorded
    evidence: Evidence | None = None  # what was recorded, or would have been where nothing is
    never_ran: bool = False  # as in ``TaskOutcome``


Planned = dict[str, tuple[Document, Plan]]
Queue = dict[tuple[str, str], Task]


def verify(documents: Iterable[Document], isolation: Isolation, settings: Settings) -> Iterator[Verified]:
    """Verify documents, each as soon as it is done; what one of them does leaves the others alone."""
    planned: Planned = {}
    yield from plan_each(documents, settings, planned)
    if planned:
        yield from (done for _, done in measure(planned, isolation, settings))


def plan_each(documents: Iterable[Document], settings: Settings, planned: Planned) -> Iterator[Verified]:
    """Add each document to ``planned`` by its path, and yield those without anything to measure."""
    for document in documents:
        try:
            todo = plan(document, settings.root, settings.overrides, settings.verifiers, settings.repository)
        except BadDataError as error:
            yield Verified(document, error=error)
            continue
        if todo is None:
            reason = "it has no verifier"
            yield Verified(document, _blank(document.id.value, settings, Verdict.UNVERIFIED, reason))
        elif todo.trouble:
            yield Verified(document, inconclusive(todo, settings, todo.trouble))
        else:
            if settings.outcomes is not False:
                todo = with_outcomes(todo)
            if settings.outcomes is None and not settings.amend:
                todo = replace(todo, is_closed=is_fixed(status_of(document), outcome_of(document)))
            todo = replace(todo, seed=settings.seed, further=settings.further, excused=settings.excused)
            planned[document.path] = document, todo


def with_outcomes(todo: Plan) -> Plan:
    """Return the plan with a claim that found and fix leave the same behind, of what is run."""
    if todo.run is None or todo.run.kind == "test" or not todo.variants.keys() >= {*DECIDING}:
        return todo
    return replace(todo, claims=(*todo.claims, claim_same_result(OUTCOME, todo.run.line)))


def measure(planned: Planned, isolation: Isolation, settings: Settings) -> Iterator[tuple[str, Verified]]:
    """Measure what was planned, each as soon as it is done, by its key; plans may be of several roots.

    Finished plans are taken out of ``planned``: there may be thousands, and nothing of them is kept here.

    Raises:
        UnreachableError: The disk has no space for temporary files.
    """
    settings = with_meter(isolation, settings)
    with results_folder(isolation) as folder:
        for key, done in VerificationRun(planned, isolation, settings, folder).measure_all():
            del planned[key]
            yield key, done


@contextmanager
def results_folder(isolation: Isolation) -> Iterator[Path]:
    """A folder for what variants returned.

    Raises:
        UnreachableError: The disk has no space for temporary files.
    """
    try:
        # A server that did not start has taken its folder along; the first task reports why it ended.
        Path(isolation.folder).mkdir(0o700, exist_ok=True)
        made = tempfile.TemporaryDirectory(prefix="results-", dir=isolation.folder)
    except OSError as error:
        raise UnreachableError(
            f"nothing can be measured: there is no room for temporary files: {error.strerror}"
        ) from None
    with made as folder:
        yield Path(folder)


def draw_seed() -> int:
    """A seed for one run, which no code can know before."""
    return secrets.randbelow(1 << 52)


def record(done: Verified, settings: Settings) -> Verified:
    """Write the evidence of a verification, if there is any and it is to be kept; else nothing changes."""
    if done.evidence is None or not settings.record:
        return done
    try:
        write(done.evidence, settings.root, settings.evidence)
    except OSError as error:
        message = f"the evidence cannot be written: {error.strerror}"
        return replace(done, error=BadDataError(message, file=settings.evidence), evidence=None)
    return done


def inconclusive(todo: Plan, settings: Settings, reason: str) -> Verification:
    """A verification without samples: every claim stays open."""
    blank = _blank(todo.ticket, settings, Verdict.INCONCLUSIVE, reason)
    return blank.model_copy(update={"claims": open_claims(todo.claims)})


def _blank(ticket: str, settings: Settings, verdict: Verdict, reason: str) -> Verification:
    real = settings.meter == "cuda"
    return Verification(
        ticket=ticket,
        verdict=verdict,
        reason=reason,
        meter="cuda" if real else "simulated",
        torch=own_torch(),
        device="none" if real else tasks.SIMULATED_DEVICE,
        sweep=(),
        variants={},
        claims=(),
    )


def with_meter(isolation: Isolation, settings: Settings) -> Settings:
    """The settings with the meter that ``auto`` stands for here, so that all of a run takes the same one."""
    if settings.meter != "auto":
        return settings
    # Starting a process to ask for a GPU takes longer than looking for its driver.
    if not isolation.may_have_gpu:
        return replace(settings, meter="simulated")
    ((_, chosen),) = isolation.run({tasks.CHOICE: settings.task(tasks.CHOICE, "auto")})
    return replace(settings, meter=chosen.value or settings.meter)


@dataclass
class PlanAtWork:
    """A plan that is being measured: its tasks by their names, and the outcomes that have arrived."""

    document: Document
    todo: Plan
    results: Path  # the folder of what its variants returned
    tasks: dict[str, Task]
    outcomes: dict[str, TaskOutcome] = field(default_factory=dict)
    measured: MeasuredTicket | str = ""


@dataclass
class VerificationRun:
    """Measures the variants of all plans, each in a process of its own, and compares results."""

    _planned: Planned
    _isolation: Isolation
    _settings: Settings
    _folder: Path
    # Tasks that another one answers, by that one.
    _alike: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)

    def measure_all(self) -> Iterator[tuple[str, Verified]]:
        """Measure all plans, and yield the result of each as soon as it is there, by its key.

        What several tickets run alike is run once for all of them. If it fails, it is run for each, because
        the reason names the ticket.
        """
        works: dict[str, PlanAtWork] = {}
        queue: Queue = {}
        yield from self._begin_all(works, queue)
        for first, outcome in self._isolation.run(queue):
            kept = works[first[0]].tasks[first[1]].kept
            for key, name in [first, *self._alike.pop(first, ())]:
                work = works[key]
                if (key, name) != first:
                    if outcome.reason:
                        queue[key, name] = work.tasks[name]
                        continue
                    _link_results(kept, work.tasks[name])
                work.outcomes[name] = outcome
                if len(work.outcomes) < len(work.tasks):
                    continue
                comparing = self._comparison(work)
                if comparing:
                    queue[key, COMPARED] = work.tasks[COMPARED] = comparing
                else:
                    # Nothing keeps what is done while the caller works on it.
                    del work
                    yield key, self._end(works.pop(key))

    def _begin_all(self, works: dict[str, PlanAtWork], queue: Queue) -> Iterator[tuple[str, Verified]]:
        """Add the work and the tasks of each plan, and yield those that cannot be measured, by their keys.

        A task that a different task answers is in no queue.
        """
        firsts: dict[str, tuple[str, str]] = {}
        for key in list(self._planned):
            try:
                work = works[key] = self._begin(key)
            except (OSError, RevisionError) as error:
                document, todo = self._planned[key]
                # That is no evidence.
                yield key, Verified(document, inconclusive(todo, self._settings, _trouble(error)))
                continue
            except BadDataError as error:
                document = self._planned[key][0]
                block = document.remediation
                yield key, Verified(document, error=error.in_file(block.path if block else document.path))
                continue
            for name, task in work.tasks.items():
                if task.target == tasks.RUN:
                    # Two tickets run alike although each has its own line that says so, and its own results.
                    unstated = replace(task, payload=replace(task.payload, stated=""), kept="")
                    first = firsts.setdefault(repr(unstated), (key, name))
                    if first != (key, name):
                        self._alike.setdefault(first, []).append((key, name))
                        continue
                queue[key, name] = task

    def _begin(self, key: str) -> PlanAtWork:
        """Return the tasks of a plan.

        Raises:
            OSError: The disk has no space for results.
            RevisionError: A revision cannot be checked out.
            BadDataError: The statement that the ticket is about cannot be found.
        """
        document, todo = self._planned[key]
        if todo.place:
            find_place(todo, todo.place)
        results = self._folder / hashlib.sha256(key.encode()).hexdigest()
        return PlanAtWork(document, todo, results, self._tasks(todo, results))

    def _comparison(self, work: PlanAtWork) -> Task | None:
        """Return the task that compares the results of a measured plan, unless it has run."""
        if COMPARED in work.tasks:
            return None
        work.measured = _join(work.todo, {name: work.outcomes[name] for name in work.tasks})
        if isinstance(work.measured, str) or not work.todo.comparisons:
            return None
        target = tasks.OUTCOMES if work.todo.run else tasks.COMPARISON
        task = self._settings.task(target, comparison(work.todo, work.measured), work.todo.root)
        return replace(task, first=True, given=str(work.results))

    def _end(self, work: PlanAtWork) -> Verified:
        """Return the result of a plan."""
        measured = work.measured
        if COMPARED in work.tasks and isinstance(measured, MeasuredTicket):
            # The results are needed no more.
            shutil.rmtree(work.results, ignore_errors=True)
            agreements = answer_of(work.outcomes[COMPARED], AGREEMENTS)
            if isinstance(agreements, str):
                measured = f"results cannot be compared: {agreements}"
            else:
                measured = measured.model_copy(update={"agreements": agreements})
                if work.todo.run and all(each.skipped for each in agreements):
                    claims = tuple(claim for claim in work.todo.claims if claim.id != OUTCOME)
                    work.todo = replace(work.todo, claims=claims)
        outcomes = [work.outcomes[name] for name in work.tasks]
        try:
            return self._finish(work.document, work.todo, measured, outcomes)
        except BadDataError as error:
            return Verified(work.document, error=error.in_file(work.document.path))

    def _tasks(self, todo: Plan, results: Path) -> dict[str, Task]:
        """Return the jobs of a plan, by variant or by run.

        Raises:
            OSError: The disk has no space for results.
            RevisionError: A revision cannot be checked out.
        """
        meter, operations = self._settings.meter, self._settings.operations
        if todo.run:
            runs = {}
            for part, each in todo.run_jobs(meter).items():
                task = self._settings.task(tasks.RUN, replace(each, operations=operations), Path(each.code))
                kept = _made(results / name_of_part(todo, part.partition(" ")[0])) if each.keeps else ""
                runs[part] = replace(task, copied=each.code != each.work_tree, kept=kept)
            return runs
        jobs = todo.jobs(meter)
        orders = {}
        for name, job in jobs.items():
            task = self._settings.task(tasks.TARGET, replace(job, operations=operations), Path(job.code))
            # Tracing for graph breaks takes longest: started first, it overlaps with the others.
            task = replace(task, first=job.graph_breaks)
            if job.keeps:
                task = replace(task, kept=_made(results / name_of_part(todo, name)))
            orders[name] = task
        return orders

    def _finish(
        self, document: Document, todo: Plan, measured: MeasuredTicket | str, outcomes: Sequence[TaskOutcome]
    ) -> Verified:
        """Judge what was measured and record it; a failure of the tool or the GPU is not recorded.

        Raises:
            BadDataError: As ``judge`` does.
        """
        settings, amended = self._settings, None
        if isinstance(measured, str):
            done = inconclusive(todo, settings, measured)
            never_ran = any(each.never_ran for each in outcomes)
            # On a real GPU, the machine may be at fault: that is shown, and says nothing of the code.
            if never_ran or settings.meter == "cuda":
                return Verified(document, done, never_ran=never_ran)
            if todo.seed is not None:
                return Verified(document, done)
        else:
            measured = _with_code(todo, measured)
            unchanged = _is_unchanged(todo, measured, outcomes)
            # Of a place, what is unchanged still waits: that refuses it.
            is_tried = settings.amend and (not unchanged or todo.place)
            amended = settings.amend(todo, measured) if settings.amend and is_tried else None
            if amended:
                unstated = tuple(claim for claim in todo.claims if claim.id == OUTCOME)
                document, stated = amended
                todo = replace(stated, claims=(*stated.claims, *unstated))
            done = judge(todo, measured, unchanged=unchanged)
        if settings.amend and not amended:
            return Verified(document, done)
        # Evidence is of the ticket as it stands in the work tree, with its own seed.
        if todo.seed is not None or settings.overrides or settings.verifiers:
            return Verified(document, done)
        folders = {self._isolation.folder, *todo.folders.values()} - {str(todo.root)}
        inputs = collect_inputs(todo, document, done, file_inputs(outcomes, todo, folders))
        evidence = Evidence(inputs=inputs, verification=done)
        return record(Verified(document, done, evidence=evidence), settings)


def _made(folder: Path) -> str:
    """Make a folder for what is kept, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def _link_results(kept: str, task: Task) -> None:
    """Give a task the results that an earlier task left in the folder ``kept``."""
    results = Path(kept, task.payload.keeps)
    if results.is_file():
        os.link(results, Path(task.kept, task.payload.keeps))


def name_of_part(todo: Plan, variant: str) -> str:
    """The folder of a variant's results, by a name that does not tell which one it is."""
    return str(list(todo.variants).index(variant))


def comparison(todo: Plan, measured: MeasuredTicket) -> dict[str, Any]:
    """The payload to compare what the claims of a plan compare."""
    places = {repr(at): place for place, at in enumerate(measured.sweep)}
    checks: list[tuple[dict[str, Any], list[str]]] = []
    for pair in todo.comparisons:
        names = (pair.target, pair.variant)
        for expected, actual in zip(*(measured.variants[name].samples for name in names), strict=False):
            check = {**asdict(pair), "at": expected.at, "skipped": bool(expected.error)}
            place = places[repr(expected.at)]
            files = [f"{name_of_part(todo, name)}/{place}" for name in names]
            if actual.error and not expected.error:
                check["difference"] = f"raised {actual.error}"
            checks.append((check, [] if expected.error or actual.error else files))
    if todo.run:
        first = name_of_part(todo, FOUND)
        has_second = measured.meter == "simulated" and not measured.variants[FOUND].samples[0].error
        twice = [f"{first}/0", f"{first}/{AGAIN}"] if has_second else []
        return {"checks": checks, "twice": twice, "accepted": todo.differs}
    own = measured.compares and any(each.tolerance is None for each in todo.comparisons)
    # Without a comparison of the workload's own, no code of the repository is loaded there.
    verifier = todo.verifier if own else ""
    return {"root": str(todo.verifiers), "code": str(todo.root), "verifier": verifier, "checks": checks}


def _join(todo: Plan, outcomes: Mapping[str, TaskOutcome]) -> MeasuredTicket | str:
    """Join what the workers measured of a plan; or return why nothing was measured."""
    if todo.run:
        return _join_runs(todo, outcomes)
    answers: dict[str, MeasuredTicket | str] = {}
    for name in todo.variants:
        answer = answer_of(outcomes[name], MEASURED)
        answers[name] = answer
    parts = [each for each in answers.values() if isinstance(each, MeasuredTicket)]
    for name, why in answers.items():
        if isinstance(why, str):
            # What fails for all of them alike is not the variants' fault.
            if not todo.revisions and not parts and len({*map(str, answers.values())}) == 1:
                return why
            where = f" at {todo.revisions[name]}" if name in todo.revisions else ""
            # The meter may have named the variant already.
            is_named = why.startswith((f"{name}: ", f"{name} at ")) and not where
            return why if is_named else f"{name}{where}: {why.removeprefix(f'{name}: ')}"
    return join(todo, parts)


def _join_runs(todo: Plan, outcomes: Mapping[str, TaskOutcome]) -> MeasuredTicket | str:
    """Return the run of each variant at each point; or why there is none."""
    answered, whole = dict[str, list[MeasuredRun]](), dict[str, list[MeasuredRun]]()
    for name in todo.variants:
        who = f"{name} at {todo.revisions[name]}" if name in todo.revisions else name
        runs = answered_runs(todo, name, outcomes, who, ", ")
        if isinstance(runs, str):
            if name == BASE:
                # It may not run here; what a ticket claims can be judged without it.
                continue
            return runs
        answered[name] = runs
        if in_all := outcomes.get(f"{name} {WHOLE}"):
            run = answer_of(in_all, _RUN)
            if isinstance(run, str):
                return run
            whole[name] = [run]
    if not answered:
        return "nothing was run"
    placed = PlacedRuns({name: [*map(counted_run, runs)] for name, runs in answered.items()})
    if todo.place:
        placed = measure_place(todo, todo.place, answered, whole or answered)
    if placed.differs:
        return f"{tasks.VARYING}: {', '.join(placed.differs)}"
    variants = {}
    for name, counted in placed.runs.items():
        result = {**fitted(counted), "operations": answered[name][-1].operations}
        variants[name] = VariantResult.model_validate(result)
    first = next(iter(answered.values()))[0]
    return MeasuredTicket(
        meter=first.meter,
        torch=first.torch,
        device=first.device,
        sweep=todo.sweep,
        variants=variants,
        lines=placed.lines,
        elsewhere=tuple(placed.elsewhere),
        dearer=_find_dearer(todo, answered),
    )


def _find_dearer(todo: Plan, runs: Mapping[str, Sequence[MeasuredRun]]) -> tuple[str, ...]:
    """Return what the fix costs more at the last point, though no claim says how much, each in words."""
    if not runs.keys() >= {*DECIDING}:
        return ()
    found, fix = (runs[name][len(todo.sweep) - 1].metrics for name in DECIDING)
    # Claims about a place tell nothing of the whole.
    claimed = set() if todo.place else {claim.metric for claim in todo.claims if claim.variant == FIX}
    dearer = []
    for metric in OTHER_COSTS:
        if metric in found.keys() & fix.keys() - claimed and fix[metric] > MORE * found[metric]:
            dearer.append(f"{metric} {found[metric]} -> {fix[metric]}")
    return tuple(dearer)


def answered_runs(
    todo: Plan, name: str, outcomes: Mapping[str, TaskOutcome], who: str, between: str
) -> list[MeasuredRun] | str:
    """The runs of a variant at each point; or why they cannot be relied on, and ``who`` at which point.

    Of a place, the run that was made twice comes last: only what costs something there has to be the same.
    """
    runs: list[MeasuredRun] = []
    for place, at in [*enumerate(todo.sweep), (AGAIN, todo.sweep[0])]:
        if (outcome := outcomes.get(f"{name} {place}")) is None:
            continue
        run, where = answer_of(outcome, _RUN), f"{named_at(who, at, between)}: ".removeprefix(": ")
        if isinstance(run, str):
            return where + run
        if place != AGAIN or todo.place:
            runs.append(run)
        elif difference := counted_run(runs[0]).difference(counted_run(run)):
            return f"{where}{tasks.VARYING}: {difference}"
    return runs


def counted_run(done: MeasuredRun) -> CountedRun:
    """Turn the answer of a process into a run that laws can be fitted to."""
    sites: dict[Place, int] = {each[:4]: each[4] for each in done.sites}
    return CountedRun(done.at, done.metrics, sites, done.error, done.unknown, done.approximate, done.ranges)


def join(todo: Plan, parts: Sequence[MeasuredTicket]) -> MeasuredTicket | str:
    """Measurements of several variants as one; or the reason why they cannot be one."""
    first, *others = parts
    for part in others:
        for same in ("sweep", "not_measured", "compares"):
            if getattr(part, same) != getattr(first, same):
                names = " and ".join((*first.variants, *part.variants))
                return f"the verifier makes another workload for another variant: {same} of {names} differ"
    variants = {name: result for part in parts for name, result in part.variants.items()}
    return first.model_copy(update={"variants": {name: variants[name] for name in todo.variants}})


def _with_code(todo: Plan, measured: MeasuredTicket) -> MeasuredTicket:
    """Return the measurement with the code of each line, because the file may change."""
    variants = {}
    for name, variant in measured.variants.items():
        folder = Path(todo.folders[name]).resolve()
        sites = []
        for site in variant.sites:
            path = (folder / site.file).resolve()
            code = ""
            # Code may call its file anything.
            if path.is_relative_to(folder) and path.is_file():
                linecache.checkcache(str(path))
                code = linecache.getline(str(path), site.line).strip()[:LONGEST_LINE]
            sites.append(site.model_copy(update={"code": code}))
        variants[name] = variant.model_copy(update={"sites": tuple(sites)})
    return measured.model_copy(update={"variants": variants})


def _is_unchanged(todo: Plan, measured: MeasuredTicket, outcomes: Iterable[TaskOutcome]) -> bool:
    """Return True if the fix is the code as found, including what it imports from the repository."""
    before, after = (measured.variants.get(name) for name in DECIDING)
    if not before or not after or before.samples != after.samples:
        return False
    (old, found), (new, fix) = ((Path(todo.folders[name]), todo.variants[name]) for name in DECIDING)
    (function, rest), (other, around) = tasks.code_of(found, old), tasks.code_of(fix, new)
    # What is run as a whole is all that it imports.
    if not todo.run and (function != other or not function):
        return False
    if old == new:
        return found.module == fix.module or rest == around

    files = [name for at in (old, new) for name in collect_files(outcomes, at) if name.endswith(".py")]
    pairs = ((tasks.parse_code(old / file), tasks.parse_code(new / file)) for file in files)
    return rest == around and all(ast.dump(one) == ast.dump(two) for one, two in pairs if one and two)


def _trouble(error: OSError | RevisionError) -> str:
    """A measurement cannot be prepared; the message says why."""
    if isinstance(error, OSError):
        return f"it cannot be prepared: {error.strerror or error}"
    return str(error)
