"""Tell what the statement that a ticket is about costs in each variant, and what waits elsewhere.

A statement is found again by its file, its function and its code: moved lines and new names change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path

from finding_tickets.claims.laws import CountedRun, Place, fit
from finding_tickets.claims.metrics import ENDINGS, OF_STATEMENTS, SYNCS
from finding_tickets.errors import BadDataError
from finding_tickets.ground.statements import (
    Statement,
    find_statement,
    match_statements,
    normalize,
    read_statements,
)
from finding_tickets.model.ticket import StatementRef
from finding_tickets.model.verification import MeasuredRun
from finding_tickets.verify.judge import FIX, FOUND, times_text
from finding_tickets.verify.plan import Plan

Counts = dict[Statement, dict[str, int]]
Site = tuple[str, int, str, str, int]
A_NEW_WAIT = "a new wait at "
NEW = {"syncs": A_NEW_WAIT, "hazards": "a new race at "}
"""What no statement elsewhere may do unless it did so in the code as found."""


@dataclass(frozen=True)
class PlacedRuns:
    """The runs of each variant, with the costs of the place alone.

    ``lines`` has where it stands, empty where it is gone. ``elsewhere`` has a sentence for each line that
    waits against the claim, and under no line what is wrong with those that may. ``differs`` says where
    two runs of the same work cost differently.
    """

    runs: Mapping[str, Sequence[CountedRun]]
    lines: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    differs: str = ""


def count_statements(sites: Iterable[Site], code: Path) -> Counts:
    """Return what each statement costs, by metric."""
    counts: Counts = {}
    for file, line, function, what, number in sites:
        add_cost(counts, find_statement(code, file, line, function), what, number)
    return counts


def add_cost(counts: Counts, statement: Statement, what: str, number: int) -> None:
    """Add to the cost of a statement; waits of each kind are ``syncs``, too."""
    of_statement = counts.setdefault(statement, {})
    for metric in [what, "syncs"] if what in SYNCS else [what]:
        of_statement[metric] = of_statement.get(metric, 0) + number


def find_place(todo: Plan, place: StatementRef) -> Statement:
    """Return the statement that a ticket is about, in the code as found.

    Raises:
        BadDataError: It is not there, or there are several that it could be.
        RevisionError: The revision cannot be checked out.
    """
    if FOUND not in todo.variants:
        raise BadDataError("place: there is no variant found to look for it", line=place.line)
    beside = read_statements(Path(todo.folders[FOUND]), place.file)
    code = normalize(place.code)
    twins = [each for each in beside if (each.function, each.code) == (place.function, code)]
    if place.occurrence is None and len(twins) == 1:
        return twins[0]
    if 1 <= (place.occurrence or 0) <= len(twins):
        return twins[(place.occurrence or 0) - 1]
    where = f"{place.file}{f', {place.function}()' if place.function else ''}"
    if twins:
        lines = ", ".join(str(each.line) for each in twins)
        message = f"place: {where} has this statement {len(twins)} times, at lines {lines}"
        hint = f"say which one: occurrence: 1 to {len(twins)}"
    else:
        at = f" at {todo.revisions[FOUND]}" if FOUND in todo.revisions else ""
        message = f"place: {where} has no such statement{at}: {place.code}"
        others = [f"{each} in {each.function or 'no function'}" for each in beside if each.code == code]
        known = f"it stands at {', '.join(others)}; " if others else ""
        hint = f"{known}correct place, or pin found to a commit that has it"
    raise BadDataError(message, line=place.line, hint=hint)


def measure_place(todo: Plan, place: StatementRef, runs: Mapping[str, Sequence[MeasuredRun]]) -> PlacedRuns:
    """Return the costs of the place in each variant, and what else waits in the fix.

    Raises:
        BadDataError: The place cannot be found in the code as found.
    """
    found = find_place(todo, place)
    folders = {name: Path(folder) for name, folder in todo.folders.items()}
    counts, lines, counted = dict[str, list[Counts]](), dict[str, str](), dict[str, list[CountedRun]]()
    elsewhere: dict[str, str] = {}
    differs = ""
    for name, of_variant in runs.items():
        counts[name] = [count_statements(run.sites, folders[name]) for run in of_variant]
    for name, of_variant in runs.items():
        costly = {statement for each in counts[name] for statement in each}
        here = found if name == FOUND else find_again(found, folders[FOUND], folders[name], sorted(costly))
        shown = {here}
        if name == FIX:
            others = _find_others(todo, found, here, counts, runs)
            elsewhere = _judge_others(others, found, here, counts, [run.at for run in of_variant])
            shown |= {*others.new, *others.moved}
        lines[name] = str(here) if here else ""
        placed = []
        for run, count in zip(of_variant, counts[name], strict=True):
            placed.append(_at_place(run, count.get(here, {}) if here else {}, folders[name], shown))
        counted[name] = placed[: len(todo.sweep)]
        for again in placed[len(todo.sweep) :]:
            difference = placed[0].difference(replace(again, sites={}))
            differs = differs or f"{name}: {here}: {difference}" if difference else differs
    return PlacedRuns(counted, lines, elsewhere, differs)


def find_again(found: Statement, old: Path, new: Path, costly: Sequence[Statement]) -> Statement | None:
    """Return the same statement of changed code, among those that cost something if it has other names.

    Of equal statements it is the one with the same neighbours. None where it is gone.
    """
    before = [each for each in read_statements(old, found.file) if each.function == found.function]
    after = [each for each in read_statements(new, found.file) if each.function == found.function]
    at, codes = before.index(found), [each.code for each in before]
    matcher = SequenceMatcher(None, codes, [each.code for each in after], autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.a <= at < block.a + block.size:
            return after[block.b + at - block.a]
    twins = [each for each in after if each.code == found.code]
    if twins and len(twins) >= codes.count(found.code):
        return twins[-1]
    others = [each for each in costly if each not in twins and each.code not in codes]
    return next(iter(match_statements([found], others, new)), None)


@dataclass(frozen=True)
class _Others:
    """Statements of the fix, but for the place, that wait and did not: unforeseen, or named by the ticket."""

    new: Sequence[Statement]
    moved: Sequence[Statement]


def _find_others(
    todo: Plan,
    found: Statement,
    here: Statement | None,
    counts: Mapping[str, Sequence[Counts]],
    runs: Mapping[str, Sequence[MeasuredRun]],
) -> _Others:
    """Find the statements of the fix that wait where the code as found did not.

    Other expressions wait, or those of a statement that waits more often are reached by other calls. A
    statement that waits more often by the same calls has more to do.
    """
    before = [each for each in _waiting(counts[FOUND]) if each != found]
    moved = [Statement(each.file, each.line, each.function, each.code) for each in todo.moved]
    waiting = [each for each in _waiting(counts[FIX]) if each != here]
    matched = match_statements([*before, *moved, *todo.excused], waiting, Path(todo.folders[FIX]))
    old, now = (_chains(runs[name], Path(todo.folders[name])) for name in (FOUND, FIX))
    known = {chain for each in before for chain in old.get(each, ())}
    new, foreseen = list[Statement](), list[Statement]()
    for statement in waiting:
        place = matched.get(statement, -1)
        is_known = bool(now.get(statement)) and now[statement] <= known
        if 0 <= place < len(before):
            costs = [
                _values(counts[name], [each]) for name, each in ((FOUND, before[place]), (FIX, statement))
            ]
            has_grown = any(after > least for least, after in zip(*costs, strict=True))
            if has_grown and now.get(statement) and not is_known:
                new.append(statement)
        elif len(before) <= place < len(before) + len(moved):
            foreseen.append(statement)
        elif place < 0 and not is_known:
            new.append(statement)
    return _Others(new, foreseen)


def _chains(runs: Iterable[MeasuredRun], code: Path) -> dict[Statement, set[str]]:
    """Return the calls by which each statement was reached."""
    found: dict[Statement, set[str]] = {}
    for run in runs:
        for file, line, function, chain in run.chains:
            found.setdefault(find_statement(code, file, line, function), set()).add(chain)
    return found


def _waiting(counts: Sequence[Counts]) -> list[Statement]:
    """Return the statements that wait or race at some point, by their place."""
    found = {statement for each in counts for statement in each if NEW.keys() & each[statement].keys()}
    return sorted(found)


def _judge_others(
    others: _Others,
    found: Statement,
    here: Statement | None,
    counts: Mapping[str, Sequence[Counts]],
    points: Sequence[Mapping[str, int]],
) -> dict[str, str]:
    """Return what contradicts the claim that nothing else waits, in a sentence for each line."""
    said = {}
    for statement in others.new:
        metric = next(
            each for each in NEW if any(statement in at and each in at[statement] for at in counts[FIX])
        )
        function = f" in {statement.function}()" if statement.function else ""
        times = times_text(str(fit(points, _values(counts[FIX], [statement], metric), points)))
        said[str(statement)] = f"{NEW[metric]}{statement}{function}, {times}: {statement.code}"
    before = _values(counts[FOUND], [found])
    after = _values(counts[FIX], [*others.moved, *([here] if here else [])])
    is_less = sum(after) < sum(before) and all(new <= old for new, old in zip(after, before, strict=True))
    if others.moved and not is_less:
        said[""] = (
            f"what moved names waits {times_text(str(max(after)))}, "
            f"not less than {found}, which waited {times_text(str(max(before)))}"
        )
    return said


def _values(counts: Sequence[Counts], statements: Sequence[Statement], metric: str = "syncs") -> list[int]:
    """Return what statements cost together, at each point."""
    return [sum(at.get(each, {}).get(metric, 0) for each in statements) for at in counts]


def _at_place(
    run: MeasuredRun, costs: Mapping[str, int], code: Path, shown: Iterable[Statement | None]
) -> CountedRun:
    """Return a run as one of which the place is all that costs something."""
    metrics = {name: costs.get(name, 0) for name in OF_STATEMENTS if name in run.metrics}
    metrics |= {name: run.metrics[name] for name in ENDINGS if name in run.metrics}
    wanted = set(shown)
    sites: dict[Place, int] = {}
    for file, line, function, what, count in run.sites:
        if find_statement(code, file, line, function) in wanted:
            sites[file, line, function, what] = count
    # A part of a modelled number is one, too, and nobody knows of how much.
    ranges = {name: (0, None) for name in metrics if name in run.ranges and metrics[name]}
    return CountedRun(run.at, metrics, sites, run.error, run.unknown, run.approximate, ranges)
