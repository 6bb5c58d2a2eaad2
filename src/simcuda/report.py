"""A measurement in words: the lines that cost something, heaviest first, and the totals."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from pathlib import Path

from simcuda.measurement import METRICS, Measurement, Site

HEAVIEST_FIRST = (
    "device_syncs",
    "stream_syncs",
    "event_syncs",
    "implicit_syncs",
    "hazards",
    "d2h",
    "h2d",
    "p2p",
    "d2d",
    "allocations",
)
"""What a line can cost: first what stops the host, then what is wrong, then what is moved and made."""

LONGEST_SOURCE = 72


def report(measurement: Measurement, rows: int) -> str:
    """The heaviest ``rows`` lines, how many there are beside them, and the totals."""
    heaviest = sorted(measurement.sites, key=_weight)
    sites = [(f"{site.count:5}", site.what, place(site), source(site)) for site in heaviest[:rows]]
    paragraphs = [
        _table([("count", "what", "where", "source"), *sites]) if sites else [],
        [f"and {len(heaviest) - rows} more"] if len(heaviest) > rows else [],
        _totals(measurement),
        doubts(measurement),
    ]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)


def place(site: Site) -> str:
    """File, line and function: ``train.py:12 in step``; relative where the file is below where we are.

    Without a line it is what stands for a file, and an operation: ``<library> in aten::mm``.
    """
    file = Path(site.file)
    here = Path.cwd()
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    return f"{shown}:{site.line} in {site.function}" if site.line else f"{site.file} in {site.function}"


def source(site: Site) -> str:
    """The text of the line, cut short where it is long; empty where it cannot be read."""
    text = linecache.getline(site.file, site.line).strip()
    return text if len(text) <= LONGEST_SOURCE else text[: LONGEST_SOURCE - 3] + "..."


def counted(measurement: Measurement, metric: str) -> int | None:
    """A count; None where the device could not count it: a real one refuses to tell."""
    count: int | None = getattr(measurement, metric, None)
    return count


def doubts(measurement: Measurement) -> list[str]:
    """What the counts leave out, and what is only modelled."""
    named = {
        "unknown, so that their waits are not counted": measurement.unknown,
        "approximate, so that their launches and memory are modelled": measurement.approximate,
    }
    return [f"{what}: {', '.join(operations)}" for what, operations in named.items() if operations]


def _weight(site: Site) -> tuple[int, int, Site]:
    return HEAVIEST_FIRST.index(site.what), -site.count, site


def _totals(measurement: Measurement) -> list[str]:
    counts = {name: counted(measurement, name) for name in METRICS}
    rows = [(f"{count:11}", name) for name, count in counts.items() if count]
    rest = "every other count is 0" if rows else "every count is 0"
    missing = ", ".join(name for name, count in counts.items() if count is None)
    return [*_table(rows), rest + (f"; not counted on this device: {missing}" if missing else "")]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
