"""Which findings of other tools have a ticket already."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from finding_tickets.errors import BadDataError
from finding_tickets.importers.identity import MARK
from finding_tickets.model.problem import Level, Problem
from finding_tickets.register.files import markdown_files, read_file
from finding_tickets.register.root import folders_of

_FINGERPRINT = re.compile(rb"(?<!\w)" + MARK.encode() + rb"[0-9a-f]{32}(?!\w)")


def known(root: Path) -> Mapping[str, str]:
    """The path of the file in which a fingerprint is, for all that are anywhere in a file of a register.

    Files are searched and not read as documents: whatever people did to a ticket, its fingerprint counts.

    Raises:
        BadDataError: A file cannot be read, and nobody knows which findings it is about.
    """
    found: dict[str, str] = {}
    problems: list[Problem] = []
    config, folders = folders_of(root)
    for file in markdown_files(root, folders, problems, largest=config.largest_file):
        content = read_file(file, problems)
        for match in _FINGERPRINT.findall(content.data) if content else ():
            found.setdefault(match.decode(), file.path)
    for problem in problems:
        if problem.level is Level.ERROR:
            raise BadDataError(
                f"{problem.message}, so that it is not known which findings it is about", file=problem.file
            )
    return found
