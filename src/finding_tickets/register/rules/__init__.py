"""Lint rules: each has an id, a level, a reason and an example; docs/lint-rules.md shows them all."""

from finding_tickets.register.rules import claims, files, identity, relations, state, structure
from finding_tickets.register.rules.context import Context
from finding_tickets.register.rules.rule import RULES, Remark, Rule

__all__ = [
    "RULES",
    "Context",
    "Remark",
    "Rule",
    "claims",
    "files",
    "identity",
    "relations",
    "state",
    "structure",
]
