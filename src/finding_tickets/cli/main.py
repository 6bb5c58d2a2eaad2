"""The application ``tickets``: its commands, and what every ending of one means."""

from __future__ import annotations

import gc
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, NamedTuple

import typer

from finding_tickets.cli.output import say, say_error, write
from finding_tickets.errors import ExitCode, TicketsError
from finding_tickets.ground.version import __version__


class Command(NamedTuple):
    """A command: its module and function, what it does in a sentence, and the page that says more."""

    place: str
    summary: str
    page: str


# Places and summaries are text, so that neither the overview nor another command imports the module.
COMMANDS = {
    "init": Command(
        "init:init",
        "Configure a register for the tickets that are there, and write a first verifier.",
        "adopting.md",
    ),
    "list": Command("list:list_tickets", "List documents with severity, status and verdict.", "queries.md"),
    "show": Command("show:show", "Show documents with their verdict, laws and claims.", "git.md"),
    "new": Command("new:new", "Write a ticket under the next free ID.", "tickets.md"),
    "import": Command(
        "import_sarif:import_results",
        "Write a ticket for each finding of another tool, in SARIF, that has none yet.",
        "importing.md",
    ),
    "set": Command("edit:set_values", "Set metadata: severity=P3 assignee=me.", "editing.md"),
    "close": Command("edit:close", "Close a ticket; as fixed only if it is verified.", "editing.md"),
    "reopen": Command("edit:reopen", "Open a closed ticket again.", "editing.md"),
    "relate": Command("edit:relate", "Relate two tickets, in both of them.", "editing.md"),
    "tick": Command("edit:tick", "Tick items of a checklist.", "editing.md"),
    "graph": Command("graph:graph", "Show how documents relate to one another.", "queries.md"),
    "probe": Command(
        "probe:probe",
        "Run code under a meter and print the lines that wait, copy or allocate, heaviest first.",
        "probe.md",
    ),
    "lint": Command(
        "lint:lint",
        "Check structure, words, IDs, relations, decisions, cited code and claims.",
        "lint-rules.md",
    ),
    "verify": Command(
        "verify:verify", "Measure tickets and compare the laws with what they claim.", "verifiers.md"
    ),
    "check": Command(
        "check:check", "Measure again what a branch changes and compare with its base.", "ci.md"
    ),
    "audit": Command(
        "audit:audit", "Try fixes that cheat, and see which of them the verifier catches.", "audit.md"
    ),
    "bisect": Command(
        "history:bisect",
        "Find the commits that introduced, fixed and brought back what a ticket claims.",
        "bisect.md",
    ),
    "history": Command(
        "history:history",
        "Show verdict and law at every commit that changed the evidence, or measure every commit.",
        "history.md",
    ),
    "report": Command("report:report", "Report counts, laws, refuted claims and open work.", "reports.md"),
}
PURPOSE = "Finding tickets that are closed by measurement."
OPTIONS = {
    "--version": "Print the version.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}
EXIT_CODES = (
    "Exit codes: 0 fine, 1 a gate failed, 2 wrong usage, 3 inconclusive, 4 bad data, 70 bug, 130 interrupt."
)
VERSION = f"tickets {__version__}"
DEBUG = "TICKETS_DEBUG"
HELP_WIDTH = 80
QUERIED = {"list", "graph", "lint", "verify", "report"}
# No option has a colon in its name, but what a query excludes looks like one: -status:open.
NEGATED = re.compile(r"^-(?=[a-z][a-z-]*:)", re.IGNORECASE)


def main() -> None:
    """Run ``tickets`` with the arguments of this process and exit with the code it ends in."""
    # A title may have letters that the terminal's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Little of what a short command creates is garbage; searching it for cycles takes a sixth of its time.
    gc.disable()
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; every failure becomes one message on stderr and a documented exit code."""
    if list(arguments) in (["--help"], ["--version"]):
        write(help_page() if "--help" in arguments else VERSION)
        return ExitCode.OK
    try:
        # Only the command that is run is imported: most of the others need more than a list does.
        wanted = [name for name in COMMANDS if [name] == list(arguments[:1])]
        words = arguments if QUERIED.isdisjoint(wanted) else [NEGATED.sub("NOT ", each) for each in arguments]
        application(wanted or COMMANDS).main(list(words), prog_name="tickets")
    except SystemExit as end:
        return int(end.code or 0)
    except TicketsError as error:
        say_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        say(f"this is a bug in tickets {__version__}: {what}")
        say(f"please report it with the traceback that {DEBUG}=1 shows")
        return ExitCode.CRASHED
    return ExitCode.OK


def application(names: Iterable[str]) -> Any:
    """The command line of the commands ``names``; its ``main`` ends in SystemExit."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        result_callback=_exit_with,
        help=PURPOSE,
        epilog=EXIT_CODES,
    )
    app.callback()(_app_options)
    for name in names:
        module, _, function = COMMANDS[name].place.partition(":")
        app.command(name)(getattr(import_module(f"finding_tickets.cli.{module}"), function))
    return typer.main.get_command(app)


def help_page() -> str:
    """The overview ``tickets --help``, which takes no command's module to print."""

    def table(texts: Mapping[str, str]) -> str:
        width = max(map(len, texts))
        lines = []
        for name, text in texts.items():
            first, below = f"  {name.ljust(width)}  ", " " * (width + 4)
            lines.append(textwrap.fill(text, HELP_WIDTH, initial_indent=first, subsequent_indent=below))
        return "\n".join(lines)

    return "\n".join(
        [
            "Usage: tickets [OPTIONS] COMMAND [ARGS]...",
            f"\n  {PURPOSE}",
            f"\nOptions:\n{table(OPTIONS)}",
            f"\nCommands:\n{table({name: command.summary for name, command in COMMANDS.items()})}",
            f"\n{textwrap.fill(EXIT_CODES, HELP_WIDTH, initial_indent='  ', subsequent_indent='  ')}",
        ]
    )


def _exit_with(code: ExitCode | None, **_: object) -> None:
    raise typer.Exit(code or ExitCode.OK)


def _show_version(wanted: bool) -> None:
    if wanted:
        write(VERSION)
        raise typer.Exit


def _app_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Finding tickets that are closed by measurement."""
