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
from finding_tickets.model.problem import Level, Problem
from finding_tickets.register.config import Config
from finding_tickets.register.files import File, markdown_files, pair_sidecars, read_file, sidecar_names
from finding_tickets.register.identifiers import IdPlace, duplicates, find, natural
from finding_tickets.register.root import chosen_root, folders_of
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
    place = chosen_root(None if root is None else Path(root))
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
    beside = {file.path: file for file in sidecars}
    pairs = pair_sidecars(((each.path, each.id.value) for each in documents), beside, problems)
    documents = [
        _with_sidecar(each, beside[pairs[each.path]], problems) if each.path in pairs else each
        for each in documents
    ]
    problems.extend(duplicates(IdPlace(each.id.value, each.path, each.id.span.line) for each in documents))
    documents.sort(key=lambda each: (natural(each.id.value), each.path))
    return Register(place, config, tuple(documents), tuple(problems))


def load_named(root: Path | None, ids: Collection[str]) -> Register | None:
    """The register with no other documents than those with these IDs; None unless each is the ID of one.

    The other documents are known from the index and not read; their problems are among those of the register.

    Raises:
        UsageError: There is no such folder, or no register.
        BadDataError: The configuration is wrong.
    """
    # The index derives its rows from documents, which it loads this module for.
    from finding_tickets.register.index import list_rows

    listing = list_rows(root)
    wanted = {name.strip().casefold() for name in ids}
    rows = [row for row in listing.rows if row.id.casefold() in wanted]
    if not wanted or wanted != {row.id.casefold() for row in rows}:
        return None
    documents = []
    for row in rows:
        try:
            data = (listing.root / row.path).read_bytes()
        except OSError:
            return None
        document = read_one(listing.root, row.path, listing.config, data)
        documents += [document] if document else []
    return Register(listing.root, listing.config, tuple(documents), listing.problems)


def read_one(root: Path, path: str, config: Config, data: bytes) -> Document | None:
    """The document in the file ``path``, which has these bytes, with the remediation beside it, if one is."""
    document, _ = read_document(data, path, config.vocabulary)
    names = sidecar_names(path, document.id.value) if document else ()
    beside = next((name for name in names if (root / name).is_file()), None)
    return (
        _with_sidecar(document, File(beside, str(root / beside), None), [])
        if document and beside
        else document
    )


def files_of(document: Document) -> frozenset[str]:
    """The files that a document is read from: its own, and that of its remediation."""
    return frozenset([document.path, *([document.remediation.path] if document.remediation else [])])


def _with_sidecar(document: Document, file: File, problems: list[Problem]) -> Document:
    if document.remediation is None:
        from finding_tickets.documents.remediation import read_sidecar

        content = read_file(file, problems)
        remediation, found = read_sidecar(content.data if content else b"", file.path)
        # A file that cannot be read has said so, and is not empty for that.
        problems += found if content else ()
        return document.model_copy(update={"remediation": remediation})
    message = f"the ticket has a Remediation section, and {file.path} beside it is one too"
    problems.append(
        Problem(
            level=Level.ERROR,
            rule="remediation-sidecar",
            file=document.path,
            line=document.remediation.span.line,
            message=message,
            hint="keep one of the two",
        )
    )
    return document
