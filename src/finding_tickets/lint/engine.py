"""Checking a register: what the reader could not understand, and what the rules have to say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from finding_tickets.documents.reading import Document
from finding_tickets.documents.source import Source
from finding_tickets.documents.splice import Splice
from finding_tickets.errors import ExitCode
from finding_tickets.lint.rules import RULES, Context, Remark, Rule
from finding_tickets.lint.rules.suppressions import FORM, UNUSED
from finding_tickets.lint.suppression import Suppression, suppressions, whole_line
from finding_tickets.model.problem import Level, Problem
from finding_tickets.model.record import Span
from finding_tickets.register.load import Register, files_of

WORST_FIRST = list(Level)


@dataclass(frozen=True)
class Breach:
    """A problem and the edit of its file that mends it; empty where that takes judgement."""

    problem: Problem
    fix: tuple[Splice, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Which rules to look at: those selected (None: all of them) but for those ignored."""

    select: frozenset[str] | None = None
    ignore: frozenset[str] = frozenset()

    def wants(self, problem: Problem) -> bool:
        """Whether problems of this rule are to be shown."""
        return (self.select is None or problem.rule in self.select) and problem.rule not in self.ignore


EVERYTHING = Choice()


def lint(
    register: Register, documents: Collection[Document] | None = None, choice: Choice = EVERYTHING
) -> tuple[Problem, ...]:
    """All problems of a register or of some of its documents, those met in reading too, by file and line."""
    return tuple(breach.problem for breach in breaches(register, documents, choice))


def breaches(
    register: Register, documents: Collection[Document] | None = None, choice: Choice = EVERYTHING
) -> tuple[Breach, ...]:
    """The problems that ``lint`` finds, with what mends them.

    Files that hold no document are looked at only with the register as a whole.
    """
    context = Context(register)
    found: list[Breach] = []
    for document in register.documents if documents is None else documents:
        source = source_of(register, document)
        found += examine(source, document, context.reported(document), context)
    if documents is None:
        read = {path for document in register.documents for path in files_of(document)}
        found += (Breach(problem) for problem in register.problems if problem.file not in read)
    return tuple(sorted(filter(lambda breach: choice.wants(breach.problem), found), key=_place))


def examine(
    source: Source,
    document: Document,
    reported: Sequence[Problem],
    context: Context,
    rules: Iterable[Rule] = RULES.values(),
) -> tuple[Breach, ...]:
    """All that ``rules`` have to say about one document but for what it has lint ignore."""
    block = _block_source(source, document, context)
    found = [
        *(_reported(source, problem) for problem in reported),
        *(
            _remarked(source if isinstance(remark.place, Span) else block, rule, remark)
            for rule in rules
            if rule.check
            for remark in rule.check(document, context)
        ),
    ]
    comments = suppressions(source)
    ignored = {name for comment in comments if comment.reason for name in comment.rules if _may_ignore(name)}
    left = [breach for breach in found if breach.problem.rule not in ignored]
    broken = {breach.problem.rule for breach in found}
    return (*left, *(each for comment in comments for each in _of_comment(source, comment, broken)))


def source_of(register: Register, document: Document) -> Source:
    """The file of a document as it is now; empty where it is gone."""
    try:
        data = (register.root / document.path).read_bytes()
    except OSError:
        data = b""
    return Source(document.path, data, register.config.vocabulary)


def _block_source(source: Source, document: Document, context: Context) -> Source:
    """The file that the remediation of a document stands in, given that of the document."""
    if document.remediation is None or document.remediation.path == source.path:
        return source
    path = document.remediation.path
    file = context.root / path
    return Source(path, file.read_bytes() if file.is_file() else b"", context.vocabulary)


def exit_code(problems: Sequence[Problem]) -> ExitCode:
    """Bad data where a document cannot be used at all, a failed gate for other errors, else fine."""
    codes = [_code(problem) for problem in problems if problem.level is Level.ERROR]
    return ExitCode.worst(*codes)


@cache
def close_rules(name: str) -> str | None:
    """A hint with the rules that an unknown one may have been meant to be."""
    close = get_close_matches(name.lower(), RULES, n=3)
    return f"did you mean {', '.join(close)}?" if close else "tickets lint --rules shows them all"


def _reported(source: Source, problem: Problem) -> Breach:
    rule = RULES.get(problem.rule)
    return Breach(problem, tuple(rule.mend(source, problem)) if rule and rule.mend else ())


def _remarked(source: Source, rule: Rule, remark: Remark) -> Breach:
    line, column = _position(source, remark)
    problem = Problem(
        level=rule.level,
        rule=rule.id,
        file=source.path,
        line=line,
        column=column,
        message=remark.message,
        hint=remark.hint,
    )
    return Breach(problem, tuple(remark.fix))


def _position(source: Source, remark: Remark) -> tuple[int, int]:
    """Line and column; a line alone begins at its first letter."""
    if isinstance(remark.place, int):
        text = source.data[
            slice(*[*source.line_starts, len(source.data)][remark.place - 1 : remark.place + 1])
        ]
        return remark.place, len(text) - len(text.lstrip()) + 1
    return remark.place.line, source.column(remark.place.start)


def _may_ignore(name: str) -> bool:
    return name in RULES and not RULES[name].bad_data


def _of_comment(source: Source, comment: Suppression, broken: Collection[str]) -> Iterator[Breach]:
    """What is wrong with a comment that has lint ignore something."""
    line, column = source.line(comment.start), source.column(comment.start)

    def breach(rule: Rule, message: str, hint: str | None = None, fix: tuple[Splice, ...] = ()) -> Breach:
        problem = Problem(
            level=rule.level,
            rule=rule.id,
            file=source.path,
            line=line,
            column=column,
            message=message,
            hint=hint,
        )
        return Breach(problem, fix)

    if not comment.rules or not comment.reason:
        missing = "no reason" if comment.rules else "no rule"
        hint = "write <!-- lint-ignore RULE: reason -->"
        yield breach(FORM, f"the comment is to ignore something and gives {missing}", hint)
        return
    for name in comment.rules:
        if name not in RULES:
            yield breach(FORM, f"there is no rule {name} to ignore", close_rules(name))
        elif RULES[name].bad_data:
            yield breach(FORM, f"{name} cannot be ignored: it leaves the ticket unreadable")
    unused = [name for name in comment.rules if _may_ignore(name) and name not in broken]
    if unused:
        fix = (Splice(*whole_line(source, comment), b""),) if len(unused) == len(comment.rules) else ()
        yield breach(UNUSED, f"there is nothing to ignore of {', '.join(unused)}", "remove the comment", fix)


def _place(breach: Breach) -> tuple[str, int, int, int, str]:
    problem = breach.problem
    return problem.file, problem.line, problem.column, WORST_FIRST.index(problem.level), problem.rule


def _code(problem: Problem) -> ExitCode:
    rule = RULES.get(problem.rule)
    return ExitCode.GATE_FAILED if rule and not rule.bad_data else ExitCode.BAD_DATA
