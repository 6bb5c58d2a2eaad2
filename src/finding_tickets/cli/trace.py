"""``tickets trace``: what a real GPU did by line of code, as PyTorch's profiler recorded it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from finding_tickets.cli.options import DRAFTING, HERE, Drafting, OutputFormat, Root, Timeout, flag, option
from finding_tickets.cli.output import Format, say, say_errors, style, used_width, write, write_json
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.config import read_config, repository_of
from finding_tickets.report import probe as report
from finding_tickets.verify.recorded import PRELOAD, TracedRun, read_traces

REPLAYING = 600.0
"""Seconds that a trace may take where no time is given: replaying a large one takes long."""


def trace(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Traces, as JSON or gzip: one for each rank.")
    ],
    beside: Annotated[
        Path | None, option("PROBE.json", "What tickets probe --format json printed of the same program.")
    ] = None,
    only_lines: Annotated[bool, flag("--lines", "Replay nothing on the simulation.")] = False,
    drafting: Drafting = DRAFTING,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every line and sum.")] = False,
    root: Root = HERE,
    timeout: Timeout = None,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Read traces of a real GPU; print the lines that wait, and whether the simulation agrees."""
    draft, given = drafting.draft, drafting.content()
    if draft and len(files) > 1:
        raise UsageError("--draft is about a line of one trace", hint="name one of the files")
    item = report.probe_beside(beside) if beside else None
    with Isolation(PRELOAD) as isolation:
        place = repository_of(root)
        config = read_config(place)
        answers = list(
            read_traces(
                files,
                place.resolve(),
                isolation,
                only_lines=only_lines,
                timeout=timeout or max(config.timeout, REPLAYING),
                memory=config.memory,
            )
        )
    read = [
        (each, report.places_beside(each, item) if item else None)
        for each in answers
        if not isinstance(each, BadDataError)
    ]
    if read and output_format is Format.TABLE:
        width = used_width(sys.stdout)
        write(
            "\n\n".join("\n".join(report.trace_lines(*each, style, width, verbose=verbose)) for each in read)
        )
    drafted = _write_draft(read[0][0], draft, place, given) if draft and read else None
    if output_format is Format.JSON:
        write_json("trace", [report.trace_item(*each) | {"draft": drafted} for each in read])
    return say_errors(each for each in answers if isinstance(each, BadDataError))


def _write_draft(traced: TracedRun, site: str, place: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write the ticket about a site, and what was recorded beside it; its ID and its files."""
    from finding_tickets.cli.new import TicketWriter

    if not traced.has_stacks:
        raise UsageError("cannot draft a ticket: the trace has no lines", hint="record it with_stack=True")
    row = report.row_of(traced.probed, site)
    writer = TicketWriter(place.resolve())
    root = writer.register.root
    finding = report.TracedFinding(traced, row, root, root / writer.register.config.templates)
    ticket_id, written = writer.draft(finding, given)
    say("a trace gives no verdict: say in the ticket what to run (docs/verifiers.md),")
    say("or draft it from a run: tickets probe TARGET --draft SITE")
    return {"id": ticket_id, "files": written}
