"""What tests look for among processes, and how they wait until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition is true, or time is up."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def processes_naming(text: str) -> list[str]:
    """The command lines with a text in them."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue  # it has ended meanwhile
    return [line for line in lines if text in line]
