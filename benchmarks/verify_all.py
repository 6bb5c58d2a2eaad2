"""Measuring all founding tickets against the floor of any tool that uses torch: importing it.

The claim is a ratio of at most 6. Tickets whose claims need torch.compile's machinery pay for importing it on
top of that, so they are timed apart and shown.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
BOUND = 6.0
COMPILING = "graph_breaks"
TICKETS = [sys.executable, "-m", "finding_tickets"]


def seconds(command: list[str]) -> float:
    """Wall time of one run; any exit code but success and a failed gate is an error."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr}")
    return time.perf_counter() - start


def split() -> tuple[list[str], list[str]]:
    """IDs of the founding tickets, those without and those with a claim about graph breaks."""
    plain: list[str] = []
    compiling: list[str] = []
    for path in sorted((ROOT / "tickets").rglob("*.md")):
        ticket = "TASK-5" if path.parent.name == "reviews" else path.stem
        (compiling if f"{COMPILING}:" in path.read_text(encoding="utf-8") else plain).append(ticket)
    return plain, compiling


def main() -> int:
    """Interleave the three commands, print medians and ratios; 1 where the bound is exceeded."""
    plain, compiling = split()
    commands = {
        "import torch": [sys.executable, "-c", "import torch"],
        f"verify the {len(plain)} that compile nothing": [*TICKETS, "verify", *plain],
        f"verify --all, {len(compiling)} of them compiling": [*TICKETS, "verify", "--all"],
    }
    rounds = [[seconds(command) for command in commands.values()] for _ in range(ROUNDS)]
    medians = [median(times) for times in zip(*rounds, strict=True)]
    for name, time_taken in zip(commands, medians, strict=True):
        print(f"{name:40} {time_taken:6.2f} s  {time_taken / medians[0]:5.1f} x")
    return int(medians[1] / medians[0] > BOUND)


if __name__ == "__main__":
    sys.exit(main())
