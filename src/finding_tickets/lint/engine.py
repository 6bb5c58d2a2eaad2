"""Checking a register: what the reader could not understand, what the rules have to say, what is ignored."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from finding_tickets.documents.reading import Document, Suppression, suppressions
from finding_tickets.documents.source import Source, Splice
from finding_tickets.errors import BadDataError, ExitCode
from finding_tickets.lint.rules import RULES, Context, Remark, Rule
from finding_tickets.lint.rules.reported import FORM, UNUSED
from finding_tickets.model.ticket import Problem, Span
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import Register, files_of

WORST_FIRST = list(Level)

# In a message that names a place in another file.
_LINE_NUMBER = re.compile(r":\d+(?![\w.])")
# The end of a line, and an empty one below it.
_REST = re.compile(rb"[ \t]*(?:\r\n|\r|\n|\Z)(?:[ \t]*(?:\r\n|\r|\n))?")


@dataclass(frozen=True)
class Breach:
    """A problem and the edit of its file that fixes it; empty where that takes judgement."""

    problem: Problem
    fix: tuple[Splice, ...] = ()


def any_rule(_: str) -> bool:
    """Every rule is wanted."""
    return True


def breaches(
    register: Register,
    documents: Collection[Document] | None = None,
    is_wanted: Callable[[str], bool] = any_rule,
) -> tuple[Breach, ...]:
    """The problems of a register or of some documents by wanted rules, with their fixes, by file and line.

    Problems of files without a document are included only for the whole register.
    """
    context = Context(register)
    found: list[Breach] = []
    for document in register.documents if documents is None else documents:
        found += examine(context.source(document.path), document, context.reported(document), context)
    if documents is None:
        # A file that no document was read from has problems, too.
        read = {path for document in register.documents for path in files_of(document)}
        found += (Breach(problem) for problem in register.problems if problem.file not in read)
    wanted = [each for each in found if is_wanted(each.problem.rule)]
    wanted.sort(key=lambda each: (WORST_FIRST.index(each.problem.level), each.problem.rule))
    wanted.sort(key=lambda each: (each.problem.file, each.problem.line, each.problem.column))
    return tuple(wanted)


def examine(
    source: Source,
    document: Document,
    reported: Sequence[Problem],
    context: Context,
    rules: Collection[Rule] = RULES.values(),
) -> tuple[Breach, ...]:
    """All that ``rules`` have to say about one document but for what it has lint ignore."""
    found = []
    for problem in reported:
        fix = RULES[problem.rule].fix
        found.append(Breach(problem, tuple(fix(source, problem)) if fix else ()))
    # A check may belong to several rules and runs once.
    names = {rule.id for rule in rules}
    for check, of in dict.fromkeys((rule.check, rule.of) for rule in rules):
        remarks = check(document, context) if check and isinstance(document, of) else ()
        found += (_breach(source, remark, document, context) for remark in remarks if remark.rule in names)
    comments = suppressions(source.data)
    # Without a reason that others can judge, a comment ignores nothing.
    ignored = {name for comment in comments if comment.reason for name in comment.rules if _may_ignore(name)}
    left = [breach for breach in found if breach.problem.rule not in ignored]
    broken = {breach.problem.rule for breach in found}
    remarks = (remark for comment in comments for remark in _of_comment(source, comment, broken))
    return (*left, *(_breach(source, remark, document, context) for remark in remarks))


def baseline_text(problems: Iterable[Problem]) -> str:
    """A baseline: by file and rule each message and its count, without lines, since these move."""
    known: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for problem in problems:
        known[problem.file][problem.rule][_LINE_NUMBER.sub("", problem.message)] += 1
    return (
        json.dumps({"schema_version": 1, "known": known}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )


def new_breaches(found: Iterable[Breach], text: bytes, file: str) -> tuple[list[Breach], int]:
    """The breaches that are not in a baseline, and how many of those in it are gone.

    Raises:
        BadDataError: The text is no baseline.
    """
    try:
        known = {
            (path, rule, message): count
            for path, rules in json.loads(text)["known"].items()
            for rule, messages in rules.items()
            for message, count in messages.items()
        }
        left = Counter(known)
        if any(not isinstance(count, int) or count < 1 for count in known.values()):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadDataError("no baseline of lint", file=file, hint="--write-baseline writes one") from None
    fresh = []
    for breach in found:
        key = breach.problem.file, breach.problem.rule, _LINE_NUMBER.sub("", breach.problem.message)
        left[key] -= 1
        if left[key] < 0:
            fresh.append(breach)
    return fresh, sum(count for count in left.values() if count > 0)


def exit_code(problems: Sequence[Problem]) -> ExitCode:
    """Bad data where a document cannot be used at all, a failed gate for other errors, else fine."""
    codes = []
    for problem in problems:
        if problem.level is Level.ERROR:
            rule = RULES.get(problem.rule)
            codes.append(ExitCode.GATE_FAILED if rule and not rule.bad_data else ExitCode.BAD_DATA)
    return ExitCode.worst(*codes)


@cache
def close_rules(name: str) -> str | None:
    """A hint with the rules that an unknown one may have been meant to be."""
    close = get_close_matches(name.lower(), RULES, n=3)
    return f"did you mean {', '.join(close)}?" if close else "tickets lint --rules shows them all"


def _breach(source: Source, remark: Remark, document: Document, context: Context) -> Breach:
    """What a rule has to say, at its place in the document's file or in that of its remediation."""
    at: int | tuple[int, int]
    if isinstance(remark.place, Span):
        at = remark.place.start
    else:
        block = document.remediation
        if block and block.path != source.path:
            source = context.source(block.path)
        # A line alone begins at its first letter.
        line, starts = remark.place, [*source.line_starts, len(source.data)]
        text = source.data[starts[line - 1] : starts[line]] if line < len(starts) else b""
        at = line, len(text) - len(text.lstrip()) + 1
    problem = source.report(remark.rule, at, remark.message, remark.hint, RULES[remark.rule].level)
    return Breach(problem, tuple(remark.fix))


def _may_ignore(name: str) -> bool:
    return name in RULES and not RULES[name].bad_data


def _of_comment(source: Source, comment: Suppression, broken: Collection[str]) -> Iterator[Remark]:
    """What is wrong with a comment that has lint ignore something."""
    place = source.span(comment.start, comment.end)
    if not comment.rules or not comment.reason:
        missing = "no reason" if comment.rules else "no rule"
        message = f"the lint-ignore comment gives {missing}"
        yield Remark(FORM, place, message, "write <!-- lint-ignore RULE: reason -->")
        return
    for name in comment.rules:
        if name not in RULES:
            message = f"there is no rule {name}"
            yield Remark(FORM, place, message, close_rules(name))
        elif not _may_ignore(name):
            message = f"{name} cannot be ignored: it makes the ticket unreadable"
            yield Remark(FORM, place, message)
    unused = [name for name in comment.rules if _may_ignore(name) and name not in broken]
    if unused:
        start, end = comment.start, comment.end
        # A comment that stands alone goes with its lines and an empty one below.
        line = source.line_starts[source.line(start) - 1]
        rest = _REST.match(source.data, end)
        if rest and not source.data[line:start].strip(b" \t\xef\xbb\xbf"):
            start, end = line, rest.end()
        fix = [Splice(start, end, b"")] if len(unused) == len(comment.rules) else []
        message = f"nothing to ignore for {', '.join(unused)}"
        yield Remark(UNUSED, place, message, "remove the comment", fix)
