"""The page that documents every rule, docs/lint-rules.md."""

from __future__ import annotations

from finding_tickets.register.rules import RULES, Rule

INTRODUCTION = """\
# Lint rules

`tickets lint --rules` prints this page, and a test compares the two.
"""


def rules_page() -> str:
    """Every rule with its level, its reason and an example, in Markdown."""
    return "\n".join([INTRODUCTION, *map(_entry, sorted(RULES.values(), key=lambda rule: rule.id))])


def _entry(rule: Rule) -> str:
    consequence = " (bad data: exit code 4)" if rule.bad_data else ""
    return (
        f"## {rule.id}\n\n{rule.level.capitalize()}{consequence}. {rule.description}\n\n"
        f"Example: {rule.example}\n"
    )
