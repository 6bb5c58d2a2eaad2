"""What is known of the documents of a register beyond their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.errors import BadDataError
from finding_tickets.ground.files import verifier_path
from finding_tickets.register.config import Config
from finding_tickets.register.index import Listing, Row, row_of
from finding_tickets.register.relations import Relations, relations
from finding_tickets.register.staleness import CurrentVerdict, Verdicts

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.register.load import Register


class Facts:
    """What is known of the rows of one register: each fact is looked up when it is asked for, not before.

    ``rows`` are sorted by ID as people count. Documents that are not at hand, by their path, are read;
    ``verdicts`` are those of all documents with evidence, or None.
    """

    def __init__(
        self,
        root: Path,
        config: Config,
        rows: Sequence[Row],
        documents: Mapping[str, Document] | None = None,
        verdicts: Mapping[str, CurrentVerdict] | None = None,
    ) -> None:
        self.root, self.config, self.rows = root, config, rows
        self.today = datetime.now().astimezone().date()
        self.ids = {row.id.casefold(): row.id for row in rows}
        self._documents = dict(documents or {})
        self._known, self._verdicts = verdicts, Verdicts(root, config.evidence)
        self._measured: dict[str, CurrentVerdict] = {}
        self._text = ("", "")

    @classmethod
    def of(cls, register: Register) -> Facts:
        """What is known of a register that was read whole."""
        documents = {document.path: document for document in register.documents}
        return cls(register.root, register.config, tuple(map(row_of, register.documents)), documents)

    @classmethod
    def of_listing(cls, listing: Listing) -> Facts:
        """What is known of a register that was listed."""
        return cls(listing.root, listing.config, listing.rows, verdicts=listing.verdicts)

    @cached_property
    def relations(self) -> Relations:
        """How documents relate to one another, whichever of the two says so."""
        return relations(self.rows)

    def is_id(self, word: str) -> bool:
        """Whether a word of a query means a document: one has it as its ID, or it has the form of one."""
        return word.casefold() in self.ids or bool(self.config.vocabulary.an_id.fullmatch(word))

    def text(self, row: Row) -> str:
        """The whole text of a document, folded to be searched; empty where it is gone by now."""
        # Only the last one is kept: all words of a query are asked of one row before the next.
        if self._text[0] != row.path:
            data = _read(self.root / row.path)
            self._text = row.path, folded((data or b"").decode(errors="replace"))
        return self._text[1]

    def document(self, row: Row) -> Document | None:
        """The whole document; None where it is gone by now. One that has to be read is not kept."""
        if row.path in self._documents:
            return self._documents[row.path]
        # A list needs no document: what reads Markdown is loaded with the first.
        from finding_tickets.register.load import read_one

        data = _read(self.root / row.path)
        return read_one(self.root, row.path, self.config, data) if data is not None else None

    def measured(self, row: Row) -> CurrentVerdict:
        """What was measured for a document, and where that comes from."""
        if row.path not in self._measured:
            try:
                if self._known is None:
                    current = self._verdicts.current(row.id, row.code)
                else:
                    current = self._known.get(row.path, CurrentVerdict())
            except BadDataError as error:
                # A query goes on: who asked for verdicts says what is wrong with the evidence.
                current = CurrentVerdict(problem=error)
            self._measured[row.path] = current
        return self._measured[row.path]

    @property
    def looked_up(self) -> Collection[CurrentVerdict]:
        """The verdicts that were looked up so far."""
        return self._measured.values()

    def has_verifier(self, row: Row) -> bool:
        """Whether a document names a verifier or has one in the usual place."""
        return row.verifier is not None or (self.root / verifier_path(row.id)).is_file()


def folded(text: str) -> str:
    """``text`` without case and with single spaces, so that texts can be searched."""
    return " ".join(text.casefold().split())


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
