"""Starting ``tickets list`` against the floor of any tool built on the same libraries.

The floor is a process that imports typer, yaml and the Markdown parser and defines as many bare pydantic
models as the tool has loaded when it lists. The claim is a ratio of at most 1.5.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROUNDS = 31
BOUND = 1.5
DOCUMENTS = 3
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


def environment(folder: Path) -> dict[str, str]:
    """This process's environment, with compiled modules kept in ``folder``, as an installed tool has them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def seconds(command: list[str], env: dict[str, str]) -> float:
    """Wall time of one run, which must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=env)
    return time.perf_counter() - start


def fill(folder: Path) -> None:
    """A small register in ``folder``, written and measured by the tool: with claims and with evidence."""
    drafts = [{"title": f"Finding {number}", "severity": "P2"} for number in range(DOCUMENTS)]
    source = folder / "drafts.json"
    source.write_text(json.dumps(drafts), encoding="utf-8")
    new = [*TICKETS, "new", "--with-verifier", "--root", str(folder), "--from", str(source)]
    subprocess.run(new, check=True, capture_output=True)
    verify = [*TICKETS, "verify", "--all", "--meter", "simulated", "--root", str(folder)]
    subprocess.run(verify, check=True, capture_output=True)


def main() -> int:
    """Interleave both commands, print medians and their ratio; 1 where the bound is exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        env = environment(Path(folder))
        counted = subprocess.run(python(COUNT, folder), check=True, capture_output=True, text=True)
        models = int(counted.stdout.splitlines()[-1])
        floor = python(FLOOR + "".join(MODEL.format(number=number) for number in range(models)))
        listing = [*TICKETS, "list", "--root", folder]
        rounds = [(seconds(floor, env), seconds(listing, env)) for _ in range(1 + ROUNDS)][1:]
    least, ours = (median(times) for times in zip(*rounds, strict=True))
    print(f"typer, yaml, pyromark and {models} models  {least * 1000:6.0f} ms")
    print(f"tickets list                          {ours * 1000:6.0f} ms")
    print(f"ratio                                 {ours / least:6.2f} (at most {BOUND})")
    return int(ours / least > BOUND)


if __name__ == "__main__":
    sys.exit(main())
