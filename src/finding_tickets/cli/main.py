"""The application ``tickets``: its commands, and what every ending of one means."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from finding_tickets.cli.output import say, say_error, write
from finding_tickets.errors import ExitCode, TicketsError
from finding_tickets.ground.version import __version__

# The module and the function of each command, so that running one imports none of the others.
COMMANDS = {
    "init": "init:init",
    "list": "list:list_tickets",
    "show": "show:show",
    "new": "new:new",
    "import": "import_sarif:import_results",
    "set": "edit:set_values",
    "close": "edit:close",
    "reopen": "edit:reopen",
    "relate": "edit:relate",
    "tick": "edit:tick",
    "graph": "graph:graph",
    "probe": "probe:probe",
    "lint": "lint:lint",
    "verify": "verify:verify",
    "check": "check:check",
    "audit": "audit:audit",
    "bisect": "bisect:bisect",
    "history": "history:history",
    "report": "report:report",
}
EXIT_CODES = (
    "Exit codes: 0 fine, 1 a gate failed, 2 wrong usage, 3 inconclusive, 4 bad data, 70 bug, 130 interrupt."
)
VERSION = f"tickets {__version__}"
DEBUG = "TICKETS_DEBUG"
QUERIED = {"list", "graph", "lint", "verify", "report"}
# No option has a colon in its name, but what a query excludes looks like one: -status:open.
NEGATED = re.compile(r"^-(?=[a-z][a-z-]*:)", re.IGNORECASE)


def main() -> None:
    """Run ``tickets`` with the arguments of this process and exit with the code it ends in."""
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
        from finding_tickets.cli.help_page import help_page

        write(help_page(COMMANDS, EXIT_CODES) if "--help" in arguments else VERSION)
        return ExitCode.OK
    try:
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
        help="Finding tickets that are closed by measurement.",
        epilog=EXIT_CODES,
    )
    app.callback()(_app_options)
    for name in names:
        module, _, function = COMMANDS[name].partition(":")
        app.command(name)(getattr(import_module(f"finding_tickets.cli.{module}"), function))
    return typer.main.get_command(app)


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
