"""Lint rules by topic: importing the modules fills ``RULES``; ``examples/`` says what each is for."""

from finding_tickets.lint.rules import code, content, relations, remediation, reported, state
from finding_tickets.lint.rules.rule import RULES, Context, Remark, Rule

MODULES = (content, code, relations, state, remediation, reported)

__all__ = ["MODULES", "RULES", "Context", "Remark", "Rule"]
