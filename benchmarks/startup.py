"""Starting ``tickets list`` against the floor of any tool built on the same libraries.

The floor is a process that imports typer, yaml and the Markdown parser and defines as many bare pydantic
models as the tool has loaded when it lists. The claim is a ratio of at most 1.5.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.command import main
from benchmarks.measured import write_measured_register
from benchmarks.processes import environment, run
from benchmarks.result import Bound, Number, Result, Size

ROUNDS = {Size.FULL: 31, Size.QUICK: 7, Size.LEAST: 1}
BOUND = Bound(1.5)
DOCUMENTS = {Size.FULL: 3, Size.QUICK: 3, Size.LEAST: 1}
TICKETS = [sys.executable, "-m", "finding_tickets"]
COUNT = """
import sys
from pydantic import BaseModel
from finding_tickets.cli.main import run

def below(kind):
    return {kind}.union(*map(below, kind.__subclasses__()))

run(["list", "--root", sys.argv[1]])
print(len([model for model in below(BaseModel) if model.__module__.startswith("finding_tickets")]))
"""
FLOOR = """
import typer, yaml, pyromark
from pydantic import BaseModel
"""
MODEL = """
class Model{number}(BaseModel):
    name: str
    line: int
"""


def python(code: str, *arguments: str) -> list[str]:
    """A process that runs ``code``."""
    return [sys.executable, "-c", code, *arguments]


def measure(size: Size) -> Iterator[Result]:
    """Both commands, interleaved, after one round that compiles."""
    with tempfile.TemporaryDirectory() as folder:
        write_measured_register(Path(folder), DOCUMENTS[size], one_in=1)
        env = environment(Path(folder))
        count = python(COUNT, folder)
        counted = subprocess.run(count, check=True, capture_output=True, text=True, env=env)
        models = int(counted.stdout.splitlines()[-1])
        floor = python(FLOOR + "".join(MODEL.format(number=number) for number in range(models)))
        listing = [*TICKETS, "list", "--root", folder]
        rounds = [(run(floor, env).wall, run(listing, env).wall) for _ in range(1 + ROUNDS[size])][1:]
    least, ours = (median(times) for times in zip(*rounds, strict=True))
    yield Result(
        name="startup",
        what="tickets list / importing what it is built on",
        value=ours / least,
        bound=BOUND,
        beside=(
            Number("tickets list", ours * 1e3, "ms"),
            Number(f"typer, yaml, pyromark and {models} models", least * 1e3, "ms"),
        ),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
