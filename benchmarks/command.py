"""The command that each benchmark is by itself: ``python -m benchmarks.NAME``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict

from benchmarks.result import Measure, Result, Size
from benchmarks.table import heading, row


def main(measure: Measure, doc: str | None) -> int:
    """Measure and print what comes of it; 1 where a bound is exceeded."""
    given = parser(doc).parse_args()
    return show(measure(given.size), given)


def parser(doc: str | None) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_sizes(made)
    made.add_argument("--json", action="store_true", help="print each result as a line of JSON")
    return made


def add_sizes(made: argparse.ArgumentParser) -> None:
    """The options that choose a size, the full one by default."""
    made.set_defaults(size=Size.FULL)
    sizes = made.add_mutually_exclusive_group()
    for size, what in ((Size.QUICK, "less of everything, in minutes"), (Size.LEAST, "the least: a try")):
        help_text = f"{what}; bounds are not about it"
        sizes.add_argument(f"--{size}", dest="size", action="store_const", const=size, help=help_text)


def show(results: Iterable[Result], given: argparse.Namespace) -> int:
    """Print results as they come; 1 where a bound is exceeded at full size."""
    exceeded = False
    for number, result in enumerate(results):
        exceeded |= result.holds is False
        if given.json:
            print(json.dumps(asdict(result)), flush=True)
        else:
            line = row(result, given.size)
            print(line if number else f"{heading()}\n{line}", flush=True)
    return int(exceeded and given.size is Size.FULL and not given.json)
