"""Charts of a verification: each metric against the sweep for every variant, with the law that was fitted.

The points of the sweep stand side by side, the cheapest first, because a sweep varies several variables at
once: a law in all of them is a line through every point that it explains. Below the points stand the
variables that the laws are made of. ``report_chart.html.j2`` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

from finding_tickets.claims.language import ExpressionError, evaluate, parse_expression, variables
from finding_tickets.model.verification import Sample, VariantResult, Verification
from finding_tickets.report.verification import NO_LAW, law_of

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


class ChartPoint(NamedTuple):
    """The value of a variant in one column, if there is one, and the words for it."""

    value: float | None
    said: str
    is_hollow: bool = False


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One variant, with a point for each column: ``law`` is what was fitted or else known of it.

    ``style`` is a number that stands for a colour and a shape. ``line`` is the columns and the values that a
    line runs through.
    """

    variant: str
    style: int
    law: str
    points: tuple[ChartPoint, ...]
    line: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Chart:
    """One metric of every variant that it was measured for.

    ``columns`` are the points of the sweep in words. ``rows`` has the values that stand
    below the columns, by their name. ``description`` says in words what the picture shows.
    """

    metric: str
    claimed: bool
    columns: tuple[str, ...]
    series: tuple[ChartSeries, ...]
    rows: Mapping[str, Sequence[str]]
    description: str

    left, width, bottom, row = MARGIN, WIDTH, TOP + PLOT + GAP, ROW

    @cached_property
    def _scale(self) -> Scale:
        values = [point.value for each in self.series for point in each.points if point.value is not None]
        return Scale(values + [value for series in self.series for _, value in series.line])

    @property
    def logarithmic(self) -> bool:
        """True if the scale is logarithmic. It begins with 0 anyway."""
        return self._scale.logarithmic

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The labels of the axis and their heights."""
        return [(self._scale.y(value), compact(value)) for value in self._scale.ticks()]

    @property
    def pitch(self) -> float:
        """The width of a column."""
        return (WIDTH - MARGIN) / len(self.columns)

    @property
    def labels(self) -> list[tuple[str, list[tuple[float, str]]]]:
        """The rows of values below the plot: each name with its labels and where they stand."""
        # Labels of narrow columns would cover each other.
        every = math.ceil(LABEL / self.pitch)
        middles = [round(MARGIN + (column + 0.5) * self.pitch, 1) for column in range(len(self.columns))]
        return [
            (name, list(zip(middles[::every], texts[::every], strict=True)))
            for name, texts in self.rows.items()
        ]

    @property
    def drawn(self) -> list[tuple[int, str, list[tuple[float, float, bool]]]]:
        """Of each series the style, its line, and its marks: where they stand, and whether they are hollow.

        A page has thousands of marks, which are too many for a template to ask for one by one.
        """
        drawn = []
        # Variants stand a little beside one another, so that equal ones do not hide each other.
        apart = min(self.pitch / (len(self.series) + 1), FARTHEST)
        y = self._scale.y
        for place, series in enumerate(self.series):
            first = MARGIN + self.pitch / 2 + (place - (len(self.series) - 1) / 2) * apart
            xs = [round(first + column * self.pitch, 1) for column in range(len(self.columns))]
            line = " ".join(f"{xs[column]},{y(value)}" for column, value in series.line)
            marks = [
                (x, y(value), is_hollow)
                for x, (value, _, is_hollow) in zip(xs, series.points, strict=True)
                if value is not None
            ]
            drawn.append((series.style, line if len(series.line) > 1 else "", marks))
        return drawn

    @property
    def numbers(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each column with what is known of every variant there."""
        said = ([point.said for point in series.points] for series in self.series)
        return list(zip(self.columns, zip(*said, strict=True), strict=True))


class Scale:
    """A scale that places values between the bottom of the plot and its top."""

    def __init__(self, values: Sequence[float]) -> None:
        # An empty chart has a scale as well.
        self._top = math.ceil(max([1, *values]))
        # 0 has no logarithm: the scale is that of 1 plus the value.
        smallest = min((value for value in values if value > 0), default=self._top)
        self.logarithmic = self._top > WIDE_SPREAD * smallest
        if not self.logarithmic:
            # Steps are 1, 2, 5, 10, 20, 50 and so on.
            steps = (digit * 10**power for power in count() for digit in (1, 2, 5))
            self._step = next(step for step in steps if self._top <= step * (MOST_TICKS - 1))
            self._top = math.ceil(self._top / self._step) * self._step

    def y(self, value: float) -> float:
        """Return the distance of a value from the top of the picture."""
        height = max(value, 0) / self._top
        if self.logarithmic:
            height = math.log1p(max(value, 0)) / math.log1p(self._top)
        return round(TOP + PLOT * (1 - height), 1)

    def ticks(self) -> list[int]:
        """Return the values that label the axis."""
        if not self.logarithmic:
            return list(range(0, self._top + 1, self._step))
        powers = range(len(str(self._top)))
        # A byte count spans ten powers of ten.
        every = math.ceil(len(powers) / MOST_TICKS)
        return [0, *(10**power for power in powers[::every] if self.y(0) - self.y(10**power) >= LINE)]


def charts(verification: Verification) -> tuple[tuple[Chart, ...], tuple[str, ...]]:
    """Return a chart for each metric, those of claims first, and the names of metrics that are always 0."""
    samples = [sample for variant in verification.variants.values() for sample in variant.samples]
    metrics = dict.fromkeys(metric for sample in samples for metric in sample.metrics)
    counted = [metric for metric in metrics if any(sample.metrics.get(metric) for sample in samples)]
    claimed = {claim.metric for claim in verification.claims}
    placed = {name: _placed(verification.sweep, each) for name, each in verification.variants.items()}
    drawn = (
        _chart(verification, placed, metric, is_claimed=metric in claimed)
        for metric in sorted(counted, key=lambda each: each not in claimed)
    )
    zero = (metric for metric in metrics if metric not in counted)
    return tuple(drawn) if verification.sweep else (), tuple(zero)


def compact(value: int) -> str:
    """A value in as little room as possible: two digits and a unit, ``1.5k`` for 1536."""
    size, unit = float(value), 0
    while abs(size) >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = f"{size:.1f}".removesuffix(".0") if unit and abs(size) < 9.95 else f"{size:.0f}"
    return digits + UNITS[unit]


def styles(names: Iterable[str]) -> dict[str, int]:
    """The style of each variant."""
    others = [name for name in names if name not in STYLES]
    return STYLES | {name: len(STYLES) + place % OTHER_STYLES for place, name in enumerate(others)}


def _placed(sweep: Iterable[Mapping[str, int]], variant: VariantResult) -> dict[int, Sample]:
    """Return the samples of a variant by the index of their point in the sweep; points may be equal."""
    # Samples are in the order of the sweep, in which some points were not measured.
    free = list(variant.samples)[::-1]
    return {place: free.pop() for place, point in enumerate(sweep) if free and free[-1].at == point}


def _chart(
    verification: Verification, placed: Mapping[str, Mapping[int, Sample]], metric: str, *, is_claimed: bool
) -> Chart:
    costs = {
        name: {place: each.metrics[metric] for place, each in samples.items() if metric in each.metrics}
        for name, samples in placed.items()
    }
    costs = {name: cost for name, cost in costs.items() if cost}
    # The cheapest point first, by what the first variant costs there, then the second; else as they are.
    order = sorted(
        range(len(verification.sweep)),
        key=lambda place: [cost.get(place, math.inf) for cost in costs.values()],
    )
    sweep = [verification.sweep[place] for place in order]
    shapes = styles(verification.variants)
    named, series, described = set[str](), [], []
    for name, cost in costs.items():
        variant = verification.variants[name]
        line = []
        # Evidence may come from anywhere, with a law that cannot be read or has no value at some point.
        with suppress(ExpressionError):
            expression = parse_expression(variant.laws.get(metric) or "")
            named |= {each.name for each in variables(expression)}
            # A law runs through points that were not measured, too.
            for column, point in enumerate(sweep):
                with suppress(ExpressionError, OverflowError):
                    line.append((column, float(evaluate(expression, point))))
        points = [ChartPoint(None, "not measured")] * len(order)
        for column, place in enumerate(order):
            if place in cost:
                raised = placed[name][place].error is not None
                said = f"{cost[place]} until it raised" if raised else str(cost[place])
                points[column] = ChartPoint(cost[place], said, raised)
        law, values = law_of(variant, metric) or NO_LAW, cost.values()
        described.append(f"{name}: {law}, measured {min(values)} to {max(values)} at {len(values)} points.")
        series.append(ChartSeries(name, shapes[name], law, tuple(points), tuple(line)))
    varying = [name for name in sweep[0] if len({point.get(name) for point in sweep}) > 1]
    columns = (
        ", ".join(f"{name} {point[name]}" for name in [name for name in varying if name in point] or point)
        for point in sweep
    )
    # Below the points stand the variables that the laws name, or else all that vary.
    below = [name for name in varying if name in named] or varying
    return Chart(
        metric=metric,
        claimed=is_claimed,
        columns=tuple(columns),
        series=tuple(series),
        rows={name: [compact(point.get(name, 0)) for point in sweep] for name in below[:MOST_ROWS]},
        description=" ".join(described),
    )
