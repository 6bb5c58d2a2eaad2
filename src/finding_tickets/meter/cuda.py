"""The meter for a real GPU, which does not exist yet: it says so and never pretends to have measured."""

from __future__ import annotations

WHY_NOT = "this version has no meter for a real GPU yet: use --meter simulated"


def why_not() -> str | None:
    """Why nothing can be measured on a real GPU here; None where it can."""
    return WHY_NOT
