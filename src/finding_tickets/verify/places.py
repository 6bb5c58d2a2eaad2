"""Tell what the statement that a ticket is about costs in each variant, and what waits elsewhere.

A statement is found again by its file, its function and its code: moved lines and new names change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from operator import gt
from pathlib import Path

from finding_tickets.claims.laws import CountedRun, Place, Range, fit
from finding_tickets.claims.metrics import ENDINGS, OF_STATEMENTS, SYNCS
from finding_tickets.errors import BadDataError
from finding_tickets.ground.statements import (
    Statement,
    equal_statements,
    find_statement,
    match_statements,
    normalize,
    read_statements,
)
from finding_tickets.model.ticket import StatementRef
from finding_tickets.model.verification import Contradiction, MeasuredRun
from finding_tickets.model.vocabulary import WORKTREE
from finding_tickets.verify.judge import FIX, FOUND, RACED, times_text, unordered_text
from finding_tickets.verify.plan import BASE, Plan

Counts = dict[Statement, dict[str, int]]
Site = tuple[str, int, str, str, int]
# What no statement elsewhere may do unless it did so before.
NEW = {
    "syncs": "a new wait",
    "hazards": "a new race",
    "implicit_syncs": "copies of unpinned memory may wait",
}


@dataclass(frozen=True)
class PlacedRuns:
    """The runs of each variant, with the costs of the place alone.

    ``lines`` has where it stands, empty where it is gone. ``elsewhere`` has what waits against the claim.
    ``differs`` says where two runs of the same work cost differently.
    """

    runs: dict[str, Sequence[CountedRun]] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    elsewhere: list[Contradiction] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)


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
        raise BadDataError(
            "place: there is no variant found to look for it", line=place.line
        )
    root = Path(todo.folders[FOUND])
    twins = equal_statements(root, place.file, place.function, place.code)
    number = place.occurrence or len(twins)
    if number <= len(twins) and (place.occurrence or number == 1):
        return twins[number - 1]
    where = f"{place.file}{f', {place.function}()' if place.function else ''}"
    if twins:
        lines = ", ".join(str(each.line) for each in twins)
        message = (
            f"place: {where} has this statement {len(twins)} times, at lines {lines}"
        )
        hint = f"say which one: occurrence: 1 to {len(twins)}"
    else:
        at = todo.revisions.get(FOUND, WORKTREE)
        message = f"place: {where} has no such statement at {at}: {place.code}"
        hint = "correct place, or pin found to a commit that has it"
        for each in read_statements(root, place.file):
            if each.code == normalize(place.code):
                hint = (
                    f"it stands at {each} in {each.function or 'no function'}; {hint}"
                )
    raise BadDataError(message, line=place.line, hint=hint)


@dataclass
class Others:
    """The statements of a fix that wait, beside the place: with how often at most each of them did before.

    Those that the ticket names as ``moved`` may.
    """

    new: dict[Statement, int] = field(default_factory=dict)
    moved: list[Statement] = field(default_factory=list)


class PlacedVariant:
    """The runs of a variant, with what each statement costs in them and by which calls it was reached."""

    def __init__(self, runs: Sequence[MeasuredRun], code: Path) -> None:
        self.runs, self.code = runs, code
        self.counts = [count_statements(run.sites, code) for run in runs]
        self.chains: dict[Statement, set[str]] = {}
        for run in runs:
            for file, line, function, chain in run.chains:
                self.chains.setdefault(
                    find_statement(code, file, line, function), set()
                ).add(chain)

    def callers(self, statement: Statement) -> set[str]:
        """Return the calls by which a statement was reached, whichever of its expressions cost something."""
        return {chain.partition("\n")[2] for chain in self.chains.get(statement, ())}

    def waiting(self, but: Statement | None) -> list[Statement]:
        """Return the statements that wait or race in some run, by their place, except for one."""
        return sorted({*self.costing("syncs"), *self.costing("hazards")} - {but})

    def costing(self, metric: str) -> list[Statement]:
        """Return the statements that cost something in some run, by their place."""
        found = set[Statement]()
        for counts in self.counts:
            found.update(each for each, costs in counts.items() if metric in costs)
        return sorted(found)

    def unpinned(self, least: int) -> list[Statement]:
        """Return the statements that copy so often at least in some run, and may wait in each copy."""
        found = set()
        for counts in self.counts:
            for statement, costs in counts.items():
                copies = costs.get("h2d", 0) + costs.get("d2h", 0)
                if costs.get("implicit_syncs", 0) >= copies >= least:
                    found.add(statement)
        return sorted(found)

    def values(self, statements: Iterable[Statement | None], metric: str) -> list[int]:
        """Return what statements cost together, in each run."""
        statements = list(statements)
        return [
            sum(at[each].get(metric, 0) for each in statements if each in at)
            for at in self.counts
        ]

    def run_at(
        self, number: int, place: Statement | None, shown: Collection[Statement | None]
    ) -> CountedRun:
        """Return a run as if the place were all that costs something, with the lines to be shown."""
        run = self.runs[number]
        own = self.counts[number].get(place, {}) if place else {}
        metrics = {name: run.metrics[name] for name in ENDINGS if name in run.metrics}
        metrics |= {
            name: own.get(name, 0) for name in OF_STATEMENTS if name in run.metrics
        }
        sites: dict[Place, int] = {}
        for file, line, function, what, count in run.sites:
            if find_statement(self.code, file, line, function) in shown:
                sites[file, line, function, what] = count
        # A part of a modelled number is one, too: how much of it is not known, unless there may only be more.
        ranges: dict[str, Range] = {}
        for name in metrics.keys() & run.ranges:
            if metrics[name]:
                ranges[name] = (
                    (metrics[name] if run.ranges[name][0] == run.metrics[name] else 0),
                    None,
                )
        return CountedRun(
            run.at, metrics, sites, run.error, run.unknown, run.approximate, ranges
        )


def measure_place(
    todo: Plan,
    place: StatementRef,
    runs: Mapping[str, Sequence[MeasuredRun]],
    in_all: Mapping[str, Sequence[MeasuredRun]],
) -> PlacedRuns:
    """Return the costs of the place in each variant, and what else waits in the fix.

    The runs ``in_all`` tell what else waits, also outside of the function that is counted.

    Raises:
        BadDataError: The place cannot be found in the code as found.
    """
    measured = PlacedRuns()
    variants = {
        name: PlacedVariant(each, Path(todo.folders[name]))
        for name, each in runs.items()
    }
    there = find_place(todo, place)
    for name, variant in variants.items():
        here = (
            there if name == FOUND else find_again(there, variants[FOUND].code, variant)
        )
        shown = {here}
        if name == FIX:
            whole = {
                each: PlacedVariant(in_all[each], variants[each].code)
                for each in in_all
            }
            others = _find_others(todo, whole, there, here)
            raced = whole[FIX].costing(RACED)
            shown |= {*others.new, *others.moved, *raced}
            for statement, before in others.new.items():
                measured.elsewhere.append(
                    _say_new(whole[FIX], statement, todo.sweep, raced, before)
                )
            said = ""
            if others.moved and not todo.is_closed:
                said = _say_no_less(
                    whole[FOUND], whole[FIX], there, {here, *others.moved}
                )
            if said:
                measured.elsewhere.append(Contradiction(what="moved", text=said))
        measured.lines[name] = str(here) if here else ""
        placed = [
            variant.run_at(number, here, shown) for number in range(len(variant.runs))
        ]
        measured.runs[name] = placed[: len(todo.sweep)]
        if any(
            again.metrics != placed[0].metrics for again in placed[len(todo.sweep) :]
        ):
            measured.differs.append(
                f"{name} at {measured.lines[name] or 'other statements'}"
            )
    return measured


def find_again(there: Statement, old: Path, variant: PlacedVariant) -> Statement | None:
    """Return the same statement of changed code. Of equal ones it is that with the same neighbours.

    A statement with other names is among those that cost something. None where it is gone.
    """
    before, after = (
        read_statements(old, there.file),
        read_statements(variant.code, there.file),
    )
    codes = [(each.function, each.code) for each in before]
    now = [(each.function, each.code) for each in after]
    at, key = before.index(there), (there.function, there.code)
    for begin, place, size in SequenceMatcher(
        None, codes, now, autojunk=False
    ).get_matching_blocks():
        if begin <= at < begin + size:
            return after[place + at - begin]
    if now.count(key) >= codes.count(key):
        return after[now.index(key)]
    costly = sorted(set[Statement]().union(*variant.counts))
    others = [each for each in costly if (each.function, each.code) not in codes]
    return next(iter(match_statements([there], others, variant.code)), None)


def _find_others(
    todo: Plan,
    whole: Mapping[str, PlacedVariant],
    there: Statement,
    here: Statement | None,
) -> Others:
    """Return the statements of the fix that wait and did not in the code as found, or in the base."""
    fix = whole[FIX]
    others = _compare_waits(todo, whole[FOUND], fix, there, here)
    if BASE in whole:
        # What once waited, and no longer did in the base, is new as well.
        base = whole[BASE]
        others.new = {**_compare_waits(todo, base, fix, there, here).new, **others.new}
        left = _leave_out_known([*others.new, *others.moved], fix, base)
        others.new = {each: others.new[each] for each in left if each in others.new}
        # Of what was moved, what the base has as well may have more to do.
        others.moved = [each for each in others.moved if each in left]
        for statement in _find_unpinned(fix, base):
            others.new.setdefault(statement, 0)
    if todo.is_closed:
        others.new = _leave_out_later(
            others.new, fix, whole[FOUND].values([there], "syncs")
        )
    return others


def _compare_waits(
    todo: Plan,
    found: PlacedVariant,
    fix: PlacedVariant,
    there: Statement,
    here: Statement | None,
) -> Others:
    """Return the statements of the fix that wait where other code did not.

    Other expressions wait, or a statement that waits more often is reached by other calls. A statement that
    waits more often by the same calls has more to do.
    """
    before, waiting = found.waiting(there), fix.waiting(here)
    moved = [each.statement for each in todo.moved]
    known = [*before, *moved, *todo.excused]
    matched = match_statements(known, waiting, fix.code)
    calls = set[str]().union(*(found.chains.get(each, ()) for each in before))
    others = Others()
    for statement in waiting:
        place, chains = matched.get(statement), fix.chains.get(statement, set())
        if place is None:
            if not chains or not chains <= calls:
                others.new[statement] = 0
        elif known[place] in moved:
            others.moved.append(statement)
        elif place < len(before) and not fix.callers(statement) <= found.callers(
            known[place]
        ):
            waits = found.values([known[place]], "syncs")
            if any(map(gt, fix.values([statement], "syncs"), waits)):
                others.new[statement] = max(waits)
    return others


def _find_unpinned(fix: PlacedVariant, base: PlacedVariant) -> list[Statement]:
    """Return the statements all of whose copies may wait, unless it is as in the base.

    A single copy may have to wait for the allocator. One that is written in another way is as in the base.
    """
    there, here = base.unpinned(least=1), fix.unpinned(least=2)
    known = match_statements(there, here, fix.code)
    gone = [each for number, each in enumerate(there) if number not in known.values()]
    found = []
    for statement in here:
        if statement not in known and not any(
            each.is_beside(statement) for each in gone
        ):
            found.append(statement)
    return found


def _leave_out_known(
    anew: Sequence[Statement], fix: PlacedVariant, base: PlacedVariant
) -> list[Statement]:
    """Return the statements that the base lacks, unless as many waits of the base are gone in their place.

    The base has a statement if the same calls reach it, in as many loops.
    """
    there, left = base.waiting(None), list[Statement]()
    known = match_statements(there, fix.waiting(None), fix.code)
    gone = [each for number, each in enumerate(there) if number not in known.values()]
    for statement in anew:
        if statement in known:
            before = there[known[statement]]
            is_known = statement.loops <= before.loops and fix.callers(
                statement
            ) <= base.callers(before)
        else:
            waits = fix.values(
                [each for each in anew if each.is_beside(statement)], "syncs"
            )
            most = base.values(
                [each for each in gone if each.is_beside(statement)], "syncs"
            )
            is_known = not any(
                [*map(gt, waits, most), *fix.values([statement], "hazards")]
            )
        if not is_known:
            left.append(statement)
    return left


def _leave_out_later(
    new: dict[Statement, int], fix: PlacedVariant, before: Sequence[int]
) -> dict[Statement, int]:
    """Return what waits or races against the claim in the code of a closed ticket, which has gone on.

    Its wait is back if all that is new waits as often as its statement did, in some run.
    """
    for waits, count in zip(fix.values(new, "syncs"), before, strict=True):
        if waits >= count > 0:
            return new
    return {
        each: waits for each, waits in new.items() if any(fix.values([each], "hazards"))
    }


def _say_no_less(
    found: PlacedVariant,
    fix: PlacedVariant,
    there: Statement,
    moved: Collection[Statement | None],
) -> str:
    """Say that what was moved waits as often as the place did; empty if it waits less.

    One read may take the place of several: removed waits of the same function, or of loops at module level,
    count as well.
    """
    beside = [each for each in found.costing("syncs") if each.is_beside(there)]
    if not there.function:
        beside = [each for each in beside if there.loops and each.loops]
    left = match_statements(
        beside, [each for each in fix.costing("syncs") if each not in moved], fix.code
    )
    gone = [each for number, each in enumerate(beside) if number not in left.values()]
    before, after = found.values({there, *gone}, "syncs"), fix.values(moved, "syncs")
    if before != after and not any(map(gt, after, before)):
        return ""
    waits, did = times_text(str(max(after))), times_text(str(max(before)))
    return f"what moved names waits {waits}, not less than {there}, {did}"


def _say_new(
    variant: PlacedVariant,
    statement: Statement,
    sweep: Sequence[Mapping[str, int]],
    raced: Iterable[Statement],
    before: int,
) -> Contradiction:
    """Say where a statement waits or races against the claim, how often, and how often it did before."""
    metric = next(each for each in NEW if any(variant.values([statement], each)))
    values = variant.values([statement], metric)[: len(sweep)]
    times = times_text(str(fit(sweep[: len(values)], values, sweep[: len(values)])))
    function = f" in {statement.function}()" if statement.function else ""
    than = f", {times_text(str(before))} before" if before else ""
    text = f"{NEW[metric]} at {statement}{function}, {times}{than}: {statement.code}"
    if any(variant.values([statement], "hazards")):
        text += unordered_text([f"{each}: {each.code}" for each in raced])
    return Contradiction(
        what=metric,
        text=text,
        file=statement.file,
        line=statement.line,
        code=statement.code,
    )
