"""The names that a claim may state something about."""

from __future__ import annotations

from finding_tickets.meter.measurement import METRICS

SAME_RESULT = "same_result_as"
CLAIMABLE = (*METRICS, SAME_RESULT)
