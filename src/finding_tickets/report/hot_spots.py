"""The files that most documents name, under one name each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from finding_tickets.report.rows import SEVERITIES, Row
from finding_tickets.report.tables import CrossTable, cross

NO_FILE = "no file"
OTHER_FILES = "other files"
MOST_FILES = 20
"""Files that are shown by themselves."""


@dataclass(frozen=True)
class HotSpots:
    """The files that most documents name, with their severities.

    ``table`` counts each document under the first file that it names; ``named`` counts for each of the files
    all documents that name it.
    """

    table: CrossTable
    named: Mapping[str, int]


def hot_spots(rows: Sequence[Row]) -> HotSpots:
    """The hot spots of documents."""
    named = [row.stated.files for row in rows]
    short = shortened({file for files in named for file in files})
    files = [tuple(dict.fromkeys(short[file] for file in each)) for each in named]
    counts = Counter(file for each in files for file in each)
    # Of files that as many documents name, the first by name, whatever the order of the documents.
    most = sorted(counts, key=lambda file: (-counts[file], file))[:MOST_FILES]
    places = (_place(each, frozenset(most)) for each in files)
    pairs = zip(places, (row.severity for row in rows), strict=True)
    return HotSpots(
        cross(pairs, [*most, OTHER_FILES, NO_FILE], SEVERITIES), {file: counts[file] for file in most}
    )


def _place(files: Sequence[str], shown: Collection[str]) -> str:
    if not files:
        return NO_FILE
    return files[0] if files[0] in shown else OTHER_FILES


def shortened(files: Collection[str]) -> dict[str, str]:
    """What each file is called here: its path from the repository's root, as far as that can be told.

    A folder is the root on somebody's machine where a path that begins there goes on as somebody has written
    a whole path, of a folder and a name at least.
    """
    roots = sorted(
        {root for file in files for root in _root(file, files)}, key=lambda root: (len(root), root)
    )
    return {file: _without(file, roots) for file in files}


def _root(file: str, files: Collection[str]) -> Iterator[str]:
    """The folder, with its slash, without which a path from the root of a disk is another of the files."""
    parts = file.split("/") if file.startswith(("/", "~/")) else []
    ends = ("/".join(parts[first:]) for first in range(1, len(parts) - 1))
    longest = next((end for end in ends if end in files), None)
    if longest:
        yield file.removesuffix(longest)


def _without(file: str, roots: Iterable[str]) -> str:
    return next((file.removeprefix(root) for root in roots if file.startswith(root)), file)
