"""What tests look for among processes, and how they wait until something is so."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

STALLS = """#!/bin/sh
case "$*" in *{command}*) echo $$ > {note}; exec sleep 600;; esac
exec {git} "$@"
"""


def with_git_that_stalls(folder: Path, command: str, note: Path) -> dict[str, str]:
    """An environment in which git, put into ``folder``, leaves its process in a note instead of a command."""
    program = folder / "git"
    program.write_text(STALLS.format(command=command, note=note, git=shutil.which("git")))
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


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
