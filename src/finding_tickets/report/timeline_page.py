"""Tickets through commits as one page of HTML, with a chart for each metric that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from markupsafe import Markup

from finding_tickets.ground.commits import Node
from finding_tickets.history.regressions import NOT_AS_CLAIMED, Row, Step, Timeline, Turn
from finding_tickets.report.charts import (
    GAP,
    LABEL,
    MARGIN,
    PLOT,
    ROW,
    TOP,
    WIDTH,
    Chart,
    Column,
    Mark,
    Scale,
    Series,
    Tick,
    Values,
    compact,
    styles,
)
from finding_tickets.report.drawing import drawn
from finding_tickets.report.history import SHORT_ID
from finding_tickets.report.html import policy
from finding_tickets.report.templates import pieces, source
from finding_tickets.report.timeline import commits_without

TEMPLATE = "history.html.j2"
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Changed:
    """A commit with its number in the charts of a ticket, and what it changed."""

    number: int
    node: Node
    steps: tuple[tuple[Row, Step], ...]


class Section:
    """One ticket of the page, looked up as the template asks for it."""

    def __init__(self, timeline: Timeline, nodes: Sequence[Node], anchor: str) -> None:
        self.timeline, self.anchor = timeline, anchor
        self._nodes = nodes

    @property
    def now(self) -> str:
        """The verdict that is known last; empty for none."""
        return next((text for text in reversed(self.timeline.rows[0].texts) if text), "")

    @cached_property
    def changed(self) -> tuple[Changed, ...]:
        """The commits at which something is another one than before, or begins; and HEAD."""
        places = sorted({step.place for row in self.timeline.rows for step in row.steps})
        return tuple(
            Changed(number, self._nodes[place], tuple(_at(self.timeline.rows, place)))
            for number, place in enumerate(dict.fromkeys([*places, len(self._nodes) - 1]), 1)
        )

    @cached_property
    def turns(self) -> Mapping[Turn, int]:
        """How many there are of each."""
        steps = [step for row in self.timeline.rows for step in row.steps]
        return {turn: sum(step.turn is turn for step in steps) for turn in Turn}

    @property
    def at(self) -> str:
        """The point of the sweep that charts are of, in words."""
        return ", ".join(f"{name} {value}" for name, value in (self.timeline.at or {}).items())

    @property
    def gaps(self) -> Sequence[tuple[Node, Node, int, str, str]]:
        """The commits of which nothing is known, and why."""
        return list(commits_without(self.timeline, self._nodes))

    @cached_property
    def charts(self) -> tuple[Chart, ...]:
        """A chart for each metric of which a variant changed."""
        rows: dict[str, list[Row]] = {}
        for row in self.timeline.rows[1:]:
            if any(value is not None for value in row.values):
                rows.setdefault(row.name.partition(".")[2], []).append(row)
        places = [self._nodes.index(each.node) for each in self.changed]
        return tuple(
            _chart(metric, of_metric, places, self._nodes)
            for metric, of_metric in rows.items()
            if any(step.turn for row in of_metric for step in row.steps)
        )

    def picture(self, chart: Chart) -> Markup:
        """One of the charts as SVG."""
        return drawn(chart, "at each commit that changed something")


def page(timelines: Sequence[Timeline], nodes: Sequence[Node], since: str, templates: Path) -> Iterator[str]:
    """The page, piece by piece; ``templates`` is the folder of the user's own.

    Raises:
        BadDataError: A template of the user's is wrong.
    """
    style = source("report.css", templates)
    context = {
        "sections": [Section(each, nodes, f"ticket-{place}") for place, each in enumerate(timelines)],
        "nodes": nodes,
        "since": since,
        "style": Markup(style),  # noqa: S704 - a file of the tool's or the register's owner
        "policy": policy(style, ""),
        "short": partial(_cut, SHORT_ID),
    }
    return (piece.encode(errors="replace").decode() for piece in pieces(TEMPLATE, context, templates))


def _cut(length: int, text: str) -> str:
    return text[:length]


def _at(rows: Sequence[Row], place: int) -> Iterator[tuple[Row, Step]]:
    """What one commit changed."""
    return ((row, step) for row in rows for step in row.steps if step.place == place and step.turn)


def _chart(metric: str, rows: Sequence[Row], places: Sequence[int], nodes: Sequence[Node]) -> Chart:
    values = {row.name: [row.values[place] for place in places] for row in rows}
    scale = Scale([value for each in values.values() for value in each if value is not None])
    pitch = (WIDTH - MARGIN) / len(places)
    x = [round(MARGIN + (column + 0.5) * pitch, 1) for column in range(len(places))]
    variants = [row.name.partition(".")[0] for row in rows]
    shapes = styles(variants)
    every = -(-LABEL // max(1, int(pitch)))
    numbers = tuple((place, str(number + 1)) for number, place in enumerate(x) if number % every == 0)
    columns = (
        Column(
            round(left - pitch / 2, 1),
            _named(number, nodes[place]),
            tuple(_said(row, place) for row in rows),
        )
        for number, (left, place) in enumerate(zip(x, places, strict=True), 1)
    )
    return Chart(
        metric=metric,
        claimed=True,
        height=TOP + PLOT + GAP + ROW,
        pitch=round(pitch, 1),
        logarithmic=scale.logarithmic,
        series=tuple(
            _series(row, variant, shapes[variant], list(zip(x, places, strict=True)), scale)
            for row, variant in zip(rows, variants, strict=True)
        ),
        ticks=tuple(Tick(scale.y(value), compact(value)) for value in scale.ticks()),
        columns=tuple(columns),
        rows=(Values("commit", TOP + PLOT + GAP + ROW * 0.75, numbers),),
        description=" ".join(_described(row) for row in rows),
    )


def _series(row: Row, variant: str, style: int, columns: Sequence[tuple[float, int]], scale: Scale) -> Series:
    """One variant; what it was lasts until the commit that changes it."""
    known = [(x, scale.y(value), place) for x, place in columns if (value := row.values[place]) is not None]
    line: list[tuple[float, float]] = []
    for x, y, _ in known:
        line += [(x, line[-1][1]), (x, y)] if line else [(x, y)]
    marks = tuple(Mark(x, y, raised=_is_false(row.texts[place])) for x, y, place in known)
    now = next((text for text in reversed(row.texts) if text), NOT_KNOWN)
    return Series(variant, style, now, marks, tuple(line))


def _is_false(text: str | None) -> bool:
    return text is not None and text.endswith(NOT_AS_CLAIMED)


def _named(number: int, node: Node) -> str:
    return f"{number}: {node.commit.date.partition('T')[0]} {node.commit.id[:SHORT_ID]}"


def _said(row: Row, place: int) -> str:
    value, text = row.values[place], row.texts[place]
    return NOT_KNOWN if text is None else text if value is None else f"{value} by {text}"


def _described(row: Row) -> str:
    steps = ", then ".join(step.after for step in row.steps)
    return f"{row.name}: {steps}."
