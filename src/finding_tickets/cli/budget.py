"""``tickets budget``: what code spends beside what it may."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finding_tickets.budget.judge import MEANINGS, JudgedBudget, exit_code, judge, judge_unrun
from finding_tickets.budget.spending import KnownSpending, Spending, Target, measure
from finding_tickets.cli.options import (
    HERE,
    DryRun,
    Meter,
    Root,
    Sandbox,
    Timeout,
    flag,
    format_option,
    option,
    today,
)
from finding_tickets.cli.output import say, style, used_width, write, write_json
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.register.config import Budget, Config, is_configured, read_config, repository_of
from finding_tickets.report.budget import budget_item, budget_lines, budget_page
from finding_tickets.report.text import counted

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem

USUAL = ("syncs", "implicit_syncs", "peak_bytes")
"""What a first budget limits: waits, copies that may wait, and memory."""
BudgetFormat = StrEnum("BudgetFormat", ["TABLE", "JSON", "GITHUB", "SARIF", "MARKDOWN"])
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Budgets; all by default.")]


def budget(
    names: Names = None,
    root: Root = HERE,
    meter: Meter = None,
    timeout: Timeout = None,
    sandbox: Sandbox = False,
    static: Annotated[bool, flag("--static", "Run nothing: check that each allowance counts.")] = False,
    verbose: Annotated[bool, flag("--verbose", "Print every line that spends.", "-v")] = False,
    summary: Annotated[Path | None, option("FILE", "Add the outcome as Markdown to a file as well.")] = None,
    output_format: Annotated[
        BudgetFormat, format_option(help="How the outcome is printed.")
    ] = BudgetFormat.TABLE,
) -> ExitCode:
    """Measure what code spends, beside what it may."""
    place = repository_of(root).resolve()
    config = read_config(place)
    chosen = chosen_budgets(config, names or ())
    if static:
        file, is_closed = is_configured(place) or "", closed_tickets(place)
        judged = [judge_unrun(each, place, file, is_closed, today()) for each in chosen]
    else:
        spendings = spend(chosen, place, config, meter, timeout, sandbox=sandbox)
        judged = [judge_here(each, spendings[each.name], place) for each in chosen]
    problems = [problem for each in judged for problem in each.problems]
    if output_format is BudgetFormat.JSON:
        write_json("budget", map(budget_item, judged))
    elif output_format is BudgetFormat.TABLE:
        width = used_width(sys.stdout)
        parts = ["\n".join(budget_lines(each, style, width, verbose=verbose)) for each in judged]
        write("\n\n".join(parts))
    else:
        _write_as(output_format, judged, problems)
    if summary:
        from finding_tickets.cli.output_file import add_to_summary

        add_to_summary(summary, budget_page(judged))
    code = exit_code(problems)
    failed = sum(exit_code(each.problems) is not ExitCode.OK for each in judged)
    say(
        f"{counted(len(judged), 'budget')}, {failed} not kept"
        if failed
        else f"{counted(len(judged), 'budget')} kept"
    )
    return code


def _write_as(output_format: BudgetFormat, judged: Sequence[JudgedBudget], problems: list[Problem]) -> None:
    """Print budgets for a service."""
    if output_format is BudgetFormat.MARKDOWN:
        write(budget_page(judged))
    elif output_format is BudgetFormat.SARIF:
        from finding_tickets.report.formats.sarif import problem_log

        rules = [{"id": name, "shortDescription": {"text": said}} for name, said in MEANINGS.items()]
        write(json.dumps(problem_log(problems, rules), indent=2, ensure_ascii=False))
    elif problems:
        from finding_tickets.report.formats.github import annotation

        write("\n".join(map(annotation, problems)))


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
    meter: Meter = None,
    timeout: Timeout = None,
    sandbox: Sandbox = False,
) -> ExitCode:
    """Measure code, and write a budget that allows what it spends."""
    from finding_tickets.budget.edit import add_budget, first_budget
    from finding_tickets.register.schema.budgets import parse_budgets
    from finding_tickets.verify.probing import values_of

    place = repository_of(root).resolve()
    config = read_config(place)
    table = {
        "run": " ".join(map(_quoted, [target, *(arguments or ())])),
        "sweep": values_of(sweep or ()),
        "within": within or "",
        "limits": dict.fromkeys(limit or USUAL, "0"),
    }
    if any(each.name == (name or table["run"]) for each in config.budgets):
        raise UsageError(f"there is a budget {name or table['run']}", hint="name another one with --name")
    try:
        (values,) = parse_budgets([table], "", "")
    except BadDataError as error:
        raise UsageError(error.message, hint=error.hint) from None
    draft = Budget(**{**values, "name": name or values["name"], "allow": ()})
    spending = spend([draft], place, config, meter, timeout, sandbox=sandbox)[draft.name]
    if why := spending.trouble or ", ".join(spending.unknown):
        say(f"{target}: no budget is written: {why}")
        return ExitCode.INCONCLUSIVE
    limits = tuple(draft.limits)
    made = first_budget(draft.name, draft.run, draft.sweep, draft.within, limits, spending, place)
    file, text = add_budget(place, made, dry_run=dry_run)
    write(text.strip())
    if dry_run:
        say("nothing was written (--dry-run)")
        return ExitCode.OK
    say(f"added to {file}; tickets budget checks it, tickets check --base main holds branches to it")
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
    from finding_tickets.register.schema.budgets import parse_budgets

    place = repository_of(root).resolve()
    table = {"name": name or file.stem, "run": run, "limits": dict.fromkeys(limit or ["syncs"], "0")}
    if any(each.name == table["name"] for each in read_config(place).budgets):
        raise UsageError(f"there is a budget {table['name']}", hint="name another one with --name")
    try:
        parse_budgets([table], "", "")
    except BadDataError as error:
        raise UsageError(error.message, hint=error.hint) from None
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
    meter: Meter = None,
    timeout: Timeout = None,
    sandbox: Sandbox = False,
) -> ExitCode:
    """Lower budgets to what is spent; remove what is gone."""
    from finding_tickets.budget.edit import tighten as lower

    place = repository_of(root).resolve()
    config = read_config(place)
    chosen = chosen_budgets(config, names or ())
    spendings = spend(chosen, place, config, meter, timeout, sandbox=sandbox)
    judged = [judge_here(each, spendings[each.name], place) for each in chosen]
    sound = [each for each in judged if not each.spending.trouble and not each.spending.unknown]
    for each in judged:
        if each not in sound:
            say(f"{each.budget.name}: left as it is: {'; '.join(p.message for p in each.problems)}")
    change = lower(place, sound, dry_run=dry_run)
    if change and (text := change.diff()):
        write(text.rstrip())
    else:
        say("nothing can be tighter")
    return ExitCode.OK if len(sound) == len(judged) else ExitCode.INCONCLUSIVE


def _quoted(word: str) -> str:
    """A word of a command; the braces of a variable need no quotes, for no shell reads them."""
    return word if re.fullmatch(r"[\w{}./=:,@%+-]+", word) else shlex.quote(word)


def chosen_budgets(config: Config, names: Sequence[str]) -> list[Budget]:
    """The budgets of these names, or all; ``UsageError`` where there is none."""
    if not config.budgets:
        raise UsageError("there is no budget", hint="tickets budget init train.py writes a first one")
    known = {each.name: each for each in config.budgets}
    for name in names:
        if name not in known:
            raise UsageError(f"{name}: no such budget", hint=f"there are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(config.budgets)


def spend(
    budgets: Sequence[Budget],
    root: Path,
    config: Config,
    meter: str | None,
    timeout: float | None,
    *,
    sandbox: bool,
) -> dict[str, Spending]:
    """What each budget's target spends, by name: as known, or measured now."""
    meter, known = meter or config.meter, KnownSpending(root)
    found: dict[str, Spending] = {}
    targets: dict[str, Target] = {}
    for each in budgets:
        target = Target(budget=each, root=root, config=config, meter=meter, timeout=timeout or config.timeout)
        spending = known.of(target)
        if spending is None:
            targets[each.name] = target
        else:
            found[each.name] = spending
    if targets:
        # Where all is known, no process starts.
        from finding_tickets.measure.processes.isolation import Isolation
        from finding_tickets.verify.probing import PRELOAD

        with Isolation(PRELOAD, sandbox=sandbox) as isolation:
            for name, spending in measure(targets, isolation):
                say(f"measured {name}")
                found[name] = spending
    return found


def judge_here(each: Budget, spending: Spending, root: Path) -> JudgedBudget:
    """A budget judged today, in this repository."""
    return judge(each, spending, root, is_configured(root) or "", closed_tickets(root), today())


def closed_tickets(root: Path) -> Callable[[str], bool | None]:
    """Tells of a ticket's ID whether it is closed; None for no such ticket. The register is read once."""
    known: dict[str, bool] | None = None

    def is_closed(ticket: str) -> bool | None:
        nonlocal known
        if known is None:
            from finding_tickets.model.vocabulary import Status
            from finding_tickets.register.disposition import status_of
            from finding_tickets.register.load import load

            known = {
                document.id.value.casefold(): status_of(document) in {Status.CLOSED, Status.FIXED}
                for document in load(root).documents
            }
        return known.get(ticket.casefold())

    return is_closed
