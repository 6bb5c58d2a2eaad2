"""The page that documents every rule, docs/lint-rules.md."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.register.rules import RULES, Rule
from finding_tickets.register.rules.reading import READING

INTRODUCTION = """\
# Lint rules

`tickets lint` prints one line for each breach: file, line, level, rule and message. Errors fail the gate
(exit code 1); an error that leaves the register unreadable is bad data (exit code 4). Warnings and notes fail
nothing.

This page is what `tickets lint --rules` prints; a test compares the two.
"""
READER = """\
## What the reader reports

Every command that reads the register says these, and none of them stops it: the rest of the file is read as
far as it can be understood. The errors among them are bad data.

| id | level | what is asked for | a breach |
|---|---|---|---|"""


def rules_page() -> str:
    """Every rule with its level, its reason and an example, in Markdown."""
    return "\n".join(
        [INTRODUCTION, *map(_entry, sorted(RULES.values(), key=lambda rule: rule.id)), *_reader()]
    )


def _entry(rule: Rule) -> str:
    consequence = ", bad data" if rule.bad_data else ""
    level = f"*{rule.level.capitalize()}{consequence}.*"
    return f"## {rule.id}\n\n{level} {rule.description}\n\n    {rule.example}\n"


def _reader() -> Iterator[str]:
    yield READER
    for name, (level, description, example) in READING.items():
        code = example.replace("|", "\\|")
        yield f"| `{name}` | {level} | {description} | {code} |"
