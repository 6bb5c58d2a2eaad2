"""``tickets bisect`` and ``tickets history``: what was, or is now, measured of tickets over many commits."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from finding_tickets.cli.options import (
    HERE,
    MEASURING,
    Id,
    Measuring,
    OptionalIds,
    OutputFormat,
    Root,
    flag,
    format_option,
    option,
)
from finding_tickets.cli.output import Format, say, style, write, write_json, write_table
from finding_tickets.cli.output_file import files_to_protect, write_output
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.history import bisect as search
from finding_tickets.history.ticket_log import evidence_log
from finding_tickets.history.tickets_at_commits import measure_history
from finding_tickets.history.timeline import timeline
from finding_tickets.history.walk import WhyUnmeasured
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import Register, load
from finding_tickets.report import history as report
from finding_tickets.report.text import counted
from finding_tickets.verify.verify import with_meter

HistoryFormat = StrEnum("HistoryFormat", ["TABLE", "JSON", "HTML"])


def bisect(
    ticket: Id,
    good: Annotated[
        str | None, option("REV", "Begin here; by default at the first commit with the code.")
    ] = None,
    bad: Annotated[str, option("REV", "End here.")] = "HEAD",
    variant: Annotated[str, option("NAME", "The variant whose code and claims are meant.")] = "found",
    root: Root = HERE,
    how: Measuring = MEASURING,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Find the commits that introduced and fixed a finding."""
    register = load(root)
    document = register.find(ticket)
    # A claim that cannot be read would be true or false of no commit.
    for problem in register.problems_of(document):
        if problem.level is Level.ERROR:
            raise problem.as_error
    settings = how.settings(register, record=False)
    with Isolation(at_once=False, sandbox=how.sandbox) as isolation:
        settings = with_meter(isolation, settings)
        found = search.bisect(document, isolation, settings, variant=variant, good=good, bad=bad, tell=say)
    if output_format is Format.JSON:
        write_json("bisect", [report.bisect_item(found)])
    else:
        write_table(report.BISECT_HEADER, map(report.bisect_row, found.steps))
    say(f"{counted(found.commits, 'commit')}, {found.measured} measured now")
    for step in found.steps:
        if step.suspects:
            before = counted(len(step.suspects), "skipped commit")
            say(f"{step.turn} by {step.commit.id[:10]}, or by {before} before it")
    for gap in found.gaps:
        say(gap)
    # Inconclusive where nothing is known of the newest commit, or of any.
    last = found.steps[-1].state if found.steps else search.BisectState.SKIPPED
    return ExitCode.INCONCLUSIVE if last is search.BisectState.SKIPPED else ExitCode.OK


def history(
    ids: OptionalIds = None,
    since: Annotated[str | None, option("REV", "Measure every commit from this one to HEAD.")] = None,
    everything: Annotated[bool, flag("--all", "Every document that had a verifier since then.")] = False,
    root: Root = HERE,
    how: Measuring = MEASURING,
    # Without a value a table, but HTML where it goes to a file.
    output_format: Annotated[HistoryFormat | None, format_option(help="How to write it.")] = None,
    output: Annotated[Path | None, option("FILE", "Write the HTML to a file.", "--output", "-o")] = None,
) -> ExitCode:
    """Show or measure how verdict and law changed."""
    register = load(root)
    form = output_format or (HistoryFormat.HTML if output else HistoryFormat.TABLE)
    if output and form is not HistoryFormat.HTML:
        raise UsageError("--output is for --format html")
    if since is None:
        if everything or not ids or len(ids) > 1:
            raise UsageError("name one ticket to show its evidence, or add --since REV")
        if how != MEASURING or form is HistoryFormat.HTML:
            raise UsageError("nothing is measured or drawn without --since REV")
        return _show_evidence(register, ids[0], form)
    if bool(ids) is everything:
        raise UsageError("name the tickets to measure, or say --all", hint="one of the two")
    settings = how.settings(register, record=False)
    with Isolation(at_once=False, sandbox=how.sandbox) as isolation:
        done = measure_history(with_meter(isolation, settings), isolation, since, ids or (), say)
    timelines = [timeline(course, done.nodes) for course in done.courses]
    looked = f"{counted(len(done.nodes), 'commit')}, {counted(len(timelines), 'ticket')}"
    measured = sum(each.measured for each in timelines)
    worse = [each.ticket for each in timelines if each.is_worse]
    say(f"{looked}, {measured} measured now; regressed and not mended: {', '.join(worse) or 'none'}")
    for gap in done.gaps:
        say(gap)
    if form is HistoryFormat.JSON:
        write_json("regressions", [report.timeline_item(each, done.nodes) for each in timelines])
    elif form is HistoryFormat.HTML:
        templates = register.root / register.config.templates
        page = report.timeline_page(timelines, done.nodes, since, templates)
        documents = [document.path for document in register.documents]
        write_output(page, output, files_to_protect(register, documents))
    elif timelines:
        texts = ("\n".join(report.timeline_lines(each, done.nodes, style)) for each in timelines)
        write("\n\n".join([*texts, report.LEGEND]))
    codes = []
    for each in timelines:
        # The newest commit decides: regressions that are not mended, and whether it could be measured.
        why = each.gaps[-1].kind if each.gaps[-1] else None
        is_open = why is WhyUnmeasured.UNKNOWN or not each.is_known
        codes += [ExitCode.BAD_DATA] if why is WhyUnmeasured.WRONG else []
        codes += [ExitCode.GATE_FAILED] if each.is_worse else []
        codes += [ExitCode.INCONCLUSIVE] if is_open else []
    return ExitCode.worst(*codes)


def _show_evidence(register: Register, ticket: str, form: HistoryFormat) -> ExitCode:
    """Show the committed evidence of a ticket; nothing is measured, and no torch is loaded."""
    document = register.find(ticket)
    known = evidence_log(document.id.value, register.root, register.config.evidence)
    if form is HistoryFormat.JSON:
        write_json("history", [report.past_item(step) for step in known.changes])
    elif known.changes:
        write_table(report.PAST_HEADER, map(report.past_row, known.changes))
    else:
        say(f"{document.id.value} has no evidence in any commit of the current branch")
    for gap in known.gaps:
        say(gap)
    return ExitCode.OK
