"""Where the tool keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """The tool's folder in ``$XDG_CACHE_HOME``, by default ``~/.cache``; None for users without a home."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(chosen) if Path(chosen).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "finding-tickets"
