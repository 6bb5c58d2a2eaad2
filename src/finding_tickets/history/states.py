"""What is compared of a verification over time: its verdict, and each claimed metric of each variant."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from finding_tickets.model.record import Record
from finding_tickets.model.verdict import Verdict
from finding_tickets.model.verification import ClaimResult, VariantResult, Verification

UNKNOWN = frozenset({Verdict.INCONCLUSIVE, Verdict.UNVERIFIED, Verdict.STALE})
"""Verdicts that say nothing of the code."""

NO_LAW = "no law"


class Line(Record):
    """What was measured of one metric of one variant of which something is claimed.

    ``law`` is the law, or what else is known in its place. ``outcomes`` says of each claim, by its ID,
    whether it came out as the ticket expects; None where it was not checked. ``values`` are those of runs
    that ended, at the points of the sweep.
    """

    variant: str
    metric: str
    law: str
    claimed: tuple[str, ...]
    outcomes: dict[str, bool | None]
    points: tuple[dict[str, int], ...] = ()
    values: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The variant and the metric, as claims are called."""
        return f"{self.variant}.{self.metric}"


class State(Record):
    """What one measurement says of a ticket, with the environment that it was made in."""

    ticket: str
    verdict: Verdict
    reason: str
    meter: str
    torch: str
    device: str
    lines: tuple[Line, ...]

    @property
    def is_known(self) -> bool:
        """Whether the verdict says something of the code."""
        return self.verdict not in UNKNOWN


class Kind(StrEnum):
    """Why nothing was measured: there was nothing, something is wrong with it, or it did not work."""

    ABSENT = "absent"
    WRONG = "wrong"
    UNKNOWN = "unknown"


class Gap(Record):
    """Why nothing is known of a ticket at a commit."""

    kind: Kind
    why: str


Moment = State | Gap


def state_of(verification: Verification) -> State:
    """What is compared of a verification."""
    return State(
        ticket=verification.ticket,
        verdict=verification.verdict,
        reason=verification.reason,
        meter=verification.meter,
        torch=verification.torch,
        device=verification.device,
        lines=tuple(_lines(verification)) if verification.variants else (),
    )


def _lines(verification: Verification) -> Iterator[Line]:
    claims: dict[tuple[str, str], list[ClaimResult]] = {}
    for claim in verification.claims:
        claims.setdefault((claim.variant, claim.metric), []).append(claim)
    for (variant, metric), made in claims.items():
        result = verification.variants.get(variant)
        samples = [sample for sample in (result.samples if result else ()) if sample.error is None]
        counted = [sample for sample in samples if metric in sample.metrics]
        yield Line(
            variant=variant,
            metric=metric,
            law=_law(result, metric) if counted else "; ".join(dict.fromkeys(each.measured for each in made)),
            claimed=tuple(claim.claimed for claim in made),
            outcomes={claim.id: None if claim.holds is None else claim.as_expected for claim in made},
            points=tuple(sample.at for sample in counted),
            values=tuple(sample.metrics[metric] for sample in counted),
        )


def _law(result: VariantResult | None, metric: str) -> str:
    known = (result.laws.get(metric) or result.growth.get(metric)) if result else None
    return known or NO_LAW
