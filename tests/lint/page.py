"""The page that documents every rule, docs/lint-rules.md, from the reasons and examples beside the rules.

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
FENCE = "~~~~"
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
    """Every rule with its level, its reason and its examples, in Markdown."""
    entries = (f"## {name}\n\n{entry_text(RULES[name])}" for name in sorted(RULES))
    introduction = (Path(__file__).parent / "introduction.md").read_text(encoding="utf-8")
    return "\n".join([introduction, *entries]).rstrip("\n")


def entry_text(rule: Rule) -> str:
    """One rule as the page has it below its heading."""
    about = explanations()[rule.id]
    traits = [rule.level.capitalize()]
    traits += ["bad data"] if rule.bad_data else []
    traits += ["reader"] if rule.is_reported else []
    traits += ["fixed by `--fix`" if rule.fixable else "not fixed by `--fix`"]
    parts = [f"*{', '.join(traits)}.* {about.reason}\n"]
    for title, files in (("Wrong", about.wrong), ("Right", about.right)):
        parts.append(f"{title}:\n\n{FENCE}markdown")
        for path, content in files.items():
            text = content if isinstance(content, str) else content.decode(errors="backslashreplace")
            shown = "".join(
                char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
                for char in text
            ).rstrip("\n")
            if set(files) != {TICKET}:
                parts += [f"──── {path}", shown or "(as it was)"]
            else:
                parts.append(shown)
        parts += [FENCE, ""]
    return "\n".join(parts)


if __name__ == "__main__":
    print(rules_page())
