"""Mending what takes no judgement: the edits that rules propose, each tried before any is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.source import Source
from finding_tickets.documents.splice import Splice, spliced
from finding_tickets.errors import BadDataError
from finding_tickets.ground.writing import rewrite
from finding_tickets.lint.engine import Breach, Choice, breaches, examine
from finding_tickets.lint.rules import Context
from finding_tickets.model.problem import Level
from finding_tickets.register.load import Register

PASSES = 5
"""A mended place may show another breach, which the next pass mends."""

NO_ID = "id-missing"

Key = tuple[str, str]


@dataclass(frozen=True)
class Mended:
    """How many breaches were mended in one file, and why no more, if it could not be edited."""

    path: str
    count: int
    error: BadDataError | None = None


def mend(register: Register, documents: Collection[Document] | None, choice: Choice) -> tuple[Mended, ...]:
    """Mend the chosen breaches that take no judgement, in the files of a register or of some documents.

    An edit is made only where the file, read again, no longer has the breach, has the same ID (if it stated
    one), and has no new error; every other byte stays as it is. A file that cannot be written, or that
    somebody changes meanwhile, keeps no other one from being mended.
    """
    context = Context(register)
    files = dict.fromkeys(
        breach.problem.file for breach in breaches(register, documents, choice) if breach.fix
    )
    done = [_mend_file(register, path, context, choice) for path in files]
    return tuple(each for each in done if each.count or each.error)


def _mend_file(register: Register, path: str, context: Context, choice: Choice) -> Mended:
    total = 0
    for _ in range(PASSES):
        attempt = _Attempt(path, context, choice)
        try:
            if not rewrite(register.root, path, attempt.make, confirm=attempt.confirm):
                break
        except BadDataError as error:
            return Mended(path, total, error)
        total += attempt.count
    return Mended(path, total)


class _Attempt:
    """One pass over one file: chooses edits from its bytes, and confirms what came out."""

    def __init__(self, path: str, context: Context, choice: Choice) -> None:
        self.count = 0
        self._path, self._context, self._choice = path, context, choice
        # The same bytes are looked at several times; reading them is what takes time.
        self._read = cache(self._read_anew)

    def make(self, data: bytes) -> Sequence[Splice]:
        """The edits that mend something and break nothing: all at once, else those that do so one by one."""
        fixes = list(_apart(self._proposed(data)))
        if not self._is_sound(data, fixes):
            fixes = [breach for breach in fixes if self._is_sound(data, [breach])]
            fixes = fixes if self._is_sound(data, fixes) else fixes[:1]
        self.count = len(fixes)
        return [splice for breach in fixes for splice in breach.fix]

    def confirm(self, old: bytes, new: bytes) -> None:
        """Raise where the new bytes do not mend as many breaches as promised."""
        if not self._mends(old, new, self._gone(old, new), self.count):
            raise BadDataError("the edit did not mend the file; it was left as it is", file=self._path)

    def _is_sound(self, data: bytes, fixes: Sequence[Breach]) -> bool:
        new = spliced(data, [splice for breach in fixes for splice in breach.fix])
        wanted = Counter(map(_key, fixes))
        return self._mends(data, new, self._gone(data, new) & wanted, len(fixes))

    def _mends(self, old: bytes, new: bytes, gone: Counter[Key], count: int) -> bool:
        before, after = self._read(old), self._read(new)
        same_id = before[0] == after[0] or any(each.problem.rule == NO_ID for each in before[1])
        return gone.total() >= count and same_id and _errors(after[1]) <= _errors(before[1])

    def _gone(self, old: bytes, new: bytes) -> Counter[Key]:
        return Counter(map(_key, self._read(old)[1])) - Counter(map(_key, self._read(new)[1]))

    def _proposed(self, data: bytes) -> list[Breach]:
        return [breach for breach in self._read(data)[1] if breach.fix and self._choice.wants(breach.problem)]

    def _read_anew(self, data: bytes) -> tuple[str | None, tuple[Breach, ...]]:
        """The ID of the document in ``data`` and what is to be said about it."""
        source = Source(self._path, data, self._context.vocabulary)
        document, reported = read_document(data, self._path, self._context.vocabulary)
        if document is None:
            return None, tuple(map(Breach, reported))
        return document.id.value, examine(source, document, reported, self._context)


def _apart(proposed: Sequence[Breach]) -> Iterator[Breach]:
    """Those of the breaches, in the order of the file, whose edits do not touch."""
    end = -1
    for breach in sorted(proposed, key=lambda each: min(splice.start for splice in each.fix)):
        if min(splice.start for splice in breach.fix) > end:
            end = max(splice.end for splice in breach.fix)
            yield breach


def _key(breach: Breach) -> Key:
    return breach.problem.rule, breach.problem.message


def _errors(found: Sequence[Breach]) -> Counter[str]:
    return Counter(breach.problem.rule for breach in found if breach.problem.level is Level.ERROR)
