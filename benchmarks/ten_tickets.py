"""Verifying ten tickets of different cost together, against each of them alone, on two processors.

With torch loaded, each of the ten is first measured by itself. All of them cannot take less than the slowest
one, nor less than half of their sum. The claim is that ``tickets verify --all`` takes at most 1.25 times the
larger of the two, and one ``import torch``. The slowest ticket comes last in the register.

Beside it stands the processor time of all together against that of one after the other, each with one import
of torch: what reading and recording add, and what tickets that run side by side take from each other.
``others`` is how many processors others used meanwhile: a round says little where that is much.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.command import main
from benchmarks.processes import busy, empty_cache, on, usable, used
from benchmarks.result import Bound, Number, Result, Size
from finding_tickets.measure.processes.isolation import Isolation, Task
from finding_tickets.measure.tasks import CHOICE
from finding_tickets.register.load import load
from finding_tickets.verify.verify import Settings, verify

ROUNDS = {Size.FULL: 5, Size.QUICK: 2, Size.LEAST: 1}
BOUND = Bound(1.25)
PROCESSORS = 2
TOGETHER = ["-m", "finding_tickets", "verify", "--all", "--meter", "simulated"]
THOUSANDS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 9)
"""Waits in the largest run of each ticket, at full size."""
THOUSAND = {Size.FULL: 1000, Size.QUICK: 500, Size.LEAST: 5}
TICKETS = {Size.FULL: 10, Size.QUICK: 10, Size.LEAST: 2}
"""The last ones, which take longest."""
TICKET = """\
# Finding Ticket: It waits

**Ticket ID:** TEN-{number:02}

## Remediation

```yaml
claims:
  found: {{syncs: n}}
  fix: {{syncs: 0}}
```
"""
VERIFIER = """\
import torch

from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    return (point.n, torch.rand(8, generator=generator).to(device))


workload = Workload(ticket="TEN-{number:02}", build=build, sweep=[Point(n=n) for n in (1, 2, 3, {most})])
"""
FOUND = "def wait(n, tensor):\n    return sum(tensor[0].item() for _ in range(n))\n"
FIX = "def wait(n, tensor):\n    return n * tensor[0]\n"


def write(root: Path, count: int, thousand: int) -> None:
    """A register of so many tickets, each with a verifier and two variants."""
    for number, thousands in enumerate(THOUSANDS[-count:], 1):
        for path, text in {
            f"tickets/ten_{number:02}.md": TICKET.format(number=number),
            f"verifiers/ten_{number:02}.py": VERIFIER.format(number=number, most=thousand * thousands),
            f"fixes/ten_{number:02}/found.py": FOUND,
            f"fixes/ten_{number:02}/fix.py": FIX,
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Took:
    """Seconds of wall time of each of several runs, and of processor time of all processes for them."""

    wall: tuple[float, ...]
    processor: float


def command(arguments: list[str], root: Path) -> Took:
    """One command, which must succeed."""
    before, start = used(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=root, check=True, capture_output=True)
    return Took((time.perf_counter() - start,), used() - before)


def alone(root: Path) -> Took:
    """Each ticket by itself, in a process forked from one that has loaded torch."""
    register = load(root)
    limits: dict[str, Any] = {"root": root, "timeout": 300.0, "memory": 2 << 30}
    settings = Settings(evidence="evidence", meter="simulated", record=False, **limits)
    before, times = used(), []
    with Isolation(workers=1) as isolation:
        # What comes first waits for torch.
        list(isolation.run({"": Task(target=CHOICE, payload="auto", **limits)}))
        for document in register.documents:
            start = time.perf_counter()
            (done,) = verify([document], isolation, settings)
            times.append(time.perf_counter() - start)
            if done.verification is None or done.verification.verdict != "verified":
                raise SystemExit(f"{document.id.value} is not verified: {done}")
    return Took(tuple(times), used() - before)


@dataclass(frozen=True)
class Round:
    """Seconds that one round took, and how many processors others used meanwhile."""

    others: float
    importing: float
    alone: Took
    together: Took

    @property
    def least(self) -> float:
        """What all of them cannot take less than."""
        return max(*self.alone.wall, sum(self.alone.wall) / PROCESSORS)

    @property
    def ratio(self) -> float:
        """Of all together, without one import of torch, to the least."""
        return (self.together.wall[0] - self.importing) / self.least


def one_round(root: Path) -> Round:
    """Each ticket alone, then all of them together, by a command that does not know how long each took."""
    working, own, start = busy(), used(), time.perf_counter()
    importing = command(["-c", "import torch"], root).wall[0]
    with empty_cache():
        each = alone(root)
    with empty_cache():
        together = command(TOGETHER, root)
    others = (busy() - working - used() + own) / (time.perf_counter() - start)
    return Round(others, importing, each, together)


def measure(size: Size) -> Iterator[Result]:
    """Rounds one after the other, on two processors."""
    claim: dict[str, Any] = {
        "name": "ten-tickets",
        "what": "ten tickets together / the slowest, or half of their sum",
        "bound": BOUND,
    }
    if usable() < PROCESSORS:
        yield Result(**claim, missing=f"it needs {PROCESSORS} processors")
        return
    with on(PROCESSORS), tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, TICKETS[size], THOUSAND[size])
        rounds = [one_round(root) for _ in range(ROUNDS[size])]
    yield Result(
        **claim,
        value=median(each.ratio for each in rounds),
        beside=(
            Number("together", median(each.together.wall[0] for each in rounds), "s"),
            Number("import torch", median(each.importing for each in rounds), "s"),
            Number("slowest", median(max(each.alone.wall) for each in rounds), "s"),
            Number("half of all", median(sum(each.alone.wall) / PROCESSORS for each in rounds), "s"),
            Number("time of processors", median(_work(each) for each in rounds), "of that one by one"),
            *(Number(f"round {place}", each.ratio, "") for place, each in enumerate(rounds, 1)),
            Number("others used", max(each.others for each in rounds), "processors at most"),
        ),
    )


def _work(each: Round) -> float:
    return each.together.processor / each.alone.processor


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
