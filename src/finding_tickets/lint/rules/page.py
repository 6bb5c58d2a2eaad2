"""The page that documents every rule, docs/lint-rules.md, from the reasons and examples beside the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from finding_tickets.lint.rules import RULES, Rule

EXAMPLES = Path(__file__).parent / "examples"
# Where the ticket of an example stands that names no file.
TICKET = "tickets/B1-PT-01.md"
FENCE = "~~~~"
INTRODUCTION = """\
# Lint rules

`tickets lint` prints one line for each breach: file, line, column, level, rule and message. Errors fail the
gate (exit code 1); an error that leaves the register unreadable is bad data (exit code 4). Warnings and notes
fail nothing. What the rules marked *reader* find is said by every command that reads the register; none of it
stops the rest of a file from being read as far as it can be understood.

## Choosing

`tickets lint 'status:open domain:training'` looks at some tickets only ([queries](queries.md)).
`--select RULE` shows these rules alone, `--ignore RULE` leaves them out; both may be repeated or name
several, separated by commas. The configuration may say the same for everybody: `lint_select` and
`lint_ignore` ([configuration](configuration.md)). `--select` replaces what is configured, `--ignore` adds to
it.

A ticket can have lint ignore a rule in it, for a reason that others can judge:

    <!-- lint-ignore one-way-relation: B1-PT-02 is archived and is not edited any more -->

The comment may stand anywhere in the file outside code, and holds for all of it. Without a reason, for a rule
that does not exist, or where there is nothing to ignore, it is itself a problem.

## Fixing

`tickets lint --fix` fixes what takes no judgement. Each edit replaces one place; the file is read again
before it takes the place of the old one, and is left alone unless the problem is gone and nothing else got
worse. What a ticket says does not change by that, so its row Updated stays as it is.

## Formats

`--format text` is for people and editors, `json` has [one item a problem](json.md), `github` prints workflow
commands that annotate a pull request, and `sarif` is SARIF 2.1.0, for code scanning.

# The rules

The examples are executed by tests. Each shows what it changes in a ticket that is otherwise right, in
`tickets/B1-PT-01.md` unless a file is named; a text that begins with a title is the whole file, and
`-> somewhere` a link.
"""

Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Explanation:
    """What a rule asks for and why, with examples.

    An example is a set of files. The text of a ticket in it is whole where it begins with a title. Otherwise
    it is what the example changes in a sound ticket: metadata rows, sections, or lines below the title.

    Attributes:
        reason: What is asked for, and why.
        wrong: An example that breaks this rule and no other.
        right: An example that breaks no rule; where the rule is fixable, what ``wrong`` becomes.
    """

    reason: str
    wrong: Files
    right: Files


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
    return "\n".join([INTRODUCTION, *entries]).rstrip("\n")


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
