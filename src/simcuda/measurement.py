"""Hold the cost of a measured block of code, and the source lines behind it."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Protocol, TypedDict

from simcuda.profile import Profile


class Limits(TypedDict, total=False):
    """The most that a block may cost, by metric; a metric that is left out may cost anything."""

    syncs: int
    stream_syncs: int
    event_syncs: int
    device_syncs: int
    drains: int
    implicit_syncs: int
    h2d: int
    h2d_bytes: int
    d2h: int
    d2h_bytes: int
    d2d: int
    d2d_bytes: int
    p2p: int
    p2p_bytes: int
    launches: int
    aten_launches: int
    allocations: int
    largest_allocation: int
    peak_bytes: int
    peak_allocated_bytes: int
    retained_bytes: int
    host_peak_bytes: int
    hazards: int
    ooms: int


METRICS = tuple(Limits.__annotations__)
"""The numbers of a ``Measurement``, by the names of its attributes."""

SYNCS = ("stream_syncs", "event_syncs", "device_syncs")
"""The kinds of ``syncs``."""


@dataclass(frozen=True, order=True)
class Site:
    """A source line of user code and how often it caused one thing.

    ``what`` is ``stream_syncs``, ``event_syncs``, ``device_syncs``, ``drains``, ``implicit_syncs``, ``h2d``,
    ``d2h``, ``d2d``, ``p2p``, ``allocations`` or ``hazards``; ``raced`` is an access that the one of a hazard
    should have come after.
    """

    file: str
    line: int
    function: str
    what: str
    count: int


Place = tuple[str, int, str, str]
"""File, line, function and what of a site."""


Range = tuple[int, int | None]
"""The least and the most that a number can be; None where nobody knows a bound."""

Usage = tuple[int, int, int]
"""Bytes in use at one moment: requested and in blocks on all devices together, and on the host."""


@dataclass
class Measurement:
    """The cost of the code in one measured block; final once the block has ended.

    Sizes are in bytes; peaks are above what was in use when the block began.

    Attributes:
        unknown: Operations that could make the host wait and have no rule: they are not counted.
        approximate: Operations whose kernels or workspaces a library chooses: their costs are estimates.
        library_launches: As many kernels of libraries as are usual; ``ranges`` has how many they can be.
    """

    stream_syncs: int = 0
    event_syncs: int = 0
    device_syncs: int = 0
    drains: int = 0
    implicit_syncs: int = 0
    h2d: int = 0
    h2d_bytes: int = 0
    d2h: int = 0
    d2h_bytes: int = 0
    d2d: int = 0
    d2d_bytes: int = 0
    p2p: int = 0
    p2p_bytes: int = 0
    aten_launches: int = 0
    library_launches: int = 0
    allocations: int = 0
    largest_allocation: int = 0
    peak_bytes: int = 0
    peak_allocated_bytes: int = 0
    host_peak_bytes: int = 0
    hazards: int = 0
    ooms: int = 0
    _usage: Callable[[], Usage] = field(default=lambda: (0, 0, 0), repr=False)
    _entry: Usage = field(default=(0, 0, 0), repr=False, compare=False)
    _unknown: set[str] = field(default_factory=set, repr=False)
    _approximate: set[str] = field(default_factory=set, repr=False)
    # How far below and above the number that is counted the true one can be, by metric.
    _slack: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    _sites: dict[Place, int] = field(default_factory=dict, repr=False)
    # What regions set apart, by reason, file, line, function and metric.
    _allowed: dict[tuple[str, str, int, str, str], int] = field(
        default_factory=dict, repr=False
    )
    # What each operation counted, where that was asked for.
    _operations: dict[str, Counter[str]] = field(default_factory=dict, repr=False)

    @property
    def syncs(self) -> int:
        """Explicit waits of the host, of all kinds."""
        return self.stream_syncs + self.event_syncs + self.device_syncs

    @property
    def launches(self) -> int:
        """Kernels launched, by ATen and by libraries."""
        return self.aten_launches + self.library_launches

    @property
    def retained_bytes(self) -> int:
        """Requested bytes in use now, above those in use when the block began."""
        return self._usage()[0] - self._entry[0]

    @property
    def sites(self) -> tuple[Site, ...]:
        """The source lines behind the counts, in the order of files and lines."""
        return tuple(
            sorted(Site(*place, count) for place, count in self._sites.items())
        )

    @property
    def allowed(self) -> dict[str, tuple[Site, ...]]:
        """The part of the counts that ``simcuda.allowed`` set apart, by reason and line."""
        found: dict[str, list[Site]] = {}
        for (reason, file, line, function, what), count in sorted(
            self._allowed.items()
        ):
            found.setdefault(reason, []).append(Site(file, line, function, what, count))
        return {reason: tuple(sites) for reason, sites in found.items()}

    @property
    def unknown(self) -> tuple[str, ...]:
        """Operations that could make the host wait and have no rule."""
        return tuple(sorted(self._unknown))

    @property
    def approximate(self) -> tuple[str, ...]:
        """Operations that are only modelled."""
        return tuple(sorted(self._approximate))

    @property
    def ranges(self) -> dict[str, Range]:
        """The least and the most that each metric with modelled numbers can be; the others are exact."""
        # Most blocks have none.
        if not self._slack:
            return {}
        return {
            name: (
                int(max(0, counted - below)),
                None if above == inf else counted + int(above),
            )
            for name in METRICS
            if name in self._slack
            for counted, (below, above) in [(getattr(self, name), self._slack[name])]
        }

    @property
    def not_counted(self) -> tuple[str, ...]:
        """Metrics that a real device cannot count: reading one raises ``AttributeError``."""
        return ()

    def report(self, rows: int = 30) -> str:
        """The source lines, heaviest first and at most ``rows`` of them, and all counts, as text to print."""
        # What stops the host comes before what merely moves bytes.
        heaviest = sorted(
            self.sites,
            key=lambda site: (HEAVIEST_FIRST.index(site.what), -site.count, site),
        )
        sites = [
            (f"{site.count:5}", site.what, place(site), source(site))
            for site in heaviest[:rows]
        ]
        # Reading a metric that the device cannot count raises an error.
        counts: dict[str, int | None] = {
            name: getattr(self, name, None) for name in METRICS
        }
        ranges = self.ranges
        totals = [
            (
                f"{'~' * (name in ranges)}{count}".rjust(11),
                f"{name} {range_text(ranges.get(name))}".rstrip(),
            )
            for name, count in counts.items()
            if count or name in ranges
        ]
        rest = "every other count is 0" if totals else "every count is 0"
        missing = ", ".join(name for name, count in counts.items() if count is None)
        paragraphs = [
            table([("count", "what", "where", "source"), *sites]) if sites else [],
            [f"and {len(heaviest) - rows} more"] if len(heaviest) > rows else [],
            [
                *table(totals),
                rest + (f"; not counted on this device: {missing}" if missing else ""),
            ],
            [
                f"allowed: {summary}: {reason}"
                for reason, summary in allowed_summaries(self)
            ],
            doubts(self),
        ]
        return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)

    def _see(self, requested: int, allocated: int, host: int) -> None:
        entry = self._entry
        # This runs for every result of every operation: comparing is faster than calling max.
        if requested - entry[0] > self.peak_bytes:
            self.peak_bytes = requested - entry[0]
        if allocated - entry[1] > self.peak_allocated_bytes:
            self.peak_allocated_bytes = allocated - entry[1]
        if host - entry[2] > self.host_peak_bytes:
            self.host_peak_bytes = host - entry[2]


class Gpu(Protocol):
    """The devices of a machine, simulated or real, as measuring code sees them."""

    @property
    def profile(self) -> Profile:
        """The figures of the device."""

    def measure(self) -> AbstractContextManager[Measurement]:
        """Count what the code in a block costs; the measurement is final once the block has ended."""

    def live_bytes(self) -> int:
        """Requested bytes that are live now, on all devices together."""


HEAVIEST_FIRST = (
    "drains",
    "device_syncs",
    "stream_syncs",
    "event_syncs",
    "implicit_syncs",
    "hazards",
    "raced",
    "d2h",
    "h2d",
    "p2p",
    "d2d",
    "allocations",
)
"""What a line can cost, heaviest first: waits that drain, all waits, hazards, copies and allocations."""

LONGEST_SOURCE = 72


def place(site: Site) -> str:
    """File, line and function: ``train.py:12 in step``; relative if the file is below the current folder.

    Without a line it is what stands for a file, and an operation: ``<library> in aten::mm``.
    """
    file = Path(site.file)
    here = Path.cwd()
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    return (
        f"{shown}:{site.line} in {site.function}"
        if site.line
        else f"{site.file} in {site.function}"
    )


def source(site: Site) -> str:
    """The text of the line, cut short where it is long; empty where it cannot be read."""
    # Code without a file, such as that of a notebook cell, is known to linecache too.
    text = linecache.getline(site.file, site.line).strip()
    return text if len(text) <= LONGEST_SOURCE else text[: LONGEST_SOURCE - 3] + "..."


def doubts(measurement: Measurement) -> list[str]:
    """The lines about metrics that were not counted, and unknown and approximate operations."""
    named = {
        "unknown, so their waits are not counted": measurement.unknown,
        "approximate, so what is marked ~ is an estimate": measurement.approximate,
    }
    return [
        f"{what}: {', '.join(operations)}"
        for what, operations in named.items()
        if operations
    ]


def allowed_summaries(measurement: Measurement) -> Iterator[tuple[str, str]]:
    """Each reason of ``allowed``, and how much of each metric is set apart for it."""
    for reason, sites in measurement.allowed.items():
        totals = Counter[str]()
        for site in sites:
            totals[site.what] += site.count
        counted = {"syncs": sum(totals.pop(kind, 0) for kind in SYNCS), **totals}
        yield (
            reason,
            ", ".join(f"{count} {what}" for what, count in counted.items() if count),
        )


def range_text(bounds: Range | None) -> str:
    """Return the range of a modelled number in brackets: ``(1..3)`` or ``(1 or more)``; empty if exact."""
    if bounds is None:
        return ""
    return (
        f"({bounds[0]} or more)" if bounds[1] is None else f"({bounds[0]}..{bounds[1]})"
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines whose columns are aligned; the first row may be a head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
