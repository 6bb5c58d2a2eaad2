"""All benchmarks, or some, as one table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks import machine, suite
from benchmarks.command import add_sizes
from benchmarks.result import Result, Size
from benchmarks.table import heading, row

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 where a benchmark fails, or a bound is exceeded at full size."""
    given = options().parse_args(arguments)
    return run(given.only or suite.NAMES, given.size)


def run(names: Sequence[str], size: Size) -> int:
    """Run benchmarks one after the other, and print each result as soon as it is there."""
    print(_circumstances())
    if size is not Size.FULL:
        print(f"{size}: the bounds are about larger work")
    print(f"\n{heading()}", flush=True)
    done = []
    try:
        for name in names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            ran = suite.ran(name, size, lambda result: _show(result, size))
            if ran.failure:
                print(f"{name} has failed: {ran.failure}", flush=True)
            done.append(ran)
    except KeyboardInterrupt:
        return INTERRUPTED
    _sum_up(done)
    exceeded = any(result.holds is False for ran in done for result in ran.results)
    return int(any(ran.failure for ran in done) or (exceeded and size is Size.FULL))


def options() -> argparse.ArgumentParser:
    """The options of the command."""
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument("--only", choices=suite.NAMES, action="append", help="run this one; repeatable")
    add_sizes(made)
    return made


def _circumstances() -> str:
    """The machine and what runs on it, the commit and whether the code differs from it, and the time."""
    code = f"{machine.commit()[:8]}{' with changes' if machine.is_changed() else ''}"
    date = datetime.now(UTC).isoformat(timespec="seconds")
    software = f"{machine.system()}; {machine.python()}, torch {machine.torch()}"
    return f"{machine.this_machine()}; {software}; {code}, {date}"


def _show(result: Result, size: Size) -> None:
    print(row(result, size), flush=True)


def _sum_up(done: Sequence[suite.Ran]) -> None:
    """How long each took, and how busy the machine was."""
    print()
    for ran in done:
        print(f"{ran.name:12} {ran.seconds:7.1f} s, load {ran.load_before} before and {ran.load_after} after")


if __name__ == "__main__":
    sys.exit(main())
