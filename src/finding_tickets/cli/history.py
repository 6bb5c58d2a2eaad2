"""``tickets history``: what was measured of tickets over time, or is measured now of every commit."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.delivery import deliver, kept_by
from finding_tickets.cli.measuring import (
    Meter,
    Sandbox,
    revision_option,
    settings_of,
    timeout_option,
)
from finding_tickets.cli.options import HERE, Root, complete_id
from finding_tickets.cli.output import counted, say, style, write, write_json, write_table
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.register.load import Register, load

if TYPE_CHECKING:
    from finding_tickets.ground.commits import Node
    from finding_tickets.history.regressions import Timeline
    from finding_tickets.history.survey import Surveyed
    from finding_tickets.verify.session import Settings


class HistoryFormat(StrEnum):
    """How a history is written; a page of HTML is drawn of what was measured now."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


def history(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", autocompletion=complete_id, help="Tickets, in any case."),
    ] = None,
    since: Annotated[
        str | None, revision_option("Measure every commit from this one to HEAD, each distinct input once.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every document that had a verifier since then.")
    ] = False,
    root: Root = HERE,
    meter: Meter = None,
    timeout: Annotated[float | None, timeout_option("Stop a measurement after this time.")] = None,
    sandbox: Sandbox = False,
    output_format: Annotated[
        HistoryFormat | None,
        typer.Option("--format", case_sensitive=False, help="How it is written, by default a table."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the page of HTML to a file.")
    ] = None,
) -> ExitCode:
    """Show verdict and law at every commit that changed the evidence, or measure every commit."""
    register = load(root)
    how = output_format or (HistoryFormat.HTML if output else HistoryFormat.TABLE)
    if output and how is not HistoryFormat.HTML:
        raise UsageError("--output is for --format html")
    if since is not None:
        if bool(ids) is everything:
            raise UsageError("name the tickets to measure, or say --all", hint="one of the two")
        settings = settings_of(register, meter, timeout, record=False)
        timelines, nodes = _measured(ids or (), since, settings, sandbox=sandbox)
        _show(timelines, nodes, since, how, output, register)
        return ExitCode.worst(*map(_code, timelines))
    if everything or not ids or len(ids) > 1:
        raise UsageError("name one ticket, or say --since REV", hint="of one the evidence is shown")
    if timeout or sandbox or meter or how is HistoryFormat.HTML:
        raise UsageError("nothing is measured or drawn without --since REV")
    return _recorded(register, ids[0], how)


def _recorded(register: Register, ticket: str, how: HistoryFormat) -> ExitCode:
    """Show what the evidence of a ticket has said."""
    from finding_tickets.history.past import past
    from finding_tickets.report.past import HEADER, past_item, past_row

    document = register.find(ticket)
    known = past(document.id.value, register.root, register.config.evidence)
    if how is HistoryFormat.JSON:
        write_json("history", [past_item(step) for step in known.steps])
    elif known.steps:
        write_table(HEADER, map(past_row, known.steps))
    else:
        say(f"{document.id.value} has no evidence in any commit of the current branch")
    for gap in known.gaps:
        say(gap)
    return ExitCode.OK


def _measured(
    ids: Sequence[str], since: str, settings: Settings, *, sandbox: bool
) -> tuple[list[Timeline], Sequence[Node]]:
    """Measure tickets at every commit, and find what became better and worse."""
    from finding_tickets.history.regressions import timeline
    from finding_tickets.history.survey import survey
    from finding_tickets.measure.environment import took
    from finding_tickets.measure.isolation import Isolation

    with Isolation(at_once=False, sandbox=sandbox) as isolation:
        done = survey(took(isolation, settings), isolation, since, ids, say)
    timelines = [timeline(course, done.nodes) for course in done.courses]
    _say(timelines, done)
    return timelines, done.nodes


def _show(
    timelines: Sequence[Timeline],
    nodes: Sequence[Node],
    since: str,
    how: HistoryFormat,
    output: Path | None,
    register: Register,
) -> None:
    """Write what became better and worse."""
    from finding_tickets.report.timeline import LEGEND, timeline_item, timeline_lines

    if how is HistoryFormat.JSON:
        write_json("regressions", [timeline_item(each, nodes) for each in timelines])
    elif how is HistoryFormat.HTML:
        from finding_tickets.report.timeline_page import page

        paths = [document.path for document in register.documents]
        templates = register.root / register.config.templates
        is_kept = kept_by(register.root, register.config, paths)
        deliver(page(timelines, nodes, since, templates), output, is_kept)
    elif timelines:
        texts = ("\n".join(timeline_lines(each, nodes, style)) for each in timelines)
        write("\n\n".join([*texts, LEGEND]))


def _say(timelines: Sequence[Timeline], done: Surveyed) -> None:
    measured = sum(each.measured for each in timelines)
    looked = f"{counted(len(done.nodes), 'commit')}, {counted(len(timelines), 'ticket')}"
    worse = [each.ticket for each in timelines if each.is_worse]
    say(f"{looked}, {measured} measured now; regressed and not mended: {', '.join(worse) or 'none'}")
    for gap in done.gaps:
        say(gap)


def _code(timeline: Timeline) -> ExitCode:
    """What a ticket contributes: regressions that are not mended, and whether HEAD could be measured."""
    from finding_tickets.history.states import Kind

    gap = timeline.gaps[-1]
    if gap and gap.kind is Kind.WRONG:
        return ExitCode.BAD_DATA
    if timeline.is_worse:
        return ExitCode.GATE_FAILED
    unknown = gap is not None and gap.kind is Kind.UNKNOWN
    return ExitCode.INCONCLUSIVE if unknown or not timeline.is_known else ExitCode.OK
