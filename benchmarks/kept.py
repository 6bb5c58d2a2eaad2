"""Results of the whole suite, kept in a file for each machine, so that they can be read over time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from benchmarks.machine import Machine
from benchmarks.result import Result, Size, amount
from benchmarks.table import rows
from finding_tickets.ground.files import replace as replace_file

SCHEMA_VERSION = 1
RUNS_SHOWN = 6


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A benchmark that ran: its results, how long it took, the load before and after, and why it failed."""

    name: str
    seconds: float
    load_before: float
    load_after: float
    results: tuple[Result, ...]
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class SuiteRun:
    """A run of the suite, or of a part of it: when, of which commit, with what.

    ``changed`` is whether the code was another one than the commit's. ``date`` is in UTC.
    """

    date: str
    commit: str
    changed: bool
    size: Size
    system: str
    python: str
    torch: str
    benchmarks: tuple[Ran, ...] = ()

    def with_another(self, ran: Ran) -> SuiteRun:
        """This run with one more benchmark."""
        return replace(self, benchmarks=(*self.benchmarks, ran))


@dataclass(frozen=True, kw_only=True)
class Kept:
    """All runs on a machine, the oldest first."""

    schema_version: int
    machine: Machine
    runs: tuple[SuiteRun, ...]


_KEPT = TypeAdapter(Kept)


def file_of(machine: Machine, folder: Path) -> Path:
    """Where the results of a machine are kept."""
    return folder / f"{machine.name}.json"


def read(file: Path) -> Kept:
    """What is kept in a file.

    Raises:
        ValueError: It is not what ``write`` has written.
    """
    try:
        kept = _KEPT.validate_json(file.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{file} keeps no results: {error}") from None
    if kept.schema_version != SCHEMA_VERSION:
        raise ValueError(f"{file} has schema version {kept.schema_version}, not {SCHEMA_VERSION}")
    return kept


def runs_in(file: Path) -> tuple[SuiteRun, ...]:
    """The runs that are kept in a file, none where there is no such file.

    Raises:
        ValueError: The file is another one.
    """
    return read(file).runs if file.exists() else ()


def write(file: Path, kept: Kept) -> None:
    """Replace a file at once, so that it is whole however this process ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, f"{json.dumps(asdict(kept), indent=1)}\n".encode(), mode=0o644)


def over_time(kept: Kept, size: Size) -> Iterator[str]:
    """A table of the newest runs of a size: a line for each result, a column for each run."""
    runs = [run for run in kept.runs if run.size is size][-RUNS_SHOWN:]
    columns = [{each.name: each for ran in run.benchmarks for each in ran.results} for run in runs]
    names = dict.fromkeys(name for column in columns for name in column)
    yield f"{kept.machine}: the last {len(runs)} of {len(kept.runs)} runs"
    table = [["", *(run.date[:10] for run in runs)], ["", *(run.commit[:8] for run in runs)]]
    yield from rows([*table, *([name, *(_value(each.get(name)) for each in columns)] for name in names)])


def _value(result: Result | None) -> str:
    if result is None or result.value is None:
        return "-"
    return amount(result.value, result.unit) + ("" if result.holds is not False else " NO")
