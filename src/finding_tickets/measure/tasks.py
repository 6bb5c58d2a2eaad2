"""What runs in an isolated process: measure one ticket and fit its laws, from JSON to JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from finding_tickets.claims.fitting import Fit, SiteFit, fit_metrics, fit_sites
from finding_tickets.measure.report import Code, Job, Question, Report, TimeJob
from finding_tickets.measure.source import Comparison, Source

TARGET = f"{__name__}:measure"
TIMING = f"{__name__}:time"
COMPARISON = "finding_tickets.measure.agreement:compare_kept"
CHOICE = "finding_tickets.measure.choice:took"
VISIBLE = "finding_tickets.measure.gpus:visible"
CALLED = "finding_tickets.measure.gpus:called"
WANTED = "finding_tickets.measure.gpus:wanted"
DEVICES = "finding_tickets.measure.gpus:devices"
TORCH = "finding_tickets.measure.installed:torch_version"
COMPILER = "finding_tickets.measure.graph_breaks:load"
"""What a job needs that traces, and what takes as long to load as many a measurement."""


@dataclass(frozen=True)
class Measured:
    """A report and, for each variant, the fits to its metrics and sites."""

    report: Report
    metrics: dict[str, dict[str, Fit]]
    sites: dict[str, tuple[SiteFit, ...]]


def measure(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure the job that ``asdict`` made a payload of; raises what importing and building raise."""
    from finding_tickets.measure.run import measure as run

    return fitted(run(job_of(payload)))


def time(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Time what the payload asks for; raises what importing and building raise."""
    from finding_tickets.measure.timing import measure_times

    return [asdict(timing) for timing in measure_times(time_job_of(payload))]


def fitted(report: Report) -> dict[str, Any]:
    """A report with the fits to it, as JSON can carry them."""
    metrics = {name: fit_metrics(runs) for name, runs in report.runs.items()}
    sites = {name: fit_sites(runs) for name, runs in report.runs.items()}
    return asdict(Measured(report, metrics, sites))


def job_of(payload: dict[str, Any]) -> Job:
    """The job that ``asdict`` made a payload of."""
    return Job(
        **{
            **payload,
            "variants": {name: Source(**source) for name, source in payload["variants"].items()},
            "comparisons": tuple(Comparison(**comparison) for comparison in payload["comparisons"]),
        }
    )


def time_job_of(payload: dict[str, Any]) -> TimeJob:
    """The job that ``asdict`` made a payload of."""
    codes = (
        Code(code["folder"], {name: Source(**source) for name, source in code["variants"].items()})
        for code in payload["codes"]
    )
    questions = (Question(**question) for question in payload["questions"])
    return TimeJob(**{**payload, "codes": tuple(codes), "questions": tuple(questions)})
