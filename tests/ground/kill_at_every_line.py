"""Run as a program: kill an edit of two files at each line of the code that writes them, and look.

Prints, as JSON, how the two files stood after each kill, and which files a reader of the folder would find.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from finding_tickets.ground import files
from finding_tickets.register.files import SUFFIX

NAMES = ("a.md", "b.md")
OLD, NEW = b"old text of a file\n", b"NEW text of a file\n"


def edit(root: Path) -> None:
    """Edit both files."""
    files.rewrite(root, [files.FileEdit(name, make) for name in NAMES])


def make(old: bytes) -> bytes:
    """Replace the first word."""
    return NEW[:3] + old[3:]


def killed_at(line: int, root: Path) -> bool:
    """Make the edit in a process that is killed at its ``line``-th line; False if it ends before."""
    child = os.fork()
    if child == 0:
        sys.settrace(killer(line))
        edit(root)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def killer(line: int) -> Any:
    """A trace function that ends this process at the ``line``-th line of the module under test."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if frame.f_code.co_filename != files.__file__:
            return None
        seen += event == "line"
        if seen > line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def main(root: Path) -> None:
    """Kill at the first line, the second, and so on, until the edit is done before its turn comes."""
    states: list[str] = []
    found: set[str] = set()
    line, alive = 0, True
    while alive:
        for name in NAMES:
            (root / name).write_bytes(OLD)
        alive = killed_at(line, root)
        states.append("".join(state(root / name) for name in NAMES))
        found |= {path.name for path in root.iterdir() if path.name.lower().endswith(SUFFIX)}
        # What the dead process left behind is in nobody's way, and is removed once it is surely abandoned.
        for path in root.iterdir():
            os.utime(path, (0, 0))
        edit(root)
        assert set(NAMES) == {path.name for path in root.iterdir()}
        line += 1
    json.dump({"states": states, "found": sorted(found)}, sys.stdout)


def state(path: Path) -> str:
    """``o`` for the old text, ``n`` for the new one, ``?`` for anything else."""
    return {OLD: "o", NEW: "n"}.get(path.read_bytes(), "?")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
