"""The calls by which a ticket is verified, in all processes of the tool together.

A call counts if its function is the tool's own; the simulated device is a library beside it. A move is a call
from a room of the tool to another one, whatever lies between.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.command import main
from benchmarks.machine import ROOT
from benchmarks.processes import environment
from benchmarks.result import Bound, Result, Size

TICKETS = {Size.FULL: "B7-PT-02", Size.QUICK: "B1-PT-02", Size.LEAST: "B1-PT-02"}
BOUNDS = {"calls": Bound(300_000), "moves": Bound(3_000)}
COUNTING = Path(__file__).parent / "counting"


def measure(size: Size) -> Iterator[Result]:
    """Verify a founding ticket with nothing kept from before, and add up what each process counted."""
    ticket = TICKETS[size]
    with tempfile.TemporaryDirectory() as folder:
        counted = Path(folder, "counted")
        counted.mkdir()
        env = environment(Path(folder)) | {"PYTHONPATH": str(COUNTING), "COUNTED_CALLS": str(counted)}
        command = [sys.executable, "-m", "finding_tickets", "verify", ticket]
        subprocess.run(command, check=True, cwd=ROOT, env=env, capture_output=True)
        processes = [json.loads(file.read_text(encoding="utf-8")) for file in counted.iterdir()]
    for name, bound in BOUNDS.items():
        total = sum(each[name] for each in processes)
        what = f"{name} of the tool to verify {ticket}, in {len(processes)} processes"
        yield Result(name=f"path-{name}", what=what, value=total, bound=bound)


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
