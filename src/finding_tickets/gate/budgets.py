"""Hold a branch to the budgets of its base."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import gt
from pathlib import Path

from finding_tickets.budget.measure import measure
from finding_tickets.budget.rules import (
    EXCEEDED,
    Excess,
    Judged,
    judge,
    problem_of,
    problems,
)
from finding_tickets.claims.language import evaluate, parse_expression
from finding_tickets.claims.metrics import OF_STATEMENTS
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.budgets import CALLS, Budget, Law
from finding_tickets.register.config import CONFIG_FILE, config_file_of
from finding_tickets.verify.verify import Settings

RAISED = "budget-raised"
# Stands before the name of a budget whose changes the command line accepts.
BUDGET = "budget:"


def check_budgets(
    before: Sequence[Budget],
    now: Sequence[Budget],
    base: Path,
    accepted: Collection[str],
    isolation: Isolation,
    settings: Settings,
) -> list[Problem]:
    """Measure the work tree by the budgets of the base, whose code is in the folder ``base``.

    A budget of the branch counts if it is new, at least as strict, or accepted by the command line.
    """
    file = config_file_of(settings.root) or CONFIG_FILE
    new = {each.name: each for each in now}
    old = {
        each.name: each
        for each in before
        if f"{BUDGET}{each.name}".casefold() not in accepted
    }
    found: list[Problem] = []
    exceeded: list[Judged] = []
    for judged in _judge_all(
        [*({**new, **old}.values())], settings.root, isolation, settings
    ):
        name, held = judged.budget.name, judged
        if name in old and name not in new:
            found.append(_raised(name, "is removed", file, 0))
        elif name in old:
            own = judge(new[name], judged.spending, settings.root)
            raises = [
                _raised(name, message, file, line)
                for message, line in _find_raises(judged, own)
            ]
            found += raises
            # What raises nothing is as strict as the base's, and names the code as it is now.
            held = judged if raises else own
        if name in old and (held.excesses or held.spending.regions):
            exceeded.append(held)
        else:
            found += problems(held, file)
    then = _judge_all([each.budget for each in exceeded], base, isolation, settings)
    for judged, at_base in zip(exceeded, then, strict=True):
        found += _compare(judged, at_base, file)
    return found


def _judge_all(
    budgets: Sequence[Budget], code: Path, isolation: Isolation, settings: Settings
) -> list[Judged]:
    """Measure budgets with the code in a folder, and judge them."""
    spendings = measure(budgets, code, isolation, settings)
    return [
        judge(each, spent, code) for each, spent in zip(budgets, spendings, strict=True)
    ]


def _raised(name: str, message: str, file: str, line: int) -> Problem:
    """Return the problem that a branch allows itself more."""
    return problem_of(
        name, RAISED, file, line, message, f"if that is meant: --accept {BUDGET}{name}"
    )


def _find_raises(then: Judged, now: Judged) -> Iterator[tuple[str, int]]:
    """Yield what a budget allows that the one it replaces does not, with the line that says so."""
    old, new = then.budget, now.budget
    for key in ("run", "sweep", "within", "only"):
        if getattr(old, key) != getattr(new, key):
            yield f"{key} is changed", new.line
    for metric, law in old.max.items():
        limit = new.max.get(metric)
        if _is_above(limit, law, now):
            stated = "not limited" if limit is None else limit
            yield f"max: {metric} is {stated}, and {law} at the base", new.line
    known = {str(each): each for each in old.allow}
    pairs = [(allowance, known.get(str(allowance))) for allowance in now.unused]
    # Names may have changed where something waits.
    pairs += [
        (allowance, then.allowed.get(statement))
        for statement, allowance in now.allowed.items()
    ]
    for allowance, was in pairs:
        if was is None:
            yield f"{allowance} is allowed", allowance.line
        elif _is_above(allowance.law, was.law, now):
            yield (
                f"{allowance} is allowed {allowance.law or 'any number of waits'}",
                allowance.line,
            )


def _is_above(new: Law | None, old: Law | None, judged: Judged) -> bool:
    """Return True if a law has a larger value than the other law at a point; None means no limit."""
    if new is None or old is None:
        return new is None and old is not None
    for cost in judged.spending.costs:
        at = {CALLS: 1, **cost.at}
        if evaluate(parse_expression(str(new)), at) > evaluate(
            parse_expression(str(old)), at
        ):
            return True
    return False


def _compare(now: Judged, then: Judged, file: str) -> Iterator[Problem]:
    """Yield the problems of a budget, but for what the base has already."""
    name, excesses = now.budget.name, now.excesses
    known = {each.code for each in then.spending.regions}
    for statement, reason in now.spending.regions.items():
        if statement.code not in known:
            message = f"simcuda.allowed({reason!r}) is new: {statement.code}"
            yield _raised(name, message, statement.file, statement.line)
    now.excesses = [
        each for each in excesses if then.spending.trouble or _has_grown(each, then)
    ]
    if excesses and not now.excesses:
        message = f"the base exceeds it as well: {excesses[0].message}"
        note = problem_of(name, EXCEEDED, file, now.budget.line, message)
        yield note.model_copy(update={"level": Level.NOTE})
    yield from problems(now, file)


def _has_grown(excess: Excess, then: Judged) -> bool:
    """Return True if something costs more than at the base."""
    before = (0,) * len(excess.values)
    if excess.metric not in OF_STATEMENTS:
        before = then.values(excess.metric, excess.law)
    elif excess.statement:
        for statement in then.statements():
            if statement.code == excess.statement.code:
                before = then.values(excess.metric, excess.law, statement)
    return any(map(gt, excess.values, before))
