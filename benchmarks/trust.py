"""What it costs to know all that a verdict rests on: one founding ticket, verified by this tree and before.

``BEFORE`` is the last commit that did not watch runs: the variants shared a process, and only sources counted
as inputs. Each tree verifies its own copy of the ticket with its own source; they take turns. The claim is a
ratio of at most 1.3. Other work on the machine disturbs the wall time more than the processor time.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.command import main
from benchmarks.machine import QUICKEST, ROOT, load
from benchmarks.processes import CACHE, Run, run
from benchmarks.result import Bound, Number, Result, Size

BEFORE = "80839edb3a14857d46d9692faec31e5affccbf51"
TICKET = "B7-PT-02"
ROUNDS = {Size.FULL: 9, Size.QUICK: 5, Size.LEAST: 1}
BOUND = Bound(1.3)
VERIFY = [sys.executable, "-m", "finding_tickets", "verify", "--meter", "simulated"]
MISSING = f"this clone has no commit {BEFORE[:7]}"
COMMIT = ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "tree"]


def tree(root: Path, revision: str) -> dict[str, str]:
    """Write a repository with the files of a revision, and return an environment that runs its source.

    Raises:
        OSError: There is no git.
        CalledProcessError: The revision is not in this clone.
    """
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(root, filter="data")
    for command in (["init", "--quiet"], ["add", "--all"], COMMIT):
        subprocess.run(["git", *command], cwd=root, check=True)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(root / "src"), CACHE: str(root / ".git/cache")}


def measure(size: Size) -> Iterator[Result]:
    """Both trees in turn, each first every second time, after a run of each that compiles the source."""
    names, is_least = ("trust", "trust-wall"), size is Size.LEAST
    ticket, warm_ups = (QUICKEST, 0) if is_least else (TICKET, 1)
    with tempfile.TemporaryDirectory() as folder:
        trees = {Path(folder, name): revision for name, revision in (("now", "HEAD"), ("before", BEFORE))}
        try:
            ready = {root: tree(root, revision) for root, revision in trees.items()}
        except (OSError, subprocess.CalledProcessError):
            for name in names:
                yield Result(
                    name=name, what=ticket, bound=BOUND, missing=f"git has no commit {BEFORE[:7]} here"
                )
            return
        runs: dict[Path, list[Run]] = {root: [] for root in ready}
        for place in range(warm_ups + ROUNDS[size]):
            for root in list(ready)[:: 1 if place % 2 else -1]:
                runs[root].append(run([*VERIFY, ticket], ready[root], root))
        now, before = (each[warm_ups:] for each in runs.values())
    for name, unit, attribute in (
        (names[0], "processor time", "processor"),
        (names[1], "the clock", "wall"),
    ):
        ours, theirs = ([getattr(each, attribute) for each in side] for side in (now, before))
        yield Result(
            name=name,
            what=f"verifying {ticket} / the same before runs were watched, by {unit}",
            value=median(a / b for a, b in zip(ours, theirs, strict=True)),
            bound=BOUND,
            beside=(
                Number("now", median(ours), "s"),
                Number("before", median(theirs), "s"),
                Number("load", load(), "processes"),
            ),
        )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
