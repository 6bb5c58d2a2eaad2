"""Verify documents: plan each, measure them apart from each other, check the claims, rule, record."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from finding_tickets.errors import BadDataError
from finding_tickets.markdown.reading import Document
from finding_tickets.meter.report import SIMULATED_DEVICE, Agreement
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.verify.checkouts import RevisionError
from finding_tickets.verify.claims import check, trouble, unchecked
from finding_tickets.verify.evidence import inputs, write
from finding_tickets.verify.isolate import Isolation, Outcome, Task
from finding_tickets.verify.jobs import comparison, jobs, joined, label, with_agreements
from finding_tickets.verify.measuring import CHOICE, COMPARISON, TARGET, Measured
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.results import not_measured, variant_results
from finding_tickets.verify.verdict import DECIDING, FIX, rule

_AGREEMENTS = TypeAdapter(tuple[Agreement, ...])
_Planned = dict[str, tuple[Document, Plan]]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to verify: the root, its folder of evidence, the meter, and seconds and bytes for each document.

    ``overrides`` are revisions of variants, as ``plan`` takes them; what is measured there is no evidence.
    ``verifiers`` is the root that verifiers are taken from, where that is another one than the code's. With
    ``record=False`` no file is written.
    """

    root: Path
    evidence: str
    meter: str
    timeout: float
    memory: int
    overrides: Mapping[str, str] = field(default_factory=dict)
    verifiers: Path | None = None
    record: bool = True


@dataclass(frozen=True)
class Verified:
    """A document, its verification, and the error that kept it from being measured or recorded.

    ``evidence`` is what was recorded, or would have been; None for a verification that is no evidence.
    """

    document: Document
    verification: Verification | None = None
    error: BadDataError | None = None
    evidence: Evidence | None = None


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
    for document in documents:
        try:
            todo = plan(document, settings.root, settings.overrides, settings.verifiers)
        except BadDataError as error:
            yield Verified(document, error=error)
            continue
        if todo is None:
            yield Verified(document, _unverified(document, settings))
        elif todo.trouble:
            yield Verified(document, _inconclusive(todo, settings, todo.trouble))
        else:
            planned[document.path] = document, todo
    if planned:
        with tempfile.TemporaryDirectory(prefix="results-", dir=isolation.folder) as folder:
            yield from _Run(planned, isolation, settings, Path(folder), on_start).measure()


class _Run:
    """Measures what was planned: first every order of every plan, then what is compared across revisions."""

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
        self._settings = replace(settings, meter=_taken(isolation, settings))
        self._folder = folder
        self._arrived: dict[str, dict[str, Outcome]] = {path: {} for path in planned}
        self._compare: dict[str, Measured] = {}

    def measure(self) -> Iterator[Verified]:
        """Each document as soon as it is done."""
        tasks: dict[tuple[str, str], Task] = {}
        expected: dict[str, int] = {}
        for path, (document, todo) in self._planned.items():
            try:
                ordered = jobs(todo, self._settings.meter, self._results(path))
            except RevisionError as error:
                yield Verified(document, _inconclusive(todo, self._settings, str(error)))
                continue
            expected[path] = len(ordered)
            tasks |= {(path, commit): self._task(TARGET, asdict(job)) for commit, job in ordered.items()}
        # Tracing for graph breaks takes longest: started first, it overlaps with the others.
        order = sorted(tasks, key=lambda task: not tasks[task].payload["graph_breaks"])
        for (path, commit), outcome in self._isolation.run(
            {key: tasks[key] for key in order}, lambda key: self._on_start(self._planned[key[0]][0])
        ):
            self._arrived[path][commit] = outcome
            if len(self._arrived[path]) == expected[path]:
                yield from self._ended(path)
        for path, outcome in self._isolation.run({path: self._comparing(path) for path in self._compare}):
            yield self._concluded(path, self._compared(path, outcome))

    def _ended(self, path: str) -> Iterator[Verified]:
        """A document of which every order has ended, unless its results are still to be compared."""
        todo = self._planned[path][1]
        measured = _joined(todo, self._arrived[path])
        if isinstance(measured, Measured) and todo.compared_across:
            self._compare[path] = measured
        else:
            yield self._concluded(path, measured)

    def _compared(self, path: str, outcome: Outcome) -> Measured | str:
        if outcome.reason is not None:
            return f"results cannot be compared: {outcome.reason}"
        return with_agreements(self._compare[path], _AGREEMENTS.validate_python(outcome.value))

    def _concluded(self, path: str, measured: Measured | str) -> Verified:
        document, todo = self._planned[path]
        never_ran = any(outcome.never_ran for outcome in self._arrived[path].values())
        try:
            return _conclude(document, todo, measured, self._settings, never_ran=never_ran)
        except BadDataError as error:
            place = error.file or document.path
            located = BadDataError(error.message, file=place, line=error.line, hint=error.hint)
            return Verified(document, error=located)

    def _results(self, path: str) -> Path:
        folder = self._folder / hashlib.sha256(path.encode()).hexdigest()
        folder.mkdir(exist_ok=True)
        return folder

    def _comparing(self, path: str) -> Task:
        todo = self._planned[path][1]
        return self._task(COMPARISON, comparison(todo, self._compare[path], self._results(path)))

    def _task(self, target: str, payload: dict[str, Any]) -> Task:
        settings = self._settings
        return Task(
            target=target,
            payload=payload,
            root=settings.root,
            timeout=settings.timeout,
            memory=settings.memory,
            code=Path(payload["code"]),
        )


def _taken(isolation: Isolation, settings: Settings) -> str:
    """The meter that ``auto`` takes, asked once for all: what fails later is then told of the right one."""
    if settings.meter != "auto":
        return settings.meter
    ask = Task(
        target=CHOICE, payload="auto", root=settings.root, timeout=settings.timeout, memory=settings.memory
    )
    ((_, answer),) = isolation.run({"auto": ask})
    return answer.value or settings.meter


def _joined(todo: Plan, outcomes: Mapping[str, Outcome]) -> Measured | str:
    """What was measured, or the reason why nothing was; that of one order names its variants."""
    parts = []
    for commit, outcome in outcomes.items():
        measured = _measured(outcome)
        if isinstance(measured, str):
            return measured if len(outcomes) == 1 else f"{label(todo, commit)}: {measured}"
        parts.append(measured)
    return joined(todo, parts)


def _conclude(
    document: Document, todo: Plan, measured: Measured | str, settings: Settings, *, never_ran: bool
) -> Verified:
    """Check what was measured and record it; a tool or a GPU that did not work is no evidence.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    if isinstance(measured, Measured):
        verification = _verification(todo, measured)
    else:
        verification = _inconclusive(todo, settings, measured)
        if never_ran or settings.meter == "cuda":
            return Verified(document, verification)
    if settings.overrides or settings.verifiers:
        return Verified(document, verification)
    files = measured.report.files if isinstance(measured, Measured) else ()
    evidence = Evidence(inputs=inputs(todo, document, verification, files), verification=verification)
    if not settings.record:
        return Verified(document, verification, evidence=evidence)
    try:
        write(evidence, settings.root, settings.evidence)
    except OSError as error:
        message = f"the evidence cannot be written: {error.strerror}"
        return Verified(document, verification, BadDataError(message, file=settings.evidence))
    return Verified(document, verification, evidence=evidence)


def _measured(outcome: Outcome) -> Measured | str:
    """What was measured, or the reason why nothing was."""
    if outcome.reason is not None:
        return outcome.reason
    try:
        return TypeAdapter(Measured).validate_python(outcome.value)
    except ValidationError as error:
        return f"what came back is no measurement: {error.errors()[0]['msg']}"


def _verification(todo: Plan, measured: Measured) -> Verification:
    report = measured.report
    claims = check(todo.claims, report)
    troubles = (trouble(name, report, todo.claims) for name in DECIDING if name in todo.variants)
    verdict, reason = rule(
        claims, has_fix=FIX in todo.variants, keep=todo.keep, trouble=next(filter(None, troubles), None)
    )
    return Verification(
        ticket=todo.ticket,
        verdict=verdict,
        reason=reason,
        meter=report.meter,
        torch=report.torch,
        device=report.device,
        sweep=report.sweep,
        variants=variant_results(measured),
        claims=claims,
        not_measured=not_measured(report),
    )


def _unverified(document: Document, settings: Settings) -> Verification:
    return _blank(document.id.value, settings, Verdict.UNVERIFIED, "it has no verifier")


def _inconclusive(todo: Plan, settings: Settings, reason: str) -> Verification:
    """A verification without samples: every claim stays open."""
    blank = _blank(todo.ticket, settings, Verdict.INCONCLUSIVE, reason)
    return blank.model_copy(update={"claims": unchecked(todo.claims)})


def _blank(ticket: str, settings: Settings, verdict: Verdict, reason: str) -> Verification:
    real = settings.meter == "cuda"
    return Verification(
        ticket=ticket,
        verdict=verdict,
        reason=reason,
        meter="cuda" if real else "simulated",
        torch=version("torch").split("+")[0],
        device="none" if real else SIMULATED_DEVICE,
        sweep=(),
        variants={},
        claims=(),
    )
