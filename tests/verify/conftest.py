"""Results made up for tests, without measuring anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from finding_tickets.model.verification import MeasuredTicket, ResultCheck, Sample, VariantResult


class MadeUpRun(NamedTuple):
    """A sample, and the operations of unknown cost that it met."""

    sample: Sample
    unknown: tuple[str, ...]


def run(
    at: Mapping[str, int], error: str | None = None, unknown: tuple[str, ...] = (), **metrics: int
) -> MadeUpRun:
    """A run at a point that counted ``metrics``."""
    counted = {**metrics, "raised": int(error is not None)}
    return MadeUpRun(Sample(at=dict(at), metrics=counted, error=error), unknown)


def report(runs: Mapping[str, Sequence[MadeUpRun]], agreements: Sequence[ResultCheck] = ()) -> MeasuredTicket:
    """What a simulated measurement of these runs would have given, without laws."""
    first: Sequence[MadeUpRun] = next(iter(runs.values()), ())
    return MeasuredTicket(
        meter="simulated",
        torch="2.13.0",
        device="h200-cuda13",
        sweep=tuple(each.sample.at for each in first),
        variants={
            name: VariantResult(
                laws={},
                samples=tuple(each.sample for each in of_variant),
                sites=(),
                unknown=tuple(sorted({name for each in of_variant for name in each.unknown})),
            )
            for name, of_variant in runs.items()
        },
        agreements=tuple(agreements),
    )
