"""Many verifications on two processors, against as many in two loops that isolate nothing, in the same run.

The tickets are the founding five, each copied several times with a sweep of its own, which lacks
another point. One side is ``tickets verify`` as it is: a process
for each verification, limits, laws, claims, evidence. The other is two processes that measure and fit the
same orders one after the other, and check and record nothing. Both begin with loading torch. The claim is
that ``verify`` makes at least 0.8 times as many verifications a second.

Beside it stand the processor time of both sides, which others on the machine disturb less, and the memory of
the parent after a tenth of all verifications and after all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from finding_tickets.register.load import load
from finding_tickets.verify.jobs import jobs
from finding_tickets.verify.plan import plan

ROOT = Path(__file__).resolve().parents[1]
PROCESSORS = 2
BOUND = 0.8
COUNT = 100
MEASURED = {"verified", "reproduced", "refuted", "failed"}
FOUNDING_ID = re.compile(r"Ticket ID[^`\w]*`?([A-Z][\w-]*)")
REMEDIATION = re.compile(r"^## Remediation\n+```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
TICKET = """\
# Finding Ticket: It waits

**Ticket ID:** T-{number}

## Remediation

```yaml
{block}```
"""
VARIED = """

from dataclasses import replace as _replace

_kept = [point for place, point in enumerate(workload.sweep) if place != {number} % len(workload.sweep)]
workload = _replace(workload, ticket="T-{number}", sweep=_kept)
"""
LOOP = """
import json, sys
from finding_tickets.verify.measuring import measure

# As a verification does: caches of compiled files are not written.
sys.dont_write_bytecode = True
for line in sys.stdin:
    measure(json.loads(line))
"""
PARENT = """
import json, sys
from pathlib import Path
from finding_tickets.register.load import load
from finding_tickets.verify.isolate import Isolation
from finding_tickets.verify.session import Settings, verify

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

root, limits = Path(sys.argv[1]), {"timeout": 600.0, "memory": 4 << 30}
settings = Settings(root=root, evidence="evidence", meter="simulated", **limits)
memory, verdicts = [], []
with Isolation(workers=2) as isolation:
    for done in verify(load(root).documents, isolation, settings):
        verdicts.append(done.verification and done.verification.verdict)
        memory.append(resident())
print(json.dumps({"memory": memory, "verdicts": verdicts}))
"""


@dataclass(frozen=True)
class Took:
    """Seconds of wall time, and of processor time of all processes together."""

    wall: float
    processor: float


def write(root: Path, count: int) -> None:
    """A register of ``count`` tickets: the founding five again and again, each copy without another point."""
    for name in ("src", "fixes", "verifiers"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    founding = {
        FOUNDING_ID.findall(file.read_text("utf-8"))[0]: file for file in (ROOT / "tickets").rglob("*.md")
    }
    (root / "tickets").mkdir()
    for number in range(count):
        original = sorted(founding)[number % len(founding)]
        key = original.lower().replace("-", "_")
        block = REMEDIATION.findall(founding[original].read_text("utf-8"))[0]
        block = block.replace(f"verifiers/{key}.py", f"verifiers/t_{number}.py")
        (root / f"tickets/T-{number}.md").write_text(TICKET.format(number=number, block=block), "utf-8")
        verifier = (ROOT / f"verifiers/{key}.py").read_text("utf-8")
        (root / f"verifiers/t_{number}.py").write_text(verifier + VARIED.format(number=number), "utf-8")


def loops(root: Path) -> Took:
    """Two processes that measure half of the orders each."""
    plans = [todo for document in load(root).documents if (todo := plan(document, root))]
    orders = [asdict(job) for todo in plans for job in jobs(todo, "simulated", root).values()]
    began, before = time.perf_counter(), _processor()
    running = []
    for place in range(PROCESSORS):
        given = root / f"orders-{place}"
        given.write_text("".join(f"{json.dumps(order)}\n" for order in orders[place::PROCESSORS]), "utf-8")
        with given.open() as stdin:
            nothing = subprocess.DEVNULL
            command = [sys.executable, "-c", LOOP]
            running.append(subprocess.Popen(command, cwd=root, stdin=stdin, stdout=nothing, stderr=nothing))
    ended = [loop.wait() for loop in running]
    if any(ended):
        raise SystemExit("a loop has failed")
    return Took(time.perf_counter() - began, _processor() - before)


def isolated(root: Path, count: int) -> tuple[Took, list[int]]:
    """What ``verify`` takes, and the bytes of memory of the parent after each verification."""
    began, before = time.perf_counter(), _processor()
    done = subprocess.run(
        [sys.executable, "-c", PARENT, str(root)], cwd=root, check=True, capture_output=True
    )
    took = Took(time.perf_counter() - began, _processor() - before)
    told = json.loads(done.stdout)
    if len(told["verdicts"]) != count or not set(told["verdicts"]) <= MEASURED:
        raise SystemExit(f"not all are measured: {Counter(told['verdicts'])}")
    return took, told["memory"]


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print what both sides took; 1 where the bound is not reached."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=COUNT, help="how many verifications")
    count = parser.parse_args().count
    if len(os.sched_getaffinity(0)) != PROCESSORS:
        raise SystemExit(f"needs {PROCESSORS} processors, as in: taskset -c 0,1 python {sys.argv[0]}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, count)
        load_before = os.getloadavg()[0]
        floor = loops(root)
        took, memory = isolated(root, count)
    ratio = floor.wall / took.wall
    for name, each in (("two loops", floor), ("verify", took)):
        rate = f"{count / each.wall:5.2f} a second"
        print(f"{name:10} {each.wall:7.1f} s  {rate}  {each.processor:7.1f} s of processors")
    print(f"load {load_before:.1f} before, {os.getloadavg()[0]:.1f} after")
    tenth, last = memory[count // 10] >> 20, memory[-1] >> 20
    print(f"memory of the parent: {tenth} MiB after a tenth, {last} MiB after all")
    by_processor = floor.processor / took.processor
    print(f"throughput {ratio:.2f} of two loops', by processor time {by_processor:.2f}; at least {BOUND}")
    return int(ratio < BOUND)


if __name__ == "__main__":
    sys.exit(main())
