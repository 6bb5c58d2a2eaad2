"""Many verifications against as many in loops that isolate nothing, in the same run.

The tickets are the founding five, each copied several times. No two copies have the same sweep: each lacks
another set of its points, so that no law is fitted twice. One side is ``tickets verify --all`` as it is: a
process for each verification, limits, laws, claims, evidence. The other is a process for each processor that
measures and fits the same orders one after the other, and checks and records nothing. Both begin with loading
torch. The claim is that ``verify`` makes at least 0.8 times as many verifications a second on two processors,
and on one.

Both sides run by turns of some seconds, while all processes of the other are stopped, so that what else the
machine does falls on both. Beside their times stand the time of processors that each used, which others on
the machine disturb less. What the command itself holds in memory after all verifications is compared with
what it held after a tenth of them.

A cluster of Ray, which is started for the run on the same two processors, cannot be stopped and go on. Loops
run before it and after it, and their mean counts. The claim is 0.6: starting and ending the cluster counts.
"""

from __future__ import annotations

import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.command import parser, show
from benchmarks.machine import QUICKEST
from benchmarks.processes import on, usable
from benchmarks.result import Bound, Number, Result, Size
from benchmarks.turns import TO_THE_END, Ended, Side, by_turns
from finding_tickets.register.load import load
from finding_tickets.verify.evidence import load as load_evidence
from finding_tickets.verify.plan import plan

ROOT = Path(__file__).resolve().parents[1]
BOUND, CLUSTER = Bound(0.8, at_least=True), Bound(0.6, at_least=True)
GROWTH: dict[str, Any] = {
    "name": "throughput-memory",
    "what": "memory of verify after all verifications / after a tenth",
    "bound": Bound(1.1),
}
FOUNDING_ID = re.compile(r"Ticket ID[^`\w]*`?([A-Z][\w-]*)")
REMEDIATION = re.compile(r"^## Remediation\n+```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
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
import pickle, sys
from finding_tickets.measure.run import measure

# As a verification does: caches of compiled files are not written.
sys.dont_write_bytecode = True
with open(sys.argv[1], "rb") as orders:
    for order in pickle.load(orders):
        measure(order)
"""
LOOPS = """
import subprocess, sys
loops = [subprocess.Popen([sys.executable, "-c", sys.argv[1], orders]) for orders in sys.argv[2:]]
sys.exit(max([loop.wait() for loop in loops]))
"""


@dataclass(frozen=True)
class Way:
    """A way to verify, on so many processors, and how many verifications are made at each size."""

    name: str
    what: str
    processors: int
    counts: dict[Size, int]
    bound: Bound
    options: tuple[str, ...] = ()
    tells_memory: bool = False

    @property
    def missing(self) -> str:
        """Why it cannot be had here; empty where it can."""
        if usable() < self.processors:
            return f"it needs {self.processors} processors"
        if self.options and find_spec("ray") is None:
            return "Ray is not installed"
        return ""


WAYS = {
    way.name: way
    for way in (
        Way(
            name="two",
            what="verifications a second, two workers / two loops",
            processors=2,
            counts={Size.FULL: 1000, Size.QUICK: 50, Size.LEAST: 1},
            bound=BOUND,
            tells_memory=True,
        ),
        Way(
            name="one",
            what="verifications a second, one worker / one loop",
            processors=1,
            counts={Size.FULL: 50, Size.QUICK: 10, Size.LEAST: 1},
            bound=BOUND,
        ),
        Way(
            name="ray",
            what="verifications a second, a cluster of Ray / two loops",
            processors=2,
            counts={Size.FULL: 100, Size.QUICK: 10, Size.LEAST: 1},
            bound=CLUSTER,
            options=("--executor", "ray"),
        ),
    )
}


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
        original = sorted(founding, key=lambda name: (name != QUICKEST, name))[place]
        key = original.lower().replace("-", "_")
        block = REMEDIATION.findall(founding[original].read_text("utf-8"))[0]
        block = block.replace(f"verifiers/{key}.py", f"verifiers/t_{number}.py")
        (root / f"tickets/T-{number}.md").write_text(TICKET.format(number=number, block=block), "utf-8")
        verifier = (ROOT / f"verifiers/{key}.py").read_text("utf-8")
        varied = VARIED.format(number=number, copy=copy)
        (root / f"verifiers/t_{number}.py").write_text(verifier + varied, "utf-8")


def loops(root: Path, folder: Path, processors: int) -> Side:
    """A process for each processor that there is an order for, which measures its part of all orders."""
    folder.mkdir()
    plans = [todo for document in load(root).documents if (todo := plan(document, root))]
    # All variants in turn, and nothing is compared.
    orders = [[replace(job, keeps=False) for job in todo.jobs("simulated").values()] for todo in plans]
    parts = [folder / f"orders-{place}" for place in range(min(processors, len(orders)))]
    for place, part in enumerate(parts):
        part.write_bytes(pickle.dumps([job for jobs in orders[place::processors] for job in jobs]))
    return Side(["-c", LOOPS, LOOP, *map(str, parts)], root, folder / "loops.log")


def _claim(way: Way) -> dict[str, Any]:
    return {"name": f"throughput-{way.name}", "what": way.what, "bound": way.bound}


def measure(size: Size, only: Sequence[str] = tuple(WAYS), count: int | None = None) -> Iterator[Result]:
    """The ways asked for, each with a register of its own."""
    for way in (WAYS[name] for name in only):
        if way.missing:
            yield Result(**_claim(way), missing=way.missing)
            if way.tells_memory:
                yield Result(**GROWTH, missing=way.missing)
            continue
        with tempfile.TemporaryDirectory() as name, on(way.processors):
            yield from compared(way, Path(name), count or way.counts[size])


def compared(way: Way, folder: Path, count: int) -> Iterator[Result]:
    """So many verifications, and the same in loops."""
    root = folder / "register"
    root.mkdir()
    write(root, count)
    verify = Side([*VERIFY, *way.options], root, folder / "verify.log")
    before = loops(root, folder / "before", way.processors)
    if way.options:
        after = loops(root, folder / "after", way.processors)
        first, ours, last = by_turns(before, verify, after, seconds=TO_THE_END)
        floor = [first, last]
    else:
        first, ours = by_turns(before, verify)
        floor = [first]
    if any(each.code for each in floor) or measured(root) != count:
        raise SystemExit(f"not all are measured: {verify.verdicts()}\n{before.said}\n{verify.said}")
    yield throughput(way, count, ours, floor)
    if way.tells_memory:
        yield memory(verify, count)


def measured(root: Path) -> int:
    """How many verifications there is evidence of, each with samples of its variants.

    One whose sweep lacks the only point that a claim is about is inconclusive, and was measured all the same.
    """
    files = (root / "evidence").glob("*/*.json")
    return sum(bool(load_evidence(file.read_bytes()).verification.variants) for file in files)


def throughput(way: Way, count: int, ours: Ended, floor: Sequence[Ended]) -> Result:
    """The verifications a second, and the time of processors where all of it is known."""
    wall = mean(each.wall for each in floor)
    processor = mean(each.processor for each in floor)
    beside = [
        Number(f"{count:,} verifications", ours.wall, "s"),
        Number("a second", count / ours.wall, ""),
        Number("in loops", wall, "s"),
        Number("time of processors in loops", processor, "s"),
    ]
    if not way.options:
        # What works for a cluster is no child of the command.
        beside += [
            Number("time of processors", ours.processor, "s"),
            Number("throughput by time of processors", processor / ours.processor, ""),
        ]
    return Result(
        **_claim(way),
        value=wall / ours.wall,
        beside=tuple(beside),
    )


def memory(verify: Side, count: int) -> Result:
    """What the command itself held at the end, against what it held after a tenth."""
    tenth, last = (verify.held_after(done) for done in (max(1, count // 10), count))
    return Result(
        **GROWTH,
        value=last / tenth,
        beside=(
            Number("after a tenth", tenth / 1e6, "MB"),
            Number("after all", last / 1e6, "MB"),
            Number("at the peak", verify.peak / 1e6, "MB"),
        ),
    )


def main() -> int:
    """Measure the ways asked for, all by default."""
    options = parser(__doc__)
    options.add_argument("--only", choices=WAYS, action="append", help="verify in this way; repeatable")
    options.add_argument("--count", type=int, help="so many verifications, not those of the size")
    given = options.parse_args()
    return show(measure(given.size, given.only or tuple(WAYS), given.count), given)


if __name__ == "__main__":
    sys.exit(main())
