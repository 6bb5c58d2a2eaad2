"""Measuring all founding tickets against the floor of any tool that uses torch: importing it.

The claim is a ratio of at most 6. Tickets whose claims need torch.compile's machinery pay for importing it on
top of that, so they are timed apart and shown.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.command import main
from benchmarks.machine import QUICKEST
from benchmarks.processes import empty_cache
from benchmarks.result import Bound, Number, Result, Size

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tickets", "fixes", "verifiers", "evidence")
ROUNDS = {Size.FULL: 5, Size.QUICK: 3, Size.LEAST: 1}
BOUND = Bound(6.0)
COMPILING = "graph_breaks"
VERIFY = [sys.executable, "-m", "finding_tickets", "verify", "--meter", "simulated"]


def seconds(command: list[str], root: Path) -> float:
    """Wall time of one run; any exit code but success and a failed gate is an error."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr}")
    return time.perf_counter() - start


def copied(root: Path) -> list[Path]:
    """The tickets of this repository, copied with their code: what is measured writes evidence."""
    for name in COPIED:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return sorted((root / "tickets").rglob("*.md"))


def split(files: Sequence[Path]) -> tuple[list[str], list[str]]:
    """IDs of the founding tickets, those without and those with a claim about graph breaks."""
    plain: list[str] = []
    compiling: list[str] = []
    for path in files:
        ticket = "TASK-5" if path.parent.name == "reviews" else path.stem
        (compiling if f"{COMPILING}:" in path.read_text(encoding="utf-8") else plain).append(ticket)
    return plain, compiling


def measure(size: Size) -> Iterator[Result]:
    """The three commands, interleaved; of the least size, for one ticket alone."""
    with tempfile.TemporaryDirectory() as folder, empty_cache():
        root = Path(folder)
        files = copied(root)
        for file in files if size is Size.LEAST else ():
            if file.stem != QUICKEST:
                file.unlink()
        plain, compiling = split([file for file in files if file.exists()])
        importing = [sys.executable, "-c", "import torch"]
        commands = (importing, [*VERIFY, *plain], [*VERIFY, "--all"])
        rounds = [[seconds(command, root) for command in commands] for _ in range(ROUNDS[size])]
    floor, ours, every = (median(times) for times in zip(*rounds, strict=True))
    yield Result(
        name="verify-all",
        what="verifying founding tickets that compile nothing / import torch",
        value=ours / floor,
        bound=BOUND,
        beside=(
            Number(f"{len(plain)} that compile nothing", ours, "s"),
            Number("import torch", floor, "s"),
            Number(f"all {len(plain) + len(compiling)}", every, "s"),
        ),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
