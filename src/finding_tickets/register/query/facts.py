"""What a query may ask beyond a row: each is looked up when it is asked for, not before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from finding_tickets.errors import BadDataError
from finding_tickets.model.verdict import Verdict
from finding_tickets.register.config import Config
from finding_tickets.register.convention import safe_name, verifier_path
from finding_tickets.register.graph import Relations, relations
from finding_tickets.register.query.tree import folded
from finding_tickets.register.row import Row, row_of
from finding_tickets.register.sidecars import with_sidecar

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.verification import Verification
    from finding_tickets.register.load import Register


@dataclass(frozen=True, slots=True)
class Measured:
    """The verdict that counts now and the verification it comes from, if there is one.

    ``disagreement`` names the verdicts of meters that differ. ``problem`` is why evidence could not be read.
    ``changed`` names the inputs that made all evidence stale.
    """

    verdict: Verdict = Verdict.UNVERIFIED
    verification: Verification | None = None
    disagreement: str | None = None
    problem: BadDataError | None = None
    changed: tuple[str, ...] = ()


class Facts:
    """What is known of the rows of one register.

    ``rows`` are sorted by ID as people count. Documents that are not at hand, by their path, are read.
    """

    def __init__(
        self, root: Path, config: Config, rows: Sequence[Row], documents: Mapping[str, Document] | None = None
    ) -> None:
        self.root, self.config, self.rows = root, config, rows
        self._documents = dict(documents or {})
        self._measured: dict[str, Measured] = {}
        self._text = ("", "")

    @classmethod
    def of(cls, register: Register) -> Facts:
        """What is known of a register that was read whole."""
        documents = {document.path: document for document in register.documents}
        return cls(register.root, register.config, tuple(map(row_of, register.documents)), documents)

    @cached_property
    def relations(self) -> Relations:
        """How documents relate to one another, whichever of the two says so."""
        return relations(self.rows)

    def text(self, row: Row) -> str:
        """The whole text of a document, ready to be searched; empty where it is gone by now."""
        if self._text[0] != row.path:
            self._text = row.path, folded((self._data(row) or b"").decode(errors="replace"))
        return self._text[1]

    def document(self, row: Row) -> Document | None:
        """The whole document; None where it is gone by now. One that has to be read is not kept."""
        if row.path in self._documents:
            return self._documents[row.path]
        from finding_tickets.documents.reading import read_document

        data = self._data(row)
        document = read_document(data, row.path, self.config.vocabulary)[0] if data is not None else None
        return with_sidecar(document, self.root) if document else None

    def verdict(self, row: Row) -> Verdict:
        """What was measured for a document."""
        return self.measured(row).verdict

    def measured(self, row: Row) -> Measured:
        """What was measured for a document, and where that comes from."""
        if row.path not in self._measured:
            self._measured[row.path] = self._read(row)
        return self._measured[row.path]

    @property
    def looked_up(self) -> Collection[Measured]:
        """All that was measured, as far as anybody has asked for it."""
        return self._measured.values()

    def has_verifier(self, row: Row) -> bool:
        """Whether a document names a verifier or has one in the usual place."""
        return row.verifier is not None or (self.root / verifier_path(row.id)).is_file()

    @cached_property
    def _with_evidence(self) -> frozenset[str]:
        """The folders that hold evidence, each named after an ID."""
        try:
            return frozenset(folder.name for folder in (self.root / self.config.evidence).iterdir())
        except OSError:
            return frozenset()

    def _read(self, row: Row) -> Measured:
        # A document is read whole, and the claims' grammar loaded, for those alone that have evidence.
        there = self._with_evidence and safe_name(row.id) in self._with_evidence
        document = self.document(row) if there else None
        if document is None:
            return Measured()
        from finding_tickets.register.measured import measured

        try:
            current = measured(self, document)
        except BadDataError as error:
            return Measured(problem=error)
        if current is None:
            return Measured()
        return Measured(current.verdict, current.verification, current.disagreement, changed=current.changed)

    def _data(self, row: Row) -> bytes | None:
        try:
            return (self.root / row.path).read_bytes()
        except OSError:
            return None
