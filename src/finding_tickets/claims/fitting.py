"""Fit laws to the runs of a variant: one for each metric, and one for each site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from finding_tickets.claims.expressions import evaluate, variables
from finding_tickets.claims.grammar import parse_expression
from finding_tickets.claims.laws import identify
from finding_tickets.measure.measurement import METRICS, Site
from finding_tickets.measure.report import Run

ENDINGS = {"raised", "ooms"}
"""Metrics of how a run ended: measured where it raised too, and a claim about one makes that a result."""


@dataclass(frozen=True)
class Fit:
    """The exact law of a metric, or else what is known of its growth: rival laws, or its range."""

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


def fit(
    points: Sequence[Mapping[str, int]],
    values: Sequence[int],
    sweep: Sequence[Mapping[str, int]] | None = None,
    *,
    is_ending: bool = False,
) -> Fit:
    """The law of a metric with ``values`` at ``points`` of a sweep, or else its rivals or its range.

    A metric of how a run ended is 0 or 1: what could be anything else is no law of it.
    """
    laws = identify(points, values, sweep)
    if is_ending:
        laws = tuple(law for law in laws if _is_yes_or_no(law, sweep or points))
    if len(laws) == 1:
        return Fit(laws[0], None)
    return Fit(None, " or ".join(laws) or f"no law, {span(values)}")


def span(values: Sequence[int]) -> str:
    """The smallest and the largest value: ``0..33``, or ``7`` where they are equal."""
    return f"{min(values)}..{max(values)}" if min(values) < max(values) else str(values[0])


def _is_yes_or_no(law: str, sweep: Sequence[Mapping[str, int]]) -> bool:
    """Whether a law is 0 or 1 for all smallest and largest values of its variables together."""
    expression = parse_expression(law)
    names = {variable.name for variable in variables(expression)}
    extremes = [{min(at[name] for at in sweep), max(at[name] for at in sweep)} for name in names]
    corners = (dict(zip(names, corner, strict=True)) for corner in product(*extremes))
    return all(evaluate(expression, at) in {0, 1} for at in corners)


def fit_metrics(runs: Iterable[Run]) -> dict[str, Fit]:
    """A fit for each metric over the runs that ended without an error, or over all for how they ended."""
    every = list(runs)
    done = [run for run in every if run.error is None]
    fits = {}
    for metric in METRICS:
        having = [run for run in (every if metric in ENDINGS else done) if metric in run.measurement.metrics]
        if having:
            values = [run.measurement.metrics[metric] for run in having]
            sweep = [run.at for run in every]
            fits[metric] = fit([run.at for run in having], values, sweep, is_ending=metric in ENDINGS)
    return fits


def fit_sites(runs: Iterable[Run]) -> tuple[SiteFit, ...]:
    """A fit for each site over the runs that ended without an error; a site counts 0 where it is absent."""
    every = list(runs)
    done = [run for run in every if run.error is None]
    counts = [Counter({_place(site): site.count for site in run.measurement.sites}) for run in done]
    points = [run.at for run in done]
    sweep = [run.at for run in every]
    places = sorted({place for run in counts for place in run})
    return tuple(SiteFit(*place, fit(points, [run[place] for run in counts], sweep)) for place in places)


def _place(site: Site) -> tuple[str, int, str, str]:
    return site.file, site.line, site.function, site.what
