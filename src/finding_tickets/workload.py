"""Provide the names for verifiers: ``from finding_tickets.workload import Point, Workload, main``."""

from __future__ import annotations

from finding_tickets.measure.workloads import Point, Workload, stub_imports

__all__ = ["Point", "Workload", "main", "stub_imports"]


def main(workload: Workload) -> None:
    """Measure every variant in ``fixes/<id>/`` with the calling verifier and print the laws.

    It sets the exit code of the process where nothing could be measured.
    """
    # Every verifier imports this module; only one that is run on its own needs what measures.
    from finding_tickets.measure.run import measure_beside

    measure_beside(workload)
