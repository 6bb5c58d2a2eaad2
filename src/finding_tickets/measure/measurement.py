"""What a meter yields: the metrics of one run and the sites that caused them."""

from __future__ import annotations

from dataclasses import dataclass, field

COUNTS = (
    "syncs",
    "stream_syncs",
    "event_syncs",
    "device_syncs",
    "implicit_syncs",
    "h2d",
    "h2d_bytes",
    "d2h",
    "d2h_bytes",
    "d2d",
    "d2d_bytes",
    "p2p",
    "p2p_bytes",
    "launches",
    "allocations",
    "largest_allocation",
    "peak_bytes",
    "peak_allocated_bytes",
    "retained_bytes",
    "host_peak_bytes",
    "hazards",
    "ooms",
)
"""Metrics that a meter counts during one run; docs/metrics.md defines each."""

OUTCOMES = ("raised", "graph_breaks")
"""Metrics that follow from how a run ended, or from a run of their own."""

METRICS = COUNTS + OUTCOMES
"""Every metric a claim may name, besides ``same_result_as``."""


@dataclass(frozen=True)
class Site:
    """A source line of user code and how often it caused one thing.

    ``what`` is the metric counted here: ``stream_syncs``, ``event_syncs``, ``device_syncs``,
    ``implicit_syncs``, ``h2d``, ``d2h``, ``d2d``, ``p2p``, ``allocations`` or ``hazards``.
    """

    file: str
    line: int
    function: str
    what: str
    count: int


@dataclass(frozen=True)
class Measurement:
    """The cost of one run: a value for every metric the meter can count, and where it came from.

    ``unknown`` names the operations whose cost the meter does not know: with one, no count can be trusted.
    ``approximate`` names those whose launches or workspaces are chosen by a library and only modelled.
    """

    metrics: dict[str, int]
    sites: tuple[Site, ...] = ()
    unknown: tuple[str, ...] = ()
    approximate: tuple[str, ...] = field(default=())
