"""``tickets trace``: what a real GPU did by line of code, as PyTorch's profiler recorded it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.cli.options import HERE, OutputFormat, Root, Timeout, flag, option
from finding_tickets.cli.output import Format, say_errors, style, used_width, write, write_json
from finding_tickets.errors import BadDataError, ExitCode
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.config import read_config, repository_of
from finding_tickets.report import probe as report
from finding_tickets.verify.recorded import PRELOAD, read_traces

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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every line and sum.")] = False,
    root: Root = HERE,
    timeout: Timeout = None,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Read traces of a real GPU; print the lines that wait, and whether the simulation agrees."""
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
    if output_format is Format.JSON:
        write_json("trace", [report.trace_item(*each) for each in read])
    elif read:
        width = used_width(sys.stdout)
        write(
            "\n\n".join("\n".join(report.trace_lines(*each, style, width, verbose=verbose)) for each in read)
        )
    return say_errors(each for each in answers if isinstance(each, BadDataError))
