"""Count the calls of the tool's functions in every Python process that has this folder on its path.

The folder that ``COUNTED_CALLS`` names gets a file for each process as it ends: the number of calls, and of
those calls that lead from one room of the tool to another.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import NoReturn

SOURCE = str(Path(__file__).parents[2] / "src/finding_tickets") + os.sep
FOLDER = os.environ.get("COUNTED_CALLS", "")
_rooms: dict[str, str] = {}
_counts = {"calls": 0, "moves": 0}
# Workers end by it, without any other notice.
_exit = os._exit


def room_of(frame: FrameType) -> str:
    """Return the room of the tool whose code a frame runs; empty for all other code."""
    file = frame.f_code.co_filename
    if file not in _rooms:
        inside = file.removeprefix(SOURCE) if file.startswith(SOURCE) else ""
        _rooms[file] = inside.partition(os.sep)[0]
    return _rooms[file]


def count(frame: FrameType, event: str, _: object) -> None:
    """Count a call, and whether the nearest caller of the tool's own is in another room."""
    room = room_of(frame) if event == "call" else ""
    if not room:
        return
    _counts["calls"] += 1
    caller = frame.f_back
    while caller and not room_of(caller):
        caller = caller.f_back
    if caller and room_of(caller) != room:
        _counts["moves"] += 1


def begin() -> None:
    """Count from now on; a forked process begins anew."""
    _counts.update(calls=0, moves=0)
    threading.setprofile(count)
    sys.setprofile(count)


def write() -> None:
    """Write what was counted."""
    sys.setprofile(None)
    Path(FOLDER, f"{os.getpid()}.json").write_text(json.dumps(_counts), encoding="utf-8")


def leave(status: int) -> NoReturn:
    """End the process as ``os._exit`` does."""
    write()
    _exit(status)


if FOLDER:
    atexit.register(write)
    os._exit = leave
    os.register_at_fork(after_in_child=begin)
    begin()
