"""What a meter yields: the metrics of one run and the sites that caused them."""

from __future__ import annotations

from dataclasses import dataclass, field


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
