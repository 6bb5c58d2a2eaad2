"""Many verifications on two processors, against as many in two loops that isolate nothing, in the same run.

The tickets are the founding five, each copied several times. No two copies have the same sweep: each lacks
another set of its points, so that no law is fitted twice. One side is ``tickets verify --all`` as it is: a
process for each verification, limits, laws, claims, evidence. The other is two processes that measure and fit
the same orders one after the other, and check and record nothing. Both begin with loading torch. The claim is
that ``verify`` makes at least 0.8 times as many verifications a second.

Both sides run by turns of some seconds, while all processes of the other are stopped, so that what else the
machine does falls on both. Beside their times stand the time of processors that each used, which others on
the machine disturb less, and the memory of the command itself after a tenth of all verifications, after all,
and at its peak.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from finding_tickets.register.load import load
from finding_tickets.verify.jobs import jobs
from finding_tickets.verify.plan import plan

ROOT = Path(__file__).resolve().parents[1]
PROCESSORS = 2
BOUND = 0.8
COUNT = 100
TURN_SECONDS = 10.0
LOOK_SECONDS = 0.05
"""How often to look whether the side whose turn it is has ended."""
MEASURED = {"verified", "reproduced", "refuted", "failed"}
FOUNDING_ID = re.compile(r"Ticket ID[^`\w]*`?([A-Z][\w-]*)")
REMEDIATION = re.compile(r"^## Remediation\n+```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
DONE = re.compile(r"^\[\d+/\d+\] \S+: (.+)$", re.MULTILINE)
# The other side's turns count as time as well.
VERIFY = ["-m", "finding_tickets", "verify", "--all", "--meter", "simulated", "--timeout", "3600"]
TICKET = """\
# Finding Ticket: It waits

**Ticket ID:** T-{number}

## Remediation

```yaml
{block}```
"""
VARIED = """

from dataclasses import replace as _replace
from itertools import chain as _chain, combinations as _combinations, islice as _islice

_places = range(len(workload.sweep))
_ways = _chain.from_iterable(_combinations(_places, number) for number in _places)
_missing = next(_islice(_ways, {copy}, None))
_kept = [point for place, point in enumerate(workload.sweep) if place not in _missing]
workload = _replace(workload, ticket="T-{number}", sweep=_kept)
"""
LOOP = """
import json, sys
from finding_tickets.verify.measuring import measure

# As a verification does: caches of compiled files are not written.
sys.dont_write_bytecode = True
with open(sys.argv[1]) as orders:
    for order in orders:
        measure(json.loads(order))
"""
LOOPS = """
import subprocess, sys
loops = [subprocess.Popen([sys.executable, "-c", sys.argv[1], orders]) for orders in sys.argv[2:]]
sys.exit(max([loop.wait() for loop in loops]))
"""


@dataclass(frozen=True)
class Ended:
    """How a side ended: its exit code, the seconds of its turns, and those of processors that it used."""

    code: int
    wall: float
    processor: float


@dataclass(frozen=True)
class Memory:
    """Bytes that a process held after a tenth of all verifications, after all of them, and at its peak."""

    tenth: int
    last: int
    peak: int


class Side:
    """A command that runs when it is its turn, in ``root``; what it says is kept in the file ``said``."""

    def __init__(self, command: list[str], root: Path, said: Path) -> None:
        self.ended: Ended | None = None
        self.memory: dict[int, int] = {}
        """The bytes that it held last while so many verifications were done."""
        self.peak = 0
        self._command, self._root, self._said = [sys.executable, *command], root, said
        self._env = {**os.environ, "XDG_CACHE_HOME": str(said.parent / "cache")}
        self._wall = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, seconds: float) -> None:
        """Go on for some seconds, or to the end."""
        began = time.perf_counter()
        process = self._process = self._process or self._started()
        _signal(process.pid, signal.SIGCONT)
        while self.ended is None and time.perf_counter() - began < seconds:
            time.sleep(LOOK_SECONDS)
            self._look(process, time.perf_counter() - began)
        if self.ended is None:
            _signal(process.pid, signal.SIGSTOP)
        self._wall += time.perf_counter() - began

    def kill(self) -> None:
        """End whatever still runs of it."""
        if self._process and self.ended is None:
            _signal(self._process.pid, signal.SIGKILL)

    def verdicts(self) -> Counter[str]:
        """How many verifications had each verdict, as it has said so far."""
        return Counter(DONE.findall(self.said))

    @property
    def said(self) -> str:
        """What it has written on stderr."""
        return self._said.read_text("utf-8")

    def _started(self) -> subprocess.Popen[bytes]:
        with self._said.open("wb") as said:
            nothing = subprocess.DEVNULL
            return subprocess.Popen(self._command, cwd=self._root, env=self._env, stdout=nothing, stderr=said)

    def _look(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        if held := _resident(process.pid):
            self.memory[self.verdicts().total()] = held
            self.peak = max(self.peak, held)
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            self.ended = Ended(process.returncode, self._wall + seconds, used.ru_utime + used.ru_stime)


def by_turns(*sides: Side) -> list[Ended]:
    """Run all of them to the end, each some seconds at a time."""
    waiting = deque(sides)
    try:
        while waiting:
            side = waiting.popleft()
            side.run(TURN_SECONDS)
            if side.ended is None:
                waiting.append(side)
    finally:
        for side in sides:
            side.kill()
    return [side.ended for side in sides if side.ended]


def write(root: Path, count: int) -> None:
    """A register of ``count`` tickets: the founding five again and again, each with a sweep of its own."""
    for name in ("src", "fixes", "verifiers"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    founding = {
        FOUNDING_ID.findall(file.read_text("utf-8"))[0]: file for file in (ROOT / "tickets").rglob("*.md")
    }
    (root / "tickets").mkdir()
    for number in range(count):
        copy, place = divmod(number, len(founding))
        original = sorted(founding)[place]
        key = original.lower().replace("-", "_")
        block = REMEDIATION.findall(founding[original].read_text("utf-8"))[0]
        block = block.replace(f"verifiers/{key}.py", f"verifiers/t_{number}.py")
        (root / f"tickets/T-{number}.md").write_text(TICKET.format(number=number, block=block), "utf-8")
        verifier = (ROOT / f"verifiers/{key}.py").read_text("utf-8")
        varied = VARIED.format(number=number, copy=copy)
        (root / f"verifiers/t_{number}.py").write_text(verifier + varied, "utf-8")


def loops(root: Path, folder: Path) -> Side:
    """Two processes that measure half of all orders each."""
    plans = [todo for document in load(root).documents if (todo := plan(document, root))]
    orders = [asdict(job) for todo in plans for job in jobs(todo, "simulated", root).values()]
    halves = [folder / f"orders-{place}" for place in range(PROCESSORS)]
    for place, half in enumerate(halves):
        half.write_text("".join(f"{json.dumps(order)}\n" for order in orders[place::PROCESSORS]), "utf-8")
    return Side(["-c", LOOPS, LOOP, *map(str, halves)], root, folder / "loops.log")


def _resident(pid: int) -> int:
    """The bytes of memory that a process holds; none when it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and all below it, parents first, until there are no new ones."""
    told: set[int] = set()
    while new := {pid, *_below(pid)} - told:
        for each in new:
            with suppress(ProcessLookupError):
                os.kill(each, number)
        told |= new


def _below(pid: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    waiting = deque([pid])
    while waiting:
        found = children.get(waiting.popleft(), [])
        waiting.extend(found)
        yield from found


def main() -> int:
    """Print what both sides took; 1 where the bound is not reached."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=COUNT, help="how many verifications")
    count = parser.parse_args().count
    if len(os.sched_getaffinity(0)) != PROCESSORS:
        raise SystemExit(f"needs {PROCESSORS} processors, as in: taskset -c 0,1 python {sys.argv[0]}")
    with tempfile.TemporaryDirectory() as name:
        folder, root = Path(name), Path(name) / "register"
        root.mkdir()
        write(root, count)
        alone, verify = loops(root, folder), Side(VERIFY, root, folder / "verify.log")
        load_before = os.getloadavg()[0]
        floor, ours = by_turns(alone, verify)
        verdicts = verify.verdicts()
        if floor.code or verdicts.total() != count or not set(verdicts) <= MEASURED:
            raise SystemExit(f"not all are measured: {verdicts}\n{alone.said}\n{verify.said}")
    for what, took in (("two loops", floor), ("verify", ours)):
        rate = f"{count / took.wall:5.2f} a second"
        print(f"{what:10} {took.wall:7.1f} s  {rate}  {took.processor:7.1f} s of processors")
    print(f"load {load_before:.1f} before, {os.getloadavg()[0]:.1f} after")
    memory = [each >> 20 for each in (verify.memory[count // 10], verify.memory[count], verify.peak)]
    print("memory of the command: {} MiB after a tenth, {} after all, {} at the peak".format(*memory))
    ratio, by_processor = floor.wall / ours.wall, floor.processor / ours.processor
    print(f"throughput {ratio:.2f} of two loops', by processor time {by_processor:.2f}; at least {BOUND}")
    return int(ratio < BOUND)


if __name__ == "__main__":
    sys.exit(main())
