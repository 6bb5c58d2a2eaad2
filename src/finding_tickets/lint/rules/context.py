"""What a lint rule may ask about the register as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from functools import cached_property

from finding_tickets.documents.reading import Document
from finding_tickets.lint.rules.circles import circles
from finding_tickets.lint.rules.history import first_commit
from finding_tickets.lint.rules.nearby import Nearby
from finding_tickets.lint.rules.worktree import WorkTree
from finding_tickets.model.problem import Problem
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Relationship
from finding_tickets.register.ids import numbers
from finding_tickets.register.load import Register, files_of
from finding_tickets.register.measured import measured

LEAST_LIKENESS = 0.8
BLOCK = "remediation-"
"""How the names begin of what the reader reports about the block."""


class Context:
    """The documents of a register by their ID, and the repository they stand in.

    Whatever takes a look at all documents is found out once, so that checking a register takes time in
    proportion to its size.
    """

    def __init__(self, register: Register) -> None:
        self.root = register.root
        self.vocabulary = register.config.vocabulary
        self.code = WorkTree(register.root)
        self._nearby = Nearby(register.root)
        self._register = register
        self._by_id: dict[str, list[Document]] = defaultdict(list)
        for document in register.documents:
            self._by_id[document.id.value.casefold()].append(document)

    @property
    def documents(self) -> Sequence[Document]:
        """All documents of the register."""
        return self._register.documents

    def named(self, document_id: str) -> Sequence[Document]:
        """The documents with this ID in any case; more than one is a mistake."""
        return self._by_id.get(document_id.casefold(), ())

    def related_to(self, document_id: str) -> frozenset[str]:
        """The IDs, in lower case, that tickets with this ID name as related."""
        return self._related.get(document_id.casefold(), frozenset())

    def suggestion(self, document_id: str) -> str | None:
        """A hint with the IDs that one which does not exist may have been meant to be.

        IDs of one series differ in their numbers and are no misspellings of one another.
        """
        key = document_id.casefold()
        close = get_close_matches(key, self._by_numbers.get(numbers(key), ()), n=3, cutoff=LEAST_LIKENESS)
        return (
            f"did you mean {', '.join(self._by_id[each][0].id.value for each in close)}?" if close else None
        )

    def reported(self, document: Document) -> Sequence[Problem]:
        """What was reported when the document, and its remediation beside it, were read."""
        return [problem for file in sorted(files_of(document)) for problem in self._by_file.get(file, ())]

    def inside(self, path: str) -> bool:
        """Whether a path, taken from the root, stays in the repository, links followed."""
        return self.code.inside(path)

    def exists(self, path: str) -> bool:
        """Whether a file or folder of the repository has this path."""
        return self.code.exists(path)

    def files_like(self, path: str) -> str | None:
        """A hint with the files that a path which does not exist may have been meant to be."""
        found = self._nearby.guesses(path)
        return f"did you mean {' or '.join(found)}?" if found else None

    def understood(self, document: Document) -> bool:
        """Whether the whole Remediation block was; else what seems to be missing may stand in the rest."""
        return not any(problem.rule.startswith(BLOCK) for problem in self.reported(document))

    def verdict(self, document: Document) -> str | None:
        """The verdict that was recorded for a document, fresh or not; None where there is no evidence.

        Raises:
            BadDataError: A file of evidence cannot be read.
        """
        current = measured(self._register, document)
        return current.verification.verdict.value if current and current.verification else None

    @cached_property
    def first_commit(self) -> date | None:
        """The day of the repository's first commit; None where git does not know."""
        return first_commit(self.root)

    @cached_property
    def circles(self) -> Mapping[str, int]:
        """Numbers of IDs, in lower case: those with the same one block one another in a circle."""
        edges: dict[str, list[str]] = defaultdict(list)
        for document in self.documents:
            for relation in document.related if isinstance(document, Ticket) else ():
                own, other = document.id.value.casefold(), relation.id.casefold()
                if relation.relationship is Relationship.BLOCKS:
                    edges[own].append(other)
                elif relation.relationship is Relationship.BLOCKED_BY:
                    edges[other].append(own)
        return circles(edges)

    @cached_property
    def _by_file(self) -> Mapping[str, Sequence[Problem]]:
        found: dict[str, list[Problem]] = defaultdict(list)
        for problem in self._register.problems:
            found[problem.file].append(problem)
        return found

    @cached_property
    def _by_numbers(self) -> Mapping[tuple[str, ...], Sequence[str]]:
        found: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for key in self._by_id:
            found[numbers(key)].append(key)
        return found

    @cached_property
    def _related(self) -> Mapping[str, frozenset[str]]:
        return {
            key: frozenset(
                relation.id.casefold()
                for document in documents
                if isinstance(document, Ticket)
                for relation in document.related
            )
            for key, documents in self._by_id.items()
        }
