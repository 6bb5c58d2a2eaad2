"""What a repository has of a register already: documents, their IDs, and a configuration that fits them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from finding_tickets.documents.reading import Document, read_document
from finding_tickets.ground.git import FOREIGN_FOLDERS, repository_files
from finding_tickets.model.problem import Problem
from finding_tickets.model.vocabulary import ID_PATTERN, Vocabulary, word_for
from finding_tickets.register.config import is_configured, read_config
from finding_tickets.register.files import File, markdown_files, read_file
from finding_tickets.register.identifiers import numbered
from finding_tickets.register.lookup import natural

MOST_SHAPES = 4
_UNFIT = "id-form"


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found below ``root``.

    Attributes:
        configured: The file that configures the register already, or None.
        folders: Folders of documents and how many each holds, the one for new tickets first.
        documents: How many documents there are, by kind.
        series: How many IDs there are of each series, as ``B7-PT`` of ``B7-PT-02``, most first.
        id_pattern: A pattern for IDs that the usual one does not fit; None where it does.
        unfit: IDs that no pattern could be made for.
    """

    root: Path
    configured: str | None
    folders: Mapping[str, int]
    documents: Mapping[str, int]
    series: Mapping[str, int]
    id_pattern: str | None
    unfit: tuple[str, ...]

    def settings(self) -> str:
        """The configuration that fits, as lines of TOML without a table."""
        lines = [f"tickets = {json.dumps(list(self.folders), ensure_ascii=False)}"]
        lines += [f"id_pattern = {json.dumps(self.id_pattern)}"] if self.id_pattern else []
        return "\n".join(lines) + "\n"


def survey(root: Path) -> Survey:
    """Look for documents everywhere below ``root``, but for what git ignores; nothing is changed.

    Raises:
        BadDataError: There is a configuration, and it is wrong.
    """
    configured = is_configured(root)
    config = read_config(root)
    # The Markdown files of the folders that are configured, else all of the repository's own.
    folders = [root / folder for folder in config.tickets] if configured else [root]
    own = None if configured else repository_files(root)
    files = list(markdown_files(root, folders, [], largest=config.largest_file))
    if own is None:
        files = [each for each in files if FOREIGN_FOLDERS.isdisjoint(PurePosixPath(each.path).parts)]
    else:
        files = [each for each in files if each.path in own]
    documents, problems = _read(files, config.vocabulary)
    pattern, unfit = None, tuple[str, ...]()
    strange = {problem.file for problem in problems if problem.rule == _UNFIT}
    if strange and not configured:
        # The usual pattern with the forms of the IDs that it does not fit, unless these are too many.
        unfit = tuple(document.id.value for document in documents if document.path in strange)
        shapes = dict.fromkeys(map(_shape, unfit))
        wider = f"(?:{'|'.join([ID_PATTERN, *shapes])})"
        again, left = _read(files, Vocabulary(id_pattern=wider))
        if len(shapes) <= MOST_SHAPES and all(problem.rule != _UNFIT for problem in left):
            documents, pattern, unfit = again, wider, ()
    numbers = Counter(parts.series for each in documents if (parts := numbered(each.id.value)))
    paths = [document.path for document in documents]
    if configured:
        counts = _below(paths)
        found = {name: counts[PurePosixPath(name).as_posix()] for name in config.tickets}
    else:
        found = _folders([file.path for file in files], paths) or {config.tickets[0]: 0}
    return Survey(
        root=root,
        configured=configured,
        folders=found,
        documents=dict(Counter(document.kind for document in documents)),
        series=dict(sorted(numbers.items(), key=lambda item: (-item[1], natural(item[0])))),
        id_pattern=pattern,
        unfit=unfit,
    )


def _read(files: Iterable[File], vocabulary: Vocabulary) -> tuple[list[Document], list[Problem]]:
    documents, problems = list[Document](), list[Problem]()
    for file in files:
        content = read_file(file, [])
        document, found = read_document(content, file.path, vocabulary) if content is not None else (None, ())
        documents += [document] if document else []
        problems += found if document else ()
    return documents, problems


def _shape(document_id: str) -> str:
    """A pattern for IDs that are made like this one: any letters for its letters, any number for a number."""
    form = re.sub("[A-Za-z]+", "A", re.sub("[0-9]+", "0", document_id))
    return re.escape(form).replace("A", "[A-Z]+").replace("0", "[0-9]+")


def _folders(files: Iterable[str], documents: Iterable[str]) -> dict[str, int]:
    """The topmost folders in which most Markdown files are documents, or that hold documents themselves.

    The root is one only where documents lie in it. Folders that are called after an outcome come last, so
    that new tickets are not written there.
    """
    all_below, documents_below = _below(files), _below(documents)
    directly = Counter(_parent(path) for path in documents)
    # From the root downwards: below a folder that is taken, nothing else is.
    found, waiting = [], ["."]
    while waiting:
        folder = waiting.pop()
        most = folder != "." and 2 * documents_below[folder] > all_below[folder]
        if most or directly[folder]:
            found.append(folder)
        else:
            waiting += (name for name in documents_below if name != "." and _parent(name) == folder)
    outcomes = Vocabulary().outcomes

    def order(folder: str) -> tuple[bool, int, str]:
        return bool(word_for(PurePosixPath(folder).name, outcomes)), -documents_below[folder], folder

    return {folder: documents_below[folder] for folder in sorted(found, key=order)}


def _below(paths: Iterable[str]) -> Counter[str]:
    """How many of the files are below each folder."""
    return Counter(parent.as_posix() for path in paths for parent in PurePosixPath(path).parents)


def _parent(path: str) -> str:
    return PurePosixPath(path).parent.as_posix()
