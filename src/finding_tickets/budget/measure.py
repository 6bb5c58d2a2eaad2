"""Measure the target of a budget: the cost of each statement at each point, and in each call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from finding_tickets.claims.metrics import SYNCS
from finding_tickets.documents.run_command import parse_command
from finding_tickets.ground.statements import Statement, find_statement
from finding_tickets.measure.processes.isolation import Isolation, TaskOutcome
from finding_tickets.measure.tasks import RUN, VARYING, CannotMeasureError, RunJob
from finding_tickets.model.verification import CallCost, MeasuredRun
from finding_tickets.register.budgets import CALLS, Budget
from finding_tickets.verify.judge import parse_worker_result
from finding_tickets.verify.places import Counts, add_cost, count_statements
from finding_tickets.verify.plan import fill_template
from finding_tickets.verify.verify import Settings

_RUN = TypeAdapter(MeasuredRun)


@dataclass(frozen=True)
class Cost:
    """The cost of a run at one point, or of one kind of call in it.

    ``at`` has the variables of the sweep, and the number of calls; ``places`` has the
    calls that cost this. ``counts`` leaves out what ``simcuda.allowed`` set apart.
    """

    at: Mapping[str, int]
    places: Sequence[int]
    metrics: Mapping[str, int]
    modelled: frozenset[str]
    counts: Mapping[Statement, Mapping[str, int]]


@dataclass
class Spending:
    """Everything that the target of a budget cost. With ``trouble`` it could not be measured."""

    costs: list[Cost] = field(default_factory=list)
    repeated: set[Statement] = field(
        default_factory=set
    )  # those that may run more than once
    largest: dict[Statement, int] = field(
        default_factory=dict
    )  # bytes of the largest request
    regions: dict[Statement, str] = field(
        default_factory=dict
    )  # what waits in one, with its reason
    device: str = ""
    trouble: str = ""


def measure(
    budgets: Sequence[Budget], code: Path, isolation: Isolation, settings: Settings
) -> list[Spending]:
    """Measure the targets of budgets, with the code in a folder: the work tree or a checkout."""
    tasks = {}
    for budget in budgets:
        command = parse_command(budget.run, budget.sweep)
        # The first point is there twice, to find costs that differ.
        for place, at in enumerate([*budget.points, budget.points[0]]):
            job = RunJob(
                code=str(code),
                work_tree=str(settings.root),
                kind=command["kind"],
                target=fill_template(command["target"], at),
                arguments=[
                    fill_template(argument, at) for argument in command["arguments"]
                ],
                sweep=[at] if at else [],
                within=budget.within,
                stated=f"budget {budget.name}",
                meter=settings.meter,
                own_lines=True,
            )
            tasks[budget.name, place] = settings.task(
                RUN, job, code=code, copied=code != settings.root
            )
    outcomes = dict(isolation.run(tasks))
    spent = []
    for budget in budgets:
        own = [outcomes[budget.name, place] for place in range(len(budget.points) + 1)]
        try:
            spent.append(_collect(budget, code, own))
        except CannotMeasureError as error:
            spent.append(Spending(trouble=str(error)))
    return spent


def _collect(budget: Budget, code: Path, outcomes: Iterable[TaskOutcome]) -> Spending:
    """Return the costs of all runs of a target. Raise CannotMeasureError if they cannot be relied on."""
    spending = Spending()
    *runs, again = [parse_worker_result(outcome, _RUN) for outcome in outcomes]
    differ = [site for site in {*runs[0].sites} ^ {*again.sites} if site[3] in SYNCS]
    if differ:
        file, line, _, what, count = min(differ)
        raise CannotMeasureError(
            f"{VARYING}: {what} at {file}:{line}, {count} in one of two runs"
        )
    for at, run in zip(budget.points, runs, strict=True):
        if run.error or run.unknown:
            reason = (
                run.error
                or f"uses operations of unknown cost: {', '.join(run.unknown)}"
            )
            raise CannotMeasureError(
                f"{' '.join(f'{name}={at[name]}' for name in at)} {reason}".strip()
            )
        spending.device = f"{run.meter} {run.device}"
        order = run.order or [0]
        for place, cost in enumerate(run.calls or [run]):
            places = [number for number, kind in enumerate(order) if kind == place]
            counts = _count(cost, code, spending.regions)
            modelled = frozenset(cost.ranges)
            spending.costs.append(
                Cost({**at, CALLS: len(order)}, places, cost.metrics, modelled, counts)
            )
        for file, line, function in run.repeated:
            spending.repeated.add(find_statement(code, file, line, function))
        for file, line, function, nbytes in run.largest:
            statement = find_statement(code, file, line, function)
            spending.largest[statement] = max(
                nbytes, spending.largest.get(statement, 0)
            )
    return spending


def _count(cost: CallCost, code: Path, regions: dict[Statement, str]) -> Counts:
    """Return the counts of each statement, and note those that wait in a region of ``simcuda.allowed``."""
    counts = count_statements(cost.sites, code)
    for reason, file, line, function, what, number in cost.allowed:
        statement = find_statement(code, file, line, function)
        if what in counts.get(statement, {}):
            add_cost(counts, statement, what, -number)
            regions[statement] = reason
    return counts
