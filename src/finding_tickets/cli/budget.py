"""``tickets budget``: compare what code costs with what it may."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from finding_tickets.budget.first import add_budget, first_budget
from finding_tickets.budget.measure import Spending, measure
from finding_tickets.budget.rules import judge, problems
from finding_tickets.cli.options import (
    HERE,
    MEASURING,
    DryRun,
    Measuring,
    Root,
    format_option,
    option,
)
from finding_tickets.cli.output import (
    say,
    style,
    used_width,
    write,
    write_annotations,
    write_json,
)
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.gate.check import exit_code
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.budget_tables import parse_budgets
from finding_tickets.register.budgets import LOOPS, Budget
from finding_tickets.register.config import (
    CONFIG_FILE,
    Config,
    config_file_of,
    read_config,
    repository_of,
)
from finding_tickets.report.budget import budget_item, budget_lines
from finding_tickets.report.text import counted
from finding_tickets.verify.probing import PRELOAD, values_of
from finding_tickets.verify.verify import Settings

BudgetFormat = StrEnum("BudgetFormat", ["TABLE", "JSON", "GITHUB"])


def budget(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Budgets; all by default."),
    ] = None,
    root: Root = HERE,
    how: Measuring = MEASURING,
    output_format: Annotated[
        BudgetFormat, format_option(help="How the outcome is printed.")
    ] = BudgetFormat.TABLE,
) -> ExitCode:
    """Measure what code costs, and compare it with what it may."""
    place = repository_of(root).resolve()
    config, file = read_config(place), config_file_of(place) or CONFIG_FILE
    if not config.budgets:
        raise UsageError(
            "there is no budget", hint="tickets budget init train.py writes a first one"
        )
    known = {each.name: each for each in config.budgets}
    for name in names or ():
        if name not in known:
            raise UsageError(
                f"{name}: no such budget", hint=f"there are {', '.join(known)}"
            )
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    spendings = _spend(chosen, place, config, how)
    judged = [
        judge(each, spent, place) for each, spent in zip(chosen, spendings, strict=True)
    ]
    found = [problem for each in judged for problem in problems(each, file)]
    if output_format is BudgetFormat.JSON:
        write_json("budget", [budget_item(each, file) for each in judged])
    elif output_format is BudgetFormat.GITHUB:
        write_annotations(found)
    else:
        parts = [
            "\n".join(budget_lines(each, file, style, used_width(sys.stdout)))
            for each in judged
        ]
        write("\n\n".join(parts))
    return exit_code(found)


def init(
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
            metavar="[-- ARGUMENT...]", help="Arguments; {n} is of the sweep."
        ),
    ] = None,
    name: Annotated[
        str | None, option("NAME", "Of the budget; by default what runs.")
    ] = None,
    sweep: Annotated[
        list[str] | None, option("NAME=1,2,5", "Values to run it with.")
    ] = None,
    within: Annotated[
        str | None, option("FUNCTION", "Count each call of train.py:step.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        option("METRIC", "Limit this as well as syncs (repeatable).", "--max"),
    ] = None,
    dry_run: DryRun = False,
    root: Root = HERE,
    how: Measuring = MEASURING,
) -> ExitCode:
    """Measure code, and write a budget that allows the waits which are there."""
    place = repository_of(root).resolve()
    config = read_config(place)
    run = " ".join(_quote(word) for word in [target, *(arguments or ())])
    table = {
        "name": name or run,
        "run": run,
        "sweep": values_of(sweep or ()),
        "within": within or "",
        # A program sets itself up before its loop, a function or a test is all that there is.
        "only": "" if within or ":" in target else LOOPS,
        "max": dict.fromkeys(["syncs", *(limit or ())], 0),
    }
    try:
        (draft,) = parse_budgets([table], "", "")
    except BadDataError as error:
        raise UsageError(error.message, hint=error.hint) from None
    if any(each.name == draft.name for each in config.budgets):
        raise UsageError(
            f"there is a budget {draft.name}", hint="name another one with --name"
        )
    (spent,) = _spend([draft], place, config, how)
    judged = judge(draft, spent, place)
    if spent.trouble:
        say(f"{run}: no budget is written: {spent.trouble}")
        return ExitCode.INCONCLUSIVE
    file, text = add_budget(place, first_budget(judged, place), dry_run=dry_run)
    write(text.strip())
    say(
        "nothing was written (--dry-run)"
        if dry_run
        else f"added to {file}; tickets budget checks it"
    )
    return ExitCode.OK


def _quote(word: str) -> str:
    """Quote a word of a command; the braces of a variable need no quotes, for no shell reads them."""
    return word if re.fullmatch(r"[\w{}./=:,@%+-]+", word) else shlex.quote(word)


def _spend(
    budgets: Sequence[Budget], root: Path, config: Config, how: Measuring
) -> list[Spending]:
    """Measure what the targets of budgets cost."""
    settings = Settings(root=root, evidence=config.evidence, **how.limits(config))
    say(f"measuring {counted(len(budgets), 'budget')}")
    with Isolation(PRELOAD) as isolation:
        return measure(budgets, root, isolation, settings)
