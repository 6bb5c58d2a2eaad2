"""``tickets lint``: what is missing, misspelt or contradictory, by file, line and column."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Annotated

import typer

from finding_tickets.cli.options import HERE, Query, Root
from finding_tickets.cli.output import counted, say, say_error, write, write_json
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.lint.autofix import fix as fix_files
from finding_tickets.lint.engine import Choice, breaches, close_rules, exit_code
from finding_tickets.lint.rules import RULES
from finding_tickets.lint.rules.page import rules_page
from finding_tickets.model.problem import Level
from finding_tickets.register.config import Config
from finding_tickets.register.load import Register, load
from finding_tickets.register.query import Facts
from finding_tickets.register.query import select as select_rows


class LintFormat(StrEnum):
    """How problems are printed."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def complete_rule(incomplete: str) -> list[str]:
    """The rules that begin with what was typed behind the last comma, with all that is before it."""
    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in sorted(RULES) if name.startswith(begun)]


def rule_option(name: str, what: str) -> typer.models.OptionInfo:
    """An option that may be repeated, or name several rules with commas between them."""
    option: typer.models.OptionInfo = typer.Option(
        name, metavar="RULES", autocompletion=complete_rule, help=what
    )
    return option


def lint(
    query: Query = None,
    root: Root = HERE,
    select: Annotated[list[str] | None, rule_option("--select", "Only these rules.")] = None,
    ignore: Annotated[list[str] | None, rule_option("--ignore", "All but these rules.")] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Fix what takes no judgement.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="Print all rules as Markdown and stop.")] = False,
    output_format: Annotated[
        LintFormat, typer.Option("--format", case_sensitive=False, help="How problems are printed.")
    ] = LintFormat.TEXT,
) -> ExitCode:
    """Check structure, words, IDs, relations, decisions, cited code and claims."""
    if rules:
        write(rules_page())
        return ExitCode.OK
    register = load(root)
    choice = _choice(register.config, _named("--select", select), _named("--ignore", ignore))
    # Without a query also files are checked that hold no document.
    paths = {row.path for row in select_rows(" ".join(query), Facts.of(register))} if query else None
    documents = _documents(register, paths)
    code = ExitCode.OK
    if fix:
        done = fix_files(register, documents, choice)
        count, files = sum(each.count for each in done), sum(1 for each in done if each.count)
        say(f"fixed {counted(count, 'problem')} in {counted(files, 'file')}")
        for each in done:
            if each.error:
                say_error(each.error)
                code = ExitCode.BAD_DATA
        # The same documents, read again: what was fixed may have been why the query selected them.
        register = load(root)
        documents = _documents(register, paths)
    found = breaches(register, documents, choice)
    problems = [breach.problem for breach in found]
    if output_format is LintFormat.JSON:
        write_json(
            "lint", [{**dataclasses.asdict(each.problem), "fixable": bool(each.fix)} for each in found]
        )
    elif output_format is LintFormat.SARIF:
        from finding_tickets.report.sarif import lint_log

        write(json.dumps(lint_log(problems), indent=2, ensure_ascii=False))
    elif problems:
        from finding_tickets.report.github import annotation

        shown = annotation if output_format is LintFormat.GITHUB else str
        write("\n".join(map(shown, problems)))
    counts = Counter(breach.problem.level for breach in found)
    levels = ", ".join(counted(counts[level], level) for level in Level)
    fixable = sum(bool(breach.fix) for breach in found)
    looked = counted(len(register.documents if documents is None else documents), "document")
    say(f"{looked}: {levels}{f'; --fix can fix {fixable}' if fixable else ''}")
    return ExitCode.worst(exit_code(problems), code)


def _documents(register: Register, paths: Collection[str] | None) -> list[Document] | None:
    """The documents of these paths, as the register has them now."""
    return None if paths is None else [each for each in register.documents if each.path in paths]


def _named(option: str, values: Iterable[str] | None) -> frozenset[str] | None:
    """The rules that an option names; None where it is not given.

    Raises:
        UsageError: There is no such rule.
    """
    if values is None:
        return None
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    for name in names:
        if name not in RULES:
            raise UsageError(f"{option} {name}: no such rule", hint=close_rules(name))
    return frozenset(names)


def _choice(config: Config, select: Collection[str] | None, ignore: Collection[str] | None) -> Choice:
    """What the options say, on top of the configuration; what is selected by name is not ignored by that.

    Raises:
        BadDataError: The configuration names a rule that does not exist.
    """
    for key, names in (("lint_select", config.lint_select), ("lint_ignore", config.lint_ignore)):
        for name in names or ():
            if name not in RULES:
                raise BadDataError(f"{key}: no such rule as {name}", hint=close_rules(name))
    if select is not None:
        return Choice(frozenset(select), frozenset(ignore or ()))
    chosen = None if config.lint_select is None else frozenset(config.lint_select)
    return Choice(chosen, frozenset([*config.lint_ignore, *(ignore or ())]))
