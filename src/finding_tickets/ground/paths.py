"""Where a register is, and where in it the files of a ticket stand unless its Remediation says otherwise."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

LONGEST_NAME = 150
"""Bytes, so that a name with a suffix or two stays below the 255 that file systems take."""


def slug(ticket_id: str) -> str:
    """The ID as file names and Python spell it: ``B7-PT-02`` is ``b7_pt_02``."""
    return safe_name(ticket_id).lower().replace("-", "_")


def verifier_path(ticket_id: str) -> str:
    """The file that holds the workload, from the repository's root."""
    return f"verifiers/{slug(ticket_id)}.py"


def fixes_folder(ticket_id: str) -> str:
    """The folder in which every file is a variant of its name, from the repository's root."""
    return f"fixes/{slug(ticket_id)}"


@lru_cache(maxsize=4096)
def safe_name(name: str) -> str:
    """A name as every file system takes it, of one part and not too long; two long names stay two."""
    safe = re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"
    if len(safe.encode()) <= LONGEST_NAME:
        return safe
    import hashlib

    return f"{safe[:30]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def relative(root: Path, path: Path) -> str:
    """A path as problems and records name it: from the root, with forward slashes."""
    return path.relative_to(root).as_posix()
