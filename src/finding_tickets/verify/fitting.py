"""Fit laws to the runs of a variant: one for each metric, and one for each site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from finding_tickets.meter.measurement import METRICS
from finding_tickets.meter.report import Run
from finding_tickets.verify.growth import growth_class
from finding_tickets.verify.laws import identify


@dataclass(frozen=True)
class Fit:
    """The exact law of a metric, or else what is known of its growth: rival laws, or a class."""

    law: str | None
    growth: str | None

    def __str__(self) -> str:
        """The law, or what stands in for it."""
        return self.law or self.growth or "no law"


@dataclass(frozen=True)
class Place:
    """A line of code that caused a metric to count."""

    file: str
    line: int
    function: str
    what: str


def fit(points: Sequence[Mapping[str, int]], values: Sequence[int]) -> Fit:
    """The law of a metric with ``values`` at ``points``, or its growth."""
    laws = identify(points, values)
    if len(laws) == 1:
        return Fit(laws[0], None)
    return Fit(None, " or ".join(laws) or growth_class(points, values))


def fit_metrics(runs: Iterable[Run]) -> dict[str, Fit]:
    """A fit for each metric over the runs that ended without an error and measured it."""
    done = [run for run in runs if run.error is None]
    fits = {}
    for metric in METRICS:
        having = [run for run in done if metric in run.measurement.metrics]
        if having:
            values = [run.measurement.metrics[metric] for run in having]
            fits[metric] = fit([run.at for run in having], values)
    return fits


def fit_sites(runs: Iterable[Run]) -> dict[Place, Fit]:
    """A fit for each place over the runs that ended without an error; where a place is absent it counts 0."""
    done = [run for run in runs if run.error is None]
    counts = [_counts(run) for run in done]
    places = sorted(
        {place for run in counts for place in run}, key=lambda p: (p.file, p.line, p.what, p.function)
    )
    points = [run.at for run in done]
    return {place: fit(points, [run.get(place, 0) for run in counts]) for place in places}


def _counts(run: Run) -> dict[Place, int]:
    counts: dict[Place, int] = {}
    for site in run.measurement.sites:
        place = Place(site.file, site.line, site.function, site.what)
        counts[place] = counts.get(place, 0) + site.count
    return counts
