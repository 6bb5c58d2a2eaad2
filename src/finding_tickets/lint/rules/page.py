"""The page that documents every rule, docs/lint-rules.md."""

from __future__ import annotations

from collections.abc import Iterator

from finding_tickets.lint.rules import RULES, Rule
from finding_tickets.lint.rules.rule import TICKET, Files

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

## Mending

`tickets lint --fix` mends what takes no judgement. Each edit replaces one place; the file is read again
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


def rules_page() -> str:
    """Every rule with its level, its reason and its examples, in Markdown."""
    entries = map(_entry, sorted(RULES.values(), key=lambda rule: rule.id))
    return "\n".join([INTRODUCTION, *entries]).rstrip("\n")


def entry_text(rule: Rule) -> str:
    """One rule as the page has it below its heading."""
    examples = [_example("Wrong", rule.wrong), _example("Right", rule.right)]
    return "\n".join([f"*{', '.join(_traits(rule))}.* {rule.reason}\n", *examples])


def _entry(rule: Rule) -> str:
    return f"## {rule.id}\n\n{entry_text(rule)}"


def _traits(rule: Rule) -> Iterator[str]:
    yield rule.level.capitalize()
    if rule.bad_data:
        yield "bad data"
    if rule.is_reported:
        yield "reader"
    yield "mended by `--fix`" if rule.mends else "not mended by `--fix`"


def _example(title: str, files: Files) -> str:
    lines = [f"{title}:\n\n{FENCE}markdown"]
    for path, content in files.items():
        text = _shown(content)
        if set(files) != {TICKET}:
            lines.append(f"──── {path}")
        lines.append(text.rstrip("\n") or ("" if set(files) == {TICKET} else "(as it was)"))
    return "\n".join([*lines, FENCE, ""])


def _shown(content: str | bytes) -> str:
    """The content of a file as text; what cannot be printed as escapes."""
    text = content if isinstance(content, str) else content.decode(errors="backslashreplace")
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )
