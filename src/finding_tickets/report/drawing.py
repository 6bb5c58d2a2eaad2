"""Charts as SVG, whose colours and shapes are the page's: a mark of style 2 is its ``#mark-2``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from finding_tickets.report.charts import MARGIN, WIDTH, Chart, Column, Series

LABELS = MARGIN - 6
"""Where labels on the left end."""
LONGEST_NAME = 13
_HALF_LETTER = 3
_RAISED = ' class="raised"'


def drawn(chart: Chart, where: str = "at each point of the sweep") -> Markup:
    """The picture of a chart; ``where`` says what its columns are."""
    return Markup("".join(_parts(chart, where)))  # noqa: S704 - each text that is not ours is escaped


def _parts(chart: Chart, where: str) -> Iterator[str]:
    yield f'<svg viewBox="0 0 {WIDTH} {chart.height}" role="img">'
    yield f"<title>{escape(chart.metric)} {where}</title>"
    yield f"<desc>{escape(chart.description)}</desc>"
    grid = "".join(f"M{MARGIN} {tick.y}H{WIDTH}" for tick in chart.ticks)
    yield f'<path class="grid" d="{grid}"/>'
    for tick in chart.ticks:
        yield f'<text x="{LABELS}" y="{tick.y + _HALF_LETTER}">{tick.label}</text>'
    for values in chart.rows:
        name = values.name if len(values.name) <= LONGEST_NAME else f"{values.name[: LONGEST_NAME - 1]}…"
        yield f'<text x="{LABELS}" y="{values.y}">{escape(name)}</text>'
        for x, label in values.labels:
            yield f'<text class="value" x="{x}" y="{values.y}">{label}</text>'
    yield from map(_series, chart.series)
    names = [escape(series.variant) for series in chart.series]
    for column in chart.columns:
        place = f'x="{column.left}" width="{chart.pitch}" y="0" height="{chart.height}"'
        yield f'<rect class="column" {place}><title>{_said(column, names)}</title></rect>'
    yield "</svg>"


def _series(series: Series) -> str:
    points = " ".join(f"{x},{y}" for x, y in series.line)
    line = f'<polyline points="{points}"/>' if len(series.line) > 1 else ""
    mark = f'<use href="#mark-{series.style}"'
    marks = (f'{mark} x="{each.x}" y="{each.y}"{_RAISED if each.raised else ""}/>' for each in series.marks)
    return f'<g class="series style-{series.style}">{line}{"".join(marks)}</g>'


def _said(column: Column, names: Sequence[str]) -> str:
    values = (f"{name}: {value}" for name, value in zip(names, column.values, strict=True))
    return "\n".join([escape(column.at), *values])
