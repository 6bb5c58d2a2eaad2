"""The gate: ``check`` trusts nothing that a branch says of itself, ``audit`` nothing that a fix does."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from finding_tickets.cli.options import (
    HERE,
    MEASURING,
    Measuring,
    OptionalIds,
    OutputFormat,
    Root,
    Seed,
    find_each,
    flag,
    format_option,
    option,
    words_of,
)
from finding_tickets.cli.output import Format, say, say_errors, style, write, write_annotations, write_json
from finding_tickets.cli.output_file import add_to_summary
from finding_tickets.cli.verify import measurable
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.gate import audit as auditing
from finding_tickets.gate.branch import BUDGET, bases_of, branch_tickets
from finding_tickets.gate.check import exit_code, guarded_changes, judge, unreadable_files
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import load
from finding_tickets.report.gate import (
    audit_item,
    audit_lines,
    gate_item,
    gate_lines,
    gate_page,
    problem_line,
)
from finding_tickets.report.text import counted, fields_of
from finding_tickets.verify.plan import verifier_of
from finding_tickets.verify.verify import draw_seed

CONFIGURATION = "configuration"
CheckFormat = StrEnum("CheckFormat", ["TEXT", "JSON", "MARKDOWN", "GITHUB"])


def check(
    base: Annotated[str, option("REV", "What the branch is to be merged into, such as origin/main.")],
    root: Root = HERE,
    accept: Annotated[
        list[str] | None,
        option("ID", "Accept the changes to a ticket, or to the configuration (repeatable)."),
    ] = None,
    how: Measuring = MEASURING,
    summary: Annotated[Path | None, option("FILE", "Add the outcome as Markdown to a file as well.")] = None,
    seed: Seed = None,
    output_format: Annotated[
        CheckFormat, format_option(help="How the outcome is printed.")
    ] = CheckFormat.TEXT,
) -> ExitCode:
    """Measure again what a branch changes, as a gate."""
    head = load(root)
    then = bases_of(head.root, base, Path.cwd() if root == HERE else head.root)
    named = accept or []
    found = branch_tickets(then, head, named)
    registers = [head, *(each.register for each in then if each.register)]
    budgets = {each.name for register in registers for each in register.config.budgets}
    # A misspelt ID would silently accept nothing.
    acceptable = {CONFIGURATION, *(pair.id for pair in found), *(f"{BUDGET}{name}" for name in budgets)}
    known = {name.casefold() for name in acceptable}
    for name in named:
        if name.casefold() not in known:
            is_budget = name.casefold().startswith(BUDGET)
            hint = "tickets budget names them" if is_budget else "tickets list shows them all"
            raise UsageError(f"--accept {name}: no such {'budget' if is_budget else 'ticket'}", hint=hint)
    seed = draw_seed() if seed is None else seed
    settings = how.settings(head, seed=seed)
    # What runs as it is draws its own numbers.
    drawn = (pair for pair in found if not (pair.document.remediation and pair.document.remediation.run))
    if any(pair.why for pair in drawn):
        say(f"measuring with the workloads' seeds, and with seed {seed} drawn for this run")
    with Isolation(at_once=False) as isolation:
        judged = judge(found, named, head, isolation, settings, say)
        spent: tuple[Problem, ...] = ()
        if budgets:
            # Most registers have none.
            from finding_tickets.gate.budgets import check_budgets

            before = then[0].register.config.budgets if then[0].register else ()
            accepted = {name.casefold() for name in named}
            exceeded = check_budgets(before, head.config.budgets, then[0].root, accepted, isolation, settings)
            spent = tuple(exceeded)
    others = [*guarded_changes(then, head, accepted=CONFIGURATION in named), *unreadable_files(then, head)]
    # These are no ticket's, so that each needs its place.
    beside = (*others, *spent)
    problems = [*beside, *(problem for each in judged for problem in each.problems)]
    is_page = summary or output_format is CheckFormat.MARKDOWN
    page = gate_page(base, judged, others, spent) if is_page else ""
    if output_format is CheckFormat.JSON:
        fields = ("file", "line", "level", "rule", "message", "hint")
        placed = [fields_of(each, *fields) for each in beside]
        write_json("check", map(gate_item, judged), seed=seed, problems=placed)
        for problem in beside:
            say(str(problem))
    elif output_format is CheckFormat.MARKDOWN:
        write(page)
    elif output_format is CheckFormat.GITHUB:
        write_annotations(problems)
    elif problems or judged:
        parts = [[*gate_lines(each, style)] for each in judged]
        parts.append([f"{each.file}: {problem_line(each, style)}" for each in others])
        parts.append([f"{each.file}:{each.line}: {problem_line(each, style)}" for each in spent])
        write("\n\n".join("\n".join(lines) for lines in parts if lines))
    # The summary is for people, whatever format a machine reads.
    if summary:
        add_to_summary(summary, page)
    failed = sum(exit_code(each.problems) is not ExitCode.OK for each in judged)
    said = f"{len(judged)} of {counted(len(found), 'document')} looked at again, {failed} failed the gate"
    if budgets:
        errors = sum(problem.level is Level.ERROR for problem in spent)
        said += f"; {counted(len(budgets), 'budget')} measured, {counted(errors, 'error')}"
    say(said)
    return exit_code(problems)


def audit(
    ids: OptionalIds = None,
    everything: Annotated[bool, flag("--all", "Every document that has a verifier.")] = False,
    cheat: Annotated[
        list[str] | None,
        option("NAME", "Try this cheat alone (repeatable)."),
    ] = None,
    root: Root = HERE,
    how: Measuring = MEASURING,
    seed: Seed = None,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Try fixes that cheat: does the verifier catch them?"""
    if bool(ids) is everything:
        raise UsageError("name the tickets to audit, or say --all", hint="one of the two")
    # A misspelt name would try nothing, and so find nothing wrong.
    named = words_of("cheat", cheat, {each.id: () for each in auditing.CHEATS})
    cheats = tuple(each for each in auditing.CHEATS if not cheat or each.id in named)
    with Isolation() as isolation:
        register = load(root)
        chosen, code = find_each(register.find, ids or ())
        if everything:
            chosen = [one for one in register.documents if verifier_of(one, register.root)]
            say(f"{len(chosen)} of {len(register.documents)} documents with a verifier")
        sound, reading = measurable(register, chosen)
        seed = draw_seed() if seed is None else seed
        settings = how.settings(register, record=False, seed=seed)
        done: list[auditing.Audited] = []
        codes = [code, reading]
        if sound:
            names = ", ".join(each.id.value for each in sound)
            say(f"trying {len(cheats)} cheats on {names} with seed {seed}")
        for number, audited in enumerate(auditing.audit(sound, isolation, settings, cheats), 1):
            fates = {one.fate for one in audited.tried}
            codes += [say_errors([audited.error])]
            codes += [ExitCode.GATE_FAILED] if auditing.Fate.MISSED in fates else []
            # A cheat that was not tried may be one that nothing catches.
            codes += [ExitCode.INCONCLUSIVE] if audited.reason or auditing.Fate.UNTRIED in fates else []
            say(f"[{number}/{len(sound)}] {audited.document.id.value}")
            done.append(audited)
    # They come as they end; people look for them in the order in which they named them.
    done.sort(key=lambda audited: sound.index(audited.document))
    shown = [audited for audited in done if not audited.error]
    if output_format is Format.JSON:
        write_json("audit", map(audit_item, shown), seed=seed)
    elif shown:
        write("\n\n".join("\n".join(audit_lines(audited, style)) for audited in shown))
    return ExitCode.worst(*codes)
