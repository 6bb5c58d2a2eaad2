"""From a plan to what is measured, and back: the variants of each revision run in a process of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from finding_tickets.ground.checkouts import Checkouts
from finding_tickets.measure.report import Agreement, Code, Job, Times
from finding_tickets.measure.tasks import Measured
from finding_tickets.verify.evidence import ABSENT
from finding_tickets.verify.plan import Plan


def jobs(todo: Plan, meter: str, results: Path) -> dict[str, Job]:
    """The orders to measure a plan, by the revision that each is for: none for the work tree.

    Results that are compared across revisions are kept in the folder ``results``.

    Raises:
        RevisionError: A revision cannot be checked out.
    """
    return {
        commit: _job(todo, meter, _names(todo, commit), folder, results)
        for commit, folder in _folders(todo).items()
    }


def codes(todo: Plan) -> tuple[Code, ...]:
    """The variants of a plan by the folder that their revision's code is in.

    Raises:
        RevisionError: A revision cannot be checked out.
    """
    return tuple(
        Code(str(folder), {name: todo.variants[name] for name in _names(todo, commit)})
        for commit, folder in _folders(todo).items()
    )


def of_order(todo: Plan, commit: str, reason: str) -> str:
    """Why one order of several measured nothing, with what it was to measure: ``fix at main: it hangs``."""
    names = _names(todo, commit)
    where = f" at {todo.revisions[names[0]]}" if commit else ""
    # The meter may have named the variant already.
    return f"{', '.join(names)}{where}: {reason.removeprefix(f'{names[0]}: ')}"


def joined(todo: Plan, parts: Iterable[Measured]) -> Measured | str:
    """What the orders of a plan measured, as if it were one; or why it cannot be one."""
    first, *others = parts
    sweeps = {repr(part.report.sweep) for part in (first, *others)}
    if len(sweeps) > 1:
        return "the verifier makes another sweep at another revision"
    metrics, sites, runs = dict(first.metrics), dict(first.sites), dict(first.report.runs)
    agreements, files = list(first.report.agreements), dict(first.report.files)
    for part in others:
        metrics |= part.metrics
        sites |= part.sites
        runs |= part.report.runs
        agreements += part.report.agreements
        # Of a file that was edited between two orders nobody can say which one was measured.
        files = {**part.report.files, **files, **dict.fromkeys(_edited(files, part.report.files), ABSENT)}
    report = replace(
        first.report,
        runs={name: runs[name] for name in todo.variants},
        agreements=tuple(agreements),
        files=files,
    )
    return Measured(report, metrics, sites)


def _edited(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    """The files of both that were not the same."""
    return (file for file in one.keys() & other.keys() if one[file] != other[file])


def comparison(todo: Plan, measured: Measured, results: Path) -> dict[str, Any]:
    """The order to compare what was kept of each variant, for ``compare_kept``."""
    report = measured.report
    place = {repr(at): index for index, at in enumerate(report.sweep)}
    compared = {name for each in todo.compared_across for name in (each.variant, each.target)}
    some = report.runs[next(iter(compared))]
    return {
        "root": str(todo.verifiers),
        "code": str(todo.root),
        "verifier": todo.verifier,
        "comparisons": [vars(each) for each in todo.compared_across],
        "points": [(place[repr(run.at)], run.at) for run in some],
        "errors": {
            name: {str(place[repr(run.at)]): run.error for run in report.runs[name]} for name in compared
        },
        "results": str(results),
    }


def with_agreements(measured: Measured, agreements: Sequence[Agreement]) -> Measured:
    """What was measured, with comparisons that were made afterwards."""
    report = measured.report
    return replace(measured, report=replace(report, agreements=(*report.agreements, *agreements)))


def with_times(measured: Measured, times: Times) -> Measured:
    """What was measured, with the times that were taken afterwards."""
    return replace(measured, report=replace(measured.report, times=times))


def _folders(todo: Plan) -> dict[str, Path]:
    """The code of each revision that a variant is at, by its commit; that of the work tree by none."""
    checkouts = Checkouts(todo.repository)
    code = {"": todo.root}
    for revision in todo.revisions.values():
        code.setdefault(revision.commit, checkouts.files(revision))
    return {commit: folder for commit, folder in code.items() if _names(todo, commit)}


def _names(todo: Plan, commit: str) -> tuple[str, ...]:
    at: Mapping[str, str] = {name: revision.commit for name, revision in todo.revisions.items()}
    return tuple(name for name in todo.variants if at.get(name, "") == commit)


def _job(todo: Plan, meter: str, names: Sequence[str], code: Path, results: Path) -> Job:
    traced = dict.fromkeys(claim.variant for claim in todo.claims if claim.metric == "graph_breaks")
    across = todo.compared_across
    kept = {name for each in across for name in (each.variant, each.target)}
    return Job(
        root=str(todo.verifiers),
        code=str(code),
        verifier=todo.verifier,
        variants={name: todo.variants[name] for name in names},
        meter=meter,
        graph_breaks=tuple(name for name in traced if name in names),
        comparisons=tuple(each for each in todo.comparisons if each not in across and each.variant in names),
        kept=tuple(name for name in names if name in kept),
        results=str(results),
    )
