"""What a file's name says of the ticket in it: ``BUG-013-P2-domain-slug.md``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from finding_tickets.model.vocabulary import Vocabulary, word_for

_DOMAIN_AND_SLUG = 2


@dataclass(frozen=True)
class FileName:
    """The parts of a name; None where it does not have them.

    ``domain`` is the first word behind the severity where more words follow it.
    """

    id: str | None
    severity: str | None
    domain: str | None


def file_name(path: str, vocabulary: Vocabulary) -> FileName:
    """The parts of the name of the file at ``path``; the ID is the shortest beginning that is one."""
    pieces = [piece for piece in re.split(r"[-_ ]", PurePosixPath(path).stem) if piece]
    beginnings = ((count, "-".join(pieces[:count])) for count in range(1, len(pieces) + 1))
    count, name = next(
        ((count, name) for count, name in beginnings if vocabulary.an_id.fullmatch(name)), (0, None)
    )
    behind = pieces[count:]
    severity = word_for(behind[0], vocabulary.severities) if name and behind else None
    rest = behind[1:] if severity else []
    domain = rest[0] if len(rest) >= _DOMAIN_AND_SLUG else None
    return FileName(name.upper() if name else None, severity, domain)
