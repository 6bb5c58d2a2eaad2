"""A register as rows: what lists and queries need of it, read again only where a file has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from finding_tickets.model.problem import Problem
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.config import Config
from finding_tickets.register.files import File, markdown_files
from finding_tickets.register.ids import Place, duplicates, natural
from finding_tickets.register.index import Index, Reading, index_of
from finding_tickets.register.particulars import NONE, Particulars
from finding_tickets.register.root import chosen_root, folders_of
from finding_tickets.register.row import Row
from finding_tickets.register.sidecars import readings_of


@dataclass(frozen=True)
class Listing:
    """The rows of a register, sorted by ID as people count, with the problems met in reading them.

    ``particulars`` are by the path of the document, for those that have some.
    """

    root: Path
    config: Config
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]
    particulars: Mapping[str, Particulars] = field(default_factory=dict)


def list_rows(root: Path | None = None, *, indexed: bool = True, whole: bool = False) -> Listing:
    """The rows of the register at ``root``, which is chosen as ``load`` chooses it.

    With ``indexed``, what an earlier call has read of a file that is still the same is not read again. Only
    with ``whole`` are all particulars there.

    Raises:
        UsageError: There is no such folder, or no register.
        BadDataError: The configuration is wrong.
    """
    place = chosen_root(root)
    config, folders = folders_of(place)
    problems: list[Problem] = []
    sidecars: list[File] = []
    largest = config.largest_file
    files = list(markdown_files(place, folders, problems, largest=largest, sidecars=sidecars))
    index = index_of(place, config.vocabulary) if indexed else None
    read = _readings([*files, *sidecars], config.vocabulary, index, whole=whole)
    readings, names = read[: len(files)], (file.path for file in sidecars)
    beside = dict(zip(names, read[len(files) :], strict=True))
    problems += (problem for reading in readings for problem in reading.problems)
    found = [(reading.row, reading.line) for reading in readings if reading.row]
    problems += duplicates(Place(row.id, row.path, line) for row, line in found)
    apart = readings_of(((row.path, row.id) for row, _ in found), beside, problems)
    rows = [
        replace(row, verifier=row.verifier or apart[row.path].verifier) if row.path in apart else row
        for row, _ in found
    ]
    rows.sort(key=lambda row: (natural(row.id), row.path))
    told = {row.path: reading.particulars for row, reading in _stating(readings)}
    for path, reading in apart.items():
        own = told.get(path, NONE)
        told[path] = own._replace(claims=own.claims or reading.particulars.claims)
    return Listing(place, config, tuple(rows), tuple(problems), told)


def _stating(readings: Iterable[Reading]) -> Iterator[tuple[Row, Reading]]:
    """The documents with particulars."""
    return ((each.row, each) for each in readings if each.row and each.particulars != NONE)


def _readings(
    files: list[File], vocabulary: Vocabulary, index: Index | None, *, whole: bool
) -> list[Reading]:
    """What is in each file, from the index as far as that knows."""
    known, gone = index.known(files, whole=whole) if index else ({}, [])
    unknown = [file for file in files if file.path not in known]
    if unknown:
        # Nothing that parses is imported where nothing has changed.
        from finding_tickets.register.readings import read_rows

        read = dict(zip((file.path for file in unknown), read_rows(unknown, vocabulary), strict=True))
    else:
        read = {}
    settled = {path: (state, reading) for path, (reading, state) in read.items() if state}
    if index and (settled or gone):
        index.keep(settled, gone)
    return [known[file.path] if file.path in known else read[file.path][0] for file in files]
