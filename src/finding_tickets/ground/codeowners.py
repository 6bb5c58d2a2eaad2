"""Who owns the files of a repository, as a file CODEOWNERS says."""

from __future__ import annotations

import re
from pathlib import Path

# GitHub takes the first of these.
PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_PIECES = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PIECE = re.compile("|".join(map(re.escape, _PIECES)))


def owners_of(root: Path, file: str) -> tuple[str, ...]:
    """The owners of a file, by its path from the root of a repository: the last pattern that fits counts."""
    found: tuple[str, ...] = ()
    for line in _text(root).splitlines():
        pattern, *owners = line.partition("#")[0].split() or [""]
        # A section of GitLab is no pattern.
        if pattern and not pattern.startswith(("[", "^[")) and _form(pattern).fullmatch(file):
            found = tuple(owners)
    return found


def _text(root: Path) -> str:
    for place in PLACES:
        if (root / place).is_file():
            return (root / place).read_text(encoding="utf-8", errors="replace")
    return ""


def _form(pattern: str) -> re.Pattern[str]:
    """A pattern as git's ignore files have them; one that names a folder is for all that is below."""
    is_anchored, text = "/" in pattern.removesuffix("/"), pattern.removeprefix("/")
    body, position = "", 0
    for match in _PIECE.finditer(text):
        body += re.escape(text[position : match.start()]) + _PIECES[match[0]]
        position = match.end()
    body += re.escape(text[position:])
    below = ".*" if text.endswith("/") else "" if text.endswith("/*") else "(?:/.*)?"
    return re.compile(("" if is_anchored else "(?:.*/)?") + body + below)
