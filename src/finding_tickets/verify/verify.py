"""Verify documents: plan each, measure them apart from each other, judge what came back, record it."""

from __future__ import annotations

import ast
import errno
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import TypeAdapter

from finding_tickets.claims.check import at_text
from finding_tickets.claims.laws import CountedRun, fitted
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, RevisionError, UnreachableError
from finding_tickets.measure.isolation import Isolation, Task, TaskOutcome
from finding_tickets.measure.server import NO_ROOM
from finding_tickets.measure.tasks import (
    CHOICE,
    COMPARISON,
    DEVICES,
    RUN,
    SIMULATED_DEVICE,
    TARGET,
    TIMING,
    TORCH,
    VARYING,
    VISIBLE,
    WANTED,
    CannotMeasureError,
    FunctionPath,
    code_of,
    is_example,
    parse_code,
)
from finding_tickets.model.verification import (
    Evidence,
    MeasuredRun,
    MeasuredTicket,
    ResultCheck,
    Times,
    VariantResult,
    Verification,
)
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.staleness import ABSENT, own_torch
from finding_tickets.verify.evidence import digest, importable, inputs, write
from finding_tickets.verify.judge import DECIDING, MEASURED, answer_of, judge, unchecked
from finding_tickets.verify.plan import AGAIN, EVERY, Plan, plan

if TYPE_CHECKING:
    from finding_tickets.verify.matrix import Cell

_RUN = TypeAdapter(MeasuredRun)
_AGREEMENTS = TypeAdapter(tuple[ResultCheck, ...])
_FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to verify; the limits are those of each document."""

    root: Path
    evidence: str  # the folder of it, below the root
    meter: str
    timeout: float  # seconds
    memory: int  # bytes
    # Revisions of variants, as ``plan`` takes them; what is measured there is no evidence.
    overrides: Mapping[str, str] = field(default_factory=dict)
    verifiers: Path | None = None  # the root that verifiers are taken from, if not that of the code
    record: bool = True  # whether evidence is written
    commits: Mapping[str, str] = field(default_factory=dict)  # of revisions for which git is not asked
    # What a machine of a cluster must have, in its own words; this machine is not asked.
    resources: Mapping[str, float] = field(default_factory=dict)
    cell: Cell | None = None  # the one of a matrix that is measured
    # Makes another document and plan of those that were measured, before these are judged and recorded; or
    # nothing, and then nothing is recorded.
    amend: Callable[[Plan, MeasuredTicket], tuple[Document, Plan] | None] | None = None

    def within(self, cell: Cell) -> Settings:
        """The settings to measure a cell by."""
        return replace(
            self,
            cell=cell,
            meter=cell.meter,
            overrides={EVERY: cell.revision} if cell.revision else {},
            resources={**self.resources, **cell.resources},
        )

    def task(self, target: str, payload: Any = None, code: Path | None = None) -> Task:
        """What a worker is asked to do within these limits."""
        return Task(
            target=target,
            payload=payload,
            root=self.root,
            timeout=self.timeout,
            memory=self.memory,
            code=code,
        )


@dataclass(frozen=True)
class Verified:
    """What came of verifying a document."""

    document: Document
    verification: Verification | None = None
    error: BadDataError | None = None  # what kept it from being measured or recorded
    evidence: Evidence | None = None  # what was recorded, or would have been where nothing is
    never_ran: bool = False  # as in ``TaskOutcome``
    imported: tuple[str, ...] = ()  # the files that were imported from the folder of the code
    # Those of another folder that verifiers come from, with their SHA-256.
    outside: Mapping[str, str] = field(default_factory=dict)
    # Whether measuring again would give the same: a machine that could not measure says nothing of the code.
    is_lasting: bool = True


Planned = dict[str, tuple[Document, Plan]]
OnStart = Callable[[Document], None]


class Executor(Protocol):
    """Verifies documents; one that cannot be measured ends inconclusive and leaves the others alone."""

    def verify(
        self, documents: Sequence[Document], settings: Settings, on_start: OnStart
    ) -> Iterator[Verified]:
        """Every document once, with its evidence recorded; ``on_start`` gets each document that begins."""

    def together(self, settings: Settings) -> AbstractContextManager[object]:
        """A block whose calls of ``verify`` share what all of them need; it is prepared once."""


@dataclass(frozen=True)
class Local:
    """This machine: a process for each processor, and for real runs a GPU each."""

    isolation: Isolation

    def verify(
        self, documents: Sequence[Document], settings: Settings, on_start: OnStart
    ) -> Iterator[Verified]:
        """Every document as soon as it is done."""
        interpreter = settings.cell.interpreter if settings.cell else ""
        return verify(documents, self.isolation.on(interpreter), settings, on_start)

    def together(self, settings: Settings) -> AbstractContextManager[object]:  # noqa: ARG002 - the protocol's
        """Nothing: the servers last as long as that of the tool's own Python."""
        return nullcontext()


def verify(
    documents: Iterable[Document],
    isolation: Isolation,
    settings: Settings,
    on_start: OnStart = lambda _: None,
) -> Iterator[Verified]:
    """Verify documents, each as soon as it is done; what one of them does leaves the others alone.

    ``on_start`` is told of a document whenever a process begins to measure something of it.
    """
    planned: Planned = {}
    yield from plan_each(documents, settings, planned)
    if planned:
        yield from (done for _, done in measure(planned, isolation, settings, on_start))


def plan_each(documents: Iterable[Document], settings: Settings, planned: Planned) -> Iterator[Verified]:
    """Add each document to ``planned`` by its path, and yield those of which nothing is to be measured."""
    for document in documents:
        todo = prepare(document, settings)
        if isinstance(todo, Verified):
            yield todo
        else:
            planned[document.path] = document, todo


def prepare(document: Document, settings: Settings) -> Plan | Verified:
    """What there is to measure of a document; or all there is to say of it, where that is nothing."""
    try:
        todo = plan(document, settings.root, settings.overrides, settings.verifiers, settings.commits)
    except BadDataError as error:
        return Verified(document, error=error)
    if todo is None:
        reason = "it has no verifier"
        return Verified(document, _blank(document.id.value, settings, Verdict.UNVERIFIED, reason))
    if todo.trouble:
        return Verified(document, inconclusive(todo, settings, todo.trouble))
    return todo


def measure(
    planned: Planned, isolation: Isolation, settings: Settings, on_start: OnStart = lambda _: None
) -> Iterator[tuple[str, Verified]]:
    """Measure what was planned, each as soon as it is done, by its key; plans may be of several roots.

    Finished plans are taken out of ``planned``: there may be thousands, and nothing of them is kept here.

    Raises:
        UnreachableError: There is no room for temporary files.
    """
    if reason := _unfit(isolation, settings):
        for key in list(planned):
            document, todo = planned.pop(key)
            yield key, Verified(document, inconclusive(todo, settings, reason), is_lasting=False)
        return
    settings = with_meter(isolation, settings)
    try:
        # A server that did not start has taken its folder along; the first task reports why it ended.
        Path(isolation.folder).mkdir(0o700, exist_ok=True)
        made = tempfile.TemporaryDirectory(prefix="results-", dir=isolation.folder)
    except OSError as error:
        raise UnreachableError(
            f"nothing can be measured: there is no room for temporary files: {error.strerror}"
        ) from None
    with made as folder:
        yield from VerificationRun(planned, isolation, settings, Path(folder), on_start).measure()


def record(done: Verified, settings: Settings) -> Verified:
    """Write the evidence of a verification, if there is any and it is to be kept; else nothing changes."""
    if done.evidence is None or not settings.record:
        return done
    try:
        return replace(done, evidence=write(done.evidence, settings.root, settings.evidence))
    except OSError as error:
        message = f"the evidence cannot be written: {error.strerror}"
        return replace(done, error=BadDataError(message, file=settings.evidence), evidence=None)


def inconclusive(todo: Plan, settings: Settings, reason: str) -> Verification:
    """A verification without samples: every claim stays open."""
    blank = _blank(todo.ticket, settings, Verdict.INCONCLUSIVE, reason)
    return blank.model_copy(update={"claims": unchecked(todo.claims)})


def _blank(ticket: str, settings: Settings, verdict: Verdict, reason: str) -> Verification:
    real, cell = settings.meter == "cuda", settings.cell
    device = "none" if real else SIMULATED_DEVICE
    return Verification(
        ticket=ticket,
        verdict=verdict,
        reason=reason,
        meter="cuda" if real else "simulated",
        torch=cell.torch if cell else own_torch(),
        device=cell.device if cell else device,
        revision=cell.revision if cell else None,
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
    return replace(settings, meter=ask_worker(isolation, settings, CHOICE, "auto").value or settings.meter)


def gpu_names(isolation: Isolation, settings: Settings) -> tuple[str, ...]:
    """The GPUs that real runs may use and the version of CUDA for each; none for simulated runs."""
    is_real = settings.meter == "cuda"
    return tuple(ask_worker(isolation, settings, DEVICES).value or ()) if is_real else ()


def ask_worker(isolation: Isolation, settings: Settings, target: str, payload: Any = None) -> TaskOutcome:
    """What a process that may start CUDA answers."""
    ((_, answer),) = isolation.run({target: settings.task(target, payload)})
    return answer


def _visible_gpus(isolation: Isolation, settings: Settings) -> tuple[str, ...]:
    """The GPUs that real runs may use, one run at a time on each; none for simulated runs."""
    if settings.meter != "cuda":
        return ()
    model = settings.cell.device if settings.cell else None
    return tuple(ask_worker(isolation, settings, VISIBLE, model).value or ())


def _unfit(isolation: Isolation, settings: Settings) -> str | None:
    """Why this is not the cell that is to be measured; None where it is, or where there is no matrix."""
    cell = settings.cell
    if cell is None:
        return None
    where = cell.interpreter or "the tool's own Python"
    try:
        torch = ask_worker(isolation, settings, TORCH)
    except UnreachableError as error:
        # Without the tool's own Python no cell can be measured; without another one, only its cells cannot.
        if not cell.interpreter:
            raise
        return str(error)
    if torch.reason is not None:
        return f"{where}: {torch.reason}"
    if torch.value != cell.torch:
        return f"{where} has torch {torch.value}, and not {cell.torch}"
    if cell.meter == "cuda" and not _visible_gpus(isolation, settings):
        return f"there is no {cell.device} here that {where} can use"
    return None


class VerificationRun:
    """Measures all revisions of all plans, then what is compared across these, then times."""

    def __init__(
        self, planned: Planned, isolation: Isolation, settings: Settings, folder: Path, on_start: OnStart
    ) -> None:
        self._planned, self._isolation, self._settings = planned, isolation, settings
        self._folder, self._on_start = folder, on_start
        self._gpus = _visible_gpus(isolation, settings)
        self._alone: set[str] = set()
        self._before: dict[str, dict[str, str]] = {}

    def measure(self) -> Iterator[tuple[str, Verified]]:
        """Each document as soon as it is done, by its key."""
        self._find_those_for_several_gpus()
        tasks: dict[tuple[str, str], Task] = {}
        for key in list(self._planned):
            try:
                tasks |= self._tasks(key)
            except (OSError, RevisionError) as error:
                yield key, self._give_up(key, error)
            except CannotMeasureError as error:
                yield key, self._finish(key, str(error))
        unfinished: dict[str, MeasuredTicket] = {}
        for key, measured, never_ran in self._count(tasks):
            todo = self._planned[key][1]
            if isinstance(measured, MeasuredTicket) and (todo.compared_across or todo.is_timed):
                unfinished[key] = measured
            else:
                yield key, self._finish(key, measured, never_ran=never_ran)
        comparisons = {
            key: self._comparison(key, measured)
            for key, measured in unfinished.items()
            if self._planned[key][1].compared_across
        }
        for key, outcome in self._isolation.run(comparisons):
            measured, made = unfinished.pop(key), answer_of(outcome, _AGREEMENTS)
            if isinstance(made, str):
                yield key, self._finish(key, f"results cannot be compared: {made}")
                continue
            compared = measured.model_copy(update={"agreements": (*measured.agreements, *made)})
            if self._planned[key][1].is_timed:
                unfinished[key] = compared
            else:
                yield key, self._finish(key, compared)
        # One after the other, when nothing else runs that would disturb them.
        for key in list(unfinished):
            yield key, self._finish(key, unfinished.pop(key))

    def _find_those_for_several_gpus(self) -> None:
        """Ask each workload whether it can be measured on one GPU, where there are more."""
        if len(self._gpus) < 2:
            return
        ask = {}
        for key, (_, todo) in self._planned.items():
            if todo.run:
                continue
            payload = {"verifier": todo.verifier, "root": str(todo.verifiers), "code": str(todo.root)}
            ask[key] = self._settings.task(WANTED, payload, todo.root)
        # A workload that fails here also fails when measured; the reason is reported there.
        for key, outcome in self._isolation.run(ask):
            if isinstance(outcome.value, int) and outcome.value > 1:
                self._alone.add(key)

    def _tasks(self, key: str) -> dict[tuple[str, str], Task]:
        """What to measure of a plan, by its key and each commit, or each run.

        Raises:
            OSError: There is no room for results.
            RevisionError: A revision cannot be checked out.
            CannotMeasureError: The code is still an example.
        """
        todo, results = self._planned[key][1], self._results(key)
        # Whoever edits a file from now on makes the evidence stale.
        self._before[key] = {file: digest(todo.root / file) for file in {*todo.files, *importable(todo)}}
        results.mkdir()
        meter = self._settings.meter
        if todo.run:
            return {
                (key, part): self._on_gpu(key, RUN, asdict(job), Path(job.code))
                for part, job in todo.run_jobs(meter).items()
            }
        jobs = todo.jobs(meter, results)
        code = [(Path(job.code), source) for job in jobs.values() for source in job.variants.values()]
        code.append((todo.verifiers, FunctionPath(todo.verifier, "build")))
        if examples := [source.module for folder, source in code if is_example(source, folder)]:
            files = ", ".join(dict.fromkeys(examples))
            raise CannotMeasureError(f"example code: {files}; write what the ticket is about in its place")
        return {
            (key, commit): self._on_gpu(key, TARGET, asdict(job), Path(job.code))
            for commit, job in jobs.items()
        }

    def _give_up(self, key: str, error: OSError | RevisionError) -> Verified:
        """What there is to say of a plan that cannot be measured here; that is no evidence."""
        document, todo = self._planned.pop(key)
        self._before.pop(key, None)
        return Verified(document, inconclusive(todo, self._settings, _trouble(error)), is_lasting=False)

    def _count(self, tasks: dict[tuple[str, str], Task]) -> Iterator[tuple[str, MeasuredTicket | str, bool]]:
        """What was measured of each ticket by its key, or why nothing was, and whether nothing ran."""
        outcomes: dict[str, dict[str, TaskOutcome | None]] = {}
        for key, commit in tasks:
            outcomes.setdefault(key, {})[commit] = None
        # Tracing for graph breaks takes longest: started first, it overlaps with the others.
        queue = dict(sorted(tasks.items(), key=lambda task: not task[1].payload.get("graph_breaks")))
        # From here on only the queue keeps tasks, each until it is done.
        tasks.clear()
        ended = self._isolation.run(queue, lambda task: self._on_start(self._planned[task[0]][0]))
        for (key, commit), outcome in ended:
            # There may be thousands, and nothing is kept of what is done.
            del queue[key, commit]
            outcomes[key][commit] = outcome
            if None not in outcomes[key].values():
                parts = {name: part for name, part in outcomes.pop(key).items() if part}
                never_ran = any(part.never_ran for part in parts.values())
                todo = self._planned[key][1]
                yield key, _join_runs(todo, parts) if todo.run else _join(todo, parts), never_ran

    def _on_gpu(self, key: str, target: str, payload: Any, code: Path) -> Task:
        task = self._settings.task(target, payload, code)
        return replace(task, gpus=self._gpus, alone=key in self._alone)

    def _results(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()

    def _comparison(self, key: str, measured: MeasuredTicket) -> Task:
        """The task to compare what was kept of variants at different revisions."""
        todo = self._planned[key][1]
        places = {repr(at): place for place, at in enumerate(measured.sweep)}
        names = {name for each in todo.compared_across for name in (each.variant, each.target)}
        samples = {name: measured.variants[name].samples for name in names}
        payload = {
            "root": str(todo.verifiers),
            "code": str(todo.root),
            "verifier": todo.verifier,
            "comparisons": [vars(each) for each in todo.compared_across],
            "points": [(places[repr(each.at)], each.at) for each in next(iter(samples.values()))],
            "errors": {
                name: {str(places[repr(each.at)]): each.error for each in of_variant}
                for name, of_variant in samples.items()
            },
            "results": str(self._results(key)),
        }
        return self._settings.task(COMPARISON, payload, todo.root)

    def _time(self, key: str, measured: MeasuredTicket) -> Times:
        """The times that claims are about; raises ``BadDataError`` where one has no meaning on the sweep."""
        # Few tickets claim times.
        from finding_tickets.verify.times import take_times, timing_device

        document, todo = self._planned[key]
        timeout = self._settings.timeout

        def run(job: Any) -> TaskOutcome:
            task = self._on_gpu(key, TIMING, job, todo.root)
            ((_, outcome),) = self._isolation.run({key: task}, lambda _: self._on_start(document))
            return outcome

        try:
            return take_times(todo, todo.claims, lambda: todo.code().values(), measured, timeout, run)
        except (OSError, RevisionError) as error:
            return Times(device=timing_device(measured), why=_trouble(error))

    def _finish(self, key: str, measured: MeasuredTicket | str, *, never_ran: bool = False) -> Verified:
        """Judge what was measured and record it; a tool or a GPU that did not work is no evidence."""
        document, todo = self._planned[key]
        settings, amended = self._settings, None
        files: Mapping[str, str] = {}
        try:
            if isinstance(measured, str):
                shown = kept = inconclusive(todo, settings, measured)
                # On a real GPU, the machine may be at fault: that is shown, and says nothing of the code.
                if never_ran or settings.meter == "cuda":
                    return Verified(document, shown, never_ran=never_ran, is_lasting=False)
            else:
                if todo.is_timed:
                    measured = measured.model_copy(update={"times": self._time(key, measured)})
                files = measured.files
                unchanged = _is_unchanged(todo, measured)
                revision = settings.cell.revision if settings.cell else None
                amended = settings.amend(todo, measured) if settings.amend and not unchanged else None
                document, todo = amended or (document, todo)
                shown, kept = judge(todo, measured, revision, unchanged=unchanged)
        except BadDataError as error:
            return Verified(document, error=error.in_file(document.path))
        else:
            if settings.amend and not amended:
                return Verified(document, shown)
            # Evidence is of the ticket as it stands, in the work tree or in a cell of the matrix.
            if (settings.overrides and not settings.cell) or settings.verifiers:
                # The verifier may come from another folder than the code, and what it imports with it.
                if isinstance(measured, MeasuredTicket) and todo.verifier and todo.verifiers != todo.root:
                    return Verified(document, shown, imported=measured.imported, outside=files)
                return Verified(document, shown, imported=tuple(files))
            # Files are known as they were measured, or at least as they were before. What runs as it is says
            # only afterwards what it imported.
            before = self._before[key]
            given = inputs(
                todo, document, kept, files, {**files, **before} if todo.run else {**before, **files}
            )
            evidence = Evidence(inputs=given, verification=kept)
            return record(Verified(document, shown, evidence=evidence, imported=tuple(files)), settings)
        finally:
            del self._planned[key]
            self._before.pop(key, None)


def _join(todo: Plan, outcomes: Mapping[str, TaskOutcome]) -> MeasuredTicket | str:
    """What the workers measured of a plan, as if it were one; or the reason why nothing was."""
    parts: list[MeasuredTicket] = []
    for commit, outcome in outcomes.items():
        measured = answer_of(outcome, MEASURED)
        if isinstance(measured, MeasuredTicket):
            parts.append(measured)
        elif len(outcomes) == 1:
            return measured
        else:
            names = todo.names_at(commit)
            where = f" at {todo.revisions[names[0]]}" if commit else ""
            # The meter may have named the variant already.
            return f"{', '.join(names)}{where}: {measured.removeprefix(f'{names[0]}: ')}"
    return join(todo, parts)


def _join_runs(todo: Plan, outcomes: Mapping[str, TaskOutcome]) -> MeasuredTicket | str:
    """What came of the runs of each variant at each point; or the reason why nothing did."""
    variants, files, imported, first = dict[str, VariantResult](), dict[str, str](), set[str](), None
    for name in todo.variants:
        runs = []
        for place in (*map(str, range(len(todo.sweep))), AGAIN):
            if (outcome := outcomes.get(f"{name} {place}")) is None:
                continue
            done, at = answer_of(outcome, _RUN), todo.sweep[0 if place == AGAIN else int(place)]
            where = f" at {todo.revisions[name]}" if name in todo.revisions else ""
            if isinstance(done, str):
                return f"{name}{where}, {at_text(at)}: {done}"
            sites = {(file, line, function, what): n for file, line, function, what, n in done.sites}
            run = CountedRun(at, done.metrics, sites, done.error, done.unknown, done.approximate)
            if place != AGAIN:
                runs.append(run)
            elif difference := runs[0].difference(run):
                return f"{name}{where}, {at_text(at)}: {VARYING}: {difference}"
            first = first or done
            imported |= done.files.keys()
            if name not in todo.revisions:
                # A file that was edited between two runs is none of those that are there now.
                for path, sha in done.files.items():
                    files[path] = sha if files.get(path, sha) == sha else ABSENT
        variants[name] = VariantResult.model_validate(fitted(runs))
    if first is None:
        return "nothing was run"
    return MeasuredTicket(
        meter=first.meter,
        torch=first.torch,
        device=first.device,
        sweep=todo.sweep,
        variants=variants,
        files=files,
        imported=tuple(sorted(imported)),
    )


def join(todo: Plan, parts: Sequence[MeasuredTicket]) -> MeasuredTicket | str:
    """Measurements of several revisions as one; or the reason why they cannot be one."""
    first, *others = parts
    if any(part.sweep != first.sweep for part in others):
        return "the verifier makes another sweep at another revision"
    variants, agreements, files = dict(first.variants), list(first.agreements), dict(first.files)
    for part in others:
        variants |= part.variants
        agreements += part.agreements
        # Of a file that was edited between two workers nobody can say which one was measured.
        edited = (file for file in files.keys() & part.files.keys() if files[file] != part.files[file])
        files = {**part.files, **files, **dict.fromkeys(edited, ABSENT)}
    in_order = {name: variants[name] for name in todo.variants}
    return first.model_copy(update={"variants": in_order, "agreements": tuple(agreements), "files": files})


def _is_unchanged(todo: Plan, measured: MeasuredTicket) -> bool:
    """Whether the fix is the code as found, with all that it imports of the repository."""
    # Few fixes cost what the code as found does.
    from finding_tickets.ground.imports import reach

    before, after = (measured.variants.get(name) for name in DECIDING)
    if not before or not after or before.samples != after.samples:
        return False
    folders = {name: Path(code.folder) for code in todo.code().values() for name in code.variants}
    (old, found), (new, fix) = ((folders[name], todo.variants[name]) for name in DECIDING)
    (function, rest), (other, around) = code_of(found, old), code_of(fix, new)
    # What is run as a whole is all that it imports.
    if not todo.run and (function != other or not function):
        return False
    if old == new:
        return found.module == fix.module or rest == around

    def read(path: str) -> bytes | None:
        return (new / path).read_bytes() if (new / path).is_file() else None

    is_file = fix.module.endswith(".py")
    files = reach(read, [fix.module] if is_file else [], [] if is_file else [fix.module])
    pairs = ((parse_code(old / file), parse_code(new / file)) for file in {*files, *measured.imported})
    return rest == around and all(ast.dump(one) == ast.dump(two) for one, two in pairs if one and two)


def _trouble(error: OSError | RevisionError) -> str:
    """Why a measurement cannot be prepared."""
    if isinstance(error, OSError):
        return NO_ROOM if error.errno in _FULL else f"it cannot be prepared: {error.strerror or error}"
    return str(error)
