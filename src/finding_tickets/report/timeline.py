"""Tickets through commits: for a reader at a terminal, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from finding_tickets.ground.commits import Node
from finding_tickets.history.regressions import Row, Step, Timeline, Turn
from finding_tickets.report.history import SHORT_ID
from finding_tickets.report.printable import printable
from finding_tickets.report.verification import INDENT, Styler, aligned

WIDTH = 60
"""Columns that commits are drawn in; more of them share one, in which the mark that says most stands."""
FIRST, SAME, UNKNOWN = "o", "-", "."
MARKS = {Turn.REGRESSION: "!", Turn.IMPROVEMENT: "+", Turn.CHANGE: "*"}
LEGEND = f"{FIRST} first   {SAME} as before   ! regression   + improvement   * change   {UNKNOWN} not known"
_LOUDEST_FIRST = "!+*o-."
_COLOURS = {Turn.REGRESSION: "red", Turn.IMPROVEMENT: "green", Turn.CHANGE: "yellow"}


def timeline_lines(timeline: Timeline, nodes: Sequence[Node], style: Styler) -> Iterator[str]:
    """A ticket with a strip for each row and a line for each change; ``style`` colours a text."""
    title = style(printable(timeline.ticket), "bold")
    turns = [(row, step) for row in timeline.rows for step in row.steps if step.turn]
    if not turns and timeline.is_known:
        now = next(text for text in reversed(timeline.rows[0].texts) if text)
        yield f"{title}  {now}, no change in {_commits(len(nodes))}"
    else:
        yield f"{title}{INDENT}{style('REGRESSION', 'red')}" if timeline.is_worse else title
        yield from (INDENT + line for line in aligned(_strips(timeline)))
        for place in sorted({step.place for _, step in turns}):
            commit = nodes[place].commit
            head = f"{commit.date.partition('T')[0]}  {commit.id[:SHORT_ID]}  {printable(commit.subject)}"
            yield f"{INDENT}{style(head, 'dim')}"
            yield from _told([turn for turn in turns if turn[1].place == place], style)
    yield from (f"{INDENT}{line}" for line in _not_known(timeline, nodes))


def timeline_item(timeline: Timeline, nodes: Sequence[Node]) -> dict[str, object]:
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
                "steps": [_step_item(row, step, nodes) for step in row.steps],
            }
            for row in timeline.rows
        ],
        "gaps": [
            {"first": first.commit.id, "last": last.commit.id, "commits": number, "kind": kind, "why": why}
            for first, last, number, kind, why in commits_without(timeline, nodes)
        ],
    }


def _step_item(row: Row, step: Step, nodes: Sequence[Node]) -> dict[str, object]:
    commit = nodes[step.place].commit
    return {
        **commit._asdict(),
        "before": step.before,
        "after": step.after,
        "value": row.values[step.place] if row.values else None,
        "turn": step.turn,
        "open": step.is_open,
    }


def _strips(timeline: Timeline) -> Iterator[tuple[str, ...]]:
    for row in timeline.rows:
        yield row.name, _strip(row), next((text for text in reversed(row.texts) if text), "")


def _strip(row: Row) -> str:
    steps = {step.place: MARKS[step.turn] if step.turn else FIRST for step in row.steps}
    marks = [steps.get(place, SAME if text else UNKNOWN) for place, text in enumerate(row.texts)]
    columns = min(WIDTH, len(marks))
    shared = (marks[len(marks) * at // columns : len(marks) * (at + 1) // columns] for at in range(columns))
    return "".join(min(each, key=_LOUDEST_FIRST.index) for each in shared)


def _told(turns: Sequence[tuple[Row, Step]], style: Styler) -> Iterator[str]:
    """What one commit did."""
    rows = ((_word(step.turn), row.name, printable(f"{step.before} -> {step.after}")) for row, step in turns)
    for line, (_, step) in zip(aligned(rows), turns, strict=True):
        yield INDENT * 2 + (style(line, _COLOURS[step.turn]) if step.turn else line)


def _word(turn: Turn | None) -> str:
    return turn.upper() if turn is Turn.REGRESSION else turn or ""


def _not_known(timeline: Timeline, nodes: Sequence[Node]) -> Iterator[str]:
    for first, last, number, _, why in commits_without(timeline, nodes):
        names = dict.fromkeys(node.commit.id[:SHORT_ID] for node in (first, last))
        yield f"not known at {_commits(number)}, {' to '.join(names)}: {printable(why)}"


def commits_without(timeline: Timeline, nodes: Sequence[Node]) -> Iterator[tuple[Node, Node, int, str, str]]:
    """The commits of which nothing is known, those beside each other for the same reason together."""
    pairs: Iterable[tuple[object, Node]] = zip(timeline.gaps, nodes, strict=True)
    for gap, group in groupby(pairs, key=lambda pair: pair[0]):
        if gap is not None:
            there = [node for _, node in group]
            yield there[0], there[-1], len(there), gap.kind, gap.why


def _commits(number: int) -> str:
    return "1 commit" if number == 1 else f"{number} commits"
