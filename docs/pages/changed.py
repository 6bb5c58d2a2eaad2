"""List the rules to read again for another version of PyTorch: ``python -m docs.pages.changed OLD NEW``.

Each is a checkout of PyTorch, or a folder with single files of it. The files that rules and the tables of
``operations.json`` name as their sources are compared. The exit code is 1 if there is anything to read.

Known limitations:
    What a file includes or calls may have changed where it has not. A rule may be right all the same.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from simcuda.basis import operations
from simcuda.costs.rules import OF_LIBRARIES, OF_OTHER_VERSIONS, RULES

FILE = re.compile(r"[\w/]*\w\.(?:cpp|cuh|cu|h|py|yaml)\b")
SUFFIXES = (".cpp", ".cuh", ".cu", ".h", ".py", ".yaml")
TABLES = ("taken apart", "never waiting")
"""The tables that name a source for each group of operations."""

Folder = Mapping[str, list[Path]]
"""The files of a folder by their last name."""


def sources() -> Iterator[tuple[str, str]]:
    """Yield the name of each rule and each group of a table with its source."""
    for rule in (*RULES, *OF_LIBRARIES, *OF_OTHER_VERSIONS):
        yield rule.id, rule.source
    for table in TABLES:
        for source, names in operations(table).items():
            yield f"{table}: {', '.join(names)}", source


def read_folder(root: Path) -> Folder:
    """Return the files of a folder that may be sources."""
    found = defaultdict[str, list[Path]](list)
    for path in sorted(root.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            found[path.name].append(path.relative_to(root))
    return found


def find(folder: Folder, name: str) -> list[Path]:
    """Return the files that a source may mean: it names the end of a path, and a folder may be flat."""
    found = []
    for path in folder.get(name.rpartition("/")[2], []):
        ends = (f"/{path.as_posix()}", f"/{name}")
        if ends[0].endswith(ends[1]) or ends[1].endswith(ends[0]):
            found.append(path)
    return found


def compare(old: Path, new: Path) -> dict[str, str]:
    """Return what became of each file that is named: ``same``, ``changed``, ``gone`` or ``not there``."""
    became = {}
    folders = read_folder(old), read_folder(new)
    for _, source in sources():
        for name in FILE.findall(source):
            before, after = (find(folder, name) for folder in folders)
            if not before:
                became[name] = "not there"
            elif not set(before) <= set(after):
                became[name] = "gone"
            elif any((old / path).read_bytes() != (new / path).read_bytes() for path in before):
                became[name] = "changed"
            else:
                became[name] = "same"
    return became


def report(became: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return a line for each rule to read again, and one for each that cannot be compared."""
    again, unknown = [], []
    for rule, source in sources():
        names = FILE.findall(source)
        moved = [f"{name} {became[name]}" for name in names if became[name] in ("changed", "gone")]
        if moved:
            again.append(f"{rule}: {', '.join(moved)}")
        elif not names or any(became[name] == "not there" for name in names):
            unknown.append(f"{rule}: {source}")
    return again, unknown


def main() -> int:
    """Print the rules to read again."""
    parser = argparse.ArgumentParser(prog="python -m docs.pages.changed", description=__doc__)
    parser.add_argument("old", type=Path, help="the version that the rules are about")
    parser.add_argument("new", type=Path, help="the version to compare with")
    given = parser.parse_args()
    again, unknown = report(compare(given.old, given.new))
    sys.stdout.write("\n".join([f"to read again: {len(again)}", *again]) + "\n")
    sys.stdout.write("\n".join([f"not compared: {len(unknown)}", *unknown]) + "\n")
    return int(bool(again))


if __name__ == "__main__":
    sys.exit(main())
