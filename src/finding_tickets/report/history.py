"""What is shown of commits: who wrote a ticket, its evidence over time, a bisection, and its timeline.

A timeline is a ticket measured at every commit: as lines with a strip for each metric, as JSON, and as a page
of HTML with a chart for each metric that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.report.text import (
    INDENT,
    Styled,
    Styler,
    aligned,
    counted,
    fields_of,
    law_changes,
    printable,
)

if TYPE_CHECKING:
    from finding_tickets.ground.git import Commit, CommitNode
    from finding_tickets.history.bisect import Bisection, BisectStep
    from finding_tickets.history.ticket_log import EvidenceChange, History
    from finding_tickets.history.timeline import Timeline, TimelineRow
    from finding_tickets.history.walk import UnmeasuredCommit
    from finding_tickets.report.charts import Chart

SHORT_ID = 10
SHOWN = 20
"""How many of the commits that name a ticket are shown; all of them are in the JSON."""
PAST_HEADER = ("DATE", "COMMIT", "VERDICT", "LAW", "MEASURED ON", "SUBJECT")
BISECT_HEADER = ("DATE", "COMMIT", "STATE", "", "LAW", "SUBJECT")

WIDTH = 60
"""Columns that commits are drawn in; more of them share one, in which the mark that says most stands."""
FIRST, SAME, UNKNOWN = "o", "-", "."
MARKS = {"regression": "!", "improvement": "+", "change": "*"}
LEGEND = f"{FIRST} first   {SAME} as before   ! regression   + improvement   * change   {UNKNOWN} not known"
_LOUDEST_FIRST = "!+*o-."
_COLOURS = {"regression": "red", "improvement": "green", "change": "yellow"}


def _named(commit: Commit) -> tuple[str, str]:
    """The date of a commit and as much of its ID as people need."""
    return commit.date.partition("T")[0], commit.id[:SHORT_ID]


def history_item(history: History) -> dict[str, object]:
    """Who wrote a ticket when, for JSON; what is not known is null or empty, and ``gaps`` says why."""
    return {
        "created": history.created._asdict() if history.created else None,
        "updated": history.updated._asdict() if history.updated else None,
        "commits": [commit._asdict() for commit in history.naming],
        **fields_of(history, "authors", "gaps"),
    }


def history_lines(history: History) -> Iterator[str]:
    """Who wrote a ticket when, for a reader."""

    def cells(commit: Commit) -> tuple[str, ...]:
        return *_named(commit), commit.author, commit.subject

    dated = [("First commit", history.created), ("Last change", history.updated)]
    yield from aligned((name, *cells(commit)) for name, commit in dated if commit)
    if history.authors:
        yield f"Authors: {', '.join(history.authors)}"
    if history.naming:
        yield "Commits that name it"
        yield from (INDENT + line for line in aligned(map(cells, history.naming[:SHOWN])))
    if len(history.naming) > SHOWN:
        yield f"{INDENT}and {len(history.naming) - SHOWN} older ones"
    yield from history.gaps


def past_row(step: EvidenceChange) -> tuple[str, ...]:
    """A change of evidence: when, which commit, the verdict, the first law that is claimed, and where."""
    commit, done = step.commit, step.verification
    date, name = _named(commit) if commit else ("-", "-")
    subject = commit.subject if commit else "not committed"
    if done is None:
        return date, name, "-", f"{step.file} {step.problem}", "-", subject
    # The first claim is what the ticket is about.
    law = next((f"{change.metric}: {change.text}" for change in law_changes(done)), "-")
    return date, name, done.verdict, law, f"{done.meter} {done.device}, torch {done.torch}", subject


def past_item(step: EvidenceChange) -> dict[str, object]:
    """A change of evidence for JSON; what is not known is null or empty."""
    commit, done = step.commit, step.verification
    return {
        "commit": commit.id if commit else None,
        **{name: getattr(commit, name, None) for name in ("date", "author", "subject")},
        **{name: getattr(done, name, None) for name in ("verdict", "reason", "meter", "torch", "device")},
        "laws": [fields_of(each, "metric", "before", "after") for each in law_changes(done)] if done else [],
        **fields_of(step, "file", "problem"),
    }


def bisect_row(step: BisectStep) -> tuple[str, ...]:
    """A commit: when, which, the state, what it did, and the law that was claimed first or why not."""
    law = next((f"{metric}: {law}" for metric, law in step.laws.items()), step.reason)
    return *_named(step.commit), step.state, step.turn or "", law, step.commit.subject


def bisect_item(done: Bisection) -> dict[str, object]:
    """The whole search for JSON; what is not known is null or empty."""
    steps = [
        {
            "commit": step.commit.id,
            **fields_of(step.commit, "date", "author", "subject"),
            **fields_of(step, "place", "state", "turn", "suspects"),
            "laws": dict(step.laws),
            "reason": step.reason or None,
        }
        for step in done.steps
    ]
    return {**fields_of(done, "ticket", "variant", "commits", "measured"), "steps": steps, "gaps": done.gaps}


def unknown_commits(
    timeline: Timeline, nodes: Sequence[CommitNode]
) -> Iterator[tuple[UnmeasuredCommit, list[CommitNode]]]:
    """The commits of which nothing is known, those beside each other for the same reason together."""
    # A gap may last for hundreds of commits.
    pairs: Iterable[tuple[UnmeasuredCommit | None, CommitNode]] = zip(timeline.gaps, nodes, strict=True)
    for gap, group in groupby(pairs, key=lambda pair: pair[0]):
        if gap is not None:
            yield gap, [node for _, node in group]


def timeline_lines(timeline: Timeline, nodes: Sequence[CommitNode], style: Styler) -> Iterator[str]:
    """A ticket with a strip for each row and a line for each change; ``style`` colours a text."""
    title = style(printable(timeline.ticket), "bold")
    changes: dict[int, list[list[Styled]]] = {}
    for row in timeline.rows:
        for step in row.steps:
            if step.trend:
                word = step.trend.upper() if step.trend == "regression" else step.trend
                cells = (word, row.name, f"{step.before} -> {step.after}")
                colour = _COLOURS[step.trend]
                changes.setdefault(step.place, []).append([Styled(cell, colour) for cell in cells])
    if not changes and timeline.is_known:
        yield f"{title}  {_last_known(timeline.rows[0])}, no change in {counted(len(nodes), 'commit')}"
    else:
        yield f"{title}{INDENT}{style('REGRESSION', 'red')}" if timeline.is_worse else title
        strips = [(row.name, _strip(row), _last_known(row)) for row in timeline.rows]
        yield from (INDENT + line for line in aligned(strips))
    for place in sorted(changes):
        commit = nodes[place].commit
        head = INDENT.join([*_named(commit), printable(commit.subject)])
        yield f"{INDENT}{style(head, 'dim')}"
        yield from (INDENT * 2 + line for line in aligned(changes[place], style))
    for gap, there in unknown_commits(timeline, nodes):
        names = dict.fromkeys(node.commit.id[:SHORT_ID] for node in (there[0], there[-1]))
        where = f"{counted(len(there), 'commit')}, {' to '.join(names)}"
        yield f"{INDENT}not known at {where}: {printable(gap.why)}"


def _strip(row: TimelineRow) -> str:
    """A mark for each commit, or for several that share a column the one that says most."""
    steps = {step.place: MARKS[step.trend] if step.trend else FIRST for step in row.steps}
    marks = [steps.get(place, SAME if text else UNKNOWN) for place, text in enumerate(row.texts)]
    columns = min(WIDTH, len(marks))
    # More commits than columns share one, in which the loudest counts.
    shared = (marks[len(marks) * at // columns : len(marks) * (at + 1) // columns] for at in range(columns))
    return "".join(min(each, key=_LOUDEST_FIRST.index) for each in shared)


def _last_known(row: TimelineRow) -> str:
    return next((text for text in reversed(row.texts) if text), "")


def timeline_item(timeline: Timeline, nodes: Sequence[CommitNode]) -> dict[str, object]:
    """A ticket for JSON; what is not known is null."""
    rows = []
    for row in timeline.rows:
        steps = [
            {
                **nodes[step.place].commit._asdict(),
                **fields_of(step, "before", "after"),
                "value": row.values[step.place] if row.values else None,
                "turn": step.trend,
                "open": step.is_open,
            }
            for step in row.steps
        ]
        rows.append({"name": row.name, "steps": steps})
    gaps = [
        {
            "first": there[0].commit.id,
            "last": there[-1].commit.id,
            "commits": len(there),
            **fields_of(gap, "kind", "why"),
        }
        for gap, there in unknown_commits(timeline, nodes)
    ]
    return {
        **fields_of(timeline, "ticket", "measured"),
        "regressed": timeline.is_worse,
        "commits": len(nodes),
        "at": dict(timeline.at) if timeline.at else None,
        "rows": rows,
        "gaps": gaps,
    }


def timeline_page(
    timelines: Sequence[Timeline], nodes: Sequence[CommitNode], since: str, templates: Path
) -> Iterator[str]:
    """The page, piece by piece; ``templates`` is the folder of the user's own.

    Raises:
        BadDataError: A template of the user's is wrong.
    """
    from finding_tickets.report.formats.html import page_pieces

    sections = [_section(each, nodes) | {"anchor": f"ticket-{at}"} for at, each in enumerate(timelines)]
    context = {"sections": sections, "nodes": nodes, "since": since}
    return page_pieces("history.html.j2", context, templates)


def _section(timeline: Timeline, nodes: Sequence[CommitNode]) -> dict[str, object]:
    """What the page shows of one ticket."""
    from finding_tickets.history.timeline import Trend

    steps = [(row, step) for row in timeline.rows for step in row.steps]
    # Commits that changed nothing would make the charts too wide; HEAD is there all the same.
    places = sorted({len(nodes) - 1, *(step.place for _, step in steps)})
    by_metric: dict[str, list[TimelineRow]] = {}
    for row in timeline.rows[1:]:
        if any(value is not None for value in row.values):
            by_metric.setdefault(row.name.partition(".")[2], []).append(row)
    return {
        "timeline": timeline,
        "now": _last_known(timeline.rows[0]),
        "changed": [
            {
                "number": number,
                "commit": nodes[place].commit,
                "steps": [(row, step) for row, step in steps if step.place == place and step.trend],
            }
            for number, place in enumerate(places, 1)
        ],
        "turns": [sum(step.trend is trend for _, step in steps) for trend in Trend],
        "gaps": list(unknown_commits(timeline, nodes)),
        "charts": [
            _chart(metric, rows, places, nodes)
            for metric, rows in by_metric.items()
            if any(step.trend for row in rows for step in row.steps)
        ],
    }


def _chart(
    metric: str, rows: Sequence[TimelineRow], places: Sequence[int], nodes: Sequence[CommitNode]
) -> Chart:
    """A metric at the commits that changed something, a series for each variant."""
    from finding_tickets.history.timeline import NOT_AS_CLAIMED
    from finding_tickets.report.charts import Chart, ChartPoint, ChartSeries, styles

    variants = [row.name.partition(".")[0] for row in rows]
    shapes, series = styles(variants), []
    for variant, row in zip(variants, rows, strict=True):
        points, line = [], list[tuple[int, float]]()
        for column, place in enumerate(places):
            value, text = row.values[place], row.texts[place] or "not known"
            said = text if value is None else f"{value} by {text}"
            points.append(ChartPoint(value, said, text.endswith(NOT_AS_CLAIMED)))
            if value is not None:
                # What was measured stays until the commit that changes it.
                line += [(column, line[-1][1]), (column, value)] if line else [(column, value)]
        law = _last_known(row) or "not known"
        series.append(ChartSeries(variant, shapes[variant], law, tuple(points), tuple(line)))
    described = (f"{row.name}: {', then '.join(step.after for step in row.steps)}." for row in rows)
    numbers = [str(number) for number, _ in enumerate(places, 1)]
    dates = (" ".join(_named(nodes[place].commit)) for place in places)
    return Chart(
        metric=metric,
        claimed=True,
        columns=tuple(f"{number}: {date}" for number, date in zip(numbers, dates, strict=True)),
        series=tuple(series),
        rows={"commit": numbers},
        description=" ".join(described),
        where="at each commit that changed something",
    )
