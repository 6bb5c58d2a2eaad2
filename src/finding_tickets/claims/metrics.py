"""The names that a claim may state something about."""

from __future__ import annotations

from finding_tickets.measure.measurement import METRICS
from finding_tickets.model.remediation import SAME_RESULT, SECONDS

CLAIMABLE = (*METRICS, SECONDS, SAME_RESULT)
