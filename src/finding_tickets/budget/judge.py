"""Compare what a target spends with its budget: limits, allowances, and the lines that exceed them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from finding_tickets.budget.moves import Likeness, Placed, Points, Spent, Values, bound, find_moves
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


RULES: Mapping[str, tuple[ExitCode, str]] = {
    "budget-exceeded": (ExitCode.GATE_FAILED, "Code spends more than its budget or its allowance lets it."),
    "budget-allowance": (ExitCode.BAD_DATA, "An allowance names several places, or an unknown ticket."),
    "budget-gone": (ExitCode.BAD_DATA, "An allowance names code that is not there."),
    "budget-expired": (ExitCode.GATE_FAILED, "An allowance has ended."),
    "budget-inconclusive": (ExitCode.INCONCLUSIVE, "What the code spends could not be measured."),
    "budget-moved": (ExitCode.OK, "An allowed statement stands elsewhere now, or has changed."),
    "budget-modelled": (ExitCode.OK, "Whether a limit holds rests on a modelled number."),
    "budget-silent": (ExitCode.OK, "Nothing that is allowed to spend does: the program may skip it."),
}
"""What can be said of a budget: the exit code of an error of that kind, and its meaning."""


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
    """A limit and what counts towards it, at each point as ``values`` and for all of them as a ``law``."""

    metric: str
    limit: str
    law: str
    values: Values
    allowed: str  # the law of what allowances set apart; empty for nothing
    left: str
    holds: bool | None


class LawExcess(NamedTuple):
    """A metric of which a statement spends more than its allowance lets it: all of it, and the excess."""

    metric: str
    values: Values
    excess: Values

    def place(self) -> int:
        """The first point at which it is too much."""
        return next(number for number, more in enumerate(self.excess) if more)


@dataclass(kw_only=True)
class JudgedBudget:
    """A budget compared with what its target spends in the folder ``root``, and the problems found."""

    budget: Budget
    spending: Spending
    root: Path
    file: str  # the configuration
    rows: list[LimitRow] = field(default_factory=list)
    allowed: list[AllowedSpender] = field(default_factory=list)
    silent: list[Allowance] = field(default_factory=list)  # that spent nothing in this run
    gone: list[Allowance] = field(default_factory=list)  # whose place is no more
    problems: list[Problem] = field(default_factory=list)

    @property
    def others(self) -> list[tuple[Spender, Spent]]:
        """The statements that count towards the limits."""
        return [
            (spender, spent)
            for spender, spent in self._not_allowed()
            if self.counts(spender) and any(map(any, spent.values()))
        ]

    def counting(self, metric: str) -> list[tuple[Spender, Values]]:
        """The statements whose spending of a metric counts towards a limit, each with that."""
        spenders = self.spending.spent if metric == LARGEST else self._not_allowed(metric)
        return [(each, spent[metric]) for each, spent in spenders if metric in spent and self.counts(each)]

    def counts(self, spender: Spender) -> bool:
        """Whether what a statement spends counts towards the limits, unless it is allowed to."""
        return not self.budget.paths or within(self.budget.paths, spender.file)

    def _not_allowed(self, metric: str | None = None) -> Iterator[tuple[Spender, Spent]]:
        """The statements that no allowance is for; or none for a metric."""
        allowed = {id(each.spent) for each in self.allowed if not metric or is_for(each.allowance, metric)}
        return (each for each in self.spending.spent if id(each[1]) not in allowed)

    def where(self, place: int) -> str:
        """At which point something is, in words; nothing where there is but one."""
        points = self.spending.points
        return f" at {at_text(points[place])}" if len(points) > 1 else ""

    def law_of(self, values: Values) -> str:
        """The law of values in the variables of the sweep, or what is known instead."""
        return law_of(values, self.spending.points)

    def over_limit(self, row: LimitRow) -> tuple[int, str]:
        """The first point at which a limit is exceeded, and what is said of it."""
        most = [bound(row.limit, at) for at in self.spending.points]
        place = next(number for number, value in enumerate(row.values) if value > most[number])
        said = f"{row.metric}: {row.law}, at most {row.limit} allowed; {row.values[place]}{self.where(place)}"
        return place, said

    def named(self, metric: str, lines: Sequence[tuple[Spender, Values]]) -> Iterator[tuple[Spender, str]]:
        """The lines that are named for a limit, each with what it spends; after the last, how many more."""
        most, unit = (MOST_REQUESTS, " bytes at once") if metric == LARGEST else (MOST_LINES, "")
        for number, (spender, values) in enumerate(lines[:most], 1):
            more = f" (and {len(lines) - most} more lines)" if number == most < len(lines) else ""
            yield spender, f"here {self.law_of(values)}{unit}{more}"

    def over_law(self, each: AllowedSpender, over: LawExcess) -> tuple[str, str]:
        """What is said of a statement that exceeds the law of its allowance, and by whom it is allowed."""
        place, allowance = over.place(), each.allowance
        said = f"{over.metric}: {self.law_of(over.values)}, at most {allowance.law} allowed of this line"
        owner = f" by {allowance.owner}" if allowance.owner else ""
        hint = f"it is allowed in {self.file}:{allowance.line}{owner}"
        return f"{said}; {over.values[place]}{self.where(place)}", hint

    def law_excesses(self, each: AllowedSpender) -> Iterator[LawExcess]:
        """The metrics of which a statement spends more than its allowance lets it."""
        points = self.spending.points
        for metric in each.allowance.what:
            values = each.spent.get(metric, (0,) * len(points))
            most = [each.bound(metric, at) for at in points]
            excess = tuple(
                0 if top is None else max(value - top, 0) for value, top in zip(values, most, strict=True)
            )
            if any(excess):
                yield LawExcess(metric, values, excess)

    def say(
        self,
        rule: str,
        message: str,
        hint: str = "",
        *,
        at: Spender | None = None,
        line: int = 0,
        level: Level = Level.ERROR,
    ) -> None:
        """Add a problem: of a line of code, of one of the configuration, or of the budget itself."""
        # Where all is well, pydantic is not loaded.
        from finding_tickets.model.ticket import Problem

        self.problems.append(
            Problem(
                level=level,
                rule=rule,
                file=at.file if at else self.file,
                line=(at.line if at else line) or self.budget.line or 1,
                message=f"budget {self.budget.name}: {message}",
                hint=hint or None,
            )
        )


def judge(
    budget: Budget,
    spending: Spending | None,
    root: Path,
    file: str,
    is_closed: Callable[[str], bool | None],
    today: date,
) -> JudgedBudget:
    """Compare a budget with what its target spends in the folder ``root``; ``file`` is the configuration.

    Without a spending nothing was run: then only the allowances are checked. Each must be in force, and name
    exactly one place.
    ``is_closed`` tells of a ticket's ID whether it is closed; None for no such ticket.
    """
    judged = JudgedBudget(budget=budget, spending=spending or Spending(), root=root, file=file)
    missing = [path for path in budget.paths if not (root / path).exists()]
    for path in missing:
        # Where none names anything, no line would count.
        level = Level.ERROR if len(missing) == len(budget.paths) else Level.WARNING
        judged.say("budget-allowance", f"paths: there is no {path}", level=level)
    if spending and spending.trouble:
        # With the values of the first point it can be run by hand.
        run = re.sub(r"\{(\w+)\}", lambda name: str((*budget.sweep.get(name[1], ()), name[0])[0]), budget.run)
        text = f"not measured: {spending.trouble}"
        judged.say("budget-inconclusive", text, f"tickets probe {run}")
        return judged
    _match(judged, is_closed, today)
    if spending is None:
        if why := missing_target(budget, root):
            judged.say("budget-inconclusive", why)
        return judged
    if judged.silent and len(judged.silent) == len(budget.allow):
        count = len(judged.silent)
        text = f"none of the {count} statements that it allows spends anything: does it still run them?"
        judged.say("budget-silent", text, level=Level.WARNING)
    if spending.unknown:
        unknown = ", ".join(spending.unknown)
        judged.say("budget-inconclusive", f"uses operations of unknown cost: {unknown}")
    judged.rows = [_row(judged, metric, limit) for metric, limit in budget.limits.items()]
    for row in judged.rows:
        if row.holds is False:
            _blame(judged, row)
    for each in judged.allowed:
        for over in judged.law_excesses(each):
            said, hint = judged.over_law(each, over)
            judged.say("budget-exceeded", f"{said}: {each.spender.source}", hint, at=each.spender)
    return judged


def exit_code(problems: Iterable[Problem]) -> ExitCode:
    """What the problems of budgets end in."""
    return ExitCode.worst(*(RULES[each.rule][0] for each in problems if each.level is Level.ERROR))


def places(allowance: Allowance, root: Path) -> tuple[Statement, ...]:
    """The statements that an allowance with a text names; none where there are none."""
    known = statements_of(read_code(root / allowance.file))
    return tuple(each for each in known if is_place(allowance, each))


def is_place(allowance: Allowance, statement: Statement | Placed) -> bool:
    """Whether an allowance with a text is about a statement of its file."""
    return (
        normal(statement.text) == normal(allowance.text)
        and (not allowance.function or statement.function == allowance.function)
        and allowance.occurrence in {None, statement.occurrence}
    )


def covers(allowance: Allowance, placed: Placed) -> bool:
    """Whether an allowance is about a statement, or about all that another one is about."""
    if allowance.file.endswith("/"):
        return placed.file.startswith(allowance.file)
    if placed.file != allowance.file:
        return False
    if allowance.text:
        return is_place(allowance, placed)
    return not allowance.function or f"{placed.function}.".startswith(f"{allowance.function}.")


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


def _match(judged: JudgedBudget, is_closed: Callable[[str], bool | None], today: date) -> None:
    """Find the statements that spend by an allowance, and what became of the other allowances."""
    left = dict(judged.spending.spent)
    lost: list[Allowance] = []
    for allowance in judged.budget.allow:
        if ending := _ending(allowance, is_closed, today):
            rule, why = ending
            judged.say(rule, f"allow {allowance}: {why}", line=allowance.line)
            continue
        statements = places(allowance, judged.root) if allowance.text else ()
        if len(statements) > 1:
            judged.say("budget-allowance", *several_places(allowance, statements), line=allowance.line)
            continue
        own = [spender for spender in left if covers(allowance, spender)]
        judged.allowed += [AllowedSpender(allowance, spender, left.pop(spender)) for spender in own]
        if not own:
            is_there = bool(statements) if allowance.text else _is_there(allowance, judged.root)
            (judged.silent if is_there else lost).append(allowance)
    _follow(judged, lost, left)
    for reason, spender, spent in judged.spending.regions:
        # What ``simcuda.allowed`` set apart has no line of the configuration.
        names = {name: getattr(spender, name) for name in ("file", "function", "text", "occurrence")}
        judged.allowed.append(AllowedSpender(Allowance(**names, reason=reason), spender, spent))


def _follow(judged: JudgedBudget, lost: Sequence[Allowance], left: Mapping[Spender, Spent]) -> None:
    """Find the statements that lost allowances pay for; the others are gone."""
    metrics = {*judged.budget.limits, *(what for each in lost for what in each.what)} - {LARGEST}
    allowed = {each.spender: each for each in judged.allowed}
    needs = {spender: spent for spender, spent in left.items() if judged.counts(spender)}
    for each in judged.allowed:
        if excess := {over.metric: over.excess for over in judged.law_excesses(each)}:
            needs[each.spender] = excess
    used: list[Allowance] = []
    for move in find_moves(lost, needs, judged.spending.points, is_for, metrics, judged.root):
        first, *more = used_now = move.paid_by
        if known := allowed.get(move.spender):
            allowed[move.spender] = replace(known, more=move.paid_by)
        else:
            spent = left[move.spender]
            allowed[move.spender] = AllowedSpender(first, move.spender, spent, True, tuple(more))
        used += used_now
        # Louder where it may as well be another statement.
        is_related, place = move.likeness is Likeness.RELATED, move.spender
        now = f"{place} in {place.function or 'the module'}"
        said = f"is gone, and {now} takes its place" if is_related else f"is {now} now"
        for allowance in used_now:
            judged.say(
                "budget-moved",
                f"allow {allowance}: {said}: {place.source}",
                "tickets budget tighten writes it",
                line=allowance.line,
                level=Level.WARNING if is_related else Level.NOTE,
            )
    judged.allowed = list(allowed.values())
    judged.gone = [each for each in lost if each not in used]
    for allowance in judged.gone:
        text = normal(allowance.text) if allowance.text else ""
        texts = [each.text for each in statements_of(read_code(judged.root / allowance.file))]
        close = get_close_matches(text, texts, n=1)
        question = f"did you mean `{close[0]}`? " if close else ""
        hint = f"{question}tickets budget tighten removes what is gone"
        judged.say("budget-gone", f"allow {allowance}: matches nothing", hint, line=allowance.line)


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


def within(paths: Iterable[str], file: str) -> bool:
    """Whether a file is one of these, or in one of these folders."""
    return any(is_below(file, path.rstrip("/")) for path in paths)


def is_for(allowance: Allowance, metric: str) -> bool:
    """Whether an allowance is for a metric: waits of each kind are waits, and some of them drain."""
    of_waits = {*SYNCS, "drains"} if "syncs" in allowance.what else set()
    return not allowance.what or metric in {*allowance.what, *of_waits}


def _row(judged: JudgedBudget, metric: str, limit: str) -> LimitRow:
    """One limit with what counts towards it."""
    spending = judged.spending
    if metric not in spending.metrics:
        judged.say("budget-inconclusive", f"{metric}: {spending.device} does not count it")
        return LimitRow(metric, limit, "not counted", (), "", "", None)
    total = spending.metrics[metric]
    apart = outside = (0,) * len(total)
    # The largest of several is no sum of them.
    if metric != LARGEST:
        of_allowed = [each.spent.get(metric) for each in judged.allowed if is_for(each.allowance, metric)]
        apart = _sum(apart, of_allowed)
        taken = {id(each.spent) for each in judged.allowed}
        outside = _sum(
            outside,
            (
                spent.get(metric)
                for spender, spent in spending.spent
                if id(spent) not in taken and not judged.counts(spender)
            ),
        )
    less = [a + b for a, b in zip(apart, outside, strict=True)]
    values = tuple(all_of_it - off for all_of_it, off in zip(total, less, strict=True))
    checked = check(metric, limit, values, spending, less)
    left = tuple(bound(limit, at) - value for at, value in zip(spending.points, values, strict=True))
    if checked.holds and checked.modelled:
        judged.say("budget-modelled", f"{metric}: {checked.measured}", level=Level.WARNING)
    allowed = judged.law_of(apart) if any(apart) else ""
    law = judged.law_of(values)
    return LimitRow(metric, limit, law, values, allowed, judged.law_of(left), checked.holds)


def _sum(none: Values, several: Iterable[Values | None]) -> Values:
    """The sum of values at each point."""
    return tuple(map(sum, zip(none, *filter(None, several), strict=True)))


def check(metric: str, limit: str, values: Values, spending: Spending, less: Sequence[int]) -> Checked:
    """Whether values stay within a limit, by the rules for claims; ``less`` is what they were lessened by."""
    known = spending.ranges.get(metric, (None,) * len(values))
    ranges = [
        bounds and (bounds[0] - off, bounds[1] if bounds[1] is None else bounds[1] - off)
        for bounds, off in zip(known, less, strict=True)
    ]
    return check_counts(metric, f"<= {limit}", spending.points, values, spending.points, ranges)


def law_of(values: Sequence[int], points: Points) -> str:
    """The law of values in the variables of the sweep, or what is known instead."""
    return str(fit(points, values, points)) if len(points) > 1 and len(set(values)) > 1 else str(values[0])


def _blame(judged: JudgedBudget, row: LimitRow) -> None:
    """Say that a limit is exceeded, at each line that spends it."""
    metric = BEHIND.get(row.metric, row.metric)
    place, said = judged.over_limit(row)
    lines = [each for each in judged.counting(metric) if each[1][place]]
    lines.sort(key=lambda each: (-each[1][place], each[0]))
    if metric == LARGEST:
        # What is small beside the whole is not at fault.
        large = [each for each in lines if each[1][place] * SMALL_PART >= row.values[place]]
        lines = large or lines[:1]
    if not lines:
        judged.say("budget-exceeded", said)
    for spender, own in judged.named(metric, lines):
        hint = "spend less, or allow the line with a reason"
        judged.say("budget-exceeded", f"{said}, {own}: {spender.source}", hint, at=spender)
