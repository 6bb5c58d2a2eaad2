"""Verify documents: plan each, measure them apart from each other, check the claims, rule, record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from finding_tickets.errors import BadDataError
from finding_tickets.markdown.reading import Document
from finding_tickets.meter.report import SIMULATED_DEVICE
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.verify.claims import check, trouble, unchecked
from finding_tickets.verify.evidence import inputs, write
from finding_tickets.verify.isolate import Isolation, Outcome, Task
from finding_tickets.verify.measuring import CHOICE, TARGET, Measured
from finding_tickets.verify.plan import Plan, plan
from finding_tickets.verify.results import not_measured, variant_results
from finding_tickets.verify.verdict import DECIDING, FIX, rule


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to verify: the root, its folder of evidence, the meter, and seconds and bytes for each document."""

    root: Path
    evidence: str
    meter: str
    timeout: float
    memory: int


@dataclass(frozen=True)
class Verified:
    """A document, its verification, and the error that kept it from being measured or recorded."""

    document: Document
    verification: Verification | None = None
    error: BadDataError | None = None


def verify(documents: Iterable[Document], isolation: Isolation, settings: Settings) -> Iterator[Verified]:
    """Verify documents, each as soon as it is done; what one of them does leaves the others alone."""
    planned: dict[str, tuple[Document, Plan]] = {}
    for document in documents:
        try:
            todo = plan(document, settings.root)
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
        settings = replace(settings, meter=_taken(isolation, settings))
    # Tracing for graph breaks takes longest: started first, it overlaps with the others.
    order = sorted(planned, key=lambda path: not planned[path][1].job(settings.meter).graph_breaks)
    for path, outcome in isolation.run({path: _task(planned[path][1], settings) for path in order}):
        document, todo = planned[path]
        try:
            yield _conclude(document, todo, outcome, settings)
        except BadDataError as error:
            place = error.file or document.path
            located = BadDataError(error.message, file=place, line=error.line, hint=error.hint)
            yield Verified(document, error=located)


def _taken(isolation: Isolation, settings: Settings) -> str:
    """The meter that ``auto`` takes, asked once for all: what fails later is then told of the right one."""
    if settings.meter != "auto":
        return settings.meter
    ask = Task(
        target=CHOICE, payload="auto", root=settings.root, timeout=settings.timeout, memory=settings.memory
    )
    ((_, answer),) = isolation.run({"auto": ask})
    return answer.value or settings.meter


def _task(todo: Plan, settings: Settings) -> Task:
    return Task(
        target=TARGET,
        payload=asdict(todo.job(settings.meter)),
        root=todo.root,
        timeout=settings.timeout,
        memory=settings.memory,
    )


def _conclude(document: Document, todo: Plan, outcome: Outcome, settings: Settings) -> Verified:
    """Check what was measured and record it; a tool or a GPU that did not work is no evidence.

    Raises:
        BadDataError: A claim has no meaning on the sweep.
    """
    measured = _measured(outcome)
    if isinstance(measured, Measured):
        verification = _verification(todo, measured)
    else:
        verification = _inconclusive(todo, settings, measured)
        if outcome.never_ran or settings.meter == "cuda":
            return Verified(document, verification)
    files = measured.report.files if isinstance(measured, Measured) else ()
    evidence = Evidence(inputs=inputs(todo, document, files), verification=verification)
    try:
        write(evidence, settings.root, settings.evidence)
    except OSError as error:
        message = f"the evidence cannot be written: {error.strerror}"
        return Verified(document, verification, BadDataError(message, file=settings.evidence))
    return Verified(document, verification)


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
