"""``tickets probe``: what a script, a module, a function or a test costs, by source line."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from finding_tickets.cli.options import (
    DRAFTING,
    HERE,
    MEASURING,
    Drafting,
    Measuring,
    OutputFormat,
    Root,
    option,
)
from finding_tickets.cli.output import Format, say, style, used_width, write, write_json
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.ground.git import commit_containing
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.config import read_config, repository_of
from finding_tickets.report.probe import ProbedFinding, doubts, probe_item, probe_lines, rows_of, site_of
from finding_tickets.verify.probing import PRELOAD, Probed, ProbeRequest
from finding_tickets.verify.probing import probe as run

# What becomes of code for torch.compile.
Compiling = StrEnum("Compiling", ["EAGER", "REFUSE"])


def probe(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="script.py, module, module:function or test_x.py::test_y.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGUMENT...]", help="Arguments for the script, module or pytest."),
    ] = None,
    sweep: Annotated[list[str] | None, option("NAME=1,2,5", "Values to call the function with.")] = None,
    verifier: Annotated[Path | None, option("FILE", "Call it with what this verifier builds.")] = None,
    within: Annotated[
        str | None, option("FUNCTION", "Count inside calls of train.py:step or pkg.train:Trainer.step.")
    ] = None,
    after: Annotated[
        int | None, typer.Option(min=0, help="Calls of that function to set apart first: 1, unless given.")
    ] = None,
    drafting: Drafting = DRAFTING,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every line and metric.")] = False,
    devices: Annotated[int, typer.Option(min=1, help="How many devices the target may use.")] = 1,
    compiling: Annotated[
        Compiling,
        typer.Option("--compile", help="What becomes of code for torch.compile on a simulated device."),
    ] = Compiling.EAGER,
    root: Root = HERE,
    how: Measuring = MEASURING,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Run code; print the lines that wait, copy or allocate."""
    draft, given = drafting.draft, drafting.content()
    # Loading torch takes longer than looking around: it starts first.
    with Isolation(PRELOAD, sandbox=how.sandbox) as isolation:
        place = repository_of(root)
        config = read_config(place)
        wanted = ProbeRequest(
            target=target,
            root=place.resolve(),
            arguments=arguments or (),
            sweep=sweep or (),
            verifier=verifier,
            meter=how.meter or config.meter,
            devices=devices,
            compiling=compiling.value,
            within=within,
            after=after,
            operations=verbose,
            timeout=how.timeout or config.timeout,
            memory=config.memory,
        )
        probed = run(wanted, isolation)
    if isinstance(probed, str):
        say(f"{target}: not measured: {probed}")
        return ExitCode.INCONCLUSIVE
    if output_format is Format.TABLE:
        write("\n".join(probe_lines(probed, style, used_width(sys.stdout), verbose=verbose)))
    for doubt in doubts(probed, verbose=verbose):
        say(f"{target}: {doubt}")
    if (
        sys.stderr.isatty()
        and not (draft or probed.errors)
        and any(not row.is_light for row in rows_of(probed))
    ):
        say(f"next, a ticket about line 1: {_command(wanted, '--draft', '1')}")
    drafted = _write_draft(wanted, probed, draft, given) if draft else None
    if output_format is Format.JSON:
        write_json("probe", [probe_item(probed) | {"draft": drafted}])
    # Counts that are not the whole truth decide nothing.
    is_partial = probed.errors or probed.unknown or not probed.points
    return ExitCode.INCONCLUSIVE if is_partial else ExitCode.OK


def _command(wanted: ProbeRequest, *more: str) -> str:
    """The command line by which anybody measures the same again."""
    options = [*(["--within", wanted.within] if wanted.within else []), *more]
    options += [text for each in wanted.sweep for text in ("--sweep", each)]
    options += ["--verifier", wanted.verifier_path] if wanted.verifier_path else []
    options += ["--after", str(wanted.after)] if wanted.after is not None else []
    arguments = ["--", *wanted.arguments] if wanted.arguments else []
    return shlex.join(["tickets", "probe", wanted.target, *options, *arguments])


def _write_draft(wanted: ProbeRequest, probed: Probed, site: str, given: dict[str, Any]) -> dict[str, Any]:
    """Write the ticket about a site; its ID, its files and the revision of the code as found."""
    # Templates take a while to load, and only a draft is made of them.
    from finding_tickets.cli.new import TicketWriter

    if wanted.devices > 1 or wanted.after not in (None, 1):
        raise UsageError(
            "a ticket cannot say --devices or --after", hint="write a verifier: docs/verifiers.md"
        )
    writer = TicketWriter(wanted.root)
    root = writer.register.root
    files = sorted(set(probed.files) - {wanted.verifier_path})
    revision = commit_containing(root, files)
    finding = ProbedFinding(
        probed=probed,
        site=site_of(probed, site),
        root=root,
        templates=root / writer.register.config.templates,
        command=_command(wanted),
        run=shlex.join([wanted.path_of_target(probed.function), *wanted.arguments]),
        within=wanted.within_path or None,
        verifier=wanted.verifier_path,
        revision=revision,
    )
    ticket_id, written = writer.draft(finding, given)
    if revision:
        say(f"found is the code of commit {revision}: change the files of the work tree as you like")
    else:
        new = next((file for file in files if not commit_containing(root, [file])), "what ran")
        say(f"found is the work tree, for {new} is not committed: commit it, and write that commit in the")
        say(f"place of @worktree in {written[0]} before you change the code")
    return {"id": ticket_id, "files": written, "found": revision}
