"""Verifying ten tickets of different cost together, against each of them alone, on two processors.

With torch loaded, each of the ten is first measured by itself. All of them cannot take less than the slowest
one, nor less than half of their sum. The claim is that ``tickets verify --all`` takes at most 1.25 times the
larger of the two, and one ``import torch``. The slowest ticket comes last in the register.

Beside it stands the processor time of all together against that of one after the other, each with one import
of torch: what reading and recording add, and what tickets that run side by side take from each other.
``others`` is how many processors others used meanwhile: a round says little where that is much.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from finding_tickets.register.load import load
from finding_tickets.verify.isolate import Isolation, Task
from finding_tickets.verify.measuring import CHOICE
from finding_tickets.verify.session import Settings, verify

ROUNDS = 5
BOUND = 1.25
PROCESSORS = 2
TOGETHER = ["-m", "finding_tickets", "verify", "--all", "--meter", "simulated"]
THOUSANDS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 9)
"""Waits in the largest run of each ticket."""
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


def write(root: Path) -> None:
    """A register of ten tickets, each with a verifier and two variants."""
    for number, thousands in enumerate(THOUSANDS, 1):
        for path, text in {
            f"tickets/ten_{number:02}.md": TICKET.format(number=number),
            f"verifiers/ten_{number:02}.py": VERIFIER.format(number=number, most=1000 * thousands),
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
    before, start = _processor(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=root, check=True, capture_output=True)
    return Took((time.perf_counter() - start,), _processor() - before)


def alone(root: Path) -> Took:
    """Each ticket by itself, in a process forked from one that has loaded torch."""
    register = load(root)
    limits: dict[str, Any] = {"root": root, "timeout": 300.0, "memory": 2 << 30}
    settings = Settings(evidence="evidence", meter="simulated", record=False, **limits)
    before, times = _processor(), []
    with Isolation(workers=1) as isolation:
        # What comes first waits for torch.
        list(isolation.run({"": Task(target=CHOICE, payload="auto", **limits)}))
        for document in register.documents:
            start = time.perf_counter()
            (done,) = verify([document], isolation, settings)
            times.append(time.perf_counter() - start)
            if done.verification is None or done.verification.verdict != "verified":
                raise SystemExit(f"{document.id.value} is not verified: {done}")
    return Took(tuple(times), _processor() - before)


def _busy() -> float:
    """Seconds that the processors of this machine have worked for anybody."""
    user, nice, system = map(int, Path("/proc/stat").read_text(encoding="ascii").split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the times of each round and the median of the ratios; 1 where the bound is exceeded."""
    if len(os.sched_getaffinity(0)) != PROCESSORS:
        raise SystemExit(f"needs {PROCESSORS} processors, as in: taskset -c 0,1 python {sys.argv[0]}")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root)
        print("others  import torch  slowest  half of all  together  ratio  processor time")
        for _ in range(ROUNDS):
            busy, own, start = _busy(), _processor(), time.perf_counter()
            importing = command(["-c", "import torch"], root).wall[0]
            each = alone(root)
            together = command(TOGETHER, root)
            slowest, half = max(each.wall), sum(each.wall) / PROCESSORS
            ratios.append((together.wall[0] - importing) / max(slowest, half))
            work = together.processor / each.processor
            others = (_busy() - busy - _processor() + own) / (time.perf_counter() - start)
            numbers = (others, importing, slowest, half, together.wall[0], ratios[-1], work)
            print(
                "{:6.2f}  {:10.2f} s  {:5.2f} s  {:9.2f} s  {:6.2f} s  {:5.2f}  {:14.2f}".format(*numbers),
                flush=True,
            )
    print(f"median of the ratios: {median(ratios):.2f}, at most {BOUND}")
    return int(median(ratios) > BOUND)


if __name__ == "__main__":
    sys.exit(main())
