"""Load a register: every document, and everything that could not be understood."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.model.problem import Problem
from finding_tickets.register.config import Config
from finding_tickets.register.files import File, markdown_files, read_file
from finding_tickets.register.ids import Place, duplicates, natural
from finding_tickets.register.lookup import find
from finding_tickets.register.root import chosen_root, folders_of
from finding_tickets.register.sidecars import with_sidecars


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
        return find(self.documents, document_id)

    def problems_of(self, document: Document) -> tuple[Problem, ...]:
        """The problems met in reading one document, and its remediation where that stands beside it."""
        files = files_of(document)
        return tuple(problem for problem in self.problems if problem.file in files)


def load(root: Path | None = None) -> Register:
    """The register at ``root``, a repository or a bare folder of Markdown files.

    Without a root (or with the current directory), the nearest repository above the current directory.

    Raises:
        UsageError: There is no such folder, or no register.
        BadDataError: The configuration is wrong.
    """
    place = chosen_root(root)
    config, folders = folders_of(place)
    problems: list[Problem] = []
    documents: list[Document] = []
    sidecars: list[File] = []
    found_files = markdown_files(place, folders, problems, largest=config.largest_file, sidecars=sidecars)
    for file in list(found_files):
        content = read_file(file, problems)
        if content is not None:
            document, found = read_document(content.data, file.path, config.vocabulary)
            problems.extend(found)
            documents.extend([document] if document else [])
    documents = list(with_sidecars(documents, sidecars, problems))
    problems.extend(duplicates(map(_place, documents)))
    return Register(place, config, tuple(sorted(documents, key=_order)), tuple(problems))


def files_of(document: Document) -> frozenset[str]:
    """The files that a document is read from: its own, and that of its remediation."""
    return frozenset([document.path, *([document.remediation.path] if document.remediation else [])])


def _order(document: Document) -> tuple[tuple[tuple[int, str], ...], str]:
    return natural(document.id.value), document.path


def _place(document: Document) -> Place:
    return Place(document.id.value, document.path, document.id.span.line)
