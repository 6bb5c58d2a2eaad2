"""``tickets lint``: what is missing, misspelt or contradictory, by file, line and column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated

from finding_tickets.cli import output
from finding_tickets.cli.options import HERE, Query, Root, flag, format_option, option
from finding_tickets.cli.output import say, say_errors, write, write_json
from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, ExitCode, UsageError
from finding_tickets.lint.autofix import fix as fix_files
from finding_tickets.lint.engine import (
    Breach,
    breaches,
    close_rules,
    exit_code,
)
from finding_tickets.lint.page import rules_page
from finding_tickets.lint.rules import RULES
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import Register, load
from finding_tickets.register.query import select as select_rows
from finding_tickets.report.text import counted

LintFormat = StrEnum("LintFormat", ["TEXT", "JSON", "GITHUB", "SARIF"])


# It may be repeated, or name several rules with commas between them.
rules_option = partial(option, "RULES")


def lint(
    query: Query = None,
    root: Root = HERE,
    select: Annotated[list[str] | None, rules_option("Only these rules.")] = None,
    ignore: Annotated[list[str] | None, rules_option("All but these rules.")] = None,
    fix: Annotated[bool, flag("--fix", "Fix problems that need no judgement.")] = False,
    rules: Annotated[
        bool, flag("--rules", "Print all rules as Markdown and stop.")
    ] = False,
    output_format: Annotated[
        LintFormat, format_option(help="How problems are printed.")
    ] = LintFormat.TEXT,
) -> ExitCode:
    """Check structure, words, IDs, relations, code and claims."""
    if rules:
        write(rules_page())
        return ExitCode.OK
    register = load(root)
    selected, ignored = _rule_names("--select", select), _rule_names("--ignore", ignore)
    config = register.config
    for key, names in (
        ("lint_select", config.lint_select),
        ("lint_ignore", config.lint_ignore),
    ):
        for name in names or ():
            if name not in RULES:
                raise BadDataError(
                    f"{key}: no such rule as {name}", hint=close_rules(name)
                )

    def is_wanted(rule: str) -> bool:
        # What is selected by name is not ignored by the configuration.
        if select is not None:
            return rule in selected and rule not in ignored
        return config.is_linted(rule) and rule not in ignored

    # Without a query also files are checked that hold no document.
    paths = (
        {row.path for row in select_rows(" ".join(query), register)} if query else None
    )
    documents = _chosen(register, paths)
    code = ExitCode.OK
    if fix:
        done = fix_files(register, documents, is_wanted)
        count, files = (
            sum(each.count for each in done),
            sum(1 for each in done if each.count),
        )
        say(f"fixed {counted(count, 'problem')} in {counted(files, 'file')}")
        code = say_errors(each.error for each in done)
        # The same documents, read again: what was fixed may have been why the query selected them.
        register = load(root)
        documents = _chosen(register, paths)
    found = breaches(register, documents, is_wanted)
    problems = [breach.problem for breach in found]
    _write_problems(found, output_format)
    # The counts go to stderr, so that a format for machines stays whole.
    counts = Counter(problem.level for problem in problems)
    levels = ", ".join(counted(counts[level], level) for level in Level)
    fixable = sum(bool(breach.fix) for breach in found)
    looked = counted(
        len(register.documents if documents is None else documents), "document"
    )
    say(f"{looked}: {levels}{f'; --fix can fix {fixable}' if fixable else ''}")
    return ExitCode.worst(exit_code(problems), code)


def _chosen(register: Register, paths: Collection[str] | None) -> list[Document] | None:
    """Return the documents at these paths; None for all that there is."""
    return (
        None
        if paths is None
        else [each for each in register.documents if each.path in paths]
    )


def _write_problems(found: Sequence[Breach], output_format: LintFormat) -> None:
    problems = [breach.problem for breach in found]
    if output_format is LintFormat.JSON:
        items = (
            each.problem.model_dump(mode="json") | {"fixable": bool(each.fix)}
            for each in found
        )
        write_json("lint", items)
    elif output_format is LintFormat.SARIF:
        from finding_tickets.report.formats.sarif import lint_log

        output.write_log(lint_log(problems))
    elif output_format is LintFormat.GITHUB:
        output.write_annotations(problems)
    elif problems:
        write("\n".join(map(str, problems)))


def _rule_names(option: str, values: Iterable[str] | None) -> frozenset[str]:
    """Return the rules that an option names. Raise ``UsageError`` for an unknown one."""
    names = [
        name.strip()
        for value in values or ()
        for name in value.split(",")
        if name.strip()
    ]
    for name in names:
        if name not in RULES:
            raise UsageError(f"{option} {name}: no such rule", hint=close_rules(name))
    return frozenset(names)
