"""The application ``tickets``: its commands, and what every ending of one means."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from io import TextIOWrapper
from itertools import pairwise, takewhile
from typing import Annotated, Any, NamedTuple

import typer

from finding_tickets.cli.options import with_options
from finding_tickets.cli.output import say, say_error, write
from finding_tickets.errors import ExitCode, TicketsError, UsageError
from finding_tickets.ground import MINUS, __version__


class Command(NamedTuple):
    """A command: its module and function, the page that says more, and what it does in a sentence."""

    place: str
    page: str
    summary: str


# Places and summaries are text, so that neither the overview nor another command imports the module.
COMMANDS = {
    "init": Command(
        "init:init",
        "adopting.md",
        "Show the tickets that are there, and configure a register for them.",
    ),
    "list": Command(
        "list:list_tickets",
        "queries.md",
        "List documents with severity, status and verdict.",
    ),
    "show": Command(
        "show:show", "git.md", "Show documents with their verdict, laws and claims."
    ),
    "new": Command("new:new", "tickets.md", "Write a ticket under the next free ID."),
    "import": Command(
        "import_findings:import_results",
        "importing.md",
        "Write tickets for findings in a report or SARIF.",
    ),
    "set": Command(
        "edit:set_values", "editing.md", "Set metadata: severity=P3 assignee=me."
    ),
    "fix": Command(
        "fix:fix", "editing.md", "Measure the work tree as the fix; add its claims."
    ),
    "close": Command(
        "edit:close", "editing.md", "Close a ticket; as fixed only if it is verified."
    ),
    "tick": Command("edit:tick", "editing.md", "Tick items of a checklist."),
    "graph": Command(
        "list:graph", "queries.md", "Show how documents relate to one another."
    ),
    "probe": Command(
        "probe:probe",
        "probe.md",
        "Run code; print the lines that wait, copy or allocate.",
    ),
    "claim": Command(
        "claim:claim",
        "probe.md",
        "Measure whether a claim about a cost holds; write nothing.",
    ),
    "trace": Command(
        "probe:trace",
        "probe.md",
        "Read traces of a real GPU; print the lines that wait, and whether the simulation agrees.",
    ),
    "lint": Command(
        "lint:lint",
        "lint-rules.md",
        "Check structure, words, IDs, relations, code and claims.",
    ),
    "verify": Command(
        "verify:verify",
        "verifiers.md",
        "Measure tickets and compare with what they claim.",
    ),
    "budget": Command(
        "budget:budget",
        "budgets.md",
        "Measure what code costs, and compare it with what it may.",
    ),
    "budget init": Command(
        "budget:init",
        "budgets.md",
        "Measure code, and write a budget that allows the waits which are there.",
    ),
    "check": Command(
        "gate:check", "ci.md", "Measure what a branch affects, as a gate."
    ),
    "audit": Command(
        "gate:audit", "audit.md", "Try fixes that cheat: does the verifier catch them?"
    ),
    "report": Command(
        "report:report",
        "reports.md",
        "Report what was won, what to do next and what is refuted.",
    ),
}
# What to do instead of a command that older versions had, of an option, or of a value of one.
REMOVED = {
    "budget --format markdown": "use --format github, or tickets check --summary",
    "budget --format sarif": "use --format github or json",
    "budget --static": "an allowance that matches nothing is a warning of tickets budget",
    "budget --summary": "use tickets check --summary",
    "budget import": "write [[budget.allow]] with file, function, code, reason and owner",
    "budget init --limit": "use --max",
    "budget tighten": "run tickets budget and edit max and allow",
    "bisect": "use git bisect run, see docs/bisect.md",
    "board": "use tickets list --by disposition",
    "edit": "use your editor, then tickets lint",
    "graph --format dot": "use --format mermaid, or make it of nodes and edges of --format json",
    "history": "use tickets show ID --history; to find a commit, see docs/bisect.md",
    "trace --beside": "run tickets probe, and compare its lines with those of the trace",
    "trace --draft": "draft it from a run: tickets probe TARGET --draft SITE",
    "list --no-index": "delete the index: ~/.cache/finding-tickets/records",
    "relate": "write - ID (blocks): why below ## Related Findings, then run tickets lint",
    "report --format github": "use --summary, or --format sarif",
    "reopen": "use tickets set ID status=open",
    "verify --matrix": "run tickets verify in each environment of your CI's own matrix, see docs/ci.md",
    "report --format junit": "use pytest --tickets --junit-xml tickets.xml",
    "report --since": "compare tickets report --format csv of two checkouts",
}
# The commands that had an option for a sandbox.
SANDBOXED = ("audit", "budget", "check", "close", "fix", "probe", "verify")
REMOVED |= dict.fromkeys(
    [f"{name} --sandbox" for name in SANDBOXED],
    "run the command in a container, see docs/security.md",
)
EXIT_CODES = (
    "Exit codes: 0 fine, 1 a gate failed, 2 wrong usage, 3 inconclusive, 4 bad data, "
    "70 bug, 130 interrupt."
)
DEBUG = "TICKETS_DEBUG"
QUERIED = {"list", "graph", "lint", "verify", "report"}
# No option has a colon in its name, but what a query excludes looks like one: -status:open. So does its
# near miss -status=open, which the query names.
NEGATED = re.compile(r"^-(?=[a-z][a-z-]*(?::|(?<=[a-z]{2})[!<>=]))", re.IGNORECASE)


def main() -> None:
    """Run ``tickets`` with the arguments of this process and exit with the code it ends in."""
    # A title may have letters that the terminal's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Little of what a short command creates is garbage; searching it for cycles takes a sixth of its time.
    gc.disable()
    code = run(sys.argv[1:])
    # A terminal shows the ^C itself; a log would just end.
    if code == ExitCode.INTERRUPTED and not (
        sys.stdout.isatty() and sys.stderr.isatty()
    ):
        say("interrupted")
    gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; every failure becomes one message on stderr and a documented exit code."""
    words = list(arguments)
    try:
        # Only the command that is run is imported: most of the others need more than a list does.
        if " ".join(words[:2]) in COMMANDS:
            # A command of two words is one to those who look for it.
            words[:2] = [" ".join(words[:2])]
        wanted = [name for name in COMMANDS if words[:1] == [name]]
        check_removed(words)
        if not QUERIED.isdisjoint(wanted):
            words = [NEGATED.sub(MINUS, word) for word in words]
        is_overview = words in (["--help"], ["-h"], ["--version"])
        application(wanted or COMMANDS, load=not is_overview).main(
            words, prog_name="tickets"
        )
    except SystemExit as end:
        code = int(end.code or 0)
        # Python takes the options of a script without the --.
        if code == ExitCode.USAGE and words[:1] == ["probe"] and "--" not in words:
            say(
                "arguments of the target follow --: tickets probe train.py -- --steps 5"
            )
        return code
    except TicketsError as error:
        say_error(error)
        return error.exit_code
    except KeyboardInterrupt as stop:
        for why in stop.args:
            say(str(why))
        return ExitCode.INTERRUPTED
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        say(f"this is a bug in tickets {__version__}: {what}")
        say(f"please report it with the traceback that {DEBUG}=1 shows")
        return ExitCode.CRASHED
    return ExitCode.OK


def check_removed(words: Sequence[str]) -> None:
    """Raise UsageError with the replacement where a command line uses what older versions had."""
    # What follows -- is the target's own.
    parts = [
        part for word in takewhile("--".__ne__, words) for part in word.split("=", 1)
    ]
    command, options = parts[:1], parts[1:]
    for option in ("", *options, *map(" ".join, pairwise(options))):
        removed = " ".join(filter(None, [*command, option]))
        if removed in REMOVED:
            raise UsageError(f"tickets {removed} is gone; {REMOVED[removed]}")


def application(names: Iterable[str], *, load: bool = True) -> Any:
    """Return the application with the commands ``names``. Its ``main`` ends in SystemExit.

    Without ``load`` each has only its summary, which is enough for the overview.
    """
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog=EXIT_CODES,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_app_options)
    for name in names:
        place, _, summary = COMMANDS[name]
        module, _, function = place.partition(":")
        code = (
            getattr(import_module(f"{__package__}.{module}"), function)
            if load
            else lambda: None
        )
        app.command(name, short_help=summary)(with_options(code))
    return typer.main.get_command(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        write(f"tickets {__version__}")
        raise typer.Exit


def _app_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Finding tickets that are closed by measurement."""
