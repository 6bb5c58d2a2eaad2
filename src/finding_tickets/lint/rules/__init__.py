"""Lint rules: each has an id, a level, a reason and examples; docs/lint-rules.md shows them all."""

from finding_tickets.lint.rules import (
    claims,
    code,
    dates,
    files,
    identity,
    reading,
    relations,
    reviews,
    state,
    structure,
    suppressions,
    vocabulary,
)
from finding_tickets.lint.rules.context import Context
from finding_tickets.lint.rules.rule import RULES, Remark, Rule

MODULES = (
    structure,
    vocabulary,
    identity,
    code,
    dates,
    relations,
    reviews,
    state,
    claims,
    files,
    reading,
    suppressions,
)
"""Where the rules are; importing them fills ``RULES``."""

__all__ = ["MODULES", "RULES", "Context", "Remark", "Rule"]
