"""``tickets budget`` on ten targets with nothing changed since, against the floor of ``benchmarks.startup``.

Each target is a script of its own with a helper, two lines that are allowed to wait, and three sizes. The
claim is a ratio of at most 1.5.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.command import main
from benchmarks.processes import environment, run
from benchmarks.result import Bound, Number, Result, Size
from benchmarks.startup import FLOOR, ROUNDS, TICKETS, python

TARGETS = {Size.FULL: 10, Size.QUICK: 10, Size.LEAST: 1}
BOUND = Bound(1.5)
SCRIPT = """
import sys

import torch

from helper_{number} import value

total = torch.ones(4, device="cuda")
for _ in range(int(sys.argv[1])):
    print(value(total.sum()))
print(total.max().item())
"""
HELPER = "def value(tensor):\n    return tensor.item()\n"


def fill(folder: Path, count: int) -> None:
    """Scripts with a budget each, which the tool has written and measured."""
    for number in range(count):
        (folder / f"train_{number}.py").write_text(SCRIPT.format(number=number), encoding="utf-8")
        (folder / f"helper_{number}.py").write_text(HELPER, encoding="utf-8")
        init = ["budget", "init", "--root", str(folder), "--meter", "simulated", "--sweep", "steps=2,3,5"]
        words = [*TICKETS, *init, f"train_{number}.py", "--", "{steps}"]
        subprocess.run(words, check=True, capture_output=True)


def measure(size: Size) -> Iterator[Result]:
    """Both commands, interleaved, after one round that compiles and measures."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), TARGETS[size])
        env = environment(Path(folder))
        budget = [*TICKETS, "budget", "--root", folder, "--meter", "simulated"]
        subprocess.run(budget, check=True, capture_output=True, env=env)
        # What is known is judged without a single model.
        floor = python(FLOOR)
        rounds = [(run(floor, env).wall, run(budget, env).wall) for _ in range(1 + ROUNDS[size])][1:]
    least, ours = (median(times) for times in zip(*rounds, strict=True))
    yield Result(
        name="budgets",
        what=f"tickets budget on {TARGETS[size]} targets that are known / importing what it is built on",
        value=ours / least,
        bound=BOUND,
        beside=(
            Number("tickets budget", ours * 1e3, "ms"),
            Number("typer, yaml, pyromark and pydantic", least * 1e3, "ms"),
        ),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
