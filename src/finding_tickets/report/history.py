"""What is shown of commits: who wrote a ticket, its evidence over time, a bisection, and its timeline.

A timeline is a ticket measured at every commit: as lines with a strip for each metric, as JSON, and as a page
of HTML with a chart for each metric that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.report.text import INDENT, Styled, Styler, aligned, fields_of, law_changes, printable

if TYPE_CHECKING:
    from finding_tickets.ground.git import Commit, CommitNode
    from finding_tickets.history.bisect import Bisection, BisectStep
    from finding_tickets.history.evidence_log import EvidenceChange
    from finding_tickets.history.store import UnmeasuredCommit
    from finding_tickets.history.timeline import Timeline, TimelineRow
    from finding_tickets.register.history import History
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
NOT_KNOWN = "not known"
TEMPLATE = "history.html.j2"
_LOUDEST_FIRST = "!+*o-."
_COLOURS = {"regression": "red", "improvement": "green", "change": "yellow"}


def history_item(history: History) -> dict[str, object]:
    """Who wrote a ticket when, for JSON; what is not known is null or empty, and ``gaps`` says why."""
    return {
        "created": history.created._asdict() if history.created else None,
        "updated": history.updated._asdict() if history.updated else None,
        "authors": history.authors,
        "commits": [commit._asdict() for commit in history.naming],
        "gaps": history.gaps,
    }


def history_lines(history: History, style: Styler) -> Iterator[str]:
    """Who wrote a ticket when, for a reader; ``style`` colours a text."""

    def cells(commit: Commit) -> tuple[str, ...]:
        return *_named(commit), commit.author, commit.subject

    yield style("History", "bold")
    dated = [("First commit", history.created), ("Last change", history.updated)]
    yield from (INDENT + line for line in aligned((name, *cells(commit)) for name, commit in dated if commit))
    if history.authors:
        yield printable(f"{INDENT}Authors: {', '.join(history.authors)}")
    if history.naming:
        yield f"{INDENT}Commits that name it"
        yield from (INDENT * 2 + line for line in aligned(map(cells, history.naming[:SHOWN])))
    if len(history.naming) > SHOWN:
        yield f"{INDENT * 2}and {len(history.naming) - SHOWN} older ones"
    yield from (printable(f"{INDENT}{gap}") for gap in history.gaps)


def past_row(step: EvidenceChange) -> tuple[str, ...]:
    """A change of evidence: when, which commit, the verdict, the first law that is claimed, and where."""
    commit, done = step.commit, step.verification
    date, name, subject = "-", "-", "not committed"
    if commit:
        (date, name), subject = _named(commit), commit.subject
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
        "file": step.file,
        **{name: getattr(done, name, None) for name in ("verdict", "reason", "meter", "torch", "device")},
        "laws": [fields_of(each, "metric", "before", "after") for each in law_changes(done)] if done else [],
        "problem": step.problem,
    }


def bisect_row(step: BisectStep) -> tuple[str, ...]:
    """A commit: when, which, the state, what it did, and the law that was claimed first or why not."""
    law = next((f"{metric}: {law}" for metric, law in step.laws.items()), step.reason)
    return *_named(step.commit), step.state, step.turn or "", law, step.commit.subject


def _named(commit: Commit) -> tuple[str, str]:
    """The date of a commit and as much of its ID as people need."""
    return commit.date.partition("T")[0], commit.id[:SHORT_ID]


def bisect_item(done: Bisection) -> dict[str, object]:
    """The whole search for JSON; what is not known is null or empty."""
    return {
        **fields_of(done, "ticket", "variant", "commits", "measured"),
        "steps": [
            {
                "commit": step.commit.id,
                **fields_of(step.commit, "date", "author", "subject"),
                **fields_of(step, "place", "state", "turn", "suspects"),
                "laws": dict(step.laws),
                "reason": step.reason or None,
            }
            for step in done.steps
        ],
        "gaps": done.gaps,
    }


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
    turns = [(row, step) for row in timeline.rows for step in row.steps if step.trend]
    if not turns and timeline.is_known:
        commits = "1 commit" if len(nodes) == 1 else f"{len(nodes)} commits"
        yield f"{title}  {_last_known(timeline.rows[0])}, no change in {commits}"
    else:
        yield f"{title}{INDENT}{style('REGRESSION', 'red')}" if timeline.is_worse else title
        strips = [(row.name, _strip(row), _last_known(row)) for row in timeline.rows]
        yield from (INDENT + line for line in aligned(strips))
        for place in sorted({step.place for _, step in turns}):
            commit = nodes[place].commit
            head = INDENT.join([*_named(commit), printable(commit.subject)])
            yield f"{INDENT}{style(head, 'dim')}"
            changes = []
            for row, step in turns:
                if step.place == place and step.trend:
                    colour = _COLOURS[step.trend]
                    word = step.trend.upper() if step.trend == "regression" else step.trend
                    cells = (word, row.name, f"{step.before} -> {step.after}")
                    changes.append([Styled(cell, colour) for cell in cells])
            yield from (INDENT * 2 + line for line in aligned(changes, style))
    for gap, there in unknown_commits(timeline, nodes):
        names = dict.fromkeys(node.commit.id[:SHORT_ID] for node in (there[0], there[-1]))
        commits = "1 commit" if len(there) == 1 else f"{len(there)} commits"
        yield f"{INDENT}not known at {commits}, {' to '.join(names)}: {printable(gap.why)}"


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
    return {
        "ticket": timeline.ticket,
        "regressed": timeline.is_worse,
        "commits": len(nodes),
        "measured": timeline.measured,
        "at": dict(timeline.at) if timeline.at else None,
        "rows": [
            {
                "name": row.name,
                "steps": [
                    {
                        **nodes[step.place].commit._asdict(),
                        "before": step.before,
                        "after": step.after,
                        "value": row.values[step.place] if row.values else None,
                        "turn": step.trend,
                        "open": step.is_open,
                    }
                    for step in row.steps
                ],
            }
            for row in timeline.rows
        ],
        "gaps": [
            {
                "first": there[0].commit.id,
                "last": there[-1].commit.id,
                "commits": len(there),
                **fields_of(gap, "kind", "why"),
            }
            for gap, there in unknown_commits(timeline, nodes)
        ],
    }


def timeline_page(
    timelines: Sequence[Timeline], nodes: Sequence[CommitNode], since: str, templates: Path
) -> Iterator[str]:
    """The page, piece by piece; ``templates`` is the folder of the user's own.

    Raises:
        BadDataError: A template of the user's is wrong.
    """
    from markupsafe import Markup

    from finding_tickets.report.html import policy
    from finding_tickets.report.templates import pieces, source

    style = source("report.css", templates)
    context = {
        "sections": [_section(each, nodes, f"ticket-{place}") for place, each in enumerate(timelines)],
        "nodes": nodes,
        "since": since,
        "style": Markup(style),  # noqa: S704 - a file of the tool's or the register's owner
        "policy": policy(style, ""),
        "short": lambda commit: commit[:SHORT_ID],
    }
    return (piece.encode(errors="replace").decode() for piece in pieces(TEMPLATE, context, templates))


def _section(timeline: Timeline, nodes: Sequence[CommitNode], anchor: str) -> dict[str, object]:
    """What the page shows of one ticket."""
    from finding_tickets.history.timeline import Trend

    steps = [(row, step) for row in timeline.rows for step in row.steps]
    # Commits that changed nothing would make the charts too wide; HEAD is there all the same.
    places = list(dict.fromkeys([*sorted({step.place for _, step in steps}), len(nodes) - 1]))
    by_metric: dict[str, list[TimelineRow]] = {}
    for row in timeline.rows[1:]:
        if any(value is not None for value in row.values):
            by_metric.setdefault(row.name.partition(".")[2], []).append(row)
    return {
        "timeline": timeline,
        "anchor": anchor,
        "now": _last_known(timeline.rows[0]),
        "changed": [
            {
                "number": number,
                "node": nodes[place],
                "steps": [(row, step) for row, step in steps if step.place == place and step.trend],
            }
            for number, place in enumerate(places, 1)
        ],
        "turns": [sum(step.trend is trend for _, step in steps) for trend in Trend],
        "at": ", ".join(f"{name} {value}" for name, value in (timeline.at or {}).items()),
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
    from finding_tickets.report.charts import Chart, ChartSeries, styles

    shapes = styles(row.name.partition(".")[0] for row in rows)
    series = []
    for row in rows:
        variant = row.name.partition(".")[0]
        said, hollow, line = [], set(), list[tuple[int, float]]()
        for column, place in enumerate(places):
            value, text = row.values[place], row.texts[place]
            said.append(NOT_KNOWN if text is None else text if value is None else f"{value} by {text}")
            if text is not None and text.endswith(NOT_AS_CLAIMED):
                hollow.add(column)
            if value is not None:
                # What was measured stays until the commit that changes it.
                line += [(column, line[-1][1]), (column, value)] if line else [(column, value)]
        series.append(
            ChartSeries(
                variant=variant,
                style=shapes[variant],
                law=_last_known(row) or NOT_KNOWN,
                values=tuple(row.values[place] for place in places),
                said=tuple(said),
                hollow=frozenset(hollow),
                line=tuple(line),
            )
        )
    described = (f"{row.name}: {', then '.join(step.after for step in row.steps)}." for row in rows)
    columns = (f"{number}: {' '.join(_named(nodes[place].commit))}" for number, place in enumerate(places, 1))
    return Chart(
        metric=metric,
        claimed=True,
        columns=tuple(columns),
        series=tuple(series),
        rows={"commit": [str(number) for number, _ in enumerate(places, 1)]},
        description=" ".join(described),
        where="at each commit that changed something",
    )
