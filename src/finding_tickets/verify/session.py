"""Verify documents: plan each, measure them apart from each other, check the claims, rule, record."""

from __future__ import annotations

import errno
import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from finding_tickets.claims.check import check, trouble, unchecked
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, UnreachableError
from finding_tickets.ground.checkouts import RevisionError
from finding_tickets.measure.isolation import Isolation, Outcome, Task
from finding_tickets.measure.report import SIMULATED_DEVICE, Agreement, Job, Report, Times, Timing
from finding_tickets.measure.tasks import (
    CALLED,
    CHOICE,
    COMPARISON,
    COMPILER,
    TARGET,
    TIMING,
    TORCH,
    VISIBLE,
    WANTED,
    Measured,
)
from finding_tickets.measure.worker import NO_ROOM
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, Evidence, Verification
from finding_tickets.verify.cells import Cell
from finding_tickets.verify.evidence import digest, importable, inputs, own_torch, recorded_as, write
from finding_tickets.verify.jobs import codes, comparison, jobs, joined, of_order, with_agreements, with_times
from finding_tickets.verify.pace import longest_first
from finding_tickets.verify.plan import EVERY, Plan, plan
from finding_tickets.verify.results import not_measured, variant_results
from finding_tickets.verify.times import cannot_time, caveat, device_of, questions, recorded, settled, shown
from finding_tickets.verify.times import job as time_job
from finding_tickets.verify.verdict import DECIDING, FIX, rule

_AGREEMENTS = TypeAdapter(tuple[Agreement, ...])
_TIMINGS = TypeAdapter(tuple[Timing, ...])
_FULL = {errno.ENOSPC, errno.EDQUOT}
_Planned = dict[str, tuple[Document, Plan]]
_Done = Iterator[tuple[str, "Verified"]]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to verify: the root, its folder of evidence, the meter, and seconds and bytes for each document.

    ``overrides`` are revisions of variants, as ``plan`` takes them; what is measured there is no evidence.
    ``verifiers`` is the root that verifiers are taken from, where that is another one than the code's. With
    ``record=False`` no file is written. ``commits`` are revisions by their names, for which git is not
    asked. ``resources`` is what the machine must have, in a cluster's own words; this machine is not asked.
    ``cell`` is the one of a matrix that is measured.
    """

    root: Path
    evidence: str
    meter: str
    timeout: float
    memory: int
    overrides: Mapping[str, str] = field(default_factory=dict)
    verifiers: Path | None = None
    record: bool = True
    commits: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, float] = field(default_factory=dict)
    cell: Cell | None = None

    def within(self, cell: Cell) -> Settings:
        """The settings to measure a cell by."""
        return replace(
            self,
            cell=cell,
            meter=cell.meter,
            overrides={EVERY: cell.revision} if cell.revision else {},
            resources={**self.resources, **cell.resources},
        )


@dataclass(frozen=True)
class Verified:
    """A document, its verification, and the error that kept it from being measured or recorded.

    ``evidence`` is what was recorded, or would have been; None for a verification that is no evidence.
    ``never_ran`` as in ``Outcome``.
    """

    document: Document
    verification: Verification | None = None
    error: BadDataError | None = None
    evidence: Evidence | None = None
    never_ran: bool = False


def _nobody(_: Document) -> None:
    """Tells nobody."""


def verify(
    documents: Iterable[Document],
    isolation: Isolation,
    settings: Settings,
    on_start: Callable[[Document], None] = _nobody,
) -> Iterator[Verified]:
    """Verify documents, each as soon as it is done; what one of them does leaves the others alone.

    ``on_start`` is told of a document whenever a process begins to measure something of it.
    """
    planned: _Planned = {}
    yield from _without_plan(documents, settings, planned)
    if planned:
        yield from (done for _, done in measure(planned, isolation, settings, on_start))


def _without_plan(documents: Iterable[Document], settings: Settings, planned: _Planned) -> Iterator[Verified]:
    """The documents of which there is nothing to measure; the plans of the others go to ``planned``."""
    for document in documents:
        todo = prepared(document, settings)
        if isinstance(todo, Verified):
            yield todo
        else:
            planned[document.path] = document, todo


def measure(
    planned: _Planned,
    isolation: Isolation,
    settings: Settings,
    on_start: Callable[[Document], None] = _nobody,
) -> Iterator[tuple[str, Verified]]:
    """Measure what was planned, each as soon as it is done, by its key; plans may be of several roots.

    What is done is taken out of ``planned``: there may be thousands, and of those nothing is kept here.
    """
    if reason := _unfit(isolation, settings):
        for key in list(planned):
            document, todo = planned.pop(key)
            yield key, Verified(document, inconclusive(todo, settings, reason))
        return
    with _folder(isolation) as folder:
        yield from _Run(planned, isolation, settings, folder, on_start).measure()


@contextmanager
def _folder(isolation: Isolation) -> Iterator[Path]:
    """Where results are kept that are compared across processes.

    Raises:
        UnreachableError: There is no room for it.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix="results-", dir=isolation.folder)
    except OSError as error:
        raise UnreachableError(
            f"nothing can be measured: there is no room for temporary files: {error.strerror}"
        ) from None
    with made as folder:
        yield Path(folder)


def prepared(document: Document, settings: Settings) -> Plan | Verified:
    """What there is to measure of a document; or all there is to say of it, where that is nothing."""
    try:
        todo = plan(document, settings.root, settings.overrides, settings.verifiers, settings.commits)
    except BadDataError as error:
        return Verified(document, error=error)
    if todo is None:
        return Verified(document, _unverified(document, settings))
    if todo.trouble:
        return Verified(document, inconclusive(todo, settings, todo.trouble))
    return todo


def record(done: Verified, settings: Settings) -> Verified:
    """Write the evidence of a verification, if there is any and it is to be kept; else nothing changes."""
    if done.evidence is None or not settings.record:
        return done
    before = recorded_as(done.evidence, settings.root, settings.evidence)
    evidence = settled(done.evidence, before)
    try:
        write(evidence, settings.root, settings.evidence)
    except OSError as error:
        message = f"the evidence cannot be written: {error.strerror}"
        return replace(done, error=BadDataError(message, file=settings.evidence), evidence=None)
    return replace(done, evidence=evidence)


def inconclusive(todo: Plan, settings: Settings, reason: str) -> Verification:
    """A verification without samples: every claim stays open."""
    blank = _blank(todo.ticket, settings, Verdict.INCONCLUSIVE, reason)
    return blank.model_copy(update={"claims": unchecked(todo.claims)})


class _Run:
    """Measures what was planned: every order of every plan, what is compared across revisions, then times."""

    def __init__(
        self,
        planned: _Planned,
        isolation: Isolation,
        settings: Settings,
        folder: Path,
        on_start: Callable[[Document], None],
    ) -> None:
        self._planned = planned
        self._on_start = on_start
        self._isolation = isolation
        self._settings = replace(settings, meter=taken(isolation, settings))
        self._gpus = _gpus(isolation, self._settings)
        self._alone: set[str] = set()
        self._before: dict[str, dict[str, str]] = {}
        """The digests of the files of each plan before a process began to load them."""
        self._folder = folder
        self._compare: dict[str, Measured] = {}
        self._time: dict[str, Measured] = {}

    def measure(self) -> _Done:
        """Each document as soon as it is done, by its key."""
        self._alone = self._needing_several_gpus()
        queue, troubles = self._queue()
        for path, reason in troubles.items():
            yield path, self._given_up(path, reason)
        expected = Counter(path for path, _ in queue)
        arrived: dict[str, dict[str, Outcome]] = {path: {} for path in expected}
        for (path, commit), outcome in longest_first(
            self._isolation, queue, lambda key: self._on_start(self._planned[key[0]][0])
        ):
            del queue[path, commit]
            arrived[path][commit] = outcome
            if len(arrived[path]) == expected[path]:
                yield from self._ended(path, arrived.pop(path))
        for path, outcome in self._isolation.run({path: self._comparing(path) for path in self._compare}):
            yield from self._counted(path, self._compared(path, outcome))
        # One after the other, when nothing else runs that would disturb them.
        for path in list(self._time):
            yield path, self._concluded(path, self._time.pop(path), timed=True)

    def _queue(self) -> tuple[dict[tuple[str, str], Task], dict[str, str]]:
        """What is to be measured, by key and commit; and why nothing of a document can be, by its key."""
        tasks: dict[tuple[str, str], Task] = {}
        troubles: dict[str, str] = {}
        for path, (_, todo) in self._planned.items():
            self._before[path] = {file: digest(todo.root / file) for file in {*todo.files, *importable(todo)}}
            try:
                self._results(path).mkdir()
                ordered = jobs(todo, self._settings.meter, self._results(path))
            except (OSError, RevisionError) as error:
                troubles[path] = _trouble(error)
                continue
            tasks |= {
                (path, commit): self._on_gpu(path, self._ordered(job)) for commit, job in ordered.items()
            }
        # Tracing for graph breaks takes longest: started first, it overlaps with the others.
        order = sorted(tasks, key=lambda task: not tasks[task].payload["graph_breaks"])
        return {key: tasks[key] for key in order}, troubles

    def _given_up(self, path: str, reason: str) -> Verified:
        document, todo = self._planned.pop(path)
        del self._before[path]
        return Verified(document, inconclusive(todo, self._settings, reason))

    def _ended(self, path: str, outcomes: Mapping[str, Outcome]) -> _Done:
        """A document of which every order has ended, unless its results are still to be compared."""
        todo = self._planned[path][1]
        measured = _joined(todo, outcomes)
        if isinstance(measured, Measured) and todo.compared_across:
            self._compare[path] = measured
        else:
            never_ran = any(outcome.never_ran for outcome in outcomes.values())
            yield from self._counted(path, measured, never_ran=never_ran)

    def _counted(self, path: str, measured: Measured | str, *, never_ran: bool = False) -> _Done:
        """A document of which everything is counted, unless its variants are still to be timed."""
        if isinstance(measured, Measured) and self._planned[path][1].is_timed:
            self._time[path] = measured
        else:
            yield path, self._concluded(path, measured, never_ran=never_ran)

    def _compared(self, path: str, outcome: Outcome) -> Measured | str:
        measured = self._compare.pop(path)
        if outcome.reason is not None:
            return f"results cannot be compared: {outcome.reason}"
        try:
            return with_agreements(measured, _AGREEMENTS.validate_python(outcome.value))
        except ValidationError as error:
            return f"what came back is no comparison: {error.errors()[0]['msg']}"

    def _concluded(
        self, path: str, measured: Measured | str, *, never_ran: bool = False, timed: bool = False
    ) -> Verified:
        document, todo = self._planned.pop(path)
        try:
            if isinstance(measured, Measured) and timed:
                measured = with_times(measured, self._timed(document, todo, measured.report))
            before = self._before.pop(path)
            return _conclude(document, todo, measured, before, self._settings, never_ran=never_ran)
        except BadDataError as error:
            place = error.file or document.path
            located = BadDataError(error.message, file=place, line=error.line, hint=error.hint)
            return Verified(document, error=located)

    def _timed(self, document: Document, todo: Plan, report: Report) -> Times:
        """The times that claims are about; raises ``BadDataError`` where one has no meaning on the sweep."""
        device = device_of(report)
        if why := cannot_time(report):
            return Times(device, why=why)
        asked = questions(todo.claims, report)
        try:
            order = time_job(todo, codes(todo), asked, report, self._settings.timeout)
        except (OSError, RevisionError) as error:
            return Times(device, why=_trouble(error))
        task = self._on_gpu(document.path, self._task(TIMING, asdict(order), todo.root))
        ((_, outcome),) = self._isolation.run({document.path: task}, lambda _: self._on_start(document))
        return times_of(outcome, device)

    def _results(self, path: str) -> Path:
        return self._folder / hashlib.sha256(path.encode()).hexdigest()

    def _comparing(self, path: str) -> Task:
        todo = self._planned[path][1]
        return self._task(COMPARISON, comparison(todo, self._compare[path], self._results(path)))

    def _needing_several_gpus(self) -> set[str]:
        """The documents that cannot be measured on one GPU, where there are more; each workload is asked."""
        if len(self._gpus) < 2:
            return set()
        orders = {
            path: {"verifier": todo.verifier, "root": str(todo.verifiers), "code": str(todo.root)}
            for path, (_, todo) in self._planned.items()
        }
        ask = {path: self._task(WANTED, order) for path, order in orders.items()}
        # One that cannot answer cannot be measured either, and then says why.
        answers = ((path, outcome.value) for path, outcome in self._isolation.run(ask))
        return {path for path, wanted in answers if isinstance(wanted, int) and wanted > 1}

    def _ordered(self, job: Job) -> Task:
        return replace(self._task(TARGET, asdict(job)), loads=COMPILER if job.graph_breaks else "")

    def _on_gpu(self, path: str, task: Task) -> Task:
        return replace(task, gpus=self._gpus, alone=path in self._alone)

    def _task(self, target: str, payload: dict[str, Any], code: Path | None = None) -> Task:
        settings = self._settings
        return Task(
            target=target,
            payload=payload,
            root=settings.root,
            timeout=settings.timeout,
            memory=settings.memory,
            code=code or Path(payload["code"]),
        )


def times_of(outcome: Outcome, device: str) -> Times:
    """The times that a process took on a device, or why there are none."""
    if outcome.reason is not None:
        return Times(device, why=outcome.reason)
    try:
        return Times(device, _TIMINGS.validate_python(outcome.value))
    except ValidationError as error:
        return Times(device, why=f"what came back are no times: {error.errors()[0]['msg']}")


def _trouble(error: OSError | RevisionError) -> str:
    """Why a measurement cannot be prepared."""
    if isinstance(error, OSError):
        return NO_ROOM if error.errno in _FULL else f"it cannot be prepared: {error.strerror or error}"
    return str(error)


def _unfit(isolation: Isolation, settings: Settings) -> str | None:
    """Why this is not the cell that is to be measured; None where it is, or where there is no matrix."""
    cell = settings.cell
    if cell is None:
        return None
    where = cell.interpreter or "the tool's own Python"
    try:
        torch = _answer(isolation, settings, TORCH)
    except UnreachableError as error:
        if not cell.interpreter:
            raise
        return str(error)
    if torch.reason is not None:
        return f"{where}: {torch.reason}"
    if torch.value != cell.torch:
        return f"{where} has torch {torch.value}, and not {cell.torch}"
    if cell.meter == "cuda" and not _gpus(isolation, settings):
        return f"there is no {cell.device} here that {where} can use"
    return None


def taken(isolation: Isolation, settings: Settings) -> str:
    """The meter that ``auto`` takes, asked once for all: what fails later is then told of the right one."""
    if settings.meter != "auto":
        return settings.meter
    return asked(isolation, settings, CHOICE, "auto") or settings.meter


def _gpus(isolation: Isolation, settings: Settings) -> tuple[str, ...]:
    """The GPUs that real runs may use, one run at a time on each; none for simulated runs."""
    if settings.meter != "cuda":
        return ()
    if settings.cell:
        return tuple(asked(isolation, settings, CALLED, settings.cell.device) or ())
    return tuple(asked(isolation, settings, VISIBLE) or ())


def asked(isolation: Isolation, settings: Settings, target: str, payload: Any = None) -> Any:
    """What a process that may start CUDA answers; None where it cannot."""
    return _answer(isolation, settings, target, payload).value


def _answer(isolation: Isolation, settings: Settings, target: str, payload: Any = None) -> Outcome:
    ask = Task(
        target=target, payload=payload, root=settings.root, timeout=settings.timeout, memory=settings.memory
    )
    ((_, answer),) = isolation.run({target: ask})
    return answer


def _joined(todo: Plan, outcomes: Mapping[str, Outcome]) -> Measured | str:
    """What was measured, or the reason why nothing was; that of one order names its variants."""
    parts = []
    for commit, outcome in outcomes.items():
        measured = _measured(outcome)
        if isinstance(measured, str):
            return measured if len(outcomes) == 1 else of_order(todo, commit, measured)
        parts.append(measured)
    return joined(todo, parts)


def _conclude(
    document: Document,
    todo: Plan,
    measured: Measured | str,
    before: Mapping[str, str],
    settings: Settings,
    *,
    never_ran: bool,
) -> Verified:
    """Check what was measured and record it; a tool or a GPU that did not work is no evidence.

    The evidence is that of files as they were measured, or at least ``before`` that. Whoever edited one
    meanwhile makes it stale.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    kept: Verification | None = None
    if isinstance(measured, Measured):
        claims = check(todo.claims, measured.report)
        verification = _verification(todo, measured, claims, settings)
        verification = verification.model_copy(update={"timings": shown(measured.report.times)})
        kept = _verification(todo, measured, recorded(claims, measured.report), settings)
    else:
        verification = inconclusive(todo, settings, measured)
        if never_ran or settings.meter == "cuda":
            return Verified(document, verification, never_ran=never_ran)
    if (settings.overrides and not settings.cell) or settings.verifiers:
        return Verified(document, verification)
    files = measured.report.files if isinstance(measured, Measured) else {}
    given = inputs(todo, document, verification, files, {**before, **files})
    evidence = Evidence(inputs=given, verification=kept or verification)
    return record(Verified(document, verification, evidence=evidence), settings)


def _measured(outcome: Outcome) -> Measured | str:
    """What was measured, or the reason why nothing was."""
    if outcome.reason is not None:
        return outcome.reason
    try:
        return TypeAdapter(Measured).validate_python(outcome.value)
    except ValidationError as error:
        return f"what came back is no measurement: {error.errors()[0]['msg']}"


def _verification(
    todo: Plan, measured: Measured, claims: tuple[ClaimResult, ...], settings: Settings
) -> Verification:
    report = measured.report
    troubles = (trouble(name, report, todo.claims) for name in DECIDING if name in todo.variants)
    verdict, reason = rule(
        claims, has_fix=FIX in todo.variants, keep=todo.keep, trouble=next(filter(None, troubles), None)
    )
    return Verification(
        ticket=todo.ticket,
        verdict=verdict,
        reason=reason + caveat(verdict, claims, DECIDING, report),
        meter=report.meter,
        torch=report.torch,
        device=report.device,
        sweep=report.sweep,
        variants=variant_results(measured),
        claims=claims,
        not_measured=not_measured(report),
        revision=settings.cell.revision if settings.cell else None,
    )


def _unverified(document: Document, settings: Settings) -> Verification:
    return _blank(document.id.value, settings, Verdict.UNVERIFIED, "it has no verifier")


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
