"""``tickets list`` of measured tickets, warm, against the same tickets without their evidence.

Every ticket names code and claims. Nothing has changed since the list before, so that staleness is decided
from the digests in the index: nothing is planned or read again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.command import main
from benchmarks.measured import EVIDENCE, write_measured_register
from benchmarks.processes import environment, run
from benchmarks.result import Bound, Number, Result, Size

COUNT = {Size.FULL: 1_000, Size.QUICK: 200, Size.LEAST: 5}
ROUNDS = {Size.FULL: 9, Size.QUICK: 5, Size.LEAST: 1}
BOUND = Bound(1.5)
SETTLED_SECONDS = 0.1
"""So long after a change, the state of a file tells of every further one."""
LIST = [sys.executable, "-m", "finding_tickets", "list", "--root"]


def measure(size: Size) -> Iterator[Result]:
    """Two registers that differ in their evidence alone, listed in turn."""
    count = COUNT[size]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured, unmeasured, env = folder / "measured", folder / "unmeasured", environment(folder)
        write_measured_register(measured, count, one_in=1)
        shutil.copytree(measured, unmeasured, ignore=shutil.ignore_patterns(EVIDENCE))
        time.sleep(SETTLED_SECONDS)
        seconds: dict[Path, list[float]] = {measured: [], unmeasured: []}
        cold = {root: run([*LIST, str(root)], env).processor for root in seconds}
        for _ in range(ROUNDS[size]):
            for root, each in seconds.items():
                each.append(run([*LIST, str(root)], env).processor)
    ours, theirs = median(seconds[measured]), median(seconds[unmeasured])
    yield Result(
        name="measured-list",
        what="a warm list of measured tickets / of unmeasured ones, by processor time",
        value=ours / theirs,
        bound=BOUND,
        beside=(
            Number(f"measured, {count:,} tickets", ours, "s"),
            Number("unmeasured", theirs, "s"),
            Number("measured, cold", cold[measured], "s"),
            Number("unmeasured, cold", cold[unmeasured], "s"),
        ),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
