"""Lint rules by topic; importing the modules fills ``RULES``.

A new rule also needs an entry in ``examples/``: its reason, and what is wrong and right by it.
"""

from finding_tickets.lint.rules import (
    code,
    content,
    relations,
    remediation,
    reported,
    state,
)
from finding_tickets.lint.rules.rule import RULES, Context, Remark, Rule

MODULES = (content, code, relations, state, remediation, reported)

__all__ = ["MODULES", "RULES", "Context", "Remark", "Rule"]
