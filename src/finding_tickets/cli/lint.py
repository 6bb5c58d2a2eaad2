"""``tickets lint``: what is missing, misspelt or contradictory, by file and line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from finding_tickets.cli.choosing import Query, chosen
from finding_tickets.cli.options import HERE, OutputFormat, Root
from finding_tickets.cli.output import Format, counted, say, write, write_json
from finding_tickets.errors import ExitCode
from finding_tickets.model.problem import Level, Problem
from finding_tickets.register.lint import exit_code
from finding_tickets.register.lint import lint as check
from finding_tickets.register.load import load
from finding_tickets.register.query import Facts
from finding_tickets.register.rules.page import rules_page


def lint(
    query: Query = None,
    root: Root = HERE,
    rules: Annotated[bool, typer.Option("--rules", help="Print all rules as Markdown and stop.")] = False,
    output_format: OutputFormat = Format.TABLE,
) -> ExitCode:
    """Check structure, words, IDs, relations and claims."""
    if rules:
        write(rules_page())
        return ExitCode.OK
    register = load(root)
    files = {row.path for row in chosen(query, Facts.of(register))}
    problems = [problem for problem in check(register) if not query or problem.file in files]
    if output_format is Format.JSON:
        write_json("lint", [asdict(problem) for problem in problems])
    elif problems:
        write("\n".join(map(str, problems)))
    say(_summary(problems, len(files)))
    return exit_code(problems)


def _summary(problems: Sequence[Problem], documents: int) -> str:
    counts = Counter(problem.level for problem in problems)
    return f"{counted(documents, 'document')}: {', '.join(counted(counts[level], level) for level in Level)}"
