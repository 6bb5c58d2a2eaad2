"""Begin with what took longest the last time, so that no processor waits for it in the end.

On m processors that takes at most 4/3 - 1/(3*m) times what the best order takes (R. L. Graham, Bounds on
Multiprocessing Timing Anomalies, 1969); in any other order it may be 2 - 1/m times.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path

from finding_tickets.ground.cache import cache_folder
from finding_tickets.ground.replacing import replace
from finding_tickets.measure.isolation import Isolation, Outcome, Task

FOLDER = "pace"
_KEEP = 4096
"""Tasks of a register whose times are kept, the last ones."""
Key = tuple[str, str]


def longest_first(
    isolation: Isolation, tasks: Mapping[Key, Task], on_start: Callable[[Key], None]
) -> Generator[tuple[Key, Outcome], None, None]:
    """Run tasks as ``isolation.run`` does, in the order of how long they took when they last ran.

    Those that never ran come first, in their own order: nobody knows how long they take.
    """
    if not tasks:
        return
    file = _file(next(iter(tasks.values())).root)
    known = _read(file)
    order = sorted(tasks, key=lambda key: known.get(_name(key), inf), reverse=True)
    began: dict[Key, float] = {}
    taken: dict[str, float] = {}

    def start(key: Key) -> None:
        began[key] = time.monotonic()
        on_start(key)

    try:
        for key, outcome in isolation.run({key: tasks[key] for key in order}, start):
            if key in began:
                taken[_name(key)] = time.monotonic() - began[key]
            yield key, outcome
    finally:
        _write(file, {name: each for name, each in known.items() if name not in taken} | taken)


def _name(key: Key) -> str:
    return "@".join(key)


def _file(root: Path) -> Path | None:
    cache = cache_folder()
    return cache / FOLDER / f"{hashlib.sha256(str(root).encode()).hexdigest()}.json" if cache else None


def _read(file: Path | None) -> dict[str, float]:
    """The seconds of tasks by their names; none where there is no such file, or it is damaged."""
    try:
        kept = json.loads(file.read_bytes()) if file else {}
        return {str(name): float(seconds) for name, seconds in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(file: Path | None, seconds: Mapping[str, float]) -> None:
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, json.dumps(dict(list(seconds.items())[-_KEEP:])).encode())
