"""The gate: ``check`` trusts nothing that a branch says of itself, ``audit`` nothing that a fix does."""

from __future__ import annotations

from dataclasses import replace
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
from finding_tickets.cli.output import (
    Format,
    say,
    say_errors,
    style,
    write,
    write_annotations,
    write_json,
)
from finding_tickets.cli.output_file import add_to_summary
from finding_tickets.cli.verify import measurable
from finding_tickets.errors import ExitCode, UsageError
from finding_tickets.gate import audit as auditing
from finding_tickets.gate.branch import find_base
from finding_tickets.gate.budgets import BUDGET, check_budgets
from finding_tickets.gate.check import (
    check_tickets,
    exit_code,
    find_aware_code,
    find_gone,
    find_unread,
)
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import load
from finding_tickets.report.gate import (
    audit_item,
    audit_lines,
    gate_item,
    gate_page,
    problem_line,
)
from finding_tickets.report.text import counted, fields_of
from finding_tickets.verify.plan import verifier_of
from finding_tickets.verify.verify import draw_seed

CheckFormat = StrEnum("CheckFormat", ["TEXT", "JSON", "MARKDOWN", "GITHUB"])


def check(
    base: Annotated[
        str, option("REV", "What the branch is to be merged into, such as origin/main.")
    ],
    root: Root = HERE,
    accept: Annotated[
        list[str] | None,
        option("ID", "Accept the changes to a ticket, or to budget:NAME (repeatable)."),
    ] = None,
    how: Measuring = MEASURING,
    summary: Annotated[
        Path | None, option("FILE", "Add the outcome as Markdown to a file as well.")
    ] = None,
    seed: Seed = None,
    output_format: Annotated[
        CheckFormat, format_option(help="How the outcome is printed.")
    ] = CheckFormat.TEXT,
) -> ExitCode:
    """Measure what a branch affects, as a gate."""
    head = load(root)
    then = find_base(head.root, base)
    registers = [head, *([then.register] if then.register else [])]
    names = {
        document.id.value.casefold()
        for register in registers
        for document in register.documents
    }
    budgets = {each.name for register in registers for each in register.config.budgets}
    names |= {f"{BUDGET}{name}".casefold() for name in budgets}
    accepted = {name.casefold() for name in accept or ()}
    # A misspelt ID would silently accept nothing.
    for name in sorted(accepted - names):
        raise UsageError(
            f"--accept {name}: no such ticket or budget", hint="write ID or budget:NAME"
        )
    seed = draw_seed() if seed is None else seed
    limits = how.settings(then.register or head, seed=seed, further=True, record=False)
    settings = replace(limits, root=head.root, evidence=head.config.evidence)
    problems = [
        *find_unread(then, head),
        *find_gone(then, head, accepted),
        *find_aware_code(then, head.root),
    ]
    with Isolation(at_once=False) as isolation:
        tickets = check_tickets(then, head, accepted, isolation, settings)
        for ticket in tickets:
            problems += ticket.problems
        if budgets:
            before = then.register.config.budgets if then.register else ()
            problems += check_budgets(
                before, head.config.budgets, then.root, accepted, isolation, settings
            )
    if output_format is CheckFormat.JSON:
        fields = ("file", "line", "level", "rule", "message", "hint")
        placed = [fields_of(each, *fields) for each in problems]
        write_json("check", map(gate_item, tickets), seed=seed, problems=placed)
    elif output_format is CheckFormat.MARKDOWN:
        write(gate_page(base, tickets, problems))
    elif output_format is CheckFormat.GITHUB:
        write_annotations(problems)
    elif problems:
        write("\n".join(problem_line(each, style) for each in problems))
    # The summary is for people, whatever format a machine reads.
    if summary:
        add_to_summary(summary, gate_page(base, tickets, problems))
    errors = sum(problem.level is Level.ERROR for problem in problems)
    measured = f"{counted(len(tickets), 'ticket')} and {counted(len(budgets), 'budget')} measured"
    say(f"{measured}, {counted(errors, 'error')}; --seed {seed} repeats it")
    return exit_code(problems)


def audit(
    ids: OptionalIds = None,
    everything: Annotated[
        bool, flag("--all", "Every document that has a verifier.")
    ] = False,
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
        raise UsageError(
            "name the tickets to audit, or say --all", hint="one of the two"
        )
    # A misspelt name would try nothing, and so find nothing wrong.
    named = words_of("cheat", cheat, {each.id: () for each in auditing.CHEATS})
    cheats = tuple(each for each in auditing.CHEATS if not cheat or each.id in named)
    with Isolation() as isolation:
        register = load(root)
        chosen, code = find_each(register.find, ids or ())
        if everything:
            chosen = [
                one for one in register.documents if verifier_of(one, register.root)
            ]
            say(f"{len(chosen)} of {len(register.documents)} documents with a verifier")
        sound, reading = measurable(register, chosen)
        seed = draw_seed() if seed is None else seed
        settings = how.settings(register, record=False, seed=seed)
        done: list[auditing.Audited] = []
        codes = [code, reading]
        if sound:
            names = ", ".join(each.id.value for each in sound)
            say(f"trying {len(cheats)} cheats on {names} with seed {seed}")
        for number, audited in enumerate(
            auditing.audit(sound, isolation, settings, cheats), 1
        ):
            fates = {one.fate for one in audited.tried}
            codes += [say_errors([audited.error])]
            codes += [ExitCode.GATE_FAILED] if auditing.Fate.MISSED in fates else []
            # A cheat that was not tried may be one that nothing catches.
            codes += (
                [ExitCode.INCONCLUSIVE]
                if audited.reason or auditing.Fate.UNTRIED in fates
                else []
            )
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
