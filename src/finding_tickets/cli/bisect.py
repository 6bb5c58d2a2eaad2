"""``tickets bisect``: which commits brought a defect in, mended it and brought it back."""

from __future__ import annotations

from typing import Annotated

import typer

from finding_tickets.cli.options import HERE, Id, Meter, OutputFormat, Root, Sandbox, timeout_option
from finding_tickets.cli.output import Format, counted, say, write_json, write_table
from finding_tickets.cli.registers import settings_of
from finding_tickets.errors import BadDataError, ExitCode
from finding_tickets.model.problem import Level
from finding_tickets.register.load import load


def bisect(
    ticket: Id,
    good: Annotated[
        str | None,
        typer.Option(metavar="REV", help="Begin here, by default at the first commit with the code."),
    ] = None,
    bad: Annotated[str, typer.Option(metavar="REV", help="End here.")] = "HEAD",
    variant: Annotated[
        str, typer.Option(metavar="NAME", help="The variant whose code and claims are meant.")
    ] = "found",
    root: Root = HERE,
    meter: Meter = None,
    timeout: Annotated[float | None, timeout_option("Stop measuring a commit after this time.")] = None,
    sandbox: Sandbox = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Find the commits that introduced, fixed and brought back what a ticket claims."""
    from finding_tickets.history.bisect import BisectState
    from finding_tickets.history.bisect import bisect as run
    from finding_tickets.measure.isolation import Isolation
    from finding_tickets.report.history import BISECT_HEADER, bisect_item, bisect_row
    from finding_tickets.verify.verify import with_meter

    register = load(root)
    document = register.find(ticket)
    for problem in register.problems_of(document):
        if problem.level is Level.ERROR:
            raise BadDataError(problem.message, file=problem.file, line=problem.line, hint=problem.hint)
    settings = settings_of(register, meter, timeout, record=False)
    with Isolation(at_once=False, sandbox=sandbox) as isolation:
        done = run(
            document,
            isolation,
            with_meter(isolation, settings),
            variant=variant,
            good=good,
            bad=bad,
            tell=say,
        )
    if output_format is Format.JSON:
        write_json("bisect", [bisect_item(done)])
    else:
        write_table(BISECT_HEADER, map(bisect_row, done.steps))
    say(f"{counted(done.commits, 'commit')}, {done.measured} measured now")
    for step in done.steps:
        if step.suspects:
            before = counted(len(step.suspects), "skipped commit")
            say(f"{step.turn} by {step.commit.id[:10]}, or by {before} before it")
    for gap in done.gaps:
        say(gap)
    # Inconclusive where nothing is known of the newest commit, or of any.
    last = done.steps[-1].state if done.steps else BisectState.SKIPPED
    return ExitCode.INCONCLUSIVE if last is BisectState.SKIPPED else ExitCode.OK
