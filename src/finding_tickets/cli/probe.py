"""``tickets probe`` and ``trace``: what code costs by source line, run or recorded."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from finding_tickets.cli.options import (
    DRAFTING,
    HERE,
    MEASURING,
    Drafting,
    Measuring,
    OutputFormat,
    Root,
    Timeout,
    flag,
    option,
    today,
)
from finding_tickets.cli.output import (
    Format,
    say,
    say_errors,
    style,
    used_width,
    write,
    write_json,
)
from finding_tickets.errors import BadDataError, ExitCode, UnreachableError, UsageError
from finding_tickets.ground.files import rewrite
from finding_tickets.ground.git import commit_containing
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.config import read_config, repository_of
from finding_tickets.report import probe as report
from finding_tickets.verify import probing

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.register.load import Register
    from finding_tickets.register.new import Draft
    from finding_tickets.report.templates import Attached

# Seconds that a trace may take where no time is given: replaying a large one takes long.
REPLAYING = 600.0
# What becomes of code for torch.compile.
Compiling = StrEnum("Compiling", ["EAGER", "REFUSE"])


def probe(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="script.py, module, module:function or test_x.py::test_y.",
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- ARGUMENT...]",
            help="Arguments for the script, module or pytest.",
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None, option("NAME=1,2,5", "Values to call the function with.")
    ] = None,
    verifier: Annotated[
        Path | None, option("FILE", "Call it with what this verifier builds.")
    ] = None,
    within: Annotated[
        str | None,
        option(
            "FUNCTION", "Count inside calls of train.py:step or pkg.train:Trainer.step."
        ),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(
            min=0, help="Calls of that function to set apart first: 1, unless given."
        ),
    ] = None,
    drafting: Drafting = DRAFTING,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print every line and metric.")
    ] = False,
    devices: Annotated[
        int, typer.Option(min=1, help="How many devices the target may use.")
    ] = 1,
    compiling: Annotated[
        Compiling,
        typer.Option(
            "--compile",
            help="What becomes of code for torch.compile on a simulated device.",
        ),
    ] = Compiling.EAGER,
    root: Root = HERE,
    how: Measuring = MEASURING,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Run code; print the lines that wait, copy or allocate."""
    drafting.check()
    place = repository_of(root)
    if drafting.into:
        _check_unmeasured(place, drafting.into)
    wanted = probing.ProbeRequest(
        target=target,
        root=place.resolve(),
        arguments=tuple(arguments or ()),
        sweep=tuple(sweep or ()),
        verifier=verifier,
        devices=devices,
        compiling=compiling.value,
        within=within,
        after=after,
        operations=verbose,
        **how.limits(read_config(place)),
    )
    is_drafted = bool(drafting.draft or drafting.into)
    probed = _measure(wanted, again=not is_drafted)
    if output_format is Format.TABLE:
        write(
            "\n".join(
                report.probe_lines(
                    probed, style, used_width(sys.stdout), verbose=verbose
                )
            )
        )
    for doubt in report.doubts(probed, verbose=verbose):
        say(f"{target}: {doubt}")
    drafted = _draft_of_probe(wanted, probed, drafting) if is_drafted else None
    if output_format is Format.JSON:
        write_json("probe", [report.probe_item(probed) | {"draft": drafted}])
    if probed.is_interrupted:
        return ExitCode.INTERRUPTED
    # Counts that are not the whole truth decide nothing.
    is_partial = (
        probed.errors
        or probed.unknown
        or not probed.points
        or report.is_off_device(probed)
    )
    return ExitCode.INCONCLUSIVE if is_partial else ExitCode.OK


def _check_unmeasured(root: Path, ticket: str) -> None:
    """Raise UsageError if a ticket says already how it is measured."""
    from finding_tickets.register.load import load

    register = load(root)
    entry = register.find_entry(ticket)
    if entry.code or register.has_verifier(entry):
        message = f"{entry.id} says already how it is measured"
        raise UsageError(message, file=entry.path, hint=f"tickets verify {entry.id}")


def _measure(wanted: probing.ProbeRequest, *, again: bool) -> probing.Probed:
    """Measure a target; unless ``again``, what was measured of it before counts while its files stay."""
    known = None if again else probing.kept_probe(wanted)
    if known:
        say(
            f"{wanted.target} was measured before, and its files are the same: it is not run again"
        )
        return known
    with Isolation(probing.PRELOAD) as isolation:
        if sys.stderr.isatty():
            say(f"running {wanted.target}")
        return probing.probe(wanted, isolation)


def _draft_of_probe(
    wanted: probing.ProbeRequest, probed: probing.Probed, drafting: Drafting
) -> dict[str, Any]:
    """Write the ticket about a site, or how to measure one; its ID, its files and the revision as found."""
    # Templates take a while to load, and only a draft is made of them.
    from finding_tickets.cli.new import TicketWriter

    if wanted.devices > 1 or wanted.after not in (None, 1):
        raise UsageError(
            "a ticket cannot say --devices or --after",
            hint="write a verifier: docs/verifiers.md",
        )
    writer = TicketWriter(wanted.root)
    root = writer.register.root
    files = sorted(set(probed.files) - {wanted.verifier_path, *probed.data})
    revision = commit_containing(root, files)
    given, named = (
        drafting.content(writer.register.config.vocabulary),
        drafting.draft or "",
    )
    ticket = writer.register.find(drafting.into) if drafting.into else None
    if ticket and not named:
        named = str(report.row_at(root, probed, ticket).number)
    if named in probed.metrics:
        report.check_finished(probed)
        draft = report.draft_of_metric(
            wanted, probed, named, writer.register, given, revision
        )
    else:
        draft = _draft_of_site(wanted, probed, named, writer.register, given, revision)
    if ticket:
        ticket_id, written = ticket.id.value, [ticket.path]
        _add_run(ticket, writer.register, draft[1])
    else:
        ticket_id, written = writer.add(*draft)
        say(f"created {ticket_id}: {', '.join(written)}")
    if revision:
        say(f"found is pinned to commit {revision}: you can edit your files now")
    else:
        new = next(
            (file for file in files if not commit_containing(root, [file])), "what ran"
        )
        say(
            f"found is the work tree, for {new} is not committed: commit it, and write that commit in the"
        )
        say(f"place of @worktree in {written[0]} before you change the code")
    return {"id": ticket_id, "files": written, "found": revision}


def _add_run(ticket: Document, register: Register, attached: Attached) -> None:
    """Write down how a ticket is measured, and say what it is about now."""
    # Documents and templates take a while to load.
    from finding_tickets.register.actions import add_remediation, edit_of
    from finding_tickets.register.entries import entry_of
    from finding_tickets.report.templates import TO_MEASURE, render

    answered = [item.text for item in ticket.checklist if item.text == TO_MEASURE]
    context, config = {**attached.context, "checklist": answered}, register.config
    yaml = render("probed.yaml.j2", context, register.root / config.templates).rstrip()
    rewrite(
        register.root,
        [edit_of(entry_of(ticket), config.vocabulary, today(), add_remediation(yaml))],
    )
    place = attached.context["place"]
    say(
        f"{ticket.id.value}: {ticket.path} says now what to run{f', and is about {place}' if place else ''}"
    )


def _draft_of_site(
    wanted: probing.ProbeRequest,
    probed: probing.Probed,
    named: str,
    register: Register,
    given: dict[str, Any],
    revision: str | None,
) -> tuple[Draft, Attached]:
    """Return the ticket about a line.

    Raises:
        UsageError: A ticket is about its statement already.
    """
    root, site = register.root, report.site_of(probed, named)
    by_own_lines = None
    if not wanted.verifier:
        place = report.place_of(root, site)
        key = (
            place.file,
            place.function,
            place.code,
            report.occurrence_of(root, place) or 0,
        )
        if other := register.places.get(key):
            message = f"{other.id} is about this statement already, {place}"
            raise UsageError(
                message,
                file=other.path,
                line=other.section_line,
                hint=f"tickets show {other.id}",
            )
        if report.is_reached(root, probed, place):
            # Count what installed packages do at the line that led there.
            by_own_lines = _measure(replace(wanted, own_lines=True), again=False)
    return report.draft_of_site(
        wanted, probed, site, register, given, revision, by_own_lines
    )


def trace(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Traces, as JSON or gzip: one for each rank."
        ),
    ],
    only_lines: Annotated[
        bool, flag("--lines", "Replay nothing on the simulation.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print every line and sum.")
    ] = False,
    root: Root = HERE,
    timeout: Timeout = None,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Read traces of a real GPU; print the lines that wait, and whether the simulation agrees."""
    with Isolation(probing.PRELOAD_FOR_TRACES) as isolation:
        place = repository_of(root)
        config = read_config(place)
        answers = list(
            probing.read_traces(
                files,
                place.resolve(),
                isolation,
                only_lines=only_lines,
                timeout=timeout or max(config.timeout, REPLAYING),
                memory=config.memory,
            )
        )
    read = [each for each in answers if not isinstance(each, BadDataError)]
    if output_format is Format.JSON:
        write_json("trace", map(report.trace_item, read))
    elif read:
        width = used_width(sys.stdout)
        blocks = [
            "\n".join(report.trace_lines(each, style, width, verbose=verbose))
            for each in read
        ]
        write("\n\n".join(blocks))
    undecided = [
        UnreachableError(each.undecided, file=each.probed.target)
        for each in read
        if each.undecided
    ]
    return say_errors(
        [*(each for each in answers if isinstance(each, BadDataError)), *undecided]
    )
