"""``tickets history``: what was measured of tickets over time, or is measured now at every commit."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.options import (
    HERE,
    Meter,
    OptionalIds,
    Root,
    Sandbox,
    revision_option,
    timeout_option,
)
from finding_tickets.cli.output import (
    counted,
    protection,
    say,
    style,
    write,
    write_json,
    write_output,
    write_table,
)
from finding_tickets.cli.registers import settings_of
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE
from finding_tickets.register.load import Register, load

if TYPE_CHECKING:
    from finding_tickets.history.timeline import Timeline
    from finding_tickets.verify.verify import Settings


class HistoryFormat(StrEnum):
    """How a history is written; a page of HTML is drawn of what was measured now."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


def history(
    ids: OptionalIds = None,
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
        return _measure(register, ids or (), since, settings, how, output, sandbox=sandbox)
    if everything or not ids or len(ids) > 1:
        raise UsageError("name one ticket, or say --since REV", hint="of one the evidence is shown")
    if timeout or sandbox or meter or how is HistoryFormat.HTML:
        raise UsageError("nothing is measured or drawn without --since REV")
    return _show_evidence(register, ids[0], how)


def _show_evidence(register: Register, ticket: str, how: HistoryFormat) -> ExitCode:
    """Show the committed evidence of a ticket."""
    from finding_tickets.history.evidence_log import evidence_log
    from finding_tickets.report.history import PAST_HEADER, past_item, past_row

    document = register.find(ticket)
    known = evidence_log(document.id.value, register.root, register.config.evidence)
    if how is HistoryFormat.JSON:
        write_json("history", [past_item(step) for step in known.changes])
    elif known.changes:
        write_table(PAST_HEADER, map(past_row, known.changes))
    else:
        say(f"{document.id.value} has no evidence in any commit of the current branch")
    for gap in known.gaps:
        say(gap)
    return ExitCode.OK


def _measure(
    register: Register,
    ids: Sequence[str],
    since: str,
    settings: Settings,
    how: HistoryFormat,
    output: Path | None,
    *,
    sandbox: bool,
) -> ExitCode:
    """Measure tickets at every commit, and show what became better and worse."""
    from finding_tickets.history.timeline import measure_history, timeline
    from finding_tickets.measure.isolation import Isolation
    from finding_tickets.report.history import LEGEND, timeline_item, timeline_lines, timeline_page
    from finding_tickets.verify.verify import with_meter

    with Isolation(at_once=False, sandbox=sandbox) as isolation:
        done = measure_history(with_meter(isolation, settings), isolation, since, ids, say)
    timelines = [timeline(course, done.nodes) for course in done.courses]
    looked = f"{counted(len(done.nodes), 'commit')}, {counted(len(timelines), 'ticket')}"
    measured = sum(each.measured for each in timelines)
    worse = [each.ticket for each in timelines if each.is_worse]
    say(f"{looked}, {measured} measured now; regressed and not mended: {', '.join(worse) or 'none'}")
    for gap in done.gaps:
        say(gap)
    if how is HistoryFormat.JSON:
        write_json("regressions", [timeline_item(each, done.nodes) for each in timelines])
    elif how is HistoryFormat.HTML:
        config = register.config
        files = [CONFIG_FILE, PROJECT_FILE, *(document.path for document in register.documents)]
        is_protected = protection(register.root, (config.evidence, config.templates), files)
        pieces = timeline_page(timelines, done.nodes, since, register.root / config.templates)
        write_output(pieces, output, is_protected)
    elif timelines:
        texts = ("\n".join(timeline_lines(each, done.nodes, style)) for each in timelines)
        write("\n\n".join([*texts, LEGEND]))
    return ExitCode.worst(*map(_code, timelines))


def _code(timeline: Timeline) -> ExitCode:
    """What a ticket contributes: regressions that are not mended, and whether HEAD could be measured."""
    from finding_tickets.history.store import WhyUnmeasured

    gap = timeline.gaps[-1]
    if gap and gap.kind is WhyUnmeasured.WRONG:
        return ExitCode.BAD_DATA
    if timeline.is_worse:
        return ExitCode.GATE_FAILED
    unknown = gap is not None and gap.kind is WhyUnmeasured.UNKNOWN
    return ExitCode.INCONCLUSIVE if unknown or not timeline.is_known else ExitCode.OK
