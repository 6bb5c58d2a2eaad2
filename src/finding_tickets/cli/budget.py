"""``tickets budget``: what code spends, compared with what it may."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from finding_tickets.budget.judge import RULES, JudgedBudget, exit_code, judge
from finding_tickets.budget.spending import Spending, Target, known_spending, measure
from finding_tickets.cli.options import (
    HERE,
    MEASURING,
    DryRun,
    Measuring,
    Root,
    flag,
    format_option,
    option,
    today,
)
from finding_tickets.cli.output import say, style, used_width, write, write_annotations, write_json, write_log
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.register.budgets import Budget
from finding_tickets.register.config import Config, config_file_of, read_config, repository_of
from finding_tickets.register.disposition import closed_tickets
from finding_tickets.report.budget import budget_item, budget_lines, budget_page
from finding_tickets.report.text import counted

USUAL = ("syncs", "implicit_syncs", "peak_bytes")
"""What a first budget limits: waits, copies that may wait, and memory."""
BudgetFormat = StrEnum("BudgetFormat", ["TABLE", "JSON", "GITHUB", "SARIF", "MARKDOWN"])
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Budgets; all by default.")]


def budget(
    names: Names = None,
    root: Root = HERE,
    how: Measuring = MEASURING,
    static: Annotated[bool, flag("--static", "Run nothing: check that each allowance counts.")] = False,
    verbose: Annotated[bool, flag("--verbose", "Print every line that spends.", "-v")] = False,
    summary: Annotated[Path | None, option("FILE", "Add the outcome as Markdown to a file as well.")] = None,
    output_format: Annotated[
        BudgetFormat, format_option(help="How the outcome is printed.")
    ] = BudgetFormat.TABLE,
) -> ExitCode:
    """Measure what code spends, beside what it may."""
    judged = _judged(names, root, how, static=static)
    problems = [problem for each in judged for problem in each.problems]
    if output_format is BudgetFormat.JSON:
        write_json("budget", map(budget_item, judged))
    elif output_format is BudgetFormat.TABLE:
        width = used_width(sys.stdout)
        parts = ["\n".join(budget_lines(each, style, width, verbose=verbose)) for each in judged]
        write("\n\n".join(parts))
    elif output_format is BudgetFormat.MARKDOWN:
        write(budget_page(judged))
    elif output_format is BudgetFormat.SARIF:
        from finding_tickets.report.formats.sarif import problem_log

        rules = [{"id": name, "shortDescription": {"text": said}} for name, (_, said) in RULES.items()]
        write_log(problem_log(problems, rules))
    else:
        write_annotations(problems)
    if summary:
        from finding_tickets.cli.output_file import add_to_summary

        add_to_summary(summary, budget_page(judged))
    failed = sum(exit_code(each.problems) is not ExitCode.OK for each in judged)
    say(f"{counted(len(judged), 'budget')}{f', {failed} not kept' if failed else ' kept'}")
    return exit_code(problems)


def init(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="script.py, module, module:function or test_x.py::test_y.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="Arguments; {n} is of the sweep.")
    ] = None,
    name: Annotated[str | None, option("NAME", "Of the budget; by default what runs.")] = None,
    sweep: Annotated[list[str] | None, option("NAME=1,2,5", "Values to run it with.")] = None,
    within: Annotated[str | None, option("FUNCTION", "Count inside calls of train.py:step.")] = None,
    limit: Annotated[
        list[str] | None, option("METRIC", f"Limit this (repeatable); by default {', '.join(USUAL)}.")
    ] = None,
    dry_run: DryRun = False,
    root: Root = HERE,
    how: Measuring = MEASURING,
) -> ExitCode:
    """Measure code, and write a budget that allows what it spends."""
    from finding_tickets.budget.edit import add_budget, first_budget
    from finding_tickets.verify.probing import values_of

    place = repository_of(root).resolve()
    config = read_config(place)
    draft = _new_budget(
        config,
        {
            "name": name or "",
            "run": " ".join(map(_quoted, [target, *(arguments or ())])),
            "sweep": values_of(sweep or ()),
            "within": within or "",
            "limits": dict.fromkeys(limit or USUAL, "0"),
        },
    )
    spending = _spend([draft], place, config, how)[draft.name]
    if why := spending.trouble or ", ".join(spending.unknown):
        say(f"{target}: no budget is written: {why}")
        return ExitCode.INCONCLUSIVE
    file, text = add_budget(place, first_budget(draft, spending, place), dry_run=dry_run)
    write(text.strip())
    after = f"added to {file}; tickets budget checks it, tickets check --base main holds branches to it"
    say("nothing was written (--dry-run)" if dry_run else after)
    return ExitCode.OK


def import_allowlist(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An allowlist in YAML.")],
    run: Annotated[str, option("COMMAND", "What the budget measures, as 'train.py --steps 5'.")],
    name: Annotated[str | None, option("NAME", "Of the budget; by default that of the file.")] = None,
    limit: Annotated[
        list[str] | None, option("METRIC", "Limit this to 0 (repeatable); by default syncs.")
    ] = None,
    dry_run: DryRun = False,
    root: Root = HERE,
) -> ExitCode:
    """Write a budget with what an allowlist in YAML allows."""
    from finding_tickets.budget.allowlist import joined_allowances, read_allowlist
    from finding_tickets.budget.edit import add_budget

    place = repository_of(root).resolve()
    table = {"name": name or file.stem, "run": run, "limits": dict.fromkeys(limit or ["syncs"], "0")}
    _new_budget(read_config(place), table)
    entries, problems = read_allowlist(file, place)
    for each in problems:
        say(f"{each.file}:{each.line}: {each.said}")
    written, text = add_budget(place, table | {"allow": joined_allowances(entries)}, dry_run=dry_run)
    write(text.strip())
    said = "nothing was written (--dry-run)" if dry_run else f"added to {written}"
    say(f"{file.name}: {counted(len(entries), 'allowance')}; {said}")
    return ExitCode.BAD_DATA if problems else ExitCode.OK


def tighten(
    names: Names = None,
    dry_run: DryRun = False,
    root: Root = HERE,
    how: Measuring = MEASURING,
) -> ExitCode:
    """Lower budgets to what is spent; remove what is gone."""
    from finding_tickets.budget.edit import tighten as lower

    judged = _judged(names, root, how)
    sound = []
    for each in judged:
        if each.spending.trouble or each.spending.unknown:
            say(f"{each.budget.name}: left as it is: {'; '.join(p.message for p in each.problems)}")
        else:
            sound.append(each)
    change = lower(judged[0].root, sound, dry_run=dry_run)
    if change and (text := change.diff()):
        write(text.rstrip())
    else:
        say("nothing can be tighter")
    return ExitCode.OK if len(sound) == len(judged) else ExitCode.INCONCLUSIVE


def _quoted(word: str) -> str:
    """A word of a command; the braces of a variable need no quotes, for no shell reads them."""
    return word if re.fullmatch(r"[\w{}./=:,@%+-]+", word) else shlex.quote(word)


def _new_budget(config: Config, table: dict[str, Any]) -> Budget:
    """The budget of a table; ``UsageError`` where it is wrong, or there is one of its name."""
    from finding_tickets.register.config_table import parse_budgets

    try:
        (made,) = parse_budgets([table], "", "")
    except BadDataError as error:
        raise UsageError(error.message, hint=error.hint) from None
    if any(each.name == made.name for each in config.budgets):
        raise UsageError(f"there is a budget {made.name}", hint="name another one with --name")
    return made


def _judged(
    names: Sequence[str] | None, root: Path, how: Measuring, *, static: bool = False
) -> list[JudgedBudget]:
    """The budgets of these names, or all, judged by what their targets spend; ``static`` runs nothing."""
    place = repository_of(root).resolve()
    config = read_config(place)
    if not config.budgets:
        raise UsageError("there is no budget", hint="tickets budget init train.py writes a first one")
    known = {each.name: each for each in config.budgets}
    for name in names or ():
        if name not in known:
            raise UsageError(f"{name}: no such budget", hint=f"there are {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    spent = {} if static else _spend(chosen, place, config, how)
    file, is_closed = config_file_of(place) or "", closed_tickets(place)
    return [judge(each, spent.get(each.name), place, file, is_closed, today()) for each in chosen]


def _spend(budgets: Sequence[Budget], root: Path, config: Config, how: Measuring) -> dict[str, Spending]:
    """What each budget's target spends, by name: as known, or measured now."""
    meter, timeout = how.meter or config.meter, how.timeout or config.timeout
    targets = {
        each.name: Target(budget=each, root=root, config=config, meter=meter, timeout=timeout)
        for each in budgets
    }
    spent = known_spending(targets, root)
    unknown = {name: target for name, target in targets.items() if name not in spent}
    if unknown:
        # Where all is known, no process starts.
        from finding_tickets.measure.processes.isolation import Isolation
        from finding_tickets.verify.probing import PRELOAD

        with Isolation(PRELOAD, sandbox=how.sandbox) as isolation:
            for name, spending in measure(unknown, isolation):
                say(f"measured {name}")
                spent[name] = spending
    return spent
