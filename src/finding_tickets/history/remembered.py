"""What was measured of commits, in the user's cache folder, so that a search goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from finding_tickets.ground.cache import cache_folder
from finding_tickets.ground.replacing import replace

FOLDER = "bisect"
_KEEP = 1024
"""Measurements that are kept, the newest."""


def key_of(*parts: object) -> str:
    """A name for what these parts make up."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def recall(key: str, root: Path) -> dict[str, Any] | None:
    """What was kept under a key, if the files of the work tree that it rests on are still the same."""
    folder = _folder()
    if folder is None:
        return None
    try:
        kept: dict[str, Any] = json.loads((folder / f"{key}.json").read_text(encoding="utf-8"))
        files: Mapping[str, str] = kept["files"]
        fresh = all(digest(root / name) == expected for name, expected in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return kept["value"] if fresh else None


def remember(key: str, value: Mapping[str, Any], files: Mapping[str, str]) -> None:
    """Keep a value and the digests of the files that it rests on; without a cache folder, do not."""
    folder = _folder()
    if folder is None:
        return
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        replace(folder / f"{key}.json", json.dumps({"value": value, "files": files}).encode())
        kept = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for old in kept[:-_KEEP]:
            old.unlink(missing_ok=True)


def digest(file: Path) -> str:
    """The SHA-256 of a file; empty where it is not there."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _folder() -> Path | None:
    cache = cache_folder()
    return cache / FOLDER if cache else None
