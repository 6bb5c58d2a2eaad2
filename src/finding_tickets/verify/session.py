"""Verify documents: plan each, measure them apart from each other, check the claims, rule, record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from finding_tickets.errors import BadDataError
from finding_tickets.markdown.reading import Document
from finding_tickets.meter.report import SIMULATED_DEVICE
from finding_tickets.model.verification import Evidence, Verdict, Verification
from finding_tickets.verify.claims import check, trouble
from finding_tickets.verify.evidence import inputs, write
from finding_tickets.verify.isolate import Isolation, Outcome, Task
from finding_tickets.verify.measuring import TARGET, Measured
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
    """A document and its verification, or the error that kept it from being measured."""

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
            yield Verified(document, _blank(document, settings, Verdict.UNVERIFIED, "it has no verifier"))
        elif todo.trouble:
            yield Verified(document, _blank(document, settings, Verdict.INCONCLUSIVE, todo.trouble))
        else:
            planned[document.path] = document, todo
    # Tracing for graph breaks takes longest: started first, it overlaps with the others.
    order = sorted(planned, key=lambda path: not planned[path][1].job(settings.meter).graph_breaks)
    for path, outcome in isolation.run({path: _task(planned[path][1], settings) for path in order}):
        yield _conclude(*planned[path], outcome, settings)


def _task(todo: Plan, settings: Settings) -> Task:
    return Task(
        target=TARGET,
        payload=asdict(todo.job(settings.meter)),
        root=todo.root,
        timeout=settings.timeout,
        memory=settings.memory,
    )


def _conclude(document: Document, todo: Plan, outcome: Outcome, settings: Settings) -> Verified:
    """Check what was measured and record it; what a real GPU could not do is no evidence about the code."""
    try:
        measured = TypeAdapter(Measured).validate_python(outcome.value) if outcome.reason is None else None
        reason = outcome.reason or ""
    except ValidationError as error:
        measured, reason = (
            None,
            f"the measuring process returned what is no result: {error.errors()[0]['msg']}",
        )
    try:
        verification = (
            _verification(todo, measured)
            if measured
            else _blank(document, settings, Verdict.INCONCLUSIVE, reason)
        )
    except BadDataError as error:
        located = BadDataError(error.message, file=document.path, line=error.line, hint=error.hint)
        return Verified(document, error=located)
    if measured or settings.meter != "cuda":
        files = measured.report.files if measured else ()
        evidence = Evidence(inputs=inputs(todo, document, files), verification=verification)
        write(evidence, settings.root, settings.evidence)
    return Verified(document, verification)


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


def _blank(document: Document, settings: Settings, verdict: Verdict, reason: str) -> Verification:
    """A verification without samples."""
    real = settings.meter == "cuda"
    return Verification(
        ticket=document.id.value,
        verdict=verdict,
        reason=reason,
        meter="cuda" if real else "simulated",
        torch=version("torch").split("+")[0],
        device="none" if real else SIMULATED_DEVICE,
        sweep=(),
        variants={},
        claims=(),
    )
