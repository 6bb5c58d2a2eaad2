"""Verify documents: plan each, measure them apart from each other, judge what came back, record it."""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from finding_tickets.measure.tasks import CannotMeasureError, Further
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
from finding_tickets.verify.evidence import (
    collect_files,
    collect_inputs,
    file_inputs,
    write,
)
from finding_tickets.verify.judge import (
    DECIDING,
    FIX,
    FOUND,
    MEASURED,
    claim_same_result,
    judge,
    open_claims,
    parse_worker_result,
)
from finding_tickets.verify.places import PlacedRuns, find_place, measure_place
from finding_tickets.verify.plan import AGAIN, BASE, WHOLE, Plan, plan, stated_in

_RUN = TypeAdapter(MeasuredRun)
AGREEMENTS = TypeAdapter(tuple[ResultCheck, ...])
# Names the comparison among the parts of a ticket that are measured: no variant is called that.
COMPARED = ""
NOT_COMPARABLE = "results cannot be compared"
OTHER_COSTS = (
    "syncs",
    "implicit_syncs",
    "launches",
    "h2d",
    "h2d_bytes",
    "d2h",
    "d2h_bytes",
    "peak_bytes",
)
# A fix that costs no more than this part of the code as found is not said to cost more.
MORE = 1.1
# Letters of a line of code that are kept.
LONGEST_LINE = 200


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
    verifiers: Path | None = (
        None  # the root that verifiers are taken from, if not that of the code
    )
    record: bool = True  # whether evidence is written
    seed: int | None = (
        None  # takes the place of the workload's; what is measured with it is no evidence
    )
    further: Further = ""  # the points that are added to those of the sweep
    repository: Path | None = None  # where git knows revisions, if that is not the root
    operations: bool = (
        False  # whether to tell what each operation costs, which is no evidence
    )
    # Statements that tickets of the register name as moved, and that budgets allow: no new waits of others.
    excused: tuple[Statement, ...] = ()
    # Whether to compare what found and fix leave behind, of what is run, and to refuse every new wait. By
    # default a difference and a rare wait are no fault of a ticket that is closed as fixed: code goes on.
    outcomes: bool | None = None

    def task(self, target: str, payload: Any, **more: Any) -> Task:
        """Return the task of a worker within these limits."""
        return Task(
            target=target,
            payload=payload,
            root=self.root,
            timeout=self.timeout,
            memory=self.memory,
            alone=self.meter == "cuda",
            **more,
        )


@dataclass(frozen=True)
class Verified:
    """The result of verifying a document."""

    document: Document
    verification: Verification | None = None
    error: BadDataError | None = None  # what kept it from being measured or recorded
    evidence: Evidence | None = (
        None  # what was recorded, or would have been where nothing is
    )
    never_ran: bool = False  # as in ``TaskOutcome``


Planned = dict[str, Plan]


@dataclass
class MeasuredPlan:
    """A plan that is being measured, or was: its tasks by their names, and the outcomes that have arrived.

    In the end there is what was ``measured``, or the ``reason`` why nothing was, or what is wrong with the
    document.
    """

    key: str  # in what was planned
    plan: Plan
    results: Path  # the folder of what its variants returned
    tasks: dict[str, Task] = field(default_factory=dict)
    outcomes: dict[str, TaskOutcome] = field(default_factory=dict)
    measured: MeasuredTicket | None = None
    reason: str = ""
    error: BadDataError | None = None


def verify(
    documents: Iterable[Document], isolation: Isolation, settings: Settings
) -> Iterator[Verified]:
    """Verify documents, each as soon as it is done; what one of them does leaves the others alone."""
    planned: Planned = {}
    yield from plan_each(documents, settings, planned)
    if planned:
        yield from measure(planned, isolation, settings)


def plan_each(
    documents: Iterable[Document], settings: Settings, planned: Planned
) -> Iterator[Verified]:
    """Add each document to ``planned`` by its path, and yield those without anything to measure."""
    for document in documents:
        try:
            todo = make_plan(document, settings)
        except BadDataError as error:
            yield Verified(document, error=error)
            continue
        if todo:
            planned[document.path] = todo
        else:
            reason = "it has no verifier"
            yield Verified(
                document,
                _blank(document.id.value, settings, Verdict.UNVERIFIED, reason),
            )


def make_plan(document: Document, settings: Settings) -> Plan | None:
    """Plan the verification of a document by the settings; None if it has no verifier.

    Raises:
        BadDataError: As ``plan`` does.
    """
    todo = plan(
        document,
        settings.root,
        settings.overrides,
        settings.verifiers,
        settings.repository,
    )
    if todo is None:
        return None
    run, claims = todo.run, todo.claims
    has_both = todo.variants.keys() >= {*DECIDING}
    if run and run.kind != "test" and has_both and settings.outcomes is not False:
        # Found and fix leave the same behind.
        claims += (claim_same_result(OUTCOME, run.line),)
    return replace(
        todo,
        claims=claims,
        is_closed=settings.outcomes is None
        and is_fixed(status_of(document), outcome_of(document)),
        seed=settings.seed,
        further=settings.further,
        excused=settings.excused,
    )


def measure_one(
    document: Document, isolation: Isolation, settings: Settings
) -> MeasuredPlan:
    """Measure a document that has a verifier or something to run.

    Raises:
        BadDataError: It cannot be planned.
        UnreachableError: As ``measure`` does.
    """
    planned: Planned = {}
    if todo := make_plan(document, settings):
        planned[document.path] = todo
    with results_folder(isolation) as folder:
        (work,) = run_all(planned, isolation, settings, folder)
    return work


def measure(
    planned: Planned, isolation: Isolation, settings: Settings
) -> Iterator[Verified]:
    """Measure what was planned, judge each as soon as it is done, and record it.

    Plans may be of several roots. They are taken out of ``planned``: there may be thousands, and nothing of
    those that are done is kept here.

    Raises:
        UnreachableError: The disk has no space for temporary files.
    """
    settings = with_meter(isolation, settings)
    with results_folder(isolation) as folder:
        for work in run_all(planned, isolation, settings, folder):
            shutil.rmtree(work.results, ignore_errors=True)
            done = conclude(work, isolation, settings)
            del work
            yield done


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
        return replace(
            done, error=BadDataError(message, file=settings.evidence), evidence=None
        )
    return done


def inconclusive(todo: Plan, settings: Settings, reason: str) -> Verification:
    """A verification without samples: every claim stays open."""
    blank = _blank(todo.document.id.value, settings, Verdict.INCONCLUSIVE, reason)
    return blank.model_copy(update={"claims": open_claims(todo.claims)})


def _blank(
    ticket: str, settings: Settings, verdict: Verdict, reason: str
) -> Verification:
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


def run_all(
    planned: Planned, isolation: Isolation, settings: Settings, folder: Path
) -> Iterator[MeasuredPlan]:
    """Run the variants of all plans, each in a process of its own, compare results, and yield what is done.

    What several plans run alike is run once for all of them. If it fails, it is run for each, because the
    reason names the ticket.
    """
    works: dict[str, MeasuredPlan] = {}
    queue: dict[tuple[str, str], Task] = {}
    firsts: dict[str, tuple[str, str]] = {}
    # Tasks that another one answers, by that one.
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for key in list(planned):
        work = _begin(key, planned.pop(key), settings, folder)
        if not work.tasks:
            yield work
            continue
        works[key] = work
        for name in work.tasks:
            first = firsts.setdefault(_signature(work.tasks[name]), (key, name))
            if first == (key, name):
                queue[first] = work.tasks[name]
            else:
                alike.setdefault(first, []).append((key, name))
    del firsts
    for first, outcome in isolation.run(queue):
        kept = works[first[0]].tasks[first[1]].kept
        for key, name in [first, *alike.pop(first, ())]:
            work = works[key]
            if (key, name) != first:
                if outcome.reason:
                    queue[key, name] = work.tasks[name]
                    continue
                _link_results(kept, work.tasks[name])
            work.outcomes[name] = outcome
            if len(work.outcomes) < len(work.tasks):
                continue
            try:
                if name == COMPARED:
                    _add_agreements(work)
                else:
                    work.measured = _with_code(
                        work.plan, _join(work.plan, work.outcomes)
                    )
            except CannotMeasureError as error:
                work.measured, work.reason = None, str(error)
            except BadDataError as error:
                work.error = error
            if work.measured and work.plan.comparisons and name != COMPARED:
                queue[key, COMPARED] = work.tasks[COMPARED] = _comparison(
                    work, work.measured, settings
                )
                continue
            # Nothing keeps what is done while the caller works on it.
            del work
            yield works.pop(key)


def _begin(key: str, todo: Plan, settings: Settings, folder: Path) -> MeasuredPlan:
    """Return a plan with its tasks, or with what keeps it from being measured."""
    work = MeasuredPlan(key, todo, folder / hashlib.sha256(key.encode()).hexdigest())
    if todo.trouble:
        work.reason = todo.trouble
        return work
    try:
        if todo.place:
            find_place(todo, todo.place)
        work.tasks = _tasks(todo, settings, work.results)
    except RevisionError as error:
        work.reason = str(error)
    except OSError as error:
        work.reason = f"it cannot be prepared: {error.strerror or error}"
    except BadDataError as error:
        work.error = error
    return work


def _tasks(todo: Plan, settings: Settings, results: Path) -> dict[str, Task]:
    """Return the tasks of a plan, by variant or by run.

    Raises:
        OSError: The disk has no space for results.
        RevisionError: A revision cannot be checked out.
    """
    found = {}
    for part, run in todo.run_jobs(
        settings.meter, operations=settings.operations
    ).items():
        kept = (
            _made(results / name_of_part(todo, part.partition(" ")[0]))
            if run.keeps
            else ""
        )
        is_copied = run.code != run.work_tree
        found[part] = settings.task(
            tasks.RUN, run, code=Path(run.code), kept=kept, copied=is_copied
        )
    if todo.run:
        return found
    for name, job in todo.jobs(settings.meter, operations=settings.operations).items():
        kept = _made(results / name_of_part(todo, name)) if job.keeps else ""
        target, payload = tasks.TARGET, dict[str, Any]()
        if name in todo.cheats:
            target, payload = tasks.CHEAT, {**todo.cheats[name], "job": job}
        # Tracing for graph breaks takes longest: started first, it overlaps with the others.
        found[name] = settings.task(
            target,
            payload or job,
            code=Path(job.code),
            kept=kept,
            first=job.graph_breaks,
        )
    return found


def _signature(task: Task) -> str:
    """Return a text that is the same for tasks of several tickets that run alike."""
    # Each has its own line that says so, and its own results.
    payload = (
        replace(task.payload, stated="") if task.target == tasks.RUN else task.payload
    )
    return repr(replace(task, payload=payload, kept=""))


def conclude(work: MeasuredPlan, isolation: Isolation, settings: Settings) -> Verified:
    """Judge what was measured and record it; a failure of the tool or the GPU is not recorded."""
    todo, document = work.plan, work.plan.document
    outcomes = [*work.outcomes.values()]
    try:
        if work.error:
            raise work.error
        if work.measured:
            done = judge(todo, work.measured, unchanged=is_unchanged(work))
        else:
            done = inconclusive(todo, settings, work.reason)
            never_ran = any(each.never_ran for each in outcomes)
            # On a real GPU, the machine may be at fault: that is shown, and says nothing of the code.
            if never_ran or not outcomes or settings.meter == "cuda":
                return Verified(document, done, never_ran=never_ran)
    except BadDataError as error:
        return Verified(document, error=error.in_file(stated_in(document).path))
    # Evidence is of the ticket as it stands in the work tree, with its own seed.
    if todo.seed is not None or settings.overrides or settings.verifiers:
        return Verified(document, done)
    folders = {isolation.folder, *todo.folders.values()} - {str(todo.root)}
    inputs = collect_inputs(todo, done, file_inputs(outcomes, todo, folders))
    evidence = Evidence(inputs=inputs, verification=done)
    return record(Verified(document, done, evidence=evidence), settings)


def _made(folder: Path) -> str:
    """Make a folder for what is kept, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def _link_results(kept: str, task: Task) -> None:
    """Give a task the results that an earlier task left in the folder ``kept``."""
    if not kept:
        return
    own = task.payload.keeps if task.target == tasks.RUN else "*"
    for file in Path(kept).glob(own):
        os.link(file, Path(task.kept, file.name))


def name_of_part(todo: Plan, variant: str) -> str:
    """The folder of a variant's results, by a name that does not tell which one it is."""
    return str(list(todo.variants).index(variant))


def _comparison(
    work: MeasuredPlan, measured: MeasuredTicket, settings: Settings
) -> Task:
    """Return the task that compares what the claims of a plan compare."""
    todo, payload = work.plan, dict[str, Any]()
    places = {repr(at): place for place, at in enumerate(measured.sweep)}
    checks: list[tuple[dict[str, Any], list[str]]] = []
    for pair in todo.comparisons:
        names = (pair.target, pair.variant)
        for expected, actual in zip(
            *(measured.variants[name].samples for name in names), strict=False
        ):
            check = {**asdict(pair), "at": expected.at, "skipped": bool(expected.error)}
            place = places[repr(expected.at)]
            files = [f"{name_of_part(todo, name)}/{place}" for name in names]
            if actual.error and not expected.error:
                check["difference"] = f"raised {actual.error}"
            checks.append((check, [] if expected.error or actual.error else files))
    if todo.run:
        first = name_of_part(todo, FOUND)
        has_second = (
            measured.meter == "simulated"
            and not measured.variants[FOUND].samples[0].error
        )
        twice = [f"{first}/0", f"{first}/{AGAIN}"] if has_second else []
        payload = {"checks": checks, "twice": twice, "accepted": todo.differs}
    else:
        own = measured.compares and any(
            each.tolerance is None for each in todo.comparisons
        )
        # Without a comparison of the workload's own, no code of the repository is loaded there.
        verifier = todo.verifier if own else ""
        payload = {
            "root": str(todo.verifiers),
            "code": str(todo.root),
            "verifier": verifier,
            "checks": checks,
        }
    given = str(work.results)
    if todo.cheats:
        # What they left is looked at afterwards, and what is given to a task is gone.
        given = shutil.copytree(given, f"{given} given", copy_function=os.link)
    target = tasks.OUTCOMES if todo.run else tasks.COMPARISON
    return settings.task(target, payload, code=todo.root, first=True, given=given)


def _add_agreements(work: MeasuredPlan) -> None:
    """Add the outcomes of comparing results.

    Raises:
        CannotMeasureError: They could not be compared.
    """
    try:
        agreements = parse_worker_result(work.outcomes[COMPARED], AGREEMENTS)
    except CannotMeasureError as error:
        raise CannotMeasureError(f"{NOT_COMPARABLE}: {error}") from None
    if work.measured:
        work.measured = work.measured.model_copy(update={"agreements": agreements})
    if work.plan.run and all(each.skipped for each in agreements):
        claims = tuple(claim for claim in work.plan.claims if claim.id != OUTCOME)
        work.plan = replace(work.plan, claims=claims)


def _join(todo: Plan, outcomes: Mapping[str, TaskOutcome]) -> MeasuredTicket:
    """Join what the workers measured of a plan.

    Raises:
        CannotMeasureError: Something did not run, or not as it should.
    """
    if todo.run:
        return _join_runs(todo, outcomes)
    parts: dict[str, MeasuredTicket] = {}
    failures: dict[str, str] = {}
    for name in todo.variants:
        try:
            parts[name] = parse_worker_result(outcomes[name], MEASURED)
        except CannotMeasureError as error:
            failures[name] = str(error)
    for name, why in failures.items():
        # What fails for all of them alike is not the variants' fault.
        is_common = not parts and not todo.revisions and len({*failures.values()}) == 1
        where = f" at {todo.revisions[name]}" if name in todo.revisions else ""
        # The meter may have named the variant already. Of a cheat, that tells what it refuses.
        is_named = why.startswith((f"{name}: ", f"{name} at ")) and not where
        if is_common or is_named or todo.cheats:
            raise CannotMeasureError(why)
        raise CannotMeasureError(f"{name}{where}: {why.removeprefix(f'{name}: ')}")
    (one, first), *others = parts.items()
    for other, part in others:
        for same in ("sweep", "not_measured", "compares"):
            if getattr(part, same) != getattr(first, same):
                message = f"another workload for another variant: {same} of {one} and {other} differ"
                raise CannotMeasureError(f"the verifier makes {message}")
    return first.model_copy(
        update={"variants": {name: part.variants[name] for name, part in parts.items()}}
    )


def _join_runs(todo: Plan, outcomes: Mapping[str, TaskOutcome]) -> MeasuredTicket:
    """Join the runs of each variant at each point.

    Raises:
        CannotMeasureError: As ``_join`` does.
        BadDataError: The statement that the ticket is about cannot be found.
    """
    answered, whole = dict[str, list[MeasuredRun]](), dict[str, list[MeasuredRun]]()
    for name in todo.variants:
        try:
            answered[name] = _parse_runs(todo, name, outcomes)
        except CannotMeasureError:
            if name != BASE:
                raise
            # It may not run here; what a ticket claims can be judged without it.
            continue
        if in_all := outcomes.get(f"{name} {WHOLE}"):
            whole[name] = [parse_worker_result(in_all, _RUN)]
    if not answered:
        raise CannotMeasureError("nothing was run")
    placed = PlacedRuns(
        {name: [*map(counted_run, runs)] for name, runs in answered.items()}
    )
    if todo.place:
        placed = measure_place(todo, todo.place, answered, whole or answered)
    if placed.differs:
        raise CannotMeasureError(f"{tasks.VARYING}: {', '.join(placed.differs)}")
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


def _find_dearer(
    todo: Plan, runs: Mapping[str, Sequence[MeasuredRun]]
) -> tuple[str, ...]:
    """Return what the fix costs more at the last point, though no claim says how much, each in words."""
    if not runs.keys() >= {*DECIDING}:
        return ()
    found, fix = (runs[name][len(todo.sweep) - 1].metrics for name in DECIDING)
    # Claims about a place tell nothing of the whole.
    claimed = (
        set()
        if todo.place
        else {claim.metric for claim in todo.claims if claim.variant == FIX}
    )
    dearer = []
    for metric in OTHER_COSTS:
        if (
            metric in found.keys() & fix.keys() - claimed
            and fix[metric] > MORE * found[metric]
        ):
            dearer.append(f"{metric} {found[metric]} -> {fix[metric]}")
    return tuple(dearer)


def _parse_runs(
    todo: Plan, name: str, outcomes: Mapping[str, TaskOutcome]
) -> list[MeasuredRun]:
    """Return the runs of a variant at each point.

    Of a place, the run that was made twice comes last: only what costs something there has to be the same.

    Raises:
        CannotMeasureError: They cannot be relied on.
    """
    who = f"{name} at {todo.revisions[name]}" if name in todo.revisions else name
    runs: list[MeasuredRun] = []
    for place, at in [*enumerate(todo.sweep), (AGAIN, todo.sweep[0])]:
        outcome = outcomes.get(f"{name} {place}")
        if outcome is None:
            continue
        try:
            run = parse_worker_result(outcome, _RUN)
            if place != AGAIN or todo.place:
                runs.append(run)
            elif difference := counted_run(runs[0]).difference(counted_run(run)):
                raise CannotMeasureError(f"{tasks.VARYING}: {difference}")
        except CannotMeasureError as error:
            raise CannotMeasureError(f"{named_at(who, at, ', ')}: {error}") from None
    return runs


def counted_run(done: MeasuredRun) -> CountedRun:
    """Turn the answer of a process into a run that laws can be fitted to."""
    sites: dict[Place, int] = {each[:4]: each[4] for each in done.sites}
    return CountedRun(
        done.at,
        done.metrics,
        sites,
        done.error,
        done.unknown,
        done.approximate,
        done.ranges,
    )


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


def is_unchanged(work: MeasuredPlan) -> bool:
    """Return True if the fix is the code as found, including what it imports from the repository."""
    todo, measured = work.plan, work.measured
    before, after = (
        measured.variants.get(name) if measured else None for name in DECIDING
    )
    if not before or not after or before.samples != after.samples:
        return False
    (old, found), (new, fix) = (
        (Path(todo.folders[name]), todo.variants[name]) for name in DECIDING
    )
    (function, rest), (other, around) = (
        tasks.code_of(found, old),
        tasks.code_of(fix, new),
    )
    # What is run as a whole is all that it imports.
    if not todo.run and (function != other or not function):
        return False
    if rest != around and (old, found.module) != (new, fix.module):
        return False
    for folder in {old, new}:
        for name in collect_files(work.outcomes.values(), folder):
            if name.endswith(".py"):
                one, two = tasks.parse_code(old / name), tasks.parse_code(new / name)
                if one and two and ast.dump(one) != ast.dump(two):
                    return False
    return True
