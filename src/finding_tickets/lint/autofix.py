"""Fixing what takes no judgement: the edits that rules propose, each tried before any is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache

from finding_tickets.documents.edit.splices import spliced
from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.source import Source
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import FileEdit, rewrite
from finding_tickets.lint.engine import Breach, any_rule, breaches, examine
from finding_tickets.lint.rules import Context
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import Register

# Fixing one breach may reveal another, which the next pass fixes.
PASSES = 5
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
    """Fix the breaches of wanted rules that take no judgement, in the files of a register or some documents.

    An edit is made only where the file, read again, no longer has the breach, has the same ID (if it stated
    one), and has no new error; every other byte stays as it is. What is left after the last pass is reported
    when the file is checked again. If one file cannot be written, or somebody changes it meanwhile, the
    others are still fixed.
    """
    context = Context(register)
    found = breaches(register, documents, is_wanted)
    paths = dict.fromkeys(breach.problem.file for breach in found if breach.fix)
    done = []
    for path in paths:
        fixed = FixedFile(path, 0)
        for _ in range(PASSES):
            attempt = _Attempt(path, context, is_wanted)
            try:
                rewrite(context.root, [FileEdit(path, attempt.make)])
            except BadDataError as error:
                fixed = FixedFile(path, fixed.count, error)
                break
            if not attempt.count:
                break
            fixed = FixedFile(path, fixed.count + attempt.count)
        done += [fixed] if fixed.count or fixed.error else []
    return tuple(done)


class _Attempt:
    """One pass over one file: chooses edits from its bytes, and checks what comes out."""

    def __init__(self, path: str, context: Context, is_wanted: Callable[[str], bool]) -> None:
        self.count = 0
        self._path, self._context, self._is_wanted = path, context, is_wanted
        # The same bytes are looked at several times; reading them is what takes time.
        self._read = cache(self._read_anew)

    def make(self, data: bytes) -> bytes:
        """The file after the edits that fix something and break nothing: all at once, else one by one."""
        found = self._read(data)[1]
        wanted = (each for each in found if each.fix and self._is_wanted(each.problem.rule))
        proposed, end = list[Breach](), -1
        # Of edits that touch one another, the first in the file; the next pass makes the other.
        for breach in sorted(wanted, key=lambda each: min(splice.start for splice in each.fix)):
            if min(splice.start for splice in breach.fix) > end:
                end = max(splice.end for splice in breach.fix)
                proposed.append(breach)
        # Edits that are right one by one may do harm together, where one moves what another one reads.
        chosen = proposed
        if not self._are_right(data, proposed):
            right_alone = [breach for breach in proposed if self._are_right(data, [breach])]
            chosen = right_alone if self._are_right(data, right_alone) else right_alone[:1]
        self.count = len(chosen)
        return _edited(data, chosen)

    def _are_right(self, data: bytes, fixes: Sequence[Breach]) -> bool:
        """Whether each of these edits fixes its breach, and none changes the ID or adds an error."""
        (old_id, old), (new_id, new) = self._read(data), self._read(_edited(data, fixes))
        gone = _counts(old) - _counts(new)
        # Until it is fixed, a ticket without an ID of its own takes that of its file name.
        same_id = old_id == new_id or any(rule == ID_MISSING for rule, _ in gone)
        no_new_error = _counts(new, Level.ERROR) <= _counts(old, Level.ERROR)
        return _counts(fixes) <= gone and same_id and no_new_error

    def _read_anew(self, data: bytes) -> tuple[str | None, tuple[Breach, ...]]:
        """The ID of the document in ``data`` and what is to be said about it."""
        source = Source(self._path, data, self._context.vocabulary)
        document, reported = read_document(data, self._path, self._context.vocabulary)
        if document is None:
            return None, tuple(map(Breach, reported))
        return document.id.value, examine(source, document, reported, self._context)


def _edited(data: bytes, fixes: Sequence[Breach]) -> bytes:
    return spliced(data, [splice for breach in fixes for splice in breach.fix])


def _counts(found: Sequence[Breach], level: Level | None = None) -> Counter[tuple[str, str]]:
    """How often each breach is there; of the errors, those of one rule count as the same."""
    problems = (breach.problem for breach in found if level is None or level == breach.problem.level)
    return Counter((each.rule, "" if level else each.message) for each in problems)
