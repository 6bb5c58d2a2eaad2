"""What a lint rule may ask about the register as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from difflib import get_close_matches

from finding_tickets.markdown.reading import Document
from finding_tickets.register.load import Register
from finding_tickets.register.measured import measured

# IDs of one series differ in a digit or two and are no misspellings of one another.
LEAST_LIKENESS = 0.9
BLOCK = "remediation-"
"""How the names begin of what the reader reports about the block."""


class Context:
    """The documents of a register by their ID, and the repository they stand in."""

    def __init__(self, register: Register) -> None:
        self.root = register.root
        self.vocabulary = register.config.vocabulary
        self._register = register
        self._by_id: dict[str, list[Document]] = defaultdict(list)
        for document in register.documents:
            self._by_id[document.id.value.casefold()].append(document)

    def named(self, document_id: str) -> Sequence[Document]:
        """The documents with this ID in any case; more than one is a mistake."""
        return self._by_id.get(document_id.casefold(), ())

    def suggestion(self, document_id: str) -> str | None:
        """A hint with the IDs that one which does not exist may have been meant to be."""
        close = get_close_matches(document_id.casefold(), self._by_id, n=3, cutoff=LEAST_LIKENESS)
        return f"did you mean {', '.join(self._by_id[key][0].id.value for key in close)}?" if close else None

    def inside(self, path: str) -> bool:
        """Whether a path, taken from the root, stays in the repository, links followed."""
        return (self.root / path).resolve().is_relative_to(self.root)

    def exists(self, path: str) -> bool:
        """Whether a file or folder of the repository has this path."""
        return self.inside(path) and (self.root / path).exists()

    def understood(self, document: Document) -> bool:
        """Whether the whole Remediation block was; else what seems to be missing may stand in the rest."""
        problems = self._register.problems_of(document)
        return not any(problem.rule.startswith(BLOCK) for problem in problems)

    def measured(self, document: Document) -> bool:
        """Whether there is evidence for a document, fresh or not.

        Raises:
            BadDataError: A file of evidence cannot be read.
        """
        current = measured(self._register, document)
        return current is not None and current.verification is not None
