"""Lint rules: each has an id, a level, a reason and an example; docs/lint-rules.md shows them all."""

from finding_tickets.register.rules import (
    claims,
    files,
    identity,
    relations,
    state,
    structure,
    vocabulary,
)
from finding_tickets.register.rules.context import Context
from finding_tickets.register.rules.rule import RULES, Remark, Rule

MODULES = (structure, vocabulary, identity, relations, state, claims, files)
"""Where the rules are; importing them fills ``RULES``."""

__all__ = ["MODULES", "RULES", "Context", "Remark", "Rule"]
