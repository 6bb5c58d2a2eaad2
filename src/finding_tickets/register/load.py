"""Load a register: every document, and everything that could not be understood.

A Remediation may stand beside its ticket, in a file of its own called ``ID.remediation.yaml``, so that a
ticket can be measured whose file is to stay as it is. The name has the ID as the register spells it, or in
lower case.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.documents.remediation import read_sidecar
from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import Problem, Remediation
from finding_tickets.model.vocabulary import REMEDIATION_RULES, Level
from finding_tickets.register.config import Config
from finding_tickets.register.files import File, FileProblem, read_file, sidecar_names
from finding_tickets.register.index import find, list_rows
from finding_tickets.register.staleness import CurrentVerdict, Verdicts, code_inputs


@dataclass(frozen=True)
class Register:
    """The documents of a repository, sorted by ID as people count, with the problems met in reading them."""

    root: Path
    config: Config
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]

    def find(self, document_id: str) -> Document:
        """The document with this ID, in any case.

        Raises:
            UsageError: There is none; the message names those that come close.
            BadDataError: There are several.
        """
        return find(((each.id.value, each.path, each) for each in self.documents), document_id)

    def problems_of(self, document: Document) -> tuple[Problem, ...]:
        """The problems met in reading one document, and its remediation where that stands beside it."""
        files = files_of(document)
        return tuple(problem for problem in self.problems if problem.file in files)

    def remediation_error(self, document: Document) -> BadDataError | None:
        """Return the error in the Remediation of a document; None if it was understood."""
        for problem in self.problems_of(document):
            if problem.level is Level.ERROR and problem.rule.startswith(REMEDIATION_RULES):
                return problem.as_error
        return None

    def measured(self, document: Document) -> CurrentVerdict:
        """The verdict of a document and, where there is evidence, the verification that it comes from.

        Raises:
            BadDataError: The evidence cannot be read.
        """
        verdicts = Verdicts(self.root, self.config.evidence)
        return verdicts.current(document.id.value, code_inputs(document.remediation))


def load(root: Path | str | None = None) -> Register:
    """The register at ``root``, a repository or a bare folder of Markdown files.

    Without a root (or with the current directory), the nearest repository above the current directory.

    Raises:
        UsageError: There is no such folder, or no register.
        BadDataError: The configuration is wrong.
    """
    parsed: dict[str, Document | Remediation] = {}
    problems: list[Problem] = []
    listing = list_rows(None if root is None else Path(root), indexed=False, parsed=parsed, met=problems)
    documents = []
    for row in listing.rows:
        document, beside = parsed[row.path], parsed.get(listing.sidecars.get(row.path, ""))
        if not isinstance(document, Remediation):
            documents.append(_with(document, beside if isinstance(beside, Remediation) else None))
    return Register(listing.root, listing.config, tuple(documents), tuple(problems))


def load_named(root: Path | None, ids: Collection[str]) -> Register | None:
    """The register with these documents only, in this order; None unless each ID has exactly one document.

    The other documents are known from the index and not read, and the register has no problems of theirs.
    """
    problems: list[Problem] = []
    listing = list_rows(root, met=problems)
    wanted = dict.fromkeys(name.strip().casefold() for name in ids)
    rows = [(name, row) for row in listing.rows if (name := row.id.casefold()) in wanted]
    # Of an ID that several documents have, the whole register knows where they are.
    if not wanted or sorted(wanted) != sorted(name for name, _ in rows):
        return None
    documents, by_id = [], dict(rows)
    for row in map(by_id.__getitem__, wanted):
        try:
            data = (listing.root / row.path).read_bytes()
        except OSError:
            return None
        document = read_one(listing.root, row.path, listing.config, data, problems)
        documents += [document] if document else []
    # A file that has changed was read for the index, too.
    return Register(listing.root, listing.config, tuple(documents), tuple(dict.fromkeys(problems)))


def read_one(
    root: Path, path: str, config: Config, data: bytes, problems: list[Problem] | None = None
) -> Document | None:
    """The document in the file ``path``, which has these bytes, with the remediation beside it, if one is.

    What could not be understood is added to ``problems``.
    """
    document, found = read_document(data, path, config.vocabulary)
    if problems is not None:
        problems += found
    return with_sidecar(root, document, problems) if document else None


def with_sidecar(root: Path, document: Document, problems: list[Problem] | None = None) -> Document:
    """A document with the remediation that stands beside it, if one does; problems as in ``read_one``."""
    places = ((name, root / name) for name in sidecar_names(document.path, document.id.value))
    beside = next((File(name, str(place), None) for name, place in places if place.is_file()), None)
    if beside is None:
        return document
    unread: list[FileProblem] = []
    remediation, found = read_sidecar(read_file(beside, unread) or b"", beside.path)
    if problems is not None:
        problems += [each.record for each in unread] or found
    return _with(document, remediation)


def files_of(document: Document) -> frozenset[str]:
    """The files that a document is read from: its own, and that of its remediation."""
    return frozenset([document.path, *([document.remediation.path] if document.remediation else [])])


def _with(document: Document, beside: Remediation | None) -> Document:
    return (
        document
        if document.remediation or not beside
        else document.model_copy(update={"remediation": beside})
    )
