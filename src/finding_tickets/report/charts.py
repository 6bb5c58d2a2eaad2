"""Charts of a verification: each metric against the sweep for every variant, with the law that was fitted.

A chart is plain geometry in units of its own, which a template draws. The points of the sweep stand side by
side, the cheapest first, because a sweep varies several variables at once: a law in all of them is a line
through every point that it explains. Below the points stand the variables that the laws are made of.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from finding_tickets.claims.expressions import Expression, ExpressionError, evaluate, variables
from finding_tickets.claims.grammar import parse_expression
from finding_tickets.model.verification import Sample, VariantResult, Verification
from finding_tickets.report.measured import NO_LAW, law_of

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
    samples = [sample for variant in verification.variants.values() for sample in variant.samples]
    metrics = dict.fromkeys(metric for sample in samples for metric in sample.metrics)
    counted = {metric for metric in metrics if any(sample.metrics.get(metric) for sample in samples)}
    claimed = {claim.metric for claim in verification.claims}
    order = sorted((metric for metric in metrics if metric in counted), key=lambda each: each not in claimed)
    placed = {name: _placed(verification.sweep, each) for name, each in verification.variants.items()}
    drawn = (_chart(verification, placed, metric, metric in claimed) for metric in order)
    zero = (metric for metric in metrics if metric not in counted)
    return Charts(tuple(drawn) if verification.sweep else (), tuple(zero))


def compact(value: int) -> str:
    """A value in as little room as possible: two digits and a unit, ``1.5k`` for 1536."""
    size, unit = float(value), 0
    while abs(size) >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = f"{size:.1f}".removesuffix(".0") if unit and abs(size) < 9.95 else f"{size:.0f}"
    return digits + UNITS[unit]


def _chart(
    verification: Verification, placed: Mapping[str, Mapping[int, Sample]], metric: str, claimed: bool
) -> Chart:
    costs = {name: _costs(samples, metric) for name, samples in placed.items()}
    variants = {name: variant for name, variant in verification.variants.items() if costs[name]}
    costs = {name: costs[name] for name in variants}
    order = _cheapest_first(len(verification.sweep), costs.values())
    sweep = [verification.sweep[place] for place in order]
    laws = {name: _along(variant.laws.get(metric), sweep) for name, variant in variants.items()}
    measured = [cost for each in costs.values() for cost in each.values()]
    scale = Scale([*measured, *(value for each in laws.values() for value in each.values())])
    pitch = (WIDTH - MARGIN) / len(order)
    # Variants stand a little beside one another, so that equal ones do not hide each other.
    apart = min(pitch / (len(variants) + 1), FARTHEST)
    shapes = styles(verification.variants)
    series = []
    for number, (name, variant) in enumerate(variants.items()):
        left = MARGIN + pitch / 2 + (number - (len(variants) - 1) / 2) * apart
        x = [round(left + column * pitch, 1) for column in range(len(order))]
        marks = (
            Mark(x[column], scale.y(costs[name][place]), placed[name][place].error is not None)
            for column, place in enumerate(order)
            if place in costs[name]
        )
        line = tuple((x[column], scale.y(value)) for column, value in laws[name].items())
        law = law_of(variant, metric) or NO_LAW
        series.append(Series(name, shapes[name], law, tuple(marks), line))
    rows = tuple(_rows(sweep, variants.values(), metric, pitch))
    said = [[_said(placed[name].get(place), metric) for name in variants] for place in order]
    return Chart(
        metric=metric,
        claimed=claimed,
        height=TOP + PLOT + GAP + ROW * len(rows),
        pitch=round(pitch, 1),
        logarithmic=scale.logarithmic,
        series=tuple(series),
        ticks=tuple(Tick(scale.y(value), compact(value)) for value in scale.ticks()),
        columns=tuple(_columns(sweep, said, pitch)),
        rows=rows,
        description=" ".join(_described(each, costs[each.variant].values()) for each in series),
    )


class Scale:
    """Where values stand between the bottom of the plot and its top."""

    def __init__(self, values: Sequence[float]) -> None:
        self._top = math.ceil(max([1, *values]))
        smallest = min((value for value in values if value > 0), default=self._top)
        self.logarithmic = self._top > WIDE_SPREAD * smallest
        if not self.logarithmic:
            self._step = next(step for step in _steps() if self._top <= step * (MOST_TICKS - 1))
            self._top = math.ceil(self._top / self._step) * self._step
        self._height = math.log1p(self._top) if self.logarithmic else self._top

    def y(self, value: float) -> float:
        """How far below the top of the picture a value stands."""
        value = max(value, 0)
        height = math.log1p(value) if self.logarithmic else value
        return round(TOP + PLOT * (1 - height / self._height), 1)

    def ticks(self) -> list[int]:
        """The values that are written beside the plot."""
        if not self.logarithmic:
            return list(range(0, self._top + 1, self._step))
        powers = range(len(str(self._top)))
        ticks = [10**power for power in powers[:: math.ceil(len(powers) / MOST_TICKS)]]
        return [0, *(tick for tick in ticks if self.y(0) - self.y(tick) >= LINE)]


def _steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50 and so on."""
    return (digit * 10**power for power in count() for digit in (1, 2, 5))


def _placed(sweep: Iterable[Point], variant: VariantResult) -> dict[int, Sample]:
    """The samples of a variant by the place of their point in the sweep, of which some may be equal."""
    free: defaultdict[tuple[tuple[str, int], ...], list[int]] = defaultdict(list)
    for place, point in enumerate(sweep):
        free[tuple(sorted(point.items()))].append(place)
    samples: dict[int, Sample] = {}
    for sample in variant.samples:
        places = free[tuple(sorted(sample.at.items()))]
        if places:
            samples[places.pop(0)] = sample
    return samples


def _costs(samples: Mapping[int, Sample], metric: str) -> dict[int, int]:
    return {place: each.metrics[metric] for place, each in samples.items() if metric in each.metrics}


def _cheapest_first(points: int, costs: Iterable[Mapping[int, int]]) -> list[int]:
    """The places of points by what the first variant costs there, then the second, and as they are."""
    variants = list(costs)
    return sorted(range(points), key=lambda place: [each.get(place, math.inf) for each in variants])


def _along(law: str | None, sweep: Iterable[Point]) -> dict[int, float]:
    """The values of a law at the points where it has one, by their places."""
    expression = _read(law)
    values: dict[int, float] = {}
    if expression is None:
        return values
    for place, point in enumerate(sweep):
        with suppress(ExpressionError, OverflowError):
            values[place] = float(evaluate(expression, point))
    return values


def _read(law: str | None) -> Expression | None:
    """A law; None where there is none that can be read, as evidence may come from anywhere."""
    with suppress(ExpressionError):
        return parse_expression(law) if law else None
    return None


def styles(names: Iterable[str]) -> dict[str, int]:
    """The style of each variant."""
    others = [name for name in names if name not in STYLES]
    return STYLES | {name: len(STYLES) + place % OTHER_STYLES for place, name in enumerate(others)}


def _rows(
    sweep: Sequence[Point], variants: Iterable[VariantResult], metric: str, pitch: float
) -> Iterator[Values]:
    """The variables that the laws of a metric name, or else all that vary."""
    laws = [_read(variant.laws.get(metric)) for variant in variants]
    named = {variable.name for law in laws if law is not None for variable in variables(law)}
    varying = _varying(sweep)
    names = [name for name in varying if name in named] or varying
    every = math.ceil(LABEL / pitch)
    for number, name in enumerate(names[:MOST_ROWS]):
        labels = (
            (round(MARGIN + (column + 0.5) * pitch, 1), compact(point.get(name, 0)))
            for column, point in enumerate(sweep)
            if column % every == 0
        )
        yield Values(name, TOP + PLOT + GAP + ROW * (number + 0.75), tuple(labels))


def _columns(sweep: Sequence[Point], said: Iterable[Sequence[str]], pitch: float) -> Iterator[Column]:
    varying = _varying(sweep)
    for column, (point, values) in enumerate(zip(sweep, said, strict=True)):
        names = [name for name in varying if name in point] or point
        at = ", ".join(f"{name} {point[name]}" for name in names)
        yield Column(round(MARGIN + column * pitch, 1), at, tuple(values))


def _said(sample: Sample | None, metric: str) -> str:
    if sample is None or metric not in sample.metrics:
        return "not measured"
    return f"{sample.metrics[metric]}{' until it raised' if sample.error is not None else ''}"


def _varying(sweep: Sequence[Point]) -> list[str]:
    return [name for name in sweep[0] if len({point.get(name) for point in sweep}) > 1]


def _described(series: Series, costs: Collection[int]) -> str:
    return f"{series.variant}: {series.law}, measured {min(costs)} to {max(costs)} at {len(costs)} points."
