"""Verdicts as they were recorded, whether or not they are still fresh: now, and at a commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from finding_tickets.ground.git import objects
from finding_tickets.model.verdict import Verdict
from finding_tickets.register.revision import files_at
from finding_tickets.verify.evidence import rank
from finding_tickets.verify.intoto import NoStatementError, read

UNREADABLE = "unreadable"
_SUFFIX = ".json"


def changes(root: Path, folder: str, commit: str, before: str) -> Mapping[str, tuple[str, str]]:
    """The verdicts recorded at a commit in ``before`` and now in ``folder``, where any evidence differs.

    They are by the folder within these.

    Raises:
        GitError: Git is not installed, ``root`` is in no repository, or there is no such commit.
    """
    found = files_at(root, commit, [before])
    then = {path: name for path, name in found.objects.items() if _is_evidence(path, before)}
    now = {file.relative_to(root).as_posix(): file for file in (root / folder).glob(f"*/*{_SUFFIX}")}
    places = {_place(path) for path in {*then, *now} if path in found.changed or path not in then}
    contents = objects(root, dict.fromkeys(name for path, name in then.items() if _place(path) in places))
    return {
        place: (
            _verdict(contents.get(then[path], b"") for path in sorted(then) if _place(path) == place),
            _verdict(now[path].read_bytes() for path in sorted(now) if _place(path) == place),
        )
        for place in sorted(places)
    }


def _verdict(files: Iterable[bytes]) -> str:
    """The verdict of the file that counts, fresh or not."""
    try:
        recorded = [read(content).verification for content in files]
    except NoStatementError:
        return UNREADABLE
    if not recorded:
        return Verdict.UNVERIFIED
    return min(recorded, key=rank).verdict


def _is_evidence(path: str, folder: str) -> bool:
    return path.endswith(_SUFFIX) and PurePosixPath(path).parent.parent == PurePosixPath(folder)


def _place(path: str) -> str:
    return PurePosixPath(path).parent.name
