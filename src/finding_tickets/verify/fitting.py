"""Fit laws to the runs of a variant: one for each metric, and one for each site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from finding_tickets.meter.measurement import METRICS, Site
from finding_tickets.meter.report import Run
from finding_tickets.verify.growth import growth_class
from finding_tickets.verify.laws import identify

ENDINGS = {"raised", "ooms"}
"""Metrics of how a run ended: measured where it raised too, and a claim about one makes that a result."""


@dataclass(frozen=True)
class Fit:
    """The exact law of a metric, or else what is known of its growth: rival laws, or a class."""

    law: str | None
    growth: str | None

    def __str__(self) -> str:
        """The law, or what stands in for it."""
        return self.law or self.growth or "no law"


@dataclass(frozen=True)
class SiteFit:
    """A line of code, the metric that it made count, and how that grows."""

    file: str
    line: int
    function: str
    what: str
    fit: Fit


def fit(points: Sequence[Mapping[str, int]], values: Sequence[int]) -> Fit:
    """The law of a metric with ``values`` at ``points``, or its growth."""
    laws = identify(points, values)
    if len(laws) == 1:
        return Fit(laws[0], None)
    return Fit(None, " or ".join(laws) or growth_class(points, values))


def fit_metrics(runs: Iterable[Run]) -> dict[str, Fit]:
    """A fit for each metric over the runs that ended without an error, or over all for how they ended."""
    every = list(runs)
    done = [run for run in every if run.error is None]
    fits = {}
    for metric in METRICS:
        having = [run for run in (every if metric in ENDINGS else done) if metric in run.measurement.metrics]
        if having:
            values = [run.measurement.metrics[metric] for run in having]
            fits[metric] = fit([run.at for run in having], values)
    return fits


def fit_sites(runs: Iterable[Run]) -> tuple[SiteFit, ...]:
    """A fit for each site over the runs that ended without an error; a site counts 0 where it is absent."""
    done = [run for run in runs if run.error is None]
    counts = [Counter({_place(site): site.count for site in run.measurement.sites}) for run in done]
    points = [run.at for run in done]
    places = sorted({place for run in counts for place in run})
    return tuple(SiteFit(*place, fit(points, [run[place] for run in counts])) for place in places)


def _place(site: Site) -> tuple[str, int, str, str]:
    return site.file, site.line, site.function, site.what
