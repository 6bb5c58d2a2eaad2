"""The page that documents every rule, docs/lint-rules.md, and the examples of rules that tests run.

``python -m tests.lint.page > docs/lint-rules.md`` writes it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from finding_tickets.lint.page import EXAMPLES
from finding_tickets.lint.rules import RULES, Rule

# Where the ticket of an example stands that names no file.
TICKET = "tickets/B1-PT-01.md"
Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Explanation:
    """What a rule asks for and why, with examples.

    An example is a set of files. The text of a ticket in it is whole where it begins with a title. Otherwise
    it is what the example changes in a sound ticket: metadata rows, sections, or lines below the title.
    """

    reason: str
    wrong: Files  # breaks this rule and no other
    right: Files  # breaks no rule; where the rule is fixable, what `wrong` becomes


@cache
def explanations() -> Mapping[str, Explanation]:
    """The explanation of every rule by its ID."""
    found = {}
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for name, stated in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            wrong, right = _files(stated["wrong"]), _files(stated["right"])
            found[name] = Explanation(stated["reason"], wrong, right)
    return found


def _files(example: Any) -> Files:
    """The files of an example that may be the text of its ticket alone; ``bytes:`` is text in Latin-1."""
    files = {TICKET: example} if isinstance(example, str) else example
    return {
        path: text["bytes"].encode("latin-1") if isinstance(text, dict) else text
        for path, text in files.items()
    }


def rules_page() -> str:
    """Every rule with its level and its reason, in Markdown."""
    introduction = (Path(__file__).parent / "introduction.md").read_text(encoding="utf-8")
    return introduction + "\n".join(entry(rule) for _, rule in sorted(RULES.items()))


def entry(rule: Rule) -> str:
    """The line of one rule."""
    traits = [str(rule.level)]
    traits += ["bad data"] if rule.bad_data else []
    traits += ["reader"] if rule.is_reported else []
    traits += ["`--fix`"] if rule.fixable else []
    return f"- **{rule.id}** (*{', '.join(traits)}*): {explanations()[rule.id].reason}"


if __name__ == "__main__":
    print(rules_page())
