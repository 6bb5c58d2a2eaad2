"""Write budgets into the configuration, and make them tighter; what else is in the file stays as it is."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import tomlkit

from finding_tickets.budget.judge import AllowedSpender, JudgedBudget, law_of
from finding_tickets.budget.moves import bound
from finding_tickets.budget.spending import Spender, Spending
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import FileChange, FileEdit, create, rewrite
from finding_tickets.ground.git import last_author
from finding_tickets.register.budgets import Allowance, Budget
from finding_tickets.register.config import CONFIG_FILE, PROJECT_FILE, config_file_of
from finding_tickets.register.config_table import parse_config

AS_FOUND = "as found"
ALLOWED = "syncs"
MEMORY = {"largest_allocation", "peak_bytes", "peak_allocated_bytes", "retained_bytes", "host_peak_bytes"}
ROOM = Fraction("1.05")
"""How many times what is spent a limit of memory is, so that another small tensor does not exceed it."""


def first_budget(draft: Budget, spending: Spending, root: Path) -> dict[str, Any]:
    """The table of a budget that allows every wait which is there, and limits the rest to what is spent."""
    waits = [(spender, spent[ALLOWED]) for spender, spent in spending.spent if any(spent.get(ALLOWED, ()))]
    regions = [spent[ALLOWED] for _, _, spent in spending.regions if ALLOWED in spent]
    sweep = {variable: list(values) for variable, values in draft.sweep.items()}
    table = {"name": draft.name, "run": draft.run, "sweep": sweep, "within": draft.within}
    limits = {}
    for metric in (each for each in draft.limits if each in spending.metrics):
        apart = [*(values for _, values in waits), *regions] if metric == ALLOWED else []
        most = highest(spending, metric)
        left = [value - sum(less) for value, *less in zip(most, *apart, strict=True)]
        limits[metric] = _stated(left, spending, metric)
    allow = [
        {**place_of(spender), "what": [ALLOWED], "law": _stated(values, spending)}
        | {"owner": last_author(root, spender.file, spender.line), "reason": AS_FOUND}
        for spender, values in waits
    ]
    return {key: value for key, value in table.items() if value} | {"limits": limits, "allow": allow}


def place_of(spender: Spender) -> dict[str, Any]:
    """The keys of an allowance for a statement; a line of a package without text is known by its function."""
    place: dict[str, Any] = {"file": spender.file}
    if spender.function:
        place["function"] = spender.function
    return place | ({"text": spender.text, "occurrence": spender.occurrence} if spender.text else {})


def add_budget(root: Path, table: Mapping[str, Any], *, dry_run: bool = False) -> tuple[str, str]:
    """Append a budget to the configuration; the file, and what was added to it.

    Raises:
        BadDataError: The file cannot be written, or would not be a configuration.
    """
    file = config_file_of(root) or CONFIG_FILE
    prefix = "tool.tickets." if file == PROJECT_FILE else ""
    text = _as_text(table, prefix)

    def append(data: bytes) -> bytes:
        gap = b"" if not data else b"\n" if data.endswith(b"\n") else b"\n\n"
        return data + gap + text.encode()

    if (root / file).is_file():
        _rewrite(root, file, append, dry_run=dry_run)
    else:
        parse_config(root / file, text.encode(), is_project=False)
        if not dry_run:
            create(root, {file: text})
    return file, text


def tighten(root: Path, judged: Iterable[JudgedBudget], *, dry_run: bool = False) -> FileChange | None:
    """Lower the limits of budgets to what is spent, and remove allowances whose lines are gone.

    A moved line is written as it is now. Returns None where there is no configuration.
    """
    file = config_file_of(root)
    if file is None:
        return None

    def edit(data: bytes) -> bytes:
        document: Any = tomlkit.parse(data.decode())
        tables = document["tool"]["tickets"] if file == PROJECT_FILE else document
        by_name = {str(each.get("name", each["run"])): each for each in tables.get("budget", [])}
        for each in judged:
            _tighten(by_name[each.budget.name], each)
        return tomlkit.dumps(document).encode()

    return _rewrite(root, file, edit, dry_run=dry_run)


def _rewrite(root: Path, file: str, edit: Callable[[bytes], bytes], *, dry_run: bool) -> FileChange:
    def checked(data: bytes) -> bytes:
        new = edit(data)
        try:
            tomllib.loads(new.decode())
        except tomllib.TOMLDecodeError as error:
            # For instance, nothing can be added after ``tool = {...}``.
            raise BadDataError(f"the budget cannot be added: {error}", file=file) from None
        parse_config(root / file, new, is_project=file == PROJECT_FILE)
        return new

    return rewrite(root, [FileEdit(file, checked)], dry_run=dry_run)[0]


def _tighten(table: Any, judged: JudgedBudget) -> None:
    """Make the table of one budget say what is spent."""
    spending = judged.spending
    for row in judged.rows:
        if row.holds:
            _lower(table["limits"], row.metric, row.limit, row.values, spending)
    if "allow" not in table:
        return
    places = {allowance: at for at, allowance in enumerate(judged.budget.allow)}
    by_allowance: dict[Allowance, list[AllowedSpender]] = {}
    for each in judged.allowed:
        # A region is written in the code.
        if each.allowance in places:
            by_allowance.setdefault(each.allowance, []).append(each)
    joined = {other for each in judged.allowed for other in each.more}
    added = []
    for allowance, spenders in by_allowance.items():
        entry = table["allow"][places[allowance]]
        if not spenders[0].is_moved:
            _write_law(entry, spenders, spending)
            continue
        # A statement may have become several, each with an allowance of its own.
        for each, one in zip(spenders, [entry, *(deepcopy(entry) for _ in spenders[1:])], strict=True):
            place = place_of(each.spender)
            for name in {"function", "occurrence"} - place.keys():
                one.pop(name, None)
            # What is there already keeps its place among the keys.
            one.update(place)
            _write_law(one, [each], spending)
            added += [one] if one is not entry else []
    gone = {places[each] for each in {*judged.gone, *joined} - by_allowance.keys()}
    for at in sorted(gone, reverse=True):
        del table["allow"][at]
    for one in added:
        table["allow"].append(one)
    if not table["allow"]:
        del table["allow"]


def _write_law(entry: Any, spenders: Sequence[AllowedSpender], spending: Spending) -> None:
    """Let the law of an allowance, if it has one, be what its statements spend."""
    allowance = spenders[0].allowance
    spent = [each.spent[metric] for each in spenders for metric in allowance.what if metric in each.spent]
    if not allowance.law or not spent:
        return
    values = [max(counts) for counts in zip(*spent, strict=True)]
    if any(each.more for each in spenders):
        # It is that of several, which are one statement now.
        entry["law"] = _stated(values, spending)
    else:
        _lower(entry, "law", allowance.law, values, spending)


def _lower(table: Any, key: str, law: str, values: Sequence[int], spending: Spending) -> None:
    """Replace a limit by what is spent, where that is less at some point and nowhere more."""
    stated = _stated(values, spending, key)
    pairs = [(bound(stated, at), bound(law, at)) for at in spending.points]
    if all(new <= old for new, old in pairs) and any(new < old for new, old in pairs):
        table[key] = stated


def highest(spending: Spending, metric: str) -> list[int]:
    """What was spent of a metric at each point; of a modelled number, the most that it can be."""
    values = spending.metrics[metric]
    bounds = spending.ranges.get(metric, (None,) * len(values))
    return [
        value if pair is None or pair[1] is None else pair[1]
        for value, pair in zip(values, bounds, strict=True)
    ]


def _stated(values: Sequence[int], spending: Spending, metric: str = "") -> str:
    """Values as a law; where they have none, their largest one. Memory has some room, for it is no count."""
    if metric in MEMORY and any(values):
        law = _stated(values, spending)
        return str(ceil(int(law) * ROOM)) if law.isdecimal() else f"{float(ROOM)}*({law})"
    law, most = law_of(values, spending.points), str(max(values))
    try:
        is_law = all(bound(law, at) >= value for at, value in zip(spending.points, values, strict=True))
    except BadDataError:
        return most
    return law if is_law else most


def _as_text(table: Mapping[str, Any], prefix: str) -> str:
    """A budget as TOML, with a header of its own for each allowance."""
    budget: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            budget[key] = tomlkit.inline_table()
            budget[key].update(value)
        elif key != "allow":
            budget[key] = value
    if table["allow"]:
        budget["allow"] = [
            {key: value for key, value in entry.items() if value not in ("", None)}
            for entry in table["allow"]
        ]
    document: dict[str, Any] = {"budget": [budget]}
    for part in reversed(prefix.split(".")[:-1]):
        document = {part: document}
    return tomlkit.dumps(document)
