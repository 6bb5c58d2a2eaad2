"""What a target spends beside what its budget says: limits, allowances, and who goes beyond them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.budget.moves import Likeness, Move, Spent, Values, bound, find_moves
from finding_tickets.budget.spending import LARGEST, Spender, Spending, missing_target
from finding_tickets.budget.statements import Statement, normal, read_code, statements_of
from finding_tickets.claims.check import Checked, at_text, check_counts
from finding_tickets.claims.laws import fit
from finding_tickets.claims.metrics import SYNCS
from finding_tickets.errors import ExitCode
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.budgets import Allowance, Budget
from finding_tickets.register.staleness import is_below

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem

BEHIND = {
    "h2d_bytes": "h2d",
    "d2h_bytes": "d2h",
    "d2d_bytes": "d2d",
    "p2p_bytes": "p2p",
    **dict.fromkeys(("peak_bytes", "peak_allocated_bytes", "retained_bytes", "ooms"), LARGEST),
}
"""By what the lines behind a metric are found that lines do not spend themselves."""
MOST_LINES, MOST_REQUESTS = 20, 5
"""Lines that are named for one limit."""

SMALL_PART = 8
"""A request for less than this part of the memory is not named."""

RULES = {
    "budget-exceeded": ExitCode.GATE_FAILED,
    "budget-allowance": ExitCode.BAD_DATA,
    "budget-gone": ExitCode.BAD_DATA,
    "budget-expired": ExitCode.GATE_FAILED,
    "budget-inconclusive": ExitCode.INCONCLUSIVE,
    "budget-moved": ExitCode.OK,
    "budget-modelled": ExitCode.OK,
    "budget-silent": ExitCode.OK,
}
"""What can be said of a budget, and the exit code of an error of that kind."""
MEANINGS = {
    "budget-exceeded": "Code spends more than its budget or its allowance lets it.",
    "budget-allowance": "An allowance names several places, or a ticket that is not there.",
    "budget-gone": "An allowance names code that is not there.",
    "budget-expired": "An allowance has ended.",
    "budget-inconclusive": "What the code spends could not be measured.",
    "budget-moved": "An allowed statement stands elsewhere now, or has changed.",
    "budget-modelled": "Whether a limit holds rests on a modelled number.",
    "budget-silent": "Nothing that is allowed to spend does: the program may have skipped it.",
}


@dataclass(frozen=True)
class AllowedSpender:
    """An allowance with the statement that spends by it, and whether that stands elsewhere now.

    ``more`` are allowances whose own statements are gone, and which pay for a part.
    """

    allowance: Allowance
    spender: Spender
    spent: Spent
    is_moved: bool = False
    more: tuple[Allowance, ...] = ()

    def bound(self, metric: str, at: Mapping[str, int]) -> int | None:
        """The most that the statement may spend of a metric at a point; None for any amount."""
        laws = [each.law for each in (self.allowance, *self.more) if is_for(each, metric)]
        return sum(bound(law, at) for law in laws) if laws and all(laws) else None


@dataclass(frozen=True)
class LimitRow:
    """A limit beside what counts towards it; ``law`` is what that is, with all points in view."""

    metric: str
    limit: str
    law: str
    values: Values
    allowed: str  # the law of what allowances set apart; empty for nothing
    left: str
    holds: bool | None


@dataclass(frozen=True, kw_only=True)
class JudgedBudget:
    """A budget, what its target spends, and what there is to say."""

    budget: Budget
    spending: Spending
    rows: tuple[LimitRow, ...] = ()
    allowed: tuple[AllowedSpender, ...] = ()
    others: tuple[tuple[Spender, Mapping[str, Values]], ...] = ()  # that count towards the limits
    silent: tuple[Allowance, ...] = ()  # that spent nothing in this run
    gone: tuple[Allowance, ...] = ()  # whose place is no more
    problems: tuple[Problem, ...] = ()


@dataclass
class _Judge:
    """Collects what there is to say of one budget."""

    budget: Budget
    spending: Spending
    root: Path
    file: str  # the configuration
    ending: Callable[[Allowance], tuple[str, str] | None]
    problems: list[Problem] = field(default_factory=list)

    def say(
        self,
        rule: str,
        message: str,
        hint: str = "",
        *,
        file: str = "",
        line: int = 0,
        level: Level = Level.ERROR,
    ) -> None:
        """Add a problem, of the budget itself unless a file is named."""
        # Where all is well, pydantic is not loaded.
        from finding_tickets.model.ticket import Problem

        self.problems.append(
            Problem(
                level=level,
                rule=rule,
                file=file or self.file,
                line=line or self.budget.line or 1,
                message=f"budget {self.budget.name}: {message}",
                hint=hint or None,
            )
        )


def judge(
    budget: Budget,
    spending: Spending,
    root: Path,
    file: str,
    is_closed: Callable[[str], bool | None],
    today: date,
) -> JudgedBudget:
    """A budget beside what its target spends in the folder ``root``; ``file`` is the configuration.

    ``is_closed`` tells of a ticket's ID whether it is closed; None for no such ticket.
    """
    found = _Judge(budget, spending, root, file, lambda each: _ending(each, is_closed, today))
    _check_paths(found)
    if spending.trouble:
        # With the values of the first point, anybody can run it.
        run = re.sub(r"\{(\w+)\}", lambda name: str((*budget.sweep.get(name[1], ()), name[0])[0]), budget.run)
        found.say("budget-inconclusive", f"not measured: {spending.trouble}", hint=f"tickets probe {run}")
        return JudgedBudget(budget=budget, spending=spending, problems=tuple(found.problems))
    allowed, silent, gone = _match(found)
    if silent and len(silent) == len(budget.allow):
        text = f"none of the {len(silent)} statements that it allows spends anything: does it still run them?"
        found.say("budget-silent", text, level=Level.WARNING)
    allowed += tuple(_of_region(*each) for each in spending.regions)
    if spending.unknown:
        unknown = ", ".join(spending.unknown)
        found.say("budget-inconclusive", f"uses operations of unknown cost: {unknown}")
    of_allowed = {id(each.spent) for each in allowed}
    others = tuple(
        each
        for each in spending.spent
        if id(each[1]) not in of_allowed and _counts(budget, each[0]) and any(map(any, each[1].values()))
    )
    rows = tuple(_row(found, metric, limit, allowed) for metric, limit in budget.limits.items())
    for row in rows:
        if row.holds is False:
            _blame(found, row, allowed)
    for each in allowed:
        _check_law(found, each)
    return JudgedBudget(
        budget=budget,
        spending=spending,
        rows=rows,
        allowed=allowed,
        others=others,
        silent=silent,
        gone=gone,
        problems=tuple(found.problems),
    )


def judge_unrun(
    budget: Budget, root: Path, file: str, is_closed: Callable[[str], bool | None], today: date
) -> JudgedBudget:
    """A budget of which nothing was run: whether each allowance counts, and names exactly one place."""
    found = _Judge(budget, Spending(), root, file, lambda each: _ending(each, is_closed, today))
    _, silent, gone = _match(found)
    _check_paths(found)
    if why := missing_target(budget, root):
        found.say("budget-inconclusive", why)
    return JudgedBudget(
        budget=budget, spending=Spending(), silent=silent, gone=gone, problems=tuple(found.problems)
    )


def _check_paths(found: _Judge) -> None:
    """Say which paths name nothing; where none names anything, no line would count."""
    missing = [path for path in found.budget.paths if not (found.root / path).exists()]
    level = Level.ERROR if len(missing) == len(found.budget.paths) else Level.WARNING
    for path in missing:
        found.say("budget-allowance", f"paths: there is no {path}", level=level)


def exit_code(problems: Iterable[Problem]) -> ExitCode:
    """What the problems of budgets end in."""
    return ExitCode.worst(*(RULES[each.rule] for each in problems if each.level is Level.ERROR))


def places(allowance: Allowance, root: Path) -> tuple[Statement, ...]:
    """The statements that an allowance with a text names; none where there are none."""
    known = statements_of(read_code(root / allowance.file))
    return tuple(each for each in known if is_place(allowance, each))


def is_place(allowance: Allowance, statement: Statement | Spender) -> bool:
    """Whether an allowance with a text is about a statement of its file."""
    return (
        statement.text == normal(allowance.text)
        and (not allowance.function or statement.function == allowance.function)
        and allowance.occurrence in {None, statement.occurrence}
    )


def _ending(
    allowance: Allowance, is_closed: Callable[[str], bool | None], today: date
) -> tuple[str, str] | None:
    """By which rule an allowance counts no more, and why; None while it does."""
    until, last = allowance.until, allowance.last_day
    if not until or last:
        return ("budget-expired", f"it ended on {until}") if last and today > last else None
    closed = is_closed(until)
    if closed is None:
        return "budget-allowance", f"until: there is no ticket {until}"
    return ("budget-expired", f"{until} is closed") if closed else None


def _match(
    found: _Judge,
) -> tuple[tuple[AllowedSpender, ...], tuple[Allowance, ...], tuple[Allowance, ...]]:
    """The statements that spend by an allowance; the allowances that are silent, and those that are gone."""
    spenders = {id(spent): (spender, spent) for spender, spent in found.spending.spent}
    matched: list[AllowedSpender] = []
    silent: list[Allowance] = []
    lost: list[Allowance] = []
    for allowance in found.budget.allow:
        if ending := found.ending(allowance):
            rule, why = ending
            found.say(rule, f"allow {allowance}: {why}", line=allowance.line)
            continue
        here = [(key, *each) for key, each in spenders.items() if _names(allowance, each[0])]
        statements = places(allowance, found.root) if allowance.text else ()
        if len(statements) > 1:
            found.say("budget-allowance", *several_places(allowance, statements), line=allowance.line)
            continue
        for key, spender, spent in here:
            matched.append(AllowedSpender(allowance, spender, spent))
            del spenders[key]
        if here:
            continue
        (silent if statements or (not allowance.text and _is_there(allowance, found.root)) else lost).append(
            allowance
        )
    moved, gone = _moved(found, matched, lost, list(spenders.values()))
    return tuple(moved), tuple(silent), tuple(gone)


def _moved(
    found: _Judge,
    matched: Sequence[AllowedSpender],
    lost: Sequence[Allowance],
    others: Sequence[tuple[Spender, Spent]],
) -> tuple[list[AllowedSpender], list[Allowance]]:
    """The statements that spend by an allowance, with those that gone ones pay for; and what is gone."""
    points, metrics = found.spending.points, {*found.budget.limits, *(w for each in lost for w in each.what)}
    beyond = {
        id(each): {metric: excess for metric, _, excess in law_excesses(each, points)} for each in matched
    }
    needs = {id(spent): (spender, spent) for spender, spent in others if _counts(found.budget, spender)}
    needs |= {id(each): (each.spender, beyond[id(each)]) for each in matched if beyond[id(each)]}
    by_need = {id(spent): key for key, (_, spent) in needs.items()}
    moves = {
        by_need[id(move.spent)]: move
        for move in find_moves(lost, list(needs.values()), points, is_for, metrics - {LARGEST}, found.root)
    }
    made = [replace(each, more=moves[id(each)].paid_by) if id(each) in moves else each for each in matched]
    for move in moves.values():
        if id(move.spent) in needs:
            first, *more = move.paid_by
            made.append(AllowedSpender(first, move.spender, move.spent, is_moved=True, more=tuple(more)))
        _tell_of(found, move)
    used = {id(each) for move in moves.values() for each in move.paid_by}
    gone = [each for each in lost if id(each) not in used]
    for allowance in gone:
        hint = "tickets budget tighten removes what is gone"
        found.say("budget-gone", f"allow {allowance}: matches nothing", line=allowance.line, hint=hint)
    return made, gone


def _tell_of(found: _Judge, move: Move) -> None:
    """Say which statement allowances are for now; louder where it may as well be another one."""
    spender, is_related = move.spender, move.likeness is Likeness.RELATED
    for allowance in move.paid_by:
        now = f"{spender} in {spender.function or 'the module'}"
        said = f"is gone, and {now} takes its place" if is_related else f"is {now} now"
        found.say(
            "budget-moved",
            f"allow {allowance}: {said}: {spender.source}",
            line=allowance.line,
            hint="tickets budget tighten writes it",
            level=Level.WARNING if is_related else Level.NOTE,
        )


def _of_region(reason: str, spender: Spender, spent: Mapping[str, Values]) -> AllowedSpender:
    """What ``simcuda.allowed`` set apart; its allowance has no line of the configuration."""
    allowance = Allowance(
        file=spender.file,
        function=spender.function,
        text=spender.text,
        occurrence=spender.occurrence,
        reason=reason,
    )
    return AllowedSpender(allowance, spender, spent)


def _names(allowance: Allowance, spender: Spender) -> bool:
    """Whether an allowance is about a statement."""
    if allowance.file.endswith("/"):
        return spender.file.startswith(allowance.file)
    if spender.file != allowance.file:
        return False
    if allowance.text:
        return is_place(allowance, spender)
    return not allowance.function or f"{spender.function}.".startswith(f"{allowance.function}.")


def several_places(allowance: Allowance, statements: Sequence[Statement]) -> tuple[str, str]:
    """What is said of an allowance that names several statements, and what to do."""
    lines = ", ".join(str(each.first) for each in statements)
    message = f"allow {allowance}: matches {len(statements)} places, on lines {lines}"
    return message, "add function and occurrence"


def _is_there(allowance: Allowance, root: Path) -> bool:
    """Whether the file, folder or function of an allowance exists."""
    path = root / allowance.file
    if not allowance.function or not path.is_file():
        return path.exists()
    names = {each.function for each in statements_of(read_code(path))}
    return any(f"{name}.".startswith(f"{allowance.function}.") for name in names)


def _counts(budget: Budget, spender: Spender) -> bool:
    """Whether what a statement spends counts towards the limits."""
    return not budget.paths or within(budget.paths, spender.file)


def within(paths: Iterable[str], file: str) -> bool:
    """Whether a file is one of these, or in one of these folders."""
    return any(is_below(file, path.rstrip("/")) for path in paths)


def _apart(found: _Judge, metric: str, allowed: Sequence[AllowedSpender]) -> tuple[Values, Values]:
    """What of a metric allowances set apart at each point, and what lies outside of the paths."""
    none = (0,) * len(found.spending.points)
    by_allowance = [
        each.spent[metric] for each in allowed if metric in each.spent and is_for(each.allowance, metric)
    ]
    taken = {id(each.spent) for each in allowed}
    outside = [
        spent[metric]
        for spender, spent in found.spending.spent
        if metric in spent and id(spent) not in taken and not _counts(found.budget, spender)
    ]
    if metric == LARGEST:
        # The largest of several is no sum of them.
        return none, none
    return tuple(map(sum, zip(none, *by_allowance, strict=True))), tuple(
        map(sum, zip(none, *outside, strict=True))
    )


def is_for(allowance: Allowance, metric: str) -> bool:
    """Whether an allowance is for a metric: waits of each kind are waits, and some of them drain."""
    of_waits = {*SYNCS, "drains"} if "syncs" in allowance.what else set()
    return not allowance.what or metric in {*allowance.what, *of_waits}


def _row(found: _Judge, metric: str, limit: str, allowed: Sequence[AllowedSpender]) -> LimitRow:
    """One limit beside what counts towards it."""
    spending = found.spending
    if metric not in spending.metrics:
        found.say("budget-inconclusive", f"{metric}: {spending.device} does not count it")
        return LimitRow(metric, limit, "not counted", (), "", "", None)
    total = spending.metrics[metric]
    apart, outside = _apart(found, metric, allowed)
    values = tuple(a - b - c for a, b, c in zip(total, apart, outside, strict=True))
    checked = check(
        metric, limit, values, spending, less=[a + b for a, b in zip(apart, outside, strict=True)]
    )
    left = [bound(limit, at) - value for at, value in zip(spending.points, values, strict=True)]
    if checked.holds and checked.modelled:
        message = f"{metric}: {checked.measured}"
        found.say("budget-modelled", message, level=Level.WARNING)
    return LimitRow(
        metric,
        limit,
        law_of(values, spending.points),
        values,
        law_of(apart, spending.points) if any(apart) else "",
        law_of(left, spending.points),
        checked.holds,
    )


def check(metric: str, limit: str, values: Values, spending: Spending, less: Sequence[int] = ()) -> Checked:
    """Whether values stay within a limit, by the rules for claims; ``less`` is what they were lessened by."""
    ranges = [
        bounds and (bounds[0] - off, bounds[1] if bounds[1] is None else bounds[1] - off)
        for bounds, off in zip(
            spending.ranges.get(metric, (None,) * len(values)), less or (0,) * len(values), strict=True
        )
    ]
    return check_counts(metric, f"<= {limit}", spending.points, values, spending.points, ranges)


def law_of(values: Sequence[int], points: Sequence[Mapping[str, int]]) -> str:
    """The law of values in the variables of the sweep, or what is known instead."""
    return str(fit(points, values, points)) if len(points) > 1 and len(set(values)) > 1 else str(values[0])


def counting(judged: JudgedBudget, metric: str) -> tuple[tuple[Spender, Spent], ...]:
    """The statements whose spending of a metric counts towards a limit."""
    return _counting(judged.budget, judged.spending, judged.allowed, metric)


def _counting(
    budget: Budget, spending: Spending, allowed: Sequence[AllowedSpender], metric: str
) -> tuple[tuple[Spender, Spent], ...]:
    taken = {id(each.spent) for each in allowed if metric != LARGEST and is_for(each.allowance, metric)}
    return tuple(
        (spender, spent)
        for spender, spent in spending.spent
        if metric in spent and id(spent) not in taken and _counts(budget, spender)
    )


def _blame(found: _Judge, row: LimitRow, allowed: Sequence[AllowedSpender]) -> None:
    """Say that a limit is exceeded, at each line that spends it."""
    spending, metric = found.spending, BEHIND.get(row.metric, row.metric)
    over = [
        place for place, value in enumerate(row.values) if value > bound(row.limit, spending.points[place])
    ]
    place = over[0]
    where = f" at {at_text(spending.points[place])}" if len(spending.points) > 1 else ""
    said = f"{row.metric}: {row.law}, at most {row.limit} allowed; {row.values[place]}{where}"
    lines = [
        (spent[metric][place], spender, spent[metric])
        for spender, spent in _counting(found.budget, spending, allowed, metric)
        if spent[metric][place]
    ]
    lines.sort(key=lambda each: (-each[0], each[1]))
    if metric == LARGEST:
        # What is small beside the whole is not at fault.
        lines = [each for each in lines if each[0] * SMALL_PART >= row.values[place]] or lines[:1]
    hint = "spend less, or allow the line with a reason"
    if not lines:
        found.say("budget-exceeded", said)
    unit = " bytes at once" if metric == LARGEST else ""
    shown = lines[: MOST_REQUESTS if metric == LARGEST else MOST_LINES]
    for count, spender, values in shown:
        own = f"{law_of(values, spending.points)}{unit}" if count else ""
        if len(lines) > len(shown) and spender is shown[-1][1]:
            own += f" (and {len(lines) - len(shown)} more lines)"
        found.say(
            "budget-exceeded",
            f"{said}, here {own}: {spender.source}",
            file=spender.file,
            line=spender.line,
            hint=hint,
        )


def law_excesses(
    each: AllowedSpender, points: Sequence[Mapping[str, int]]
) -> Iterator[tuple[str, Values, Values]]:
    """The metrics of which a statement spends more than its allowance lets it: all of it, and the excess."""
    for metric in each.allowance.what:
        values = each.spent.get(metric, (0,) * len(points))
        most = [each.bound(metric, at) for at in points]
        excess = tuple(
            0 if top is None else max(value - top, 0) for value, top in zip(values, most, strict=True)
        )
        if any(excess):
            yield metric, values, excess


def _check_law(found: _Judge, each: AllowedSpender) -> None:
    """Say that a statement exceeds the law of its allowance."""
    allowance, points = each.allowance, found.spending.points
    for metric, values, excess in law_excesses(each, points):
        place = next(number for number, more in enumerate(excess) if more)
        where = f" at {at_text(points[place])}" if len(points) > 1 else ""
        owner = f" by {allowance.owner}" if allowance.owner else ""
        found.say(
            "budget-exceeded",
            f"{metric}: {law_of(values, points)}, at most {allowance.law} allowed of this line; "
            f"{values[place]}{where}: {each.spender.source}",
            file=each.spender.file,
            line=each.spender.line,
            hint=f"it is allowed in {found.file}:{allowance.line}{owner}",
        )
