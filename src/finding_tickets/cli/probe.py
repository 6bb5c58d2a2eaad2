"""``tickets probe``: what a script, a module, a function or a test costs, by source line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import Format, say, style, write, write_json
from finding_tickets.cli.verify import MeterName
from finding_tickets.errors import ExitCode
from finding_tickets.register.config import read_config
from finding_tickets.register.place import repository_of

if TYPE_CHECKING:
    from finding_tickets.verify.probing import Probed


def probe(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="script.py, module, module:function or test_x.py::test_y.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGUMENT...]", help="What a script, a module or pytest is given."),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=1,2,5", help="Call the function with each value (repeatable)."),
    ] = None,
    verifier: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Call the function with what this verifier builds.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="How many devices the target may use.")] = 1,
    root: Root = HERE,
    meter: Annotated[MeterName, typer.Option(help="What counts during a run.")] = MeterName.AUTO,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help="Stop the target after this time.")
    ] = None,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Run code under a meter and print the lines that wait, copy or allocate, heaviest first."""
    from finding_tickets.report.probe import as_json, doubts, lines
    from finding_tickets.verify.isolate import Isolation
    from finding_tickets.verify.probing import PRELOAD, Wanted
    from finding_tickets.verify.probing import probe as run

    # Loading torch takes longer than looking around: it starts first.
    with Isolation(PRELOAD) as isolation:
        place = repository_of(root)
        config = read_config(place)
        wanted = Wanted(
            target=target,
            root=place.resolve(),
            arguments=arguments or (),
            sweep=sweep or (),
            verifier=verifier,
            meter=meter,
            devices=devices,
            timeout=timeout or config.timeout,
            memory=config.memory,
        )
        probed = run(wanted, isolation)
    if isinstance(probed, str):
        say(f"{target}: not measured: {probed}")
        return ExitCode.INCONCLUSIVE
    if output_format is Format.JSON:
        write_json("probe", [as_json(probed)])
    else:
        write("\n".join(lines(probed, style)))
    for doubt in doubts(probed):
        say(f"{target}: {doubt}")
    return _code(probed)


def _code(probed: Probed) -> ExitCode:
    """Counts that are not the whole truth decide nothing."""
    return ExitCode.INCONCLUSIVE if probed.errors or probed.unknown or not probed.points else ExitCode.OK
