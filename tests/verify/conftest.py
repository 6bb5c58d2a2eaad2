"""Runs made up for tests, without measuring anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from finding_tickets.measure.measurement import Measurement, Site
from finding_tickets.measure.report import Agreement, Report, Run


def run(
    at: Mapping[str, int], error: str | None = None, unknown: tuple[str, ...] = (), **metrics: int
) -> Run:
    """A run at a point that counted ``metrics``."""
    return Run(dict(at), Measurement({**metrics, "raised": int(error is not None)}, unknown=unknown), error)


def site_run(at: Mapping[str, int], *sites: Site) -> Run:
    """A run at a point that counted something at ``sites``."""
    return Run(dict(at), Measurement({}, sites))


def report(runs: Mapping[str, Sequence[Run]], agreements: Sequence[Agreement] = ()) -> Report:
    """What a simulated measurement of these runs would have reported."""
    sweep = tuple(run.at for run in next(iter(runs.values()), ()))
    return Report(
        meter="simulated",
        torch="2.13.0",
        device="h200-cuda13",
        sweep=sweep,
        runs={name: tuple(of_variant) for name, of_variant in runs.items()},
        agreements=tuple(agreements),
    )
