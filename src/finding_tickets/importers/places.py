"""Where a result is: the path of its file from the root of the repository, and never one outside of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from finding_tickets.importers.sarif import ArtifactLocation, Run

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/))?(?P<path>/.*)", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"/?(?P<letter>[A-Za-z]):/")
_ROOTS = {"SRCROOT", "PROJECTROOT", "REPOROOT", "ROOTPATH"}
"""Names that tools give to the root of a repository, without the per cent signs around some of them."""


class File(NamedTuple):
    """A file as the log names it, and its path from the repository's root; None where it is not within."""

    uri: str
    path: str | None


class Files:
    """The files of one run.

    ``roots`` are folders that are the repository's root, as paths or ``file:`` URIs: where it is now, and
    where it was when the tool ran.
    """

    def __init__(self, run: Run, roots: Collection[str]) -> None:
        self._artifacts = run.artifacts or []
        self._bases: Mapping[str, ArtifactLocation | None] = run.original_uri_base_ids or {}
        mapped = [each.mapped_to for each in run.version_control_provenance or () if each.mapped_to]
        self._names = {base.uri_base_id for base in mapped if base.uri_base_id and not base.uri}
        self._names = self._names or self._conventional() or self._only()
        given = [absolute_path(root) for root in roots]
        told = [absolute_path(self._joined(ArtifactLocation(uri_base_id=name))) for name in self._names]
        self._given = [path for path in given if path]
        # The root of a whole file system is that of no repository.
        self._told = [path for path in told if path and path != "/"]

    def file(self, place: ArtifactLocation | None) -> File | None:
        """The file at a place; None where the place names none."""
        if place and place.uri is None and place.index is not None:
            listed = self._artifacts[place.index : place.index + 1] if place.index >= 0 else []
            place = listed[0].location if listed else None
        if place is None or not place.uri:
            return None
        path = self._path(place)
        return File(place.uri, _inside(path) if path else None)

    def _path(self, place: ArtifactLocation) -> str | None:
        """The path from the root, which may still lead out of it; None for what is elsewhere."""
        absolute = absolute_path(self._joined(place))
        if absolute and (below := _below(absolute, self._given)):
            return below
        uri, top = self._walk(place, self._names)
        if _is_absolute(uri):
            return _below(absolute, self._told) if absolute else None
        # A base that nobody explains is the root, unless the log says that another one is.
        is_root = top is None or top in self._names or _is_conventional(top) or not self._names
        return unquote(uri, errors="replace") if is_root else None

    def _joined(self, place: ArtifactLocation) -> str:
        return self._walk(place, ())[0]

    def _walk(self, place: ArtifactLocation, stop: Collection[str]) -> tuple[str, str | None]:
        """The URI of a place as far up as its bases tell, and the base of which they do not."""
        uri, base, seen = _slashes(place.uri or ""), place.uri_base_id, set[str]()
        while base is not None and not _is_absolute(uri):
            above = self._bases.get(base)
            if base in stop or base in seen or above is None or above.uri is None:
                return uri, base
            seen.add(base)
            uri = _slashes(above.uri).rstrip("/") + "/" + uri
            base = above.uri_base_id
        return uri, None

    def _conventional(self) -> set[str]:
        return {name for name in self._tops() if _is_conventional(name)}

    def _only(self) -> set[str]:
        tops = self._tops()
        return tops if len(tops) == 1 else set()

    def _tops(self) -> set[str]:
        """The bases that are relative to no other one."""
        return {name for name, base in self._bases.items() if base is None or base.uri_base_id is None}


def absolute_path(uri: str) -> str | None:
    """The path that an absolute URI or path names on its machine, with slashes; None for everything else."""
    text = _slashes(uri)
    found = _FILE.fullmatch(text)
    if found:
        text = unquote(found["path"], errors="replace")
    drive = _DRIVE.match(text)
    if drive:
        text = f"/{drive['letter'].upper()}:/{text[drive.end() :]}"
    return posixpath.normpath(text) if text.startswith("/") else None


def _is_conventional(name: str) -> bool:
    return name.strip("%").upper() in _ROOTS


def _slashes(uri: str) -> str:
    """A backslash is in no URI, but in paths that tools on Windows write in place of one."""
    return uri.replace("\\", "/")


def _is_absolute(uri: str) -> bool:
    return uri.startswith("/") or _SCHEME.match(uri) is not None or _DRIVE.match(uri) is not None


def _below(path: str, roots: Collection[str]) -> str | None:
    """A path from the first of ``roots`` that it is below."""
    starts = (root.rstrip("/") + "/" for root in roots)
    return next((path.removeprefix(start) for start in starts if path.startswith(start)), None)


def _inside(path: str) -> str | None:
    """The path without detours; None where it leads out of the root, is the root, or is no file's name."""
    short = posixpath.normpath(path)
    outside = short in {".", ".."} or short.startswith(("../", "/")) or _DRIVE.match(short) is not None
    return None if outside or not short.isprintable() else short
