"""The reasons of rules, from the files with examples; docs/lint-rules.md shows them too."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from finding_tickets.lint.rules import RULES

EXAMPLES = Path(__file__).parent / "rules/examples"


@cache
def reasons() -> Mapping[str, str]:
    """Return what each rule asks for and why, in Markdown, by the rule's ID."""
    found = {}
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for name, stated in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            found[name] = stated["reason"]
    return found


def rules_page() -> str:
    """Return every rule with its level and its reason, in Markdown."""
    lines = ["# Lint rules", ""]
    for name, rule in sorted(RULES.items()):
        fixed = ", fixed by `--fix`" if rule.fixable else ""
        lines.append(f"- **{name}** ({rule.level}{fixed}): {reasons()[name]}")
    return "\n".join(lines)
