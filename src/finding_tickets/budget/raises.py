"""What a budget allows that another one did not: a limit that was raised, a line that is newly allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from finding_tickets.budget.judge import AllowedSpender, covers, is_for, law_of, within
from finding_tickets.budget.moves import Points, bound
from finding_tickets.budget.spending import Spender, Spending
from finding_tickets.claims.language import ExpressionError
from finding_tickets.register.budgets import Allowance, Budget

# Laws are compared at the points of the sweep, and at points so many times as large: they may part beyond it.
_FURTHER = (1, 2, 7, 64, 1024, 2**20)


@dataclass(frozen=True)
class Raise:
    """What allows more, in words, and the line of the configuration, or the statement of a region."""

    said: str
    line: int
    at: Spender | None = None


def raises(old: Budget, new: Budget | None, allowed: Collection[AllowedSpender]) -> Iterator[Raise]:
    """What a budget allows that an older one does not; None is one that was removed.

    ``allowed`` are the statements that spend by the old one in the new one's code: of one that was moved, the
    new one may say so.
    """
    if new is None:
        yield Raise("it is removed", 1)
        return
    for key in ("run", "within"):
        was, now = getattr(old, key), getattr(new, key)
        if was != now:
            yield Raise(f"{key}: {was or 'none'} -> {now or 'none'}", new.line)
    gone = [at for at in old.points if at not in new.points]
    if gone or (new.points and not old.points):
        what = dict(gone[0]) if gone else "the run without one"
        yield Raise(f"sweep: {what} is measured no more", new.line)
    # Without paths, everything counts.
    lost = [path for path in old.paths or ("",) if new.paths and not within(new.paths, path.rstrip("/"))]
    if lost:
        yield Raise(f"paths: {lost[0] or 'not all'} counts no more", new.line)
    points = _further(old.points)
    for metric, law in old.limits.items():
        now = new.limits.get(metric)
        if now is None:
            yield Raise(f"{metric}: no limit, {law} before", new.line)
        elif _is_more(now, law, points):
            yield Raise(f"{metric}: {law} -> {now}", new.line)
    for allowance in new.allow:
        if why := _is_new(allowance, old, allowed, points):
            yield Raise(f"allow {allowance}: {why}", allowance.line)


def raised_regions(then: Spending, now: Spending, metrics: Iterable[str]) -> Iterator[Raise]:
    """What regions of the code set apart beyond what they did before, which only their author allowed."""
    for metric in metrics:
        before, after = _set_apart(then, metric, len(now.points)), _set_apart(now, metric, len(now.points))
        if any(new > old for old, new in zip(before, after, strict=True)):
            known = {(reason, spender.text) for reason, spender, _ in then.regions}
            reason, spender, spent = min(
                (each for each in now.regions if any(each[2].get(metric, ()))),
                key=lambda each: ((each[0], each[1].text) in known, each[1]),
            )
            apart = f"{metric} {law_of(spent[metric], now.points)}"
            said = f'allowed("{reason}") sets {apart} apart: {spender.source}'
            yield Raise(said, spender.line, spender)


def _set_apart(spending: Spending, metric: str, points: int) -> list[int]:
    """What all regions set apart of a metric, at each of so many points."""
    values = [spent[metric] for _, _, spent in spending.regions if metric in spent]
    return [sum(each[place] for each in values) for place in range(points)]


def _is_new(allowance: Allowance, old: Budget, allowed: Collection[AllowedSpender], points: Points) -> str:
    """Why an allowance allows what none of an older budget does; empty where one does."""
    whys = [_more(allowance, other, points) for other in old.allow if covers(other, allowance)]
    for each in allowed:
        # Of a statement that was moved, the allowance has to name the place, and no more than that.
        is_there = allowance.text and allowance.function == each.spender.function
        if each.is_moved and is_there and covers(allowance, each.spender):
            is_shared = sum(other.allowance == each.allowance for other in allowed) > 1
            why = _more(allowance, replace(each.allowance, law=""), points)
            whys.append(why or _law_of_moved(allowance, each, is_shared, old.points))
    return "" if "" in whys else ["it is new", *whys][-1]


def _law_of_moved(allowance: Allowance, each: AllowedSpender, is_shared: bool, points: Points) -> str:
    """How the law of a statement that was moved is more than those that paid for it; empty for nothing."""
    laws = [other.law for other in (each.allowance, *each.more)]
    if not all(laws):
        return ""
    together = " + ".join(f"({law})" if len(laws) > 1 else law for law in laws)
    why = f"law: {together} -> {allowance.law or 'none'}"
    if not allowance.law:
        return why
    if not is_shared:
        return why if _is_more(allowance.law, together, _further(points)) else ""
    # Each of several statements that share a law may have what it spends.
    most = [
        max(each.spent[metric][place] for metric in each.spent if metric in allowance.what)
        for place, _ in enumerate(points)
    ]
    return why if any(bound(allowance.law, at) > top for at, top in zip(points, most, strict=True)) else ""


def _more(new: Allowance, old: Allowance, points: Points) -> str:
    """What an allowance allows more than another one for the same code; empty for nothing."""
    extra = [each for each in new.what if not is_for(old, each)]
    if extra or (old.what and not new.what):
        return f"what: {', '.join(old.what)} -> {', '.join(new.what) or 'all'}"
    if old.law and (not new.law or _is_more(new.law, old.law, points)):
        return f"law: {old.law} -> {new.law or 'none'}"
    was, now = old.last_day, new.last_day
    if old.until and old.until != new.until and not (was and now and now < was):
        return f"until: {old.until} -> {new.until or 'for ever'}"
    return ""


def _is_more(new: str, old: str, points: Points) -> bool:
    """Whether a law is above another one at any of the points."""
    try:
        return any(bound(new, at) > bound(old, at) for at in points)
    except (ExpressionError, LookupError, ArithmeticError):
        return True


def _further(points: Points) -> Points:
    """Points with larger ones: each variable by itself, and all of them."""
    found: list[Mapping[str, int]] = [{}] if not points else []
    for at in points:
        for factor in _FURTHER:
            found.append({name: value * factor for name, value in at.items()})
            found += [{**at, name: value * factor} for name, value in at.items()]
    return found
