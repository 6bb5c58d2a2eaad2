"""``tickets lint``: what is missing, misspelt or contradictory, by file, line and column."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from finding_tickets.cli.choosing import Query, chosen
from finding_tickets.cli.options import HERE, Root
from finding_tickets.cli.output import counted, say, say_error, write, write_json
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.lint.autofix import Mended, mend
from finding_tickets.lint.engine import Breach, Choice, breaches, close_rules, exit_code
from finding_tickets.lint.rules import RULES
from finding_tickets.lint.rules.page import rules_page
from finding_tickets.model.problem import Level
from finding_tickets.register.config import Config
from finding_tickets.register.load import Register, load
from finding_tickets.register.query import Facts


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
    fix: Annotated[bool, typer.Option("--fix", help="Mend what takes no judgement.")] = False,
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
    documents = _chosen(register, query)
    done = mend(register, documents, choice) if fix else ()
    if fix:
        say(_mended(done))
        register = load(root)
        documents = documents if documents is None else _again(register, documents)
    found = breaches(register, documents, choice)
    _print(found, output_format)
    say(_summary(found, len(register.documents if documents is None else documents)))
    return ExitCode.worst(exit_code([breach.problem for breach in found]), _mending_code(done))


def _chosen(register: Register, query: list[str] | None) -> list[Document] | None:
    """The documents that a query means; None without one, for all and for files that hold no document."""
    if not query:
        return None
    paths = {row.path for row in chosen(query, Facts.of(register))}
    return [document for document in register.documents if document.path in paths]


def _again(register: Register, documents: Collection[Document]) -> list[Document]:
    """The same documents as they are now: what was mended may have been why a query meant them."""
    paths = {document.path for document in documents}
    return [document for document in register.documents if document.path in paths]


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


def _print(found: Sequence[Breach], output_format: LintFormat) -> None:
    problems = [breach.problem for breach in found]
    if output_format is LintFormat.JSON:
        write_json(
            "lint", [{**dataclasses.asdict(each.problem), "fixable": bool(each.fix)} for each in found]
        )
    elif output_format is LintFormat.SARIF:
        from finding_tickets.report.sarif import sarif

        write(json.dumps(sarif(problems), indent=2, ensure_ascii=False))
    elif problems:
        from finding_tickets.report.annotations import annotation

        shown = annotation if output_format is LintFormat.GITHUB else str
        write("\n".join(map(shown, problems)))


def _mended(done: Sequence[Mended]) -> str:
    count, files = sum(each.count for each in done), sum(1 for each in done if each.count)
    return f"mended {counted(count, 'problem')} in {counted(files, 'file')}"


def _mending_code(done: Iterable[Mended]) -> ExitCode:
    """Bad data where a file could not be mended, which is said on stderr; else fine."""
    errors = [each.error for each in done if each.error]
    for error in errors:
        say_error(error)
    return ExitCode.BAD_DATA if errors else ExitCode.OK


def _summary(found: Sequence[Breach], documents: int) -> str:
    counts = Counter(breach.problem.level for breach in found)
    levels = ", ".join(counted(counts[level], level) for level in Level)
    mendable = sum(bool(breach.fix) for breach in found)
    hint = f"; --fix mends {mendable}" if mendable else ""
    return f"{counted(documents, 'document')}: {levels}{hint}"
