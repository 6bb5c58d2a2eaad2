"""Compare what the target of a budget costs with what it may, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from finding_tickets.budget.measure import Cost, Spending
from finding_tickets.claims.check import at_text
from finding_tickets.claims.language import evaluate, parse_expression, variables
from finding_tickets.claims.laws import fit
from finding_tickets.claims.metrics import OF_STATEMENTS
from finding_tickets.ground.statements import (
    Statement,
    equal_statements,
    match_statements,
)
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.budgets import CALLS, LOOPS, Allowance, Budget, Law
from finding_tickets.verify.judge import RACED, unordered_text

EXCEEDED, UNUSED, UNMEASURED = "budget-exceeded", "budget-unused", "budget-unmeasured"
MEMORY = ("peak", "largest", "retained")
# A request for memory is named if it is at least this part of the largest one.
LARGE = Fraction(1, 2)


@dataclass(frozen=True)
class Row:
    """A limit with the most that was counted at each point."""

    metric: str
    limit: str
    values: tuple[int, ...]
    law: str
    holds: bool


@dataclass(frozen=True)
class Excess:
    """Something beyond a limit: of a statement if there is one, with the cost at each point."""

    statement: Statement | None
    metric: str
    law: Law
    message: str
    values: tuple[int, ...]


@dataclass
class Judged:
    """A budget with what became of it. The code is in the folder ``root``."""

    budget: Budget
    spending: Spending
    root: Path
    allowed: dict[Statement, Allowance] = field(default_factory=dict)
    unused: list[Allowance] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    excesses: list[Excess] = field(default_factory=list)

    def counts(self, statement: Statement, metric: str) -> bool:
        """Return True if the statement counts towards the limit of a metric."""
        if metric == "hazards":
            return True
        is_set_up = (
            self.budget.only == LOOPS and statement not in self.spending.repeated
        )
        return statement not in self.allowed and not is_set_up

    def statements(self) -> list[Statement]:
        """Return every statement that cost something, by its place."""
        return sorted(
            {statement for cost in self.spending.costs for statement in cost.counts}
        )

    def values(
        self, metric: str, law: Law, statement: Statement | None = None
    ) -> tuple[int, ...]:
        """Return the cost at each point, of a statement or of all that count.

        The most expensive call decides, or all calls if the law names their number.
        """
        in_all = CALLS in {each.name for each in variables(parse_expression(str(law)))}
        values = []
        for at in self.budget.points:
            of_calls = [0]
            for cost in self.costs_at(at):
                number = self._cost_of(cost, metric, statement)
                of_calls.append(number * len(cost.places) if in_all else number)
            values.append(sum(of_calls) if in_all else max(of_calls))
        return tuple(values)

    def costs_at(self, at: Mapping[str, int]) -> list[Cost]:
        """Return the costs of the run at a point, one for each kind of call."""
        return [cost for cost in self.spending.costs if at.items() <= cost.at.items()]

    def _cost_of(self, cost: Cost, metric: str, statement: Statement | None) -> int:
        if statement:
            return cost.counts.get(statement, {}).get(metric, 0)
        if metric not in OF_STATEMENTS:
            return cost.metrics[metric]
        number = 0
        for each, counts in cost.counts.items():
            if self.counts(each, metric):
                number += counts.get(metric, 0)
        return number

    def worst(self, values: Sequence[int], law: Law) -> tuple[int, str] | None:
        """Return the first value above a limit, with its point in words; None if all are within it."""
        expression = parse_expression(str(law))
        for value, at in zip(values, self.budget.points, strict=True):
            calls = self.costs_at(at)[0].at[CALLS]
            if value > evaluate(expression, {CALLS: calls, **at}):
                return value, f" at {at_text(at)}" if at else ""
        return None

    def law_of(self, values: Sequence[int]) -> str:
        """Return the values as a law in the variables of the sweep, or a description."""
        points = self.budget.points
        return (
            str(fit(points, values, points)) if len(set(values)) > 1 else str(values[0])
        )


def judge(budget: Budget, spending: Spending, root: Path) -> Judged:
    """Find what exceeds a budget."""
    judged = Judged(budget, spending, root)
    if spending.trouble:
        return judged
    waits = [
        each for each in judged.statements() if any(judged.values("syncs", 0, each))
    ]
    judged.allowed = match_allowances(budget.allow, waits, root)
    judged.unused = [
        each for each in budget.allow if each not in judged.allowed.values()
    ]
    for metric, law in {"hazards": 0, **budget.max}.items():
        _judge_metric(judged, metric, law)
    for statement, allowance in judged.allowed.items():
        if allowance.law is not None:
            values = judged.values("syncs", allowance.law, statement)
            if worst := judged.worst(values, allowance.law):
                message = f"waits {worst[0]} times{worst[1]}, {allowance.owner} allowed {allowance.law}"
                judged.excesses.append(
                    Excess(statement, "syncs", allowance.law, message, values)
                )
    return judged


def match_allowances(
    allowances: Sequence[Allowance], statements: Sequence[Statement], root: Path
) -> dict[Statement, Allowance]:
    """Find the statement of each allowance, also if names in it, its function or its file were changed.

    Where the statement is gone, one in its function has taken its place.
    """
    known = [each.statement for each in allowances]
    matched = match_statements(known, statements, root)
    allowed = {statement: allowances[place] for statement, place in matched.items()}
    for place, old in enumerate(known):
        is_there = place in matched.values() or equal_statements(
            root, old.file, old.function, old.code
        )
        for statement in statements:
            if not is_there and statement not in allowed and statement.is_beside(old):
                allowed[statement] = allowances[place]
                break
    return allowed


def problems(judged: Judged, file: str) -> Iterator[Problem]:
    """Yield one problem for each statement that exceeds a budget, and the doubts; ``file`` states it."""
    name, line = judged.budget.name, judged.budget.line
    if trouble := judged.spending.trouble:
        yield problem_of(name, UNMEASURED, file, line, f"not measured: {trouble}")
    by_statement: dict[Statement | None, list[str]] = {}
    for excess in judged.excesses:
        by_statement.setdefault(excess.statement, []).append(excess.message)
    for statement, messages in by_statement.items():
        said = "; ".join(dict.fromkeys(messages))
        if statement:
            said, hint = (
                f"{said}: {statement.code}",
                f"wait less, or allow the statement in {file}",
            )
            yield problem_of(name, EXCEEDED, statement.file, statement.line, said, hint)
        else:
            yield problem_of(name, EXCEEDED, file, line, said)
    for allowance in judged.unused:
        said = f"nothing waits at {allowance}"
        yield problem_of(
            name, UNUSED, file, allowance.line, said, "remove the allowance"
        )


def problem_of(
    name: str, rule: str, file: str, line: int, message: str, hint: str | None = None
) -> Problem:
    """Return a problem of the budget called ``name``."""
    level = Level.WARNING if rule == UNUSED else Level.ERROR
    text = f"budget {name}: {message}"
    return Problem(
        level=level, rule=rule, file=file, line=line or 1, message=text, hint=hint
    )


def _judge_metric(judged: Judged, metric: str, law: Law) -> None:
    """Compare a metric with its limit, and name the statements that exceed it."""
    costs = judged.spending.costs
    if any(metric not in cost.metrics for cost in costs):
        if metric in judged.budget.max:
            judged.spending.trouble = (
                f"{metric} is not counted on {judged.spending.device}"
            )
        return
    values = judged.values(metric, law)
    worst = judged.worst(values, law)
    mark = "~" if any(metric in cost.modelled for cost in costs) else ""
    judged.rows.append(
        Row(metric, str(law), values, mark + judged.law_of(values), worst is None)
    )
    if worst is None:
        return
    said = f"{metric}: {mark}{worst[0]}{worst[1]}, at most {law} allowed"
    whole = Excess(None, metric, law, said, values)
    judged.excesses += list(_statements_behind(judged, whole)) or [whole]


def _statements_behind(judged: Judged, whole: Excess) -> Iterator[Excess]:
    """Yield the part of each statement in an excess; of memory, the large requests."""
    if whole.metric in OF_STATEMENTS:
        for statement in judged.statements():
            own = judged.values(whole.metric, whole.law, statement)
            if judged.counts(statement, whole.metric) and any(own):
                part = "" if own == whole.values else f", here {judged.law_of(own)}"
                if whole.metric == "hazards":
                    raced = [
                        each
                        for each in judged.statements()
                        if any(judged.values(RACED, 0, each))
                    ]
                    part += unordered_text([f"{each}: {each.code}" for each in raced])
                message = whole.message + part
                yield replace(whole, statement=statement, message=message, values=own)
    elif whole.metric.startswith(MEMORY):
        requests = judged.spending.largest
        for statement, nbytes in requests.items():
            if nbytes >= LARGE * max(requests.values()):
                message = f"{whole.message}, here {nbytes} at once"
                yield replace(whole, statement=statement, message=message)
