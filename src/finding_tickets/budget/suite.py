"""A whole suite of tests, held to the lines that may wait."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finding_tickets.budget.allowlist import AllowedEntry, read_allowlist
from finding_tickets.budget.judge import AllowedSpender, is_for, judge, places, several_places, within
from finding_tickets.budget.spending import Spender, Spending, spender_at
from finding_tickets.claims.metrics import SYNCS
from finding_tickets.errors import BadDataError
from finding_tickets.ground.git import work_tree
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.budgets import Allowance, Budget
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, config_from

if TYPE_CHECKING:
    from finding_tickets.model.ticket import Problem

CONFIRMED, SILENT, NOT_REACHED, UNKNOWN, NOT_IN_FORCE = (
    *("confirmed", "silent", "not reached", "not known"),
    "not in force",
)
_OF_TESTS = re.compile(r"(?:.*/)?(?:tests?/.*|test_[^/]*\.py|[^/]*_test\.py|conftest\.py)")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Where a suite of tests may wait; ``problems`` were found as the file was read."""

    file: str
    root: Path
    paths: tuple[str, ...] = ()  # none are all files but those of tests
    entries: tuple[AllowedEntry, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def allowances(self) -> tuple[Allowance, ...]:
        """Those of all entries; what else knows them by their numbers here."""
        return tuple(each for entry in self.entries for each in entry.allowances)

    def counts(self, file: str) -> bool:
        """Whether a file's lines need to be allowed."""
        return within(self.paths, file) if self.paths else not _OF_TESTS.fullmatch(file)


@dataclass
class SeenSites:
    """What the tests of a session waited for, and which allowances they reached."""

    waits: dict[tuple[str, int, str, str, str], int] = field(default_factory=dict)
    tests: dict[tuple[str, int], dict[str, None]] = field(default_factory=dict)
    reached: dict[int, str] = field(default_factory=dict)
    unseen: set[int] = field(default_factory=set)

    def add(self, test: str, record: Mapping[str, Any]) -> None:
        """Add what one phase of a test did."""
        for file, line, function, what, reason, count in record.get("sites", ()):
            # What has no line is of installed packages; a wait that drains is there by its kind too.
            if not line or what not in SYNCS:
                continue
            key = (file, line, function, what, reason)
            self.waits[key] = self.waits.get(key, 0) + count
            self.tests.setdefault((file, line), {})[test] = None
        for number in record.get("reached", ()):
            self.reached.setdefault(number, test)
        self.unseen.update(record.get("unseen", ()))


@dataclass(frozen=True)
class JudgedEntry:
    """An entry with its status, how often it waited, and the tests that show it."""

    entry: AllowedEntry
    status: str
    waits: int = 0
    tests: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JudgedSuite:
    """What came of a session; lines and regions have how often they waited."""

    suite: Suite
    refused: tuple[tuple[Spender, int, tuple[str, ...]], ...]  # with the tests that reached them
    entries: tuple[JudgedEntry, ...]
    regions: tuple[tuple[str, Spender, int], ...]
    problems: tuple[Problem, ...]

    @property
    def holds(self) -> bool:
        """Whether the session ends well."""
        return not self.refused and not any(each.level is Level.ERROR for each in self.problems)


def read_suite(file: Path, folder: Path) -> Suite:
    """What a configuration with budgets, or an allowlist, says; ``folder`` is that of the tests.

    Raises:
        BadDataError: It cannot be read, or an allowance matches several places.
    """
    file = file.resolve()
    if file.suffix in {".yaml", ".yml"}:
        root = work_tree(file.parent) or folder
        entries, problems = read_allowlist(file, root)
        return Suite(file=str(file), root=root, entries=entries, problems=problems)
    if file.name not in {CONFIG_FILE, PROJECT_FILE}:
        raise BadDataError(f"is neither {CONFIG_FILE}, {PROJECT_FILE} nor YAML", file=str(file))
    try:
        budgets = config_from(file.parent, {file.name: file.read_bytes()}).budgets
    except OSError as error:
        raise BadDataError(f"cannot be read: {error}", file=str(file)) from None
    if not budgets:
        raise BadDataError("has no budget", file=str(file), hint="tickets budget init writes a first one")
    allowances = [each for budget in budgets for each in budget.allow]
    for each in allowances:
        if each.text and len(found := places(each, file.parent)) > 1:
            message, hint = several_places(each, found)
            raise BadDataError(message, file=str(file), line=each.line, hint=hint)
    return Suite(
        file=str(file),
        root=file.parent,
        paths=tuple(path for budget in budgets for path in budget.paths if all(b.paths for b in budgets)),
        entries=tuple(
            AllowedEntry(str(each), each.line, (each,))
            for each in allowances
            if any(is_for(each, kind) for kind in SYNCS)
        ),
    )


def judge_suite(
    suite: Suite, seen: SeenSites, is_closed: Callable[[str], bool | None], today: date
) -> JudgedSuite:
    """Compare where a session waited with where it may wait, by the rules for budgets."""
    waits: dict[tuple[str, Spender], dict[str, int]] = {}
    tests: dict[Spender, dict[str, None]] = {}
    for (file, line, function, what, reason), waited in seen.waits.items():
        spender = spender_at(suite.root, file, line, function)
        of_kind = waits.setdefault((reason, spender), {})
        of_kind[what] = of_kind.get(what, 0) + waited
        tests.setdefault(spender, {}).update(seen.tests[file, line])
    budget = Budget(
        name=Path(suite.file).name,
        run="pytest",
        # Each kind by itself: an allowance can be for one of them.
        limits=dict.fromkeys(SYNCS, "0"),
        # Of all tests together, no law says how much is too much. A line is before the file that it is in.
        allow=tuple(
            sorted(
                (replace(each, law="") for each in _distinct(suite.allowances)),
                key=lambda each: (not each.text, not each.function, each.file.endswith("/")),
            )
        ),
    )
    spending = Spending(
        points=({},),
        metrics={kind: (sum(each.get(kind, 0) for each in waits.values()),) for kind in SYNCS},
        spent=tuple(
            (spender, {what: (waited,) for what, waited in of_kind.items()})
            for (reason, spender), of_kind in sorted(waits.items())
            if not reason
        ),
    )
    judged = judge(budget, spending, suite.root, suite.file, is_closed, today)
    over = {spender: sum(waits["", spender].values()) for spender, _ in judged.others}
    by_place: dict[Allowance, list[AllowedSpender]] = {}
    for each in judged.allowed:
        payers = (each.allowance, *each.more)
        over[each.spender] = sum(
            waited for kind, (waited,) in each.spent.items() if not any(is_for(one, kind) for one in payers)
        )
        for payer in payers:
            by_place.setdefault(_place(payer), []).append(each)
    refused = [
        (spender, waited, tuple(tests[spender]))
        for spender, waited in over.items()
        if waited and suite.counts(spender.file)
    ]
    in_force = {*map(_place, judged.silent), *by_place}
    numbers = itertools.count()
    entries = []
    for entry in suite.entries:
        reached = [next(numbers) for _ in entry.allowances]
        entries.append(_judged_entry(entry, reached, by_place, in_force, seen, tests))
    return JudgedSuite(
        suite=suite,
        refused=tuple(sorted(refused, key=lambda each: (-each[1], each[0]))),
        entries=tuple(entries),
        regions=tuple(
            (reason, spender, sum(of_kind.values()))
            for (reason, spender), of_kind in sorted(waits.items())
            if reason
        ),
        problems=(*suite.problems, *(each for each in judged.problems if each.rule != "budget-exceeded")),
    )


def _judged_entry(
    entry: AllowedEntry,
    numbers: Sequence[int],
    by_place: Mapping[Allowance, Sequence[AllowedSpender]],
    in_force: set[Allowance],
    seen: SeenSites,
    tests: Mapping[Spender, Mapping[str, None]],
) -> JudgedEntry:
    """An entry with what came of it; ``numbers`` are those of its allowances."""
    own = {_place(each) for each in entry.allowances}
    spenders = [each for place in own for each in by_place.get(place, ())]
    if spenders:
        waits = sum(value for each in spenders for (value,) in each.spent.values())
        told = dict.fromkeys(test for each in spenders for test in tests[each.spender])
        return JudgedEntry(entry, CONFIRMED, waits, tuple(told))
    if not own & in_force:
        return JudgedEntry(entry, NOT_IN_FORCE)
    if told := dict.fromkeys(seen.reached[number] for number in numbers if number in seen.reached):
        return JudgedEntry(entry, SILENT, 0, tuple(told))
    return JudgedEntry(entry, NOT_REACHED if seen.unseen.isdisjoint(numbers) else UNKNOWN)


def _place(allowance: Allowance) -> Allowance:
    """What of an allowance names its place."""
    names = {name: getattr(allowance, name) for name in ("file", "function", "text", "occurrence")}
    return Allowance(**names, reason="")


def _distinct(allowances: Sequence[Allowance]) -> Iterator[Allowance]:
    """Allowances for the same place as one, for what any of them is for."""
    found: dict[tuple[Allowance, str], Allowance] = {}
    for each in allowances:
        key = _place(each), each.until
        same = found.get(key, each)
        found[key] = replace(same, what=(*same.what, *each.what) if same.what and each.what else ())
    yield from found.values()
