"""The page docs/commands.md, from the commands themselves: ``python -m docs.pages.commands``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from finding_tickets.cli.main import COMMANDS, application

INTRODUCTION = """\
# Commands

    tickets verify B7-PT-02

This page is the output of `tickets COMMAND --help` for every command; what {often} or more take is
described once. `python -m docs.pages.commands` makes it.

- Data goes to stdout, messages and progress to stderr. On a terminal there are colours, tables are cut to its
  width, and long output goes through `$PAGER`. `NO_COLOR` turns colours off, `FORCE_COLOR` turns them on.
- `--format json` prints [data](json.md). The [README](../README.md#exit-codes) has the exit codes.
- IDs match in any case. `tickets --install-completion` makes the shell complete them.
- `[QUERY]` is [a query](queries.md). Without one, all documents match; `verify` needs `--all` for that.

Taken by many commands:

{shared}
"""
OFTEN = 5
BRACES = str.maketrans("", "", "{}")
"""Around words that have to be there; those that need not be are in brackets."""
PIPE = "\\|"
"""A pipe that ends no cell."""


def page() -> str:
    """Return the page as Markdown."""
    sections = []
    counts = Counter[tuple[str, str]]()
    # All commands are loaded, so the page cannot say what they do not.
    for name, command in application(COMMANDS).commands.items():
        context = command.make_context(f"tickets {name}", [], resilient_parsing=True)
        rows = [cells(record) for each in command.params if (record := each.get_help_record(context))]
        counts.update(rows)
        sections.append((name, command, " ".join(context.get_usage().split()), rows))
    shared = [row for row, count in counts.items() if count >= OFTEN]
    lines = [INTRODUCTION.format(often=OFTEN, shared="\n".join(table(shared)))]
    for name, command, usage, rows in sections:
        more = f"More: [{COMMANDS[name].page}]({COMMANDS[name].page})."
        lines += [f"## {name}", "", f"{command.help} {more}", ""]
        lines += [f"    {usage.removeprefix('Usage: ').translate(BRACES)}", ""]
        lines += [*table([(words, "" if (words, said) in shared else said) for words, said in rows]), ""]
    return "\n".join(lines)


def cells(record: tuple[str, str]) -> tuple[str, str]:
    """Return an argument or an option as code, and what is said of it."""
    words, text = record
    # Typer's remark at the end stands in brackets; people write it in parentheses.
    what, _, remark = " ".join(text.split()).removesuffix("]").partition(" [")
    said = f" ({remark.replace('x>=', 'at least ')})" if remark else ""
    return f"`{' '.join(words.split())}`", what + said


def table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = ["| | |", "|---|---|"]
    for row in rows:
        lines.append(f"| {' | '.join(cell.replace('|', PIPE) for cell in row)} |")
    return lines


if __name__ == "__main__":
    sys.stdout.write(page())
