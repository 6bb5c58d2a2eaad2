"""What a verifier imports: ``from finding_tickets.workload import Point, Workload, main``."""

from __future__ import annotations

from finding_tickets.measure.standalone import main
from finding_tickets.measure.workloads import Point, Workload, stub_imports

__all__ = ["Point", "Workload", "main", "stub_imports"]
