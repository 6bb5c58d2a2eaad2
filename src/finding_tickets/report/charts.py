"""Charts of a verification: each metric against the sweep for every variant, with the law that was fitted.

A chart is plain geometry in units of its own, which a template draws. The points of the sweep stand side by
side, the cheapest first, because a sweep varies several variables at once: a law in all of them is a line
through every point that it explains. Below the points stand the variables that the laws are made of.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from markupsafe import Markup, escape

from finding_tickets.claims.language import (
    Expression,
    ExpressionError,
    evaluate,
    parse_expression,
    variables,
)
from finding_tickets.model.verification import Sample, VariantResult, Verification
from finding_tickets.report.text import NO_LAW, law_of

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
LONGEST_NAME = 13
"""Letters of a variable's name beside the plot; the table of numbers has the whole name."""
UNITS = ("", "k", "M", "G", "T", "P", "E")

Point = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ChartMark:
    """One sample; ``raised`` says that the run ended in an exception, up to which it was counted."""

    x: float
    y: float
    raised: bool


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One variant: ``law`` is what was fitted or else known of it, ``line`` where a law runs.

    ``style`` is a number that stands for a colour and a shape.
    """

    variant: str
    style: int
    law: str
    marks: tuple[ChartMark, ...]
    line: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ChartTick:
    """A value on the scale, as it is written."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """One point of the sweep in words, and the value of each series there, in their order."""

    left: float
    at: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VariableRow:
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
    series: tuple[ChartSeries, ...]
    ticks: tuple[ChartTick, ...]
    columns: tuple[ChartColumn, ...]
    rows: tuple[VariableRow, ...]
    description: str


@dataclass(frozen=True, slots=True)
class Charts:
    """The charts of a verification, and the metrics that have none because they are 0 in every run."""

    drawn: tuple[Chart, ...]
    zero: tuple[str, ...]


class Scale:
    """Where values stand between the bottom of the plot and its top."""

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
        self._height = math.log1p(self._top) if self.logarithmic else self._top

    def y(self, value: float) -> float:
        """How far below the top of the picture a value stands."""
        value = max(value, 0)
        height = math.log1p(value) if self.logarithmic else value
        return round(TOP + PLOT * (1 - height / self._height), 1)

    def ticks(self) -> tuple[ChartTick, ...]:
        """The values that are written beside the plot."""
        if self.logarithmic:
            powers = range(len(str(self._top)))
            # A byte count spans ten powers of ten.
            every = math.ceil(len(powers) / MOST_TICKS)
            marked = [10**power for power in powers[::every] if self.y(0) - self.y(10**power) >= LINE]
            values = [0, *marked]
        else:
            values = list(range(0, self._top + 1, self._step))
        return tuple(ChartTick(self.y(value), compact(value)) for value in values)


def charts(verification: Verification) -> Charts:
    """A chart for each metric that was measured and is not always 0, those of claims first."""
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
    return Charts(tuple(drawn) if verification.sweep else (), tuple(zero))


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


def _placed(sweep: Iterable[Point], variant: VariantResult) -> dict[int, Sample]:
    """The samples of a variant by the place of their point in the sweep, of which some may be equal."""
    free: defaultdict[tuple[tuple[str, int], ...], list[int]] = defaultdict(list)
    for place, point in enumerate(sweep):
        free[tuple(sorted(point.items()))].append(place)
    samples: dict[int, Sample] = {}
    for sample in variant.samples:
        places = free[tuple(sorted(sample.at.items()))]
        if places:
            # Equal points get their samples in the order of the sweep.
            samples[places.pop(0)] = sample
    return samples


def _chart(
    verification: Verification, placed: Mapping[str, Mapping[int, Sample]], metric: str, *, is_claimed: bool
) -> Chart:
    costs = {
        name: {place: each.metrics[metric] for place, each in samples.items() if metric in each.metrics}
        for name, samples in placed.items()
    }
    variants = {name: variant for name, variant in verification.variants.items() if costs[name]}
    # The cheapest point first, by what the first variant costs there, then the second; else as they are.
    order = sorted(
        range(len(verification.sweep)),
        key=lambda place: [costs[name].get(place, math.inf) for name in variants],
    )
    sweep = [verification.sweep[place] for place in order]
    expressions = {name: _read(variant.laws.get(metric)) for name, variant in variants.items()}
    laws = {name: _values(expression, sweep) for name, expression in expressions.items()}
    scale = Scale(
        [cost for name in variants for cost in costs[name].values()]
        + [value for each in laws.values() for value in each.values()]
    )
    pitch = (WIDTH - MARGIN) / len(order)
    # Variants stand a little beside one another, so that equal ones do not hide each other.
    apart = min(pitch / (len(variants) + 1), FARTHEST)
    shapes = styles(verification.variants)
    series, described = [], []
    for number, (name, variant) in enumerate(variants.items()):
        left = MARGIN + pitch / 2 + (number - (len(variants) - 1) / 2) * apart
        x = [round(left + column * pitch, 1) for column in range(len(order))]
        marks = tuple(
            ChartMark(x[column], scale.y(costs[name][place]), placed[name][place].error is not None)
            for column, place in enumerate(order)
            if place in costs[name]
        )
        # A law runs through points that were not measured, too.
        line = tuple((x[column], scale.y(value)) for column, value in laws[name].items())
        law, values = law_of(variant, metric) or NO_LAW, costs[name].values()
        series.append(ChartSeries(name, shapes[name], law, marks, line))
        described.append(f"{name}: {law}, measured {min(values)} to {max(values)} at {len(values)} points.")
    varying = [name for name in sweep[0] if len({point.get(name) for point in sweep}) > 1]
    columns = []
    for column, (place, point) in enumerate(zip(order, sweep, strict=True)):
        at = ", ".join(
            f"{name} {point[name]}" for name in [name for name in varying if name in point] or point
        )
        said = []
        for name in variants:
            sample = placed[name].get(place)
            if sample is None or metric not in sample.metrics:
                said.append("not measured")
            else:
                said.append(
                    f"{sample.metrics[metric]}{' until it raised' if sample.error is not None else ''}"
                )
        columns.append(ChartColumn(round(MARGIN + column * pitch, 1), at, tuple(said)))
    # Below the points stand the variables that the laws name, or else all that vary.
    named = {each.name for law in expressions.values() if law is not None for each in variables(law)}
    # Labels of narrow columns would cover each other.
    every = math.ceil(LABEL / pitch)
    rows = []
    for number, name in enumerate(([name for name in varying if name in named] or varying)[:MOST_ROWS]):
        labels = tuple(
            (round(MARGIN + (column + 0.5) * pitch, 1), compact(point.get(name, 0)))
            for column, point in enumerate(sweep)
            if column % every == 0
        )
        rows.append(VariableRow(name, TOP + PLOT + GAP + ROW * (number + 0.75), labels))
    return Chart(
        metric=metric,
        claimed=is_claimed,
        height=TOP + PLOT + GAP + ROW * len(rows),
        pitch=round(pitch, 1),
        logarithmic=scale.logarithmic,
        series=tuple(series),
        ticks=scale.ticks(),
        columns=tuple(columns),
        rows=tuple(rows),
        description=" ".join(described),
    )


def _read(law: str | None) -> Expression | None:
    """A law; None where there is none that can be read, as evidence may come from anywhere."""
    with suppress(ExpressionError):
        return parse_expression(law) if law else None
    return None


def _values(law: Expression | None, sweep: Iterable[Point]) -> dict[int, float]:
    """The values of a law at the points where it has one, by their places."""
    values: dict[int, float] = {}
    for place, point in enumerate(sweep if law is not None else ()):
        with suppress(ExpressionError, OverflowError):
            values[place] = float(evaluate(law, point)) if law is not None else 0.0
    return values


def drawn(chart: Chart, where: str = "at each point of the sweep") -> Markup:
    """The picture of a chart as SVG; ``where`` says what its columns are.

    Its colours and shapes are the page's: a mark of style 2 is its ``#mark-2``.
    """
    left, half_letter = MARGIN - 6, 3
    grid = "".join(f"M{MARGIN} {tick.y}H{WIDTH}" for tick in chart.ticks)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {chart.height}" role="img">',
        f"<title>{escape(chart.metric)} {where}</title>",
        f"<desc>{escape(chart.description)}</desc>",
        f'<path class="grid" d="{grid}"/>',
    ]
    parts += [f'<text x="{left}" y="{tick.y + half_letter}">{tick.label}</text>' for tick in chart.ticks]
    for row in chart.rows:
        name = row.name if len(row.name) <= LONGEST_NAME else f"{row.name[: LONGEST_NAME - 1]}…"
        parts.append(f'<text x="{left}" y="{row.y}">{escape(name)}</text>')
        parts += [f'<text class="value" x="{x}" y="{row.y}">{label}</text>' for x, label in row.labels]
    for series in chart.series:
        points = " ".join(f"{x},{y}" for x, y in series.line)
        parts.append(f'<g class="series style-{series.style}">')
        parts += [f'<polyline points="{points}"/>'] if len(series.line) > 1 else []
        for mark in series.marks:
            raised = ' class="raised"' if mark.raised else ""
            parts.append(f'<use href="#mark-{series.style}" x="{mark.x}" y="{mark.y}"{raised}/>')
        parts.append("</g>")
    for column in chart.columns:
        pairs = zip(chart.series, column.values, strict=True)
        said = escape("\n".join([column.at, *(f"{series.variant}: {value}" for series, value in pairs)]))
        # The whole height of a column shows its values, not only the marks.
        place = f'x="{column.left}" width="{chart.pitch}" y="0" height="{chart.height}"'
        parts.append(f'<rect class="column" {place}><title>{said}</title></rect>')
    return Markup("".join([*parts, "</svg>"]))  # noqa: S704 - each text that is not ours is escaped
