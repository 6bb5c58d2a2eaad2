"""Rules about the comments that have lint ignore a rule in one ticket; lint itself reports breaches."""

from __future__ import annotations

from finding_tickets.lint.rules.rule import RULES, Rule, add, files
from finding_tickets.model.problem import Level

_ABSENT = "## Related Findings\n\n- B7-PT-99: the same trade-off"


def _rule(name: str, level: Level, reason: str, wrong: str, right: str, *, mends: bool = False) -> Rule:
    add(Rule(name, level, reason, files(wrong), files(right), mends=mends))
    return RULES[name]


FORM = _rule(
    "suppression-form",
    Level.WARNING,
    "A comment that has lint ignore something names the rules, all of which exist and may be ignored, and "
    "gives a reason. One that does not ignores nothing. What makes a ticket unreadable cannot be ignored.",
    wrong="<!-- lint-ignore one-way-relation -->",
    right=f"<!-- lint-ignore dangling-relation: that register was archived -->\n\n{_ABSENT}",
)
UNUSED = _rule(
    "suppression-unused",
    Level.WARNING,
    "A comment that has lint ignore something is removed when there is nothing to ignore any more.",
    wrong="<!-- lint-ignore dangling-relation: that register was archived -->",
    right="",
    mends=True,
)
