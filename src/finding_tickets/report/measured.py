"""What of a verification people look at first: laws before and after, and claims that are false."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from finding_tickets.model.verification import ClaimResult, VariantResult, Verification

BEFORE = "found"
AFTER = "fix"
NO_LAW = "no law"


class Change(NamedTuple):
    """A metric by which variants differ: its laws before and after, None where that variant was not run."""

    metric: str
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """Before and after with an arrow between them, as far as each was measured."""
        return " -> ".join(law for law in (self.before, self.after) if law is not None)


def changes(verification: Verification) -> Iterator[Change]:
    """The metrics that claims about ``found`` and ``fix`` speak of, each with its laws."""
    claimed = [claim.metric for claim in verification.claims if claim.variant in {BEFORE, AFTER}]
    before, after = (verification.variants.get(name) for name in (BEFORE, AFTER))
    for metric in dict.fromkeys(claimed):
        change = Change(metric, law_of(before, metric), law_of(after, metric))
        if change.text:
            yield change


def law_of(variant: VariantResult | None, metric: str) -> str | None:
    """The law of a metric, else what is known instead; None where the variant was not measured by it."""
    if variant is None or not any(metric in sample.metrics for sample in variant.samples):
        return None
    return variant.laws.get(metric) or variant.growth.get(metric) or NO_LAW


def refuted(verification: Verification) -> tuple[ClaimResult, ...]:
    """The claims that do not hold, expected or not."""
    return tuple(claim for claim in verification.claims if claim.holds is False)
