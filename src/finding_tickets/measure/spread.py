"""How many times longer one thing takes than another, with the spread, from pairs of times.

The interval is one of order statistics for the median: it supposes nothing about how times are distributed
(H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, section 7.1). Rounds are looked at a few times
only, at numbers that are fixed beforehand, and each look takes its share of the doubt, so that going on until
something is decided does not decide it by chance.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import comb
from statistics import median

from finding_tickets.measure.report import Interval

LOOKS = (16, 32, 64, 128, 256)
"""After how many rounds the ratios are looked at."""

DOUBT = 0.01
"""How likely it may be, at most, that any interval of a ticket misses the median of its ratio."""


def interval(ratios: Sequence[float], doubt: float) -> Interval | None:
    """The interval that misses the median with at most the probability ``doubt``; None with too few rounds.

    The median lies between the k-th smallest and the k-th largest of n values unless fewer than k of them are
    on one side of it, which is as likely as fewer than k heads or fewer than k tails in n throws of a coin.
    """
    count = len(ratios)
    left_out, missed = 0, 2 / 2**count
    while missed <= doubt:
        left_out += 1
        missed += 2 * comb(count, left_out) / 2**count
    if not left_out:
        return None
    ordered = sorted(ratios)
    return Interval(median(ordered), ordered[left_out - 1], ordered[-left_out], count)


def share(intervals: int) -> float:
    """The doubt that each look may leave, where there are so many intervals."""
    return DOUBT / (len(LOOKS) * intervals)


def is_clear_of(found: Interval, edges: Collection[float]) -> bool:
    """Whether no edge, at which the outcome of a claim turns, lies within the interval."""
    return not any(found.low <= edge <= found.high for edge in edges)
