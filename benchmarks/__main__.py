"""All benchmarks, or some, as one table; those of full size are kept with a description of the machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import kept, machine, suite
from benchmarks.command import add_sizes
from benchmarks.result import Result, Size
from benchmarks.table import heading, row

RESULTS = Path(__file__).parent / "results"
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 where a benchmark fails, or a bound is exceeded at full size."""
    given = options().parse_args(arguments)
    file = kept.file_of(machine.this_machine(), given.results or RESULTS)
    try:
        if given.kept:
            print("\n".join(kept.over_time(kept.read(file), given.size)))
            return 0
        # A file that cannot be added to is found out now, not after an hour.
        before = kept.runs_in(file)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    is_kept = given.size is Size.FULL or given.results is not None
    return run(given.only or suite.NAMES, given.size, file if is_kept else None, before)


def run(names: Sequence[str], size: Size, file: Path | None, before: Sequence[kept.SuiteRun]) -> int:
    """Run benchmarks one after the other, and keep after each what is there."""
    here, done = machine.this_machine(), _begun(size)
    print(f"{here}; {done.system}; {done.python}, torch {done.torch}; {done.commit[:8]}, {done.date}")
    if size is not Size.FULL:
        print(f"{size}: the bounds are about larger work")
    print(f"\n{heading()}", flush=True)
    try:
        for name in names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            done = done.with_another(suite.ran(name, size, lambda result: _show(result, size)))
            last = done.benchmarks[-1]
            if last.failure:
                print(f"{name} has failed: {last.failure}", flush=True)
            if file:
                runs = (*before, done)
                kept.write(file, kept.Kept(schema_version=kept.SCHEMA_VERSION, machine=here, runs=runs))
    except KeyboardInterrupt:
        return INTERRUPTED
    _sum_up(done)
    exceeded = any(result.holds is False for ran in done.benchmarks for result in ran.results)
    return int(any(ran.failure for ran in done.benchmarks) or (exceeded and size is Size.FULL))


def options() -> argparse.ArgumentParser:
    """The options of the command."""
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument("--only", choices=suite.NAMES, action="append", help="run this one; repeatable")
    add_sizes(made)
    made.add_argument("--kept", action="store_true", help="run nothing, show what was kept over time")
    made.add_argument(
        "--results", type=Path, metavar="FOLDER", help="keep results of any size here, not those of full size"
    )
    return made


def _begun(size: Size) -> kept.SuiteRun:
    return kept.SuiteRun(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=machine.commit(),
        changed=machine.is_changed(),
        size=size,
        system=machine.system(),
        python=machine.python(),
        torch=machine.torch(),
    )


def _show(result: Result, size: Size) -> None:
    print(row(result, size), flush=True)


def _sum_up(done: kept.SuiteRun) -> None:
    """How long each took, and how busy the machine was."""
    print()
    for ran in done.benchmarks:
        print(f"{ran.name:12} {ran.seconds:7.1f} s, load {ran.load_before} before and {ran.load_after} after")


if __name__ == "__main__":
    sys.exit(main())
