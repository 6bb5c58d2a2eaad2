"""A register as rows: what lists and queries need of it, read again only where a file has changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from finding_tickets.model.problem import Problem
from finding_tickets.model.vocabulary import Vocabulary
from finding_tickets.register.config import Config
from finding_tickets.register.files import File, markdown_files
from finding_tickets.register.ids import Place, duplicates, natural
from finding_tickets.register.index import Index, Reading, index_of
from finding_tickets.register.root import chosen_root, folders_of
from finding_tickets.register.row import Row
from finding_tickets.register.sidecars import verifiers_of


@dataclass(frozen=True)
class Listing:
    """The rows of a register, sorted by ID as people count, with the problems met in reading them."""

    root: Path
    config: Config
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]


def list_rows(root: Path | None = None, *, indexed: bool = True) -> Listing:
    """The rows of the register at ``root``, which is chosen as ``load`` chooses it.

    With ``indexed``, what an earlier call has read of a file that is still the same is not read again.

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
    read = _readings([*files, *sidecars], config.vocabulary, index)
    readings, names = read[: len(files)], (file.path for file in sidecars)
    beside = dict(zip(names, read[len(files) :], strict=True))
    problems += (problem for reading in readings for problem in reading.problems)
    found = [(reading.row, reading.line) for reading in readings if reading.row]
    problems += duplicates(Place(row.id, row.path, line) for row, line in found)
    verifiers = verifiers_of(((row.path, row.id) for row, _ in found), beside, problems)
    rows = [
        replace(row, verifier=row.verifier or verifiers[row.path]) if row.path in verifiers else row
        for row, _ in found
    ]
    rows.sort(key=lambda row: (natural(row.id), row.path))
    return Listing(place, config, tuple(rows), tuple(problems))


def _readings(files: list[File], vocabulary: Vocabulary, index: Index | None) -> list[Reading]:
    """What is in each file, from the index as far as that knows."""
    known, gone = index.known(files) if index else ({}, [])
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
