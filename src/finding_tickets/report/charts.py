"""Charts of a verification: each metric against the sweep for every variant, with the law that was fitted.

A chart is plain geometry in units of its own, which a template draws. The points of the sweep stand side by
side, the cheapest first, because a sweep varies several variables at once: a law in all of them is a line
through every point that it explains. Below the points stand the variables that the laws are made of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from finding_tickets.model.verification import Sample, VariantResult, Verification
from finding_tickets.report.measured import NO_LAW, law_of
from finding_tickets.verify.expressions import ExpressionError, evaluate, variables
from finding_tickets.verify.grammar import parse_expression

WIDTH = 560
MARGIN = 76
"""Left of the plot, where the scale and the names of variables stand."""
TOP, PLOT, GAP = 10, 150, 8
ROW = 15
"""Height of a row of values below the plot."""
LINE = 12
"""Height that a value on the scale takes."""
LABEL = 23
"""Width that a value below the plot takes."""
FARTHEST = 6.0
"""How far apart two variants at one point stand at most."""
WIDE_SPREAD = 100
"""How many times the smallest cost the largest one must be for a logarithmic scale."""
MOST_TICKS = 5
MOST_ROWS = 5
STYLES = {"found": 0, "recommended": 1, "applied": 2, "fix": 3}
"""Variants that look the same in every chart; others take the styles that come next, in turn."""
OTHER_STYLES = 3
UNITS = ("", "k", "M", "G", "T", "P", "E")

Point = Mapping[str, int]
Key = tuple[tuple[tuple[str, int], ...], int]
"""A point of a sweep, and how many equal ones come before it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One sample; ``raised`` says that the run ended in an exception, up to which it was counted."""

    x: float
    y: float
    raised: bool


@dataclass(frozen=True, slots=True)
class Series:
    """One variant: ``law`` is what was fitted or else known of it, ``line`` where a law runs.

    ``style`` is a number that stands for a colour and a shape.
    """

    variant: str
    style: int
    law: str
    marks: tuple[Mark, ...]
    line: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A value on the scale, as it is written."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Column:
    """One point of the sweep in words, and the value of each series there, in their order."""

    left: float
    at: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """One variable of the sweep: its value below each point that there is room for, by x."""

    name: str
    y: float
    labels: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One metric of every variant that it was measured for.

    ``pitch`` is the width of a column. A ``logarithmic`` scale begins with 0 all the same. ``description``
    says in words what the picture shows.
    """

    metric: str
    claimed: bool
    height: int
    pitch: float
    logarithmic: bool
    series: tuple[Series, ...]
    ticks: tuple[Tick, ...]
    columns: tuple[Column, ...]
    rows: tuple[Values, ...]
    description: str


@dataclass(frozen=True, slots=True)
class Charts:
    """The charts of a verification, and the metrics that have none because they are 0 in every run."""

    drawn: tuple[Chart, ...]
    zero: tuple[str, ...]


def charts(verification: Verification) -> Charts:
    """A chart for each metric that was measured and is not always 0, those of claims first."""
    if not verification.sweep:
        return Charts((), ())
    samples = [sample for variant in verification.variants.values() for sample in variant.samples]
    metrics = dict.fromkeys(metric for sample in samples for metric in sample.metrics)
    counted = {metric for metric in metrics if any(sample.metrics.get(metric) for sample in samples)}
    claimed = {claim.metric for claim in verification.claims}
    order = sorted((metric for metric in metrics if metric in counted), key=lambda each: each not in claimed)
    return Charts(
        tuple(_chart(verification, metric, metric in claimed) for metric in order),
        tuple(metric for metric in metrics if metric not in counted),
    )


def compact(value: int) -> str:
    """A value in as little room as possible: two digits and a unit, ``1.5k`` for 1536."""
    size, unit = float(value), 0
    while abs(size) >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = f"{size:.1f}".removesuffix(".0") if unit and abs(size) < 9.95 else f"{size:.0f}"
    return digits + UNITS[unit]


def _chart(verification: Verification, metric: str, claimed: bool) -> Chart:
    variants = {
        name: variant
        for name, variant in verification.variants.items()
        if any(metric in sample.metrics for sample in variant.samples)
    }
    measured = [_samples(variant, metric) for variant in variants.values()]
    sweep = _cheapest_first(verification.sweep, measured, metric)
    laws = [_along(variant.laws.get(metric), sweep) for variant in variants.values()]
    costs = [sample.metrics[metric] for samples in measured for sample in samples.values()]
    scale = _Scale([*costs, *(value for law in laws for value in law.values())])
    pitch = (WIDTH - MARGIN) / len(sweep)
    # Variants stand a little beside one another, so that equal ones do not hide each other.
    apart = min(pitch / (len(variants) + 1), FARTHEST)
    styles = _styles(verification.variants)
    series = []
    for place, (name, samples, law) in enumerate(zip(variants, measured, laws, strict=True)):
        shift = (place - (len(variants) - 1) / 2) * apart
        x = {key: _round(MARGIN + (column + 0.5) * pitch + shift) for column, key in enumerate(sweep)}
        marks = (
            Mark(x[key], scale.y(samples[key].metrics[metric]), samples[key].error is not None)
            for key in sweep
            if key in samples
        )
        line = tuple((x[key], scale.y(value)) for key, value in law.items())
        known = law_of(variants[name], metric) or NO_LAW
        series.append(Series(name, styles[name], known, tuple(marks), line))
    rows = tuple(_rows(sweep, variants.values(), metric, pitch))
    return Chart(
        metric=metric,
        claimed=claimed,
        height=TOP + PLOT + GAP + ROW * len(rows),
        pitch=_round(pitch),
        logarithmic=scale.logarithmic,
        series=tuple(series),
        ticks=tuple(Tick(scale.y(value), compact(value)) for value in scale.ticks()),
        columns=tuple(_columns(sweep, measured, metric, pitch)),
        rows=rows,
        description=_described(metric, series, measured),
    )


class _Scale:
    """Where values stand between the bottom of the plot and its top."""

    def __init__(self, values: Sequence[float]) -> None:
        self._top = math.ceil(max([1, *values]))
        smallest = min((value for value in values if value > 0), default=self._top)
        self.logarithmic = self._top > WIDE_SPREAD * smallest
        if not self.logarithmic:
            self._step = next(step for step in _steps() if self._top <= step * (MOST_TICKS - 1))
            self._top = math.ceil(self._top / self._step) * self._step

    def y(self, value: float) -> float:
        value = max(value, 0)
        share = math.log1p(value) / math.log1p(self._top) if self.logarithmic else value / self._top
        return _round(TOP + PLOT * (1 - share))

    def ticks(self) -> list[int]:
        if not self.logarithmic:
            return list(range(0, self._top + 1, self._step))
        powers = range(len(str(self._top)))
        ticks = [10**power for power in powers[:: math.ceil(len(powers) / MOST_TICKS)]]
        return [0, *(tick for tick in ticks if self.y(0) - self.y(tick) >= LINE)]


def _steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50 and so on."""
    return (digit * 10**power for power in count() for digit in (1, 2, 5))


def _keys(points: Iterable[Point]) -> list[Key]:
    seen: Counter[tuple[tuple[str, int], ...]] = Counter()
    keys = []
    for point in points:
        values = tuple(point.items())
        keys.append((values, seen[values]))
        seen[values] += 1
    return keys


def _samples(variant: VariantResult, metric: str) -> dict[Key, Sample]:
    keys = _keys(sample.at for sample in variant.samples)
    pairs = zip(keys, variant.samples, strict=True)
    return {key: sample for key, sample in pairs if metric in sample.metrics}


def _cheapest_first(
    sweep: Iterable[Point], measured: Sequence[Mapping[Key, Sample]], metric: str
) -> list[Key]:
    """The points by what the first variant costs there, then the second, and as the sweep has them."""

    def costs(key: Key) -> list[float]:
        return [samples[key].metrics[metric] if key in samples else math.inf for samples in measured]

    return sorted(_keys(sweep), key=costs)


def _along(law: str | None, sweep: Iterable[Key]) -> dict[Key, float]:
    """The values of a law at the points where it has one."""
    if law is None:
        return {}
    values = {}
    for key in sweep:
        with suppress(ExpressionError, OverflowError):
            values[key] = float(evaluate(parse_expression(law), dict(key[0])))
    return values


def _styles(names: Iterable[str]) -> dict[str, int]:
    others = [name for name in names if name not in STYLES]
    return STYLES | {name: len(STYLES) + place % OTHER_STYLES for place, name in enumerate(others)}


def _rows(
    sweep: Sequence[Key], variants: Iterable[VariantResult], metric: str, pitch: float
) -> Iterator[Values]:
    """The variables that the laws of a metric name, or else all that vary."""
    named: set[str] = set()
    for law in (variant.laws.get(metric, "0") for variant in variants):
        with suppress(ExpressionError):
            named.update(variable.name for variable in variables(parse_expression(law)))
    varying = _varying(sweep)
    names = [name for name in varying if name in named] or varying
    every = math.ceil(LABEL / pitch)
    for place, name in enumerate(names[:MOST_ROWS]):
        labels = (
            (_round(MARGIN + (column + 0.5) * pitch), compact(dict(key[0]).get(name, 0)))
            for column, key in enumerate(sweep)
            if column % every == 0
        )
        yield Values(name, TOP + PLOT + GAP + ROW * (place + 0.75), tuple(labels))


def _columns(
    sweep: Sequence[Key], measured: Sequence[Mapping[Key, Sample]], metric: str, pitch: float
) -> Iterator[Column]:
    varying = set(_varying(sweep))
    for column, key in enumerate(sweep):
        at = ", ".join(f"{name} {value}" for name, value in key[0] if name in varying or not varying)
        values = (_value(samples.get(key), metric) for samples in measured)
        yield Column(_round(MARGIN + column * pitch), at, tuple(values))


def _value(sample: Sample | None, metric: str) -> str:
    if sample is None:
        return "not measured"
    return f"{sample.metrics[metric]}{' until it raised' if sample.error is not None else ''}"


def _varying(sweep: Sequence[Key]) -> list[str]:
    points = [dict(values) for values, _ in sweep]
    return [name for name in points[0] if len({point.get(name) for point in points}) > 1]


def _described(metric: str, series: Sequence[Series], measured: Sequence[Mapping[Key, Sample]]) -> str:
    def told(each: Series, samples: Mapping[Key, Sample]) -> str:
        costs = [sample.metrics[metric] for sample in samples.values()]
        return f"{each.variant}: {each.law}, measured {min(costs)} to {max(costs)} at {len(costs)} points."

    return " ".join(map(told, series, measured))


def _round(value: float) -> float:
    return round(value, 1)
