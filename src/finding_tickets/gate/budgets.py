"""Judge the budgets of a branch: the base's hold for its code, and only its own lines are blamed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import NamedTuple

from finding_tickets.budget.judge import (
    BEHIND,
    MOST_LINES,
    SMALL_PART,
    AllowedSpender,
    JudgedBudget,
    LawExcess,
    LimitRow,
    judge,
)
from finding_tickets.budget.moves import Likeness, Spent, Values, likeness
from finding_tickets.budget.raises import raised_regions, raises
from finding_tickets.budget.spending import LARGEST, Spender, Spending, Target, measure
from finding_tickets.budget.statements import read_code, statements_of
from finding_tickets.gate.branch import BUDGET, Base
from finding_tickets.ground.git import changed_lines, last_author
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.budgets import Budget
from finding_tickets.register.config import config_file_of
from finding_tickets.register.disposition import ENDED, status_of
from finding_tickets.register.load import Register
from finding_tickets.verify.verify import Settings

EXCEEDED, RAISED = "gate-budget", "gate-budget-raised"
# What ``tickets budget`` says, and by which rule the gate does; a line that is gone is progress.
_RULES = {
    "budget-expired": EXCEEDED,
    "budget-allowance": "gate-budget-allowance",
    "budget-inconclusive": "gate-budget-inconclusive",
}


@dataclass(frozen=True)
class _Pair:
    """A budget at one base and in the work tree; None where it is not."""

    base: Base
    old: Budget | None
    new: Budget | None

    @property
    def name(self) -> str:
        budget = self.old or self.new
        return budget.name if budget else ""

    @property
    def held_to(self) -> Budget | None:
        """The budget of the base, with the lines on which the work tree's configuration says the same."""
        if self.old is None:
            return None
        lines = {replace(each, line=0): each.line for each in self.new.allow} if self.new else {}
        allow = tuple(replace(each, line=lines.get(replace(each, line=0), 0)) for each in self.old.allow)
        return replace(self.old, allow=allow, line=self.new.line if self.new else 1)


def budgets_of(register: Register | None) -> tuple[Budget, ...]:
    """The budgets of a side."""
    return register.config.budgets if register else ()


@dataclass
class BudgetGate:
    """Measures what the branch spends, by the base's budgets, and says what speaks against it.

    ``named`` are the words of the command line that accept something. Nothing that an earlier run has
    measured counts.
    """

    bases: Sequence[Base]
    head: Register
    named: Collection[str]
    isolation: Isolation
    settings: Settings
    today: date
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self._spent: dict[str, Spending] = {}
        self._file = config_file_of(self.head.root) or ""

    def check(self) -> tuple[Problem, ...]:
        """What speaks against the branch in all budgets; what refuses comes first."""
        new = {each.name: each for each in budgets_of(self.head)}
        pairs = []
        for base in self.bases:
            old = {each.name: each for each in budgets_of(base.register)}
            pairs += [_Pair(base, old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new])]
        self.spend([budget for pair in pairs if (budget := pair.old or pair.new)])
        # Bases that agree say the same.
        said = dict.fromkeys(problem for pair in pairs for problem in self.judge(pair))
        return tuple(sorted(said, key=lambda each: list(Level).index(each.level)))

    def spend(self, budgets: Iterable[Budget], base: Base | None = None) -> None:
        """Measure what is not measured yet: in the work tree, or at a base."""
        settings, revision = self.settings, base.revision if base else None
        targets = {
            key: Target(
                budget=each,
                root=self.head.root,
                config=self.head.config,
                meter=settings.meter,
                timeout=settings.timeout,
                revision=revision,
            )
            for each in budgets
            if (key := _key(each, base)) not in self._spent
        }
        for key, spending in measure(targets, self.isolation, keep=False) if targets else ():
            self._spent[key] = spending
            where = " at the base" if base else ""
            self.tell(f"budget {targets[key].budget.name}{where}: {spending.trouble or 'measured'}")

    def judged(self, budget: Budget, base: Base | None = None) -> JudgedBudget:
        """A budget beside the code of the work tree, or of a base."""
        self.spend([budget], base)
        root = base.root if base else self.head.root
        return judge(budget, self._spent[_key(budget, base)], root, self._file, self._is_closed, self.today)

    def judge(self, pair: _Pair) -> list[Problem]:
        """What speaks against the branch in one budget, at one base."""
        held, new = pair.held_to, pair.new
        judged = self.judged(held) if held else None
        raised = list(raises(held, new, judged.allowed)) if held and judged else []
        if held and judged and judged.spending.regions:
            then = self.judged(held, pair.base).spending
            raised += raised_regions(then, judged.spending, held.limits)
        found: list[Problem] = []
        is_accepted = f"{BUDGET}{pair.name}".casefold() in {each.casefold() for each in self.named}
        owners = pair.base.owners_of(self._file) if raised else ()
        if judged and raised:
            hint, level = f"where that is meant: --accept {BUDGET}{pair.name}", Level.ERROR
            if is_accepted:
                hint, level = "accepted by the command line", Level.WARNING
            elif owners:
                who = f"{' or '.join(owners)}, who own {self._file} at the base"
                hint, level = f"it needs the review of {who}", Level.WARNING
            said = replace(judged, problems=found)
            for each in raised:
                said.say(RAISED, f"raised: {each.said}", hint, at=each.at, line=each.line, level=level)
        is_meant = is_accepted or bool(owners)
        if new and (not raised or is_meant):
            # What raises nothing is as strict as the base's, and knows where lines are now. What takes the
            # place of another line is told all the same.
            moved = [each for each in judged.problems if each.rule == "budget-moved"] if judged else []
            judged = self.judged(new)
            found += [
                problem.model_copy(update={"rule": EXCEEDED})
                for problem in moved
                if problem.level is Level.WARNING and problem not in judged.problems
            ]
        elif new is None and is_meant:
            return found
        return [*found, *(self._of(pair, judged) if judged else ())]

    def _of(self, pair: _Pair, judged: JudgedBudget) -> list[Problem]:
        """What a budget that counts says of the work tree's code."""
        said = replace(judged, problems=[])
        for problem in judged.problems:
            update: dict[str, object] = {"rule": _RULES.get(problem.rule, EXCEEDED)}
            if problem.rule == "budget-gone":
                update["level"] = Level.NOTE
            if problem.rule != "budget-exceeded":
                said.problems.append(problem.model_copy(update=update))
        over = [row for row in judged.rows if row.holds is False]
        beyond = [(each, excess) for each in judged.allowed for excess in judged.law_excesses(each)]
        if over or beyond:
            # What a base has exceeded already is its own budget. Of another target only lines are compared.
            old = pair.held_to
            same = bool(old and _key(old, None) == _key(judged.budget, None))
            then = self.judged(old if old and same else judged.budget, pair.base) if old else None
            compared = _Compared(said, then, pair.base, same_target=same)
            for row in over:
                compared.say_limit(row)
            for each, excess in beyond:
                compared.say_law(each, excess)
        return said.problems

    def _is_closed(self, ticket: str) -> bool | None:
        """Whether a ticket is closed, at a base or now; None where the branch has none."""
        registers = (self.head, *(base.register for base in self.bases if base.register))
        states = [
            {status_of(each) for each in register.documents if each.id.value.casefold() == ticket.casefold()}
            for register in registers
        ]
        return any(ENDED & each for each in states) if states[0] else None


class _LineExcess(NamedTuple):
    """A statement that spends more of a metric than at the base, and what it was there if it spent any."""

    spender: Spender
    values: Values
    more: int
    was: Spender | None


class _Compared:
    """A budget judged for the code of the work tree, beside that of the base; says what exceeds it."""

    def __init__(
        self, now: JudgedBudget, then: JudgedBudget | None, base: Base, *, same_target: bool
    ) -> None:
        self.now, self._base, self._root, self.same_target = now, base, now.root, same_target
        self._trouble = then.spending.trouble if then else "the budget is new"
        self._then = None if then is None or then.spending.trouble else then

    def say_limit(self, row: LimitRow) -> None:
        """Who exceeds a limit: lines that spend what the base did not, first of all those that it changes."""
        judged, metric = self.now, BEHIND.get(row.metric, row.metric)
        rows = self._then.rows if self._then else ()
        before = next((each for each in rows if each.metric == row.metric and each.values), None)
        place, said = judged.over_limit(row)
        if before and before.holds is False and self.same_target and _at_most(row.values, before.values):
            text = f"{said}, as the base already: {before.law} there, and the branch spends no more"
            judged.say(EXCEEDED, text, level=Level.WARNING)
            return
        base, was_all = f"{said} (at the base: {self._trouble})", 0
        if before:
            was_all = before.values[place]
            base = f"{said}, {was_all} at the base"
        elif self._then:
            base = said
        lines = self.excesses(metric, place)
        if metric == LARGEST:
            lines = [each for each in lines if each.more * SMALL_PART >= row.values[place] - was_all]
        named = judged.named(metric, [(each.spender, each.values) for each in lines])
        for each, (spender, own) in zip(lines, named, strict=False):
            was, more = each.was, ""
            if was:
                more = f", {each.more} more than {was} at the base ({self.owner(was)})"
            hint = "spend less, or allow the line with a reason, which needs the base's owners"
            if not self.is_changed(spender):
                hint = f"the branch does not change this line, and runs it more often or with more; {hint}"
            text, at = f"{base}, {own}{more}: {spender.source}", self.to_blame(spender)
            judged.say(EXCEEDED, text, hint, at=at)
        if not lines:
            held = "; no line of it is new or larger, so what is held is held longer"
            judged.say(EXCEEDED, base + (held if metric == LARGEST else ""))
        if there := self.there_before(metric, place):
            judged.say(EXCEEDED, f"{row.metric}: at the base {', '.join(there)}", level=Level.NOTE)

    def say_law(self, each: AllowedSpender, over: LawExcess) -> None:
        """A line that spends more than its allowance lets it."""
        text, hint = self.now.over_law(each, over)
        was = self.counterparts.get(each.spender)
        then, level = was[1].get(over.metric) if was else None, Level.ERROR
        if was and then and self.exceeded_law(was[0], over.metric) and _at_most(over.values, then):
            text, level = f"{text}, as at the base", Level.WARNING
        elif then:
            text += f", {then[over.place()]} at the base"
        self.now.say(EXCEEDED, f"{text}: {each.spender.source}", hint, at=each.spender, level=level)

    def excesses(self, metric: str, place: int) -> list[_LineExcess]:
        """The statements that count and spend more than at the base, those that are changed first."""
        found = []
        for spender, values in self.now.counting(metric):
            was = self.counterparts.get(spender)
            before = was[1][metric][place] if was and metric in was[1] else 0
            if values[place] > before:
                old = was[0] if was and before else None
                found.append(_LineExcess(spender, values, values[place] - before, old))
        return sorted(found, key=lambda each: (not self.is_changed(each.spender), -each.more, each.spender))

    def there_before(self, metric: str, place: int) -> list[str]:
        """The statements that spent at the base, with their owners."""
        spent = self._then.counting(metric) if self._then else ()
        lines = sorted((-values[place], spender) for spender, values in spent if values[place])
        return [f"{-count} by {spender} ({self.owner(spender)})" for count, spender in lines[:MOST_LINES]]

    def owner(self, spender: Spender) -> str:
        """Who owns a line of the base."""
        allowed = self._then.allowed if self._then else ()
        stated = [
            each.allowance.owner for each in allowed if each.spender == spender and each.allowance.owner
        ]
        owners = stated or self._base.owners_of(spender.file)
        author = last_author(self._root, spender.file, spender.line, self._base.revision.commit)
        return " ".join(owners) or author or "nobody"

    def exceeded_law(self, was: Spender, metric: str) -> bool:
        """Whether a statement of the base spent more than its allowance lets it there."""
        then = self._then if self.same_target else None
        return then is not None and any(
            over.metric == metric
            for each in then.allowed
            if each.spender == was
            for over in then.law_excesses(each)
        )

    @cached_property
    def counterparts(self) -> Mapping[Spender, tuple[Spender, Spent]]:
        """By each statement of now the one of the base that it was, if it was there: each is but one's."""
        found: dict[Spender, tuple[Spender, Spent]] = {}
        left = {_place(each[0]): each for each in self._then.spending.spent} if self._then else {}
        new = [spender for spender, _ in self.now.spending.spent]
        for spender in new:
            if was := left.pop(_place(spender), None):
                found[spender] = was
        ranked = sorted(
            (
                (alike, spender, key)
                for spender in new
                if spender not in found
                for key, was in left.items()
                if (alike := likeness(was[0], spender, self._root)) > Likeness.RELATED
            ),
            key=lambda each: (-each[0], each[1].file != each[2][0], each[1]),
        )
        for _, spender, key in ranked:
            if spender not in found and key in left:
                found[spender] = left.pop(key)
        return found

    def is_changed(self, spender: Spender) -> bool:
        """Whether the branch changes a statement, or adds its file."""
        file, line = spender.file, spender.line
        if not (self._base.root / file).exists() and file not in self._changed:
            return True
        lines = self._changed.get(file, frozenset())
        found = [each for each in statements_of(read_code(self._root / file)) if each.first == line]
        last = max((each.last for each in found), default=line)
        return any(number in lines for number in range(line, last + 1))

    @cached_property
    def _changed(self) -> Mapping[str, frozenset[int]]:
        return changed_lines(self._root, self._base.revision.commit)

    def to_blame(self, spender: Spender) -> Spender:
        """A statement; of equal ones in a function that which the branch adds."""
        alike = [
            replace(spender, line=each.first)
            for each in statements_of(read_code(self._root / spender.file))
            if (each.function, each.text) == (spender.function, spender.text)
        ]
        return next((each for each in (spender, *alike) if self.is_changed(each)), spender)


def _at_most(now: Values, before: Values) -> bool:
    """Whether nothing is more than it was."""
    return all(new <= old for new, old in zip(now, before, strict=True))


def _key(budget: Budget, base: Base | None) -> str:
    """What the measurement of a budget depends on, beside the settings."""
    points = tuple(tuple(at.items()) for at in budget.points)
    return repr((budget.run, points, budget.within, budget.paths, base.revision.commit if base else ""))


def _place(spender: Spender) -> tuple[str, str, str, int]:
    return spender.file, spender.function, spender.text or str(spender.line), spender.occurrence
