"""Check a register: what the reader did not understand and what rules find, but for what is ignored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from finding_tickets.documents.reading import Document, Suppression, suppressions
from finding_tickets.documents.source import Source, Splice
from finding_tickets.errors import ExitCode
from finding_tickets.lint.rules import RULES, Context, Remark, Rule
from finding_tickets.lint.rules.reported import FORM
from finding_tickets.model.ticket import Problem, Span
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import Register, files_of

WORST_FIRST = list(Level)


@dataclass(frozen=True)
class Breach:
    """A problem, and the edit of its file that fixes it without judgement."""

    problem: Problem
    fix: tuple[Splice, ...] = ()


def any_rule(_: str) -> bool:
    """Return True for every rule."""
    return True


def breaches(
    register: Register,
    documents: Collection[Document] | None = None,
    is_wanted: Callable[[str], bool] = any_rule,
) -> list[Breach]:
    """Return the problems of a register or of some documents by wanted rules, by file and line.

    Problems of files without a document are included only for the whole register.
    """
    context = Context(register)
    found: list[Breach] = []
    for document in register.documents if documents is None else documents:
        found += examine(
            context.source(document.path), document, context.reported(document), context
        )
    if documents is None:
        # A file that no document was read from has problems, too.
        read = {path for document in register.documents for path in files_of(document)}
        found += [
            Breach(problem) for problem in register.problems if problem.file not in read
        ]
    return sorted(
        (each for each in found if is_wanted(each.problem.rule)), key=_in_reading_order
    )


def _in_reading_order(breach: Breach) -> tuple[object, ...]:
    """Return what breaches are sorted by: the place, and at one place the worst first."""
    problem = breach.problem
    return (
        problem.file,
        problem.line,
        problem.column,
        WORST_FIRST.index(problem.level),
        problem.rule,
    )


def examine(
    source: Source,
    document: Document,
    reported: Sequence[Problem],
    context: Context,
    rules: Collection[Rule] = RULES.values(),
) -> list[Breach]:
    """Return the breaches of ``rules`` in one document, without those that its comments ignore."""
    found = []
    for problem in reported:
        fix = RULES[problem.rule].fix
        found.append(Breach(problem, tuple(fix(source, problem)) if fix else ()))
    # A check may belong to several rules and runs once.
    names = {rule.id for rule in rules}
    for check, of in dict.fromkeys((rule.check, rule.of) for rule in rules):
        if check and isinstance(document, of):
            for remark in check(document, context):
                if remark.rule in names:
                    found.append(_breach(source, remark, document, context))
    for comment in suppressions(source.data):
        # Without a reason that others can judge, a comment ignores nothing.
        if comment.reason:
            ignored = set(filter(_may_ignore, comment.rules))
            found = [breach for breach in found if breach.problem.rule not in ignored]
        for remark in _of_comment(source, comment):
            found.append(_breach(source, remark, document, context))
    return found


def exit_code(problems: Sequence[Problem]) -> ExitCode:
    """Return bad data where a document cannot be used at all, a failed gate for other errors, else fine."""
    errors = [problem.rule for problem in problems if problem.level is Level.ERROR]
    if not errors:
        return ExitCode.OK
    is_bad = any(name not in RULES or RULES[name].bad_data for name in errors)
    return ExitCode.BAD_DATA if is_bad else ExitCode.GATE_FAILED


@cache
def close_rules(name: str) -> str | None:
    """Return a hint with the rules that an unknown one may have been meant to be."""
    close = get_close_matches(name.lower(), RULES, n=3)
    return (
        f"did you mean {', '.join(close)}?"
        if close
        else "tickets lint --rules shows them all"
    )


def _breach(
    source: Source, remark: Remark, document: Document, context: Context
) -> Breach:
    """Return the breach for a remark, at its place in the file of the document or of its remediation."""
    if isinstance(remark.place, Span):
        at: int | tuple[int, int] = remark.place.start
    else:
        block = document.remediation
        if block and block.path != source.path:
            source = context.source(block.path)
        lines = source.data.splitlines()
        # A line alone begins at its first letter.
        text = lines[remark.place - 1] if remark.place <= len(lines) else b""
        at = remark.place, len(text) - len(text.lstrip()) + 1
    problem = source.report(
        remark.rule, at, remark.message, remark.hint, RULES[remark.rule].level
    )
    return Breach(problem, tuple(remark.fix))


def _may_ignore(name: str) -> bool:
    return name in RULES and not RULES[name].bad_data


def _of_comment(source: Source, comment: Suppression) -> Iterator[Remark]:
    """Yield the mistakes of a lint-ignore comment."""
    place = source.span(comment.start, comment.end)
    if not comment.rules or not comment.reason:
        missing = "no reason" if comment.rules else "no rule"
        message = f"the lint-ignore comment gives {missing}"
        yield Remark(FORM, place, message, "write <!-- lint-ignore RULE: reason -->")
        return
    for name in comment.rules:
        if name not in RULES:
            yield Remark(FORM, place, f"there is no rule {name}", close_rules(name))
        elif not _may_ignore(name):
            yield Remark(
                FORM, place, f"{name} cannot be ignored: it makes the ticket unreadable"
            )
