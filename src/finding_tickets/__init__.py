"""Finding tickets that are closed by measurement.

The public API reads a register: ``load`` returns its documents as pydantic models. docs/api.md shows how.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from finding_tickets.ground import __version__ as __version__

if TYPE_CHECKING:
    from finding_tickets.errors import BadDataError, TicketsError, UsageError
    from finding_tickets.model.schema import json_schema
    from finding_tickets.model.ticket import (
        Claim,
        ImplementationReview,
        Problem,
        Remediation,
        Ticket,
    )
    from finding_tickets.model.verification import Evidence, Verification
    from finding_tickets.model.vocabulary import Verdict
    from finding_tickets.register.load import Register, load
    from finding_tickets.register.staleness import CurrentVerdict

__all__ = [
    "BadDataError",
    "Claim",
    "CurrentVerdict",
    "Evidence",
    "ImplementationReview",
    "Problem",
    "Register",
    "Remediation",
    "Ticket",
    "TicketsError",
    "UsageError",
    "Verdict",
    "Verification",
    "json_schema",
    "load",
]
# Loaded on use: a verifier imports ``finding_tickets.workload`` where there is no pydantic.
_MODULES = {
    "errors": ("BadDataError", "TicketsError", "UsageError"),
    "model.schema": ("json_schema",),
    "model.ticket": (
        "Claim",
        "ImplementationReview",
        "Problem",
        "Remediation",
        "Ticket",
    ),
    "model.verification": ("Evidence", "Verification"),
    "model.vocabulary": ("Verdict",),
    "register.load": ("Register", "load"),
    "register.staleness": ("CurrentVerdict",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"finding_tickets.{module}"), name)
    raise AttributeError(f"module 'finding_tickets' has no attribute {name!r}")
