"""Remediations that stand beside their tickets, in files of their own: ``ID.remediation.yaml``.

So a ticket can be measured whose file is to stay as it is. The name has the ticket's ID as the register
spells it, or in lower case, and the file lies in the ticket's folder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from finding_tickets.model.problem import Level, Problem
from finding_tickets.register.files import SIDECAR, File, read_file

if TYPE_CHECKING:
    from finding_tickets.documents.reading import Document
    from finding_tickets.model.remediation import Remediation
    from finding_tickets.register.index import Reading


def names_of(path: str, document_id: str) -> tuple[str, ...]:
    """What the sidecar of the document at ``path`` may be called, from the root."""
    folder = PurePosixPath(path).parent
    stems = dict.fromkeys((document_id, document_id.lower()))
    return tuple((folder / f"{stem}{SIDECAR}").as_posix() for stem in stems if "/" not in stem)


def with_sidecars(
    documents: Iterable[Document], sidecars: Iterable[File], problems: list[Problem]
) -> Iterator[Document]:
    """The documents, with the remediations that stand beside them; what is wrong with those is reported."""
    left = {file.path: file for file in sidecars}
    taken: set[str] = set()
    for document in documents:
        name = _named(left, document.path, document.id.value)
        taken |= {name} if name else set()
        yield _with(document, left[name], problems) if name else document
    problems += (orphan(path) for path in left if path not in taken)


def with_sidecar(document: Document, root: Path) -> Document:
    """One document with the remediation that stands beside it, if one does; problems are not told."""
    names = names_of(document.path, document.id.value)
    there = next((name for name in names if (root / name).is_file()), None)
    return _with(document, File(there, str(root / there), None), []) if there else document


def readings_of(
    places: Iterable[tuple[str, str]], sidecars: Mapping[str, Reading], problems: list[Problem]
) -> Mapping[str, Reading]:
    """What was read of sidecars, by the paths of their documents; ``places`` are paths and IDs.

    ``sidecars`` are what was read of each, by its path. What is wrong with one is reported, also where no
    document is beside it.
    """
    found: dict[str, Reading] = {}
    taken: set[str] = set()
    for path, document_id in places if sidecars else ():
        if name := _named(sidecars, path, document_id):
            taken.add(name)
            problems += sidecars[name].problems
            found[path] = sidecars[name]
    problems += (orphan(path) for path in sidecars if path not in taken)
    return found


def orphan(path: str) -> Problem:
    """What is to be said of a sidecar without a ticket."""
    name = PurePosixPath(path).name.removesuffix(SIDECAR)
    message = f"there is no ticket {name} in this folder whose remediation this could be"
    return Problem(level=Level.ERROR, rule="remediation-sidecar", file=path, line=1, message=message)


def _named(sidecars: Collection[str], path: str, document_id: str) -> str | None:
    """Which of the sidecars is that of a document."""
    return next((name for name in names_of(path, document_id) if name in sidecars), None)


def _with(document: Document, file: File, problems: list[Problem]) -> Document:
    if document.remediation is None:
        return replace(document, remediation=_read(file, problems))
    message = f"the ticket has a Remediation section, and {file.path} beside it is one too"
    line, hint = document.remediation.span.line, "keep one of the two"
    problems.append(
        Problem(
            level=Level.ERROR,
            rule="remediation-sidecar",
            file=document.path,
            line=line,
            message=message,
            hint=hint,
        )
    )
    return document


def _read(file: File, problems: list[Problem]) -> Remediation:
    from finding_tickets.documents.remediation import read_sidecar

    content = read_file(file, problems)
    remediation, found = read_sidecar(content.data if content else b"", file.path)
    # A file that cannot be read has said so, and is not empty for that.
    problems += found if content else ()
    return remediation
