"""Fix what takes no judgement: the edits that rules propose, tried before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.source import Source, spliced
from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import FileEdit, rewrite
from finding_tickets.lint.engine import Breach, any_rule, breaches, examine
from finding_tickets.lint.rules import Context
from finding_tickets.model.vocabulary import Level
from finding_tickets.register.load import Register


@dataclass(frozen=True)
class FixedFile:
    """The number of breaches fixed in one file, and the error that stopped it."""

    path: str
    count: int
    error: BadDataError | None = None


def fix(
    register: Register,
    documents: Collection[Document] | None,
    is_wanted: Callable[[str], bool] = any_rule,
) -> list[FixedFile]:
    """Fix what takes no judgement, by wanted rules, in the files of a register or of some documents.

    The edits of a file are written only if the file, read again, has fewer breaches, the same ID and no new
    error. A file that cannot be written, or that changes under the edit, stops no other.
    """
    context = Context(register)
    found = breaches(register, documents, is_wanted)
    done = []
    for path in dict.fromkeys(breach.problem.file for breach in found if breach.fix):
        edit = _FileFix(path, context, is_wanted)
        try:
            rewrite(context.root, [FileEdit(path, edit.make)])
        except BadDataError as error:
            done.append(FixedFile(path, 0, error))
        else:
            if edit.count:
                done.append(FixedFile(path, edit.count))
    return done


@dataclass
class _FileFix:
    """The edit of one file, and how many breaches it has fixed once it was made."""

    path: str
    context: Context
    is_wanted: Callable[[str], bool]
    count: int = 0

    def make(self, data: bytes) -> bytes:
        """Return the fixed text, or ``data`` where the edits would not help."""
        document_id, found = self._examine(data)
        fixable = self._fixable(found)
        new = spliced(
            data,
            list(dict.fromkeys(splice for breach in fixable for splice in breach.fix)),
        )
        new_id, left = self._examine(new)
        if document_id != new_id or _errors(left) > _errors(found):
            return data
        self.count = len(fixable) - len(self._fixable(left))
        return new if self.count > 0 else data

    def _examine(self, data: bytes) -> tuple[str, Sequence[Breach]]:
        """Return the ID of the document and what is to be said about it."""
        document, reported = read_document(data, self.path, self.context.vocabulary)
        if document is None:
            return "", [Breach(problem) for problem in reported]
        source = Source(self.path, data, self.context.vocabulary)
        return document.id.value, examine(source, document, reported, self.context)

    def _fixable(self, found: Sequence[Breach]) -> list[Breach]:
        return [
            breach
            for breach in found
            if breach.fix and self.is_wanted(breach.problem.rule)
        ]


def _errors(found: Sequence[Breach]) -> int:
    return sum(breach.problem.level is Level.ERROR for breach in found)
