"""Measure the target of a budget: the cost of each statement at each point, and in each call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from finding_tickets.claims.metrics import SYNCS
from finding_tickets.documents.run_command import parse_command
from finding_tickets.ground.statements import Statement, find_statement
from finding_tickets.measure.processes.isolation import Isolation, Task, TaskOutcome
from finding_tickets.measure.tasks import RUN, VARYING, CannotMeasureError, RunJob
from finding_tickets.model.verification import CallCost, MeasuredRun
from finding_tickets.register.budgets import CALLS, Budget
from finding_tickets.verify.judge import parse_worker_result
from finding_tickets.verify.places import Counts, add_cost, count_statements
from finding_tickets.verify.plan import fill_template

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
    repeated: set[Statement] = field(default_factory=set)  # those that may run more than once
    largest: dict[Statement, int] = field(default_factory=dict)  # bytes of the largest request
    regions: dict[Statement, str] = field(default_factory=dict)  # what waits in one, with its reason
    device: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Target:
    """A budget to measure with the code in a folder: the work tree, or a checkout of a revision."""

    budget: Budget
    root: Path
    code: Path
    meter: str
    timeout: float
    memory: int

    def tasks(self) -> list[Task]:
        """Return a task for each point; the first one is there twice, to find costs that differ."""
        command = parse_command(self.budget.run, self.budget.sweep)
        tasks = []
        for at in [*self.budget.points, self.budget.points[0]]:
            job = RunJob(
                code=str(self.code),
                work_tree=str(self.root),
                kind=command["kind"],
                target=fill_template(command["target"], at),
                arguments=[fill_template(argument, at) for argument in command["arguments"]],
                sweep=[at] if at else [],
                within=self.budget.within,
                stated=f"budget {self.budget.name}",
                meter=self.meter,
                own_lines=True,
            )
            task = Task(
                target=RUN,
                payload=job,
                root=self.root,
                code=self.code,
                copied=self.code != self.root,
                timeout=self.timeout,
                memory=self.memory,
            )
            tasks.append(task)
        return tasks


def measure(targets: Sequence[Target], isolation: Isolation) -> list[Spending]:
    """Measure several targets at once."""
    tasks = {}
    for number, target in enumerate(targets):
        for place, task in enumerate(target.tasks()):
            tasks[number, place] = task
    outcomes = dict(isolation.run(tasks))
    spent = []
    for number, target in enumerate(targets):
        own = [outcomes[key] for key in sorted(outcomes) if key[0] == number]
        try:
            spent.append(_collect(target, own))
        except CannotMeasureError as error:
            spent.append(Spending(trouble=str(error)))
    return spent


def _collect(target: Target, outcomes: Iterable[TaskOutcome]) -> Spending:
    """Return the costs of all runs of a target. Raise CannotMeasureError if they cannot be relied on."""
    spending = Spending()
    *runs, again = [parse_worker_result(outcome, _RUN) for outcome in outcomes]
    differ = [site for site in {*runs[0].sites} ^ {*again.sites} if site[3] in SYNCS]
    if differ:
        file, line, _, what, count = min(differ)
        raise CannotMeasureError(f"{VARYING}: {what} at {file}:{line}, {count} in one of two runs")
    for at, run in zip(target.budget.points, runs, strict=True):
        if run.error or run.unknown:
            reason = run.error or f"uses operations of unknown cost: {', '.join(run.unknown)}"
            raise CannotMeasureError(f"{' '.join(f'{name}={at[name]}' for name in at)} {reason}".strip())
        spending.device = f"{run.meter} {run.device}"
        order = run.order or [0]
        for place, cost in enumerate(run.calls or [run]):
            places = [number for number, kind in enumerate(order) if kind == place]
            counts = _count(cost, target.code, spending.regions)
            modelled = frozenset(cost.ranges)
            spending.costs.append(Cost({**at, CALLS: len(order)}, places, cost.metrics, modelled, counts))
        for file, line, function in run.repeated:
            spending.repeated.add(find_statement(target.code, file, line, function))
        for file, line, function, nbytes in run.largest:
            statement = find_statement(target.code, file, line, function)
            spending.largest[statement] = max(nbytes, spending.largest.get(statement, 0))
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
