"""Fixing what takes no judgement: the edits that rules propose, each tried before any is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.source import Source, spliced
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import FileEdit, rewrite
from finding_tickets.lint.engine import Breach, any_rule, breaches, examine
from finding_tickets.lint.rules import Context
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import Register

# After so many, a hostile file has taken its time; what is left is reported when the file is checked again.
MOST_ATTEMPTS = 200
ID_MISSING = "id-missing"


@dataclass(frozen=True)
class FixedFile:
    """The number of breaches fixed in one file, and the error that stopped the rest."""

    path: str
    count: int
    error: BadDataError | None = None


def fix(
    register: Register, documents: Collection[Document] | None, is_wanted: Callable[[str], bool] = any_rule
) -> tuple[FixedFile, ...]:
    """Fix what takes no judgement, by wanted rules, in the files of a register or of some documents.

    Each edit is kept only if the file, read again, has lost the breach, has the same ID (if it stated one)
    and no new error. A file that cannot be written, or that somebody changes meanwhile, stops no other.
    """
    context = Context(register)
    found = breaches(register, documents, is_wanted)
    paths = dict.fromkeys(breach.problem.file for breach in found if breach.fix)
    done = (_fix_file(path, context, is_wanted) for path in paths)
    return tuple(fixed for fixed in done if fixed.count or fixed.error)


def _fix_file(path: str, context: Context, is_wanted: Callable[[str], bool]) -> FixedFile:
    """Try the edits of one file one after the other: what one of them fixes may reveal another breach."""
    count = 0

    def make(data: bytes) -> bytes:
        nonlocal count
        before, refused = _examine(data, path, context), set[Problem]()
        for _ in range(MOST_ATTEMPTS):
            fixable = (each for each in before[1] if each.fix and is_wanted(each.problem.rule))
            breach = next((each for each in fixable if each.problem not in refused), None)
            if breach is None:
                break
            new = spliced(data, breach.fix)
            after = _examine(new, path, context)
            if _is_better(before, after, breach):
                data, before, count = new, after, count + 1
            else:
                refused.add(breach.problem)
        return data

    try:
        rewrite(context.root, [FileEdit(path, make)])
    except BadDataError as error:
        return FixedFile(path, 0, error)
    return FixedFile(path, count)


Examined = tuple[str | None, Sequence[Breach]]
"""The ID of a document and what is to be said about it."""


def _examine(data: bytes, path: str, context: Context) -> Examined:
    document, reported = read_document(data, path, context.vocabulary)
    if document is None:
        return None, tuple(map(Breach, reported))
    source = Source(path, data, context.vocabulary)
    return document.id.value, examine(source, document, reported, context)


def _is_better(before: Examined, after: Examined, fixed: Breach) -> bool:
    """Whether an edit has fixed its breach, and has neither changed the ID nor added an error."""
    (old_id, old), (new_id, new) = before, after
    gone = _counts(old) - _counts(new)
    # Until it is fixed, a ticket without an ID of its own takes that of its file name.
    same_id = old_id == new_id or any(rule == ID_MISSING for rule, _ in gone)
    no_new_error = _counts(new, Level.ERROR) <= _counts(old, Level.ERROR)
    return _counts([fixed]) <= gone and same_id and no_new_error


def _counts(found: Sequence[Breach], level: Level | None = None) -> Counter[tuple[str, str]]:
    """How often each breach is there; of the errors, those of one rule count as the same."""
    problems = (breach.problem for breach in found if level is None or level == breach.problem.level)
    return Counter((each.rule, "" if level else each.message) for each in problems)
