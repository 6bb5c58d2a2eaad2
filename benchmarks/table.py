"""Results as text: a row for each, with what was measured beside it below."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

from benchmarks.result import Result, Size, amount

WIDTH = 118
NAME, RATIO, BOUND, OK = 24, 10, 14, 4
WHAT = WIDTH - NAME - RATIO - BOUND - OK - 4
HOLDS = {True: "yes", False: "NO", None: ""}
INDENT = " " * 4


def heading() -> str:
    """The names of the columns."""
    return f"{'name':{NAME}} {'what':{WHAT}} {'ratio':>{RATIO}} {'bound':{BOUND}} {'ok':{OK}}".rstrip()


def row(result: Result, size: Size) -> str:
    """A result, and below it what was measured beside it; at the least size no ratio says anything."""
    value = "-" if result.value is None else amount(result.value, result.unit)
    bound, holds = f"{result.bound or ''}", "" if size is Size.LEAST else HOLDS[result.holds]
    first = f"{result.name:{NAME}} {result.what:{WHAT}} {value:>{RATIO}} {bound:{BOUND}} {holds}"
    return "\n".join([first.rstrip(), *_below(result)])


def _below(result: Result) -> Iterator[str]:
    if result.missing:
        yield fill(f"not measured: {result.missing}", WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    if result.beside:
        numbers = "; ".join(map(str, result.beside))
        yield fill(numbers, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
