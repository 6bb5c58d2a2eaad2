"""Checking a register: what the reader could not understand, and what the rules have to say."""

from __future__ import annotations

from collections.abc import Sequence

from finding_tickets.errors import ExitCode
from finding_tickets.model.problem import Level, Problem
from finding_tickets.register.load import Register
from finding_tickets.register.rules import RULES, Context

WORST_FIRST = list(Level)


def lint(register: Register) -> tuple[Problem, ...]:
    """All problems of a register, those met in reading it too, by file and line."""
    context = Context(register)
    found = [
        problem
        for document in register.documents
        for rule in RULES.values()
        for problem in rule.problems(document, context)
    ]
    return tuple(sorted([*register.problems, *found], key=_place))


def _place(problem: Problem) -> tuple[str, int, int, str]:
    return problem.file, problem.line, WORST_FIRST.index(problem.level), problem.rule


def exit_code(problems: Sequence[Problem]) -> ExitCode:
    """Bad data where a document cannot be used at all, a failed gate for other errors, else fine."""
    codes = [_code(problem) for problem in problems if problem.level is Level.ERROR]
    return ExitCode.worst(*codes)


def _code(problem: Problem) -> ExitCode:
    """An error of the reader, which no rule stands for, is bad data too."""
    rule = RULES.get(problem.rule)
    return ExitCode.GATE_FAILED if rule and not rule.bad_data else ExitCode.BAD_DATA
