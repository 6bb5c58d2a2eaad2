"""What the target of a budget spends: measured in a worker, and kept while what it rests on is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from finding_tickets.budget.statements import read_code, statement_at, statements_of
from finding_tickets.claims.metrics import SYNCS
from finding_tickets.ground import __version__
from finding_tickets.ground.cache import read_entry, write_entry
from finding_tickets.register.budgets import Budget
from finding_tickets.register.config import CONFIG_FILE, Config
from finding_tickets.register.files import DiskFiles
from finding_tickets.register.intoto import Recorded, recorded_of
from finding_tickets.register.staleness import InstalledPackages, own_torch, repository_changes

if TYPE_CHECKING:
    from finding_tickets.ground.commits import Revision
    from finding_tickets.measure.processes.isolation import Isolation, TaskOutcome
    from finding_tickets.model.verification import MeasuredRun
    from finding_tickets.verify.plan import Plan
    from finding_tickets.verify.verify import Course

_CACHE, _KEEP = "budgets", 512
LARGEST = "largest_allocation"


@dataclass(frozen=True, order=True)
class Spender:
    """A statement that spent something: of the repository, or a line of an installed package without text."""

    file: str
    line: int
    function: str
    text: str = ""
    occurrence: int = 1

    def __str__(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"

    @property
    def source(self) -> str:
        """The first line of its text, or what stands for it."""
        return self.text.partition("\n")[0] or f"in {self.function}"


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a target spent: of each metric and at each statement, a number for each point.

    ``spent`` leaves out what ``simcuda.allowed`` set apart, which ``regions`` has with the reason. ``ranges``
    has what modelled numbers can be. With a ``trouble`` there is nothing else.
    """

    points: tuple[dict[str, int], ...] = ()
    metrics: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[tuple[int, int | None] | None, ...]] = field(default_factory=dict)
    spent: tuple[tuple[Spender, Mapping[str, tuple[int, ...]]], ...] = ()
    regions: tuple[tuple[str, Spender, Mapping[str, tuple[int, ...]]], ...] = ()
    device: str = ""
    trouble: str = ""
    unknown: tuple[str, ...] = ()  # operations whose waits are not known


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """A spending with the inputs that it rests on."""

    spending: Spending
    inputs: tuple[Recorded, ...]


@dataclass(frozen=True, kw_only=True)
class Target:
    """The code of a budget to measure: that of a folder, by the files there, or of a commit."""

    budget: Budget
    root: Path
    config: Config
    meter: str
    timeout: float
    revision: Revision | None = None

    @property
    def key(self) -> str:
        """The name of what is kept of it."""
        asked = self.budget
        same = (asked.run, dict(asked.sweep), asked.within, asked.paths, self.meter, self.timeout)
        where = (str(self.root.resolve()), self.revision.commit if self.revision else "")
        text = repr((same, where, __version__, own_torch()))
        return f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def known_spending(targets: Mapping[str, Target], root: Path) -> dict[str, Spending]:
    """What earlier runs measured of targets and still holds, by their names."""
    # Files are looked at once for all of them.
    disk, installed = DiskFiles(root), InstalledPackages(root)
    found = {}
    for name, target in targets.items():
        kept = read_entry(_CACHE, target.key)
        try:
            known = msgspec.json.decode(kept, type=_Kept) if kept else None
        except msgspec.MsgspecError:
            # A damaged entry is made anew.
            continue
        if known and not any(repository_changes(known.inputs, disk)) and not installed.changes(known.inputs):
            found[name] = known.spending
    return found


def measure(
    targets: Mapping[str, Target], isolation: Isolation, *, keep: bool = True
) -> Iterator[tuple[str, Spending]]:
    """What each target spends, by its name, as soon as it is known."""
    # Reading what is known needs none of this.
    from finding_tickets.verify.verify import run_together

    courses = {name: _spending_of(target, isolation, keep=keep) for name, target in targets.items()}
    yield from run_together(isolation, courses)


def _spending_of(target: Target, isolation: Isolation, *, keep: bool) -> Course[Spending]:
    """Run a target at each of its points; what it spends."""
    from finding_tickets.measure.processes.isolation import Task
    from finding_tickets.measure.tasks import RUN
    from finding_tickets.verify.verify import NOW

    plan = _plan(target)
    if why := missing_target(target.budget, Path(plan.folders["found"])):
        return Spending(trouble=why)
    outcomes = yield (
        NOW,
        {
            part: Task(
                target=RUN,
                payload=replace(job, own_lines=True, own_paths=target.budget.paths),
                root=target.root,
                timeout=target.timeout,
                memory=target.config.memory,
                code=Path(job.code),
                copied=job.code != job.work_tree,
            )
            for part, job in plan.run_jobs(target.meter).items()
        },
    )
    spending = _joined(plan, outcomes)
    if keep and not any(each.never_ran for each in outcomes.values()):
        _keep(target, plan, spending, outcomes.values(), isolation)
    return spending


def missing_target(budget: Budget, code: Path) -> str:
    """What is said of a file to run that is not there; empty where it is, or only an import can tell."""
    from finding_tickets.documents.run_command import parse_command

    file = str(parse_command(budget.run, budget.sweep)["target"]).partition(":")[0]
    is_file = file.endswith(".py") or "/" in file
    return f"there is no file {file}" if is_file and not (code / file).exists() else ""


def _plan(target: Target) -> Plan:
    from finding_tickets.claims.check import ONCE
    from finding_tickets.documents.run_command import parse_command
    from finding_tickets.measure.tasks import FunctionPath
    from finding_tickets.model.ticket import RunCommand
    from finding_tickets.verify.plan import Plan

    budget = target.budget
    command = RunCommand.model_validate({**parse_command(budget.run, budget.sweep), "line": budget.line})
    module, _, function = command.target.partition(":")
    return Plan(
        ticket=budget.name,
        document="",
        root=target.root,
        verifiers=target.root,
        repository=target.root,
        verifier="",
        variants={"found": FunctionPath(module, function.removeprefix(":"))},
        revisions={"found": target.revision} if target.revision else {},
        run=command,
        sweep=budget.points or (ONCE,),
        within=budget.within or None,
        stated=f"budget {budget.name}",
    )


def _joined(plan: Plan, outcomes: Mapping[str, TaskOutcome]) -> Spending:
    """The runs at all points as one; or what keeps them from being relied on."""
    from finding_tickets.claims.check import named_at
    from finding_tickets.verify.verify import answered_runs

    runs = answered_runs(plan, "found", outcomes, "", "at ")
    if isinstance(runs, str):
        return Spending(trouble=runs)
    for run, at in zip(runs, plan.sweep, strict=True):
        if run.error:
            return Spending(trouble=f"{named_at('', at, 'at ')} {run.error}".strip())
    spent = sorted(_spent(runs, Path(plan.folders["found"])), key=lambda each: each[:2])
    names = [name for name in runs[0].metrics if all(name in each.metrics for each in runs)]
    ranges = {name: tuple(each.ranges.get(name) for each in runs) for name in names}
    return Spending(
        points=plan.sweep,
        metrics={name: tuple(each.metrics[name] for each in runs) for name in names},
        ranges={name: bounds for name, bounds in ranges.items() if any(bounds)},
        spent=tuple((spender, of_it) for reason, spender, of_it in spent if not reason),
        regions=tuple(each for each in spent if each[0]),
        device=f"{runs[0].meter} {runs[0].device}",
        unknown=tuple(sorted({name for each in runs for name in each.unknown})),
    )


def _spent(
    runs: Sequence[MeasuredRun], code: Path
) -> Iterator[tuple[str, Spender, Mapping[str, tuple[int, ...]]]]:
    """What each statement spent, by metric and point; of a region with its reason, and else with none."""
    spent: dict[tuple[str, Spender], dict[str, list[int]]] = {}
    # A line counts many times, and its file is read and parsed for it.
    spender_of = cache(partial(spender_at, code))

    def counts(reason: str, file: str, line: int, function: str, what: str) -> list[int]:
        of_metric = spent.setdefault((reason, spender_of(file, line, function)), {})
        return of_metric.setdefault(what, [0] * len(runs))

    for place, run in enumerate(runs):
        for reason, file, line, function, what, count in (*(("", *site) for site in run.sites), *run.allowed):
            for metric in (what, "syncs") if what in SYNCS else (what,):
                counts(reason, file, line, function, metric)[place] += count
                # Lines have no bytes of their own beside those of regions.
                if reason and not metric.endswith("_bytes"):
                    counts("", file, line, function, metric)[place] -= count
        for file, line, function, nbytes in run.largest:
            largest = counts("", file, line, function, LARGEST)
            largest[place] = max(largest[place], nbytes)
    for (reason, spender), of_metric in spent.items():
        yield reason, spender, {metric: tuple(values) for metric, values in of_metric.items()}


def spender_at(code: Path, file: str, line: int, function: str) -> Spender:
    """The statement of a line, in the folder ``code``; without one, the line."""
    statement = statement_at(statements_of(read_code(code / file)), line) if line else None
    if statement:
        return Spender(file, statement.first, statement.function, statement.text, statement.occurrence)
    return Spender(file, line, function)


def _keep(
    target: Target, plan: Plan, spending: Spending, outcomes: Iterable[TaskOutcome], isolation: Isolation
) -> None:
    """Keep what was measured, unless it rests on what cannot be checked later."""
    from finding_tickets.model.verification import Input
    from finding_tickets.register.staleness import TORCH
    from finding_tickets.verify.evidence import rests_on

    folders = {str(plan.root), isolation.folder, *plan.folders.values()} - {str(plan.root)}
    rests = rests_on(outcomes, plan, plan.root, folders)
    # pytest looks at every file beside the tests, and what is spent follows from no budget.
    files = (each for each in rests.repository if each.name != CONFIG_FILE)
    inputs = (Input(name=TORCH, kind="version", value=own_torch()), *rests.environment, *files)
    if not rests.unseen:
        kept = _Kept(spending=spending, inputs=recorded_of(inputs))
        write_entry(_CACHE, target.key, msgspec.json.encode(kept), _KEEP)
