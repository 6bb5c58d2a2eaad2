"""A session of tests on simulated devices: what each test used, waited for and was refused.

Each phase of a test has a measurement of its own, so that what is kept is bounded by the lines of the code.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from simcuda.device import dispatch_key
from simcuda.device.storages import HOST
from simcuda.ledger import attributing_to, frame_listeners, listening
from simcuda.measurement import SYNCS, Measurement, Site, place, source, table
from simcuda.simulation import SESSION, SimulatedCuda
from simcuda.torch_api.concurrency import BAD_FORK, SPAWNED
from simcuda.torch_api.refusals import NOT_SIMULATED

USES = ("allocations", "h2d", "d2h", "d2d", "p2p")

REFUSALS = re.compile("|".join(map(re.escape, (NOT_SIMULATED, SESSION, BAD_FORK))))
IN_OTHER_PROCESSES = re.compile(
    "Torch not compiled with CUDA enabled|Found no NVIDIA driver"
)
OTHER_PROCESS = "a process that the test starts has no simulated devices"

# File, line and function.
Line = tuple[str, int, str]

# Stands for the lines that are not the repository's.
INSTALLED: Line = ("installed packages", 0, "")

MOST_ROWS = 10

# After how many tests the garbage collector looks for what is left on a device, once it was used.
COLLECTIONS = 2


@dataclass
class Session:
    """The measurement of the test that runs."""

    gpu: SimulatedCuda
    root: Path
    tells_sites: bool = field(default=False, init=False)
    _cost: Measurement | None = field(default=None, init=False)
    _tests_since_use: int = field(default=0, init=False)
    _callers: dict[Line, set[Line]] = field(default_factory=dict, init=False)
    _own: dict[str, bool] = field(default_factory=dict, init=False)

    def begin(self) -> None:
        """Begin a test: measure from here on, and watch operations only once the test uses a device."""
        ledger = self.gpu._machine.ledger
        self._end()
        self._callers.clear()
        self.gpu._machine.unsure_gradients.clear()
        # Cycles, as of an error and its traceback, keep tensors that nobody can use any more. At first they
        # are young; what pytest holds of a failure, until the next test runs, is old by then.
        if self._tests_since_use < COLLECTIONS and self._has_tensors():
            gc.collect(1 if self._tests_since_use == 0 else 2)
        self._tests_since_use += 1
        is_in_use = (
            # Watched by a simulation around the session, or counted by the code of a fixture.
            not self.gpu._is_session
            or ledger.is_counting
            # A default device, or one that a context gives.
            or torch._C._len_torch_function_stack() > 0
            or self._has_tensors()
        )
        if not is_in_use:
            dispatch_key.sleep()
        self._cost = ledger.open()

    def take(self) -> dict[str, Any]:
        """Return the work since ``begin`` or the last ``take``, as plain data; measuring goes on.

        ``used`` is whether a device did anything, ``spawned`` whether a process that was spawned used one,
        ``sites`` has file, line, function, ``drains`` or the kind of wait, the reason of the region, and the
        count.
        """
        cost = self._end()
        self._cost = self.gpu._machine.ledger.open()
        counts = Counter[tuple[Any, ...]]()
        regions = [
            (reason, site) for reason, sites in cost.allowed.items() for site in sites
        ]
        for reason, site in (*(("", site) for site in cost.sites), *regions):
            # Of a failed test pytest prints tensors: that is none of its waits.
            if (
                site.what in (*SYNCS, "drains")
                and "_pytest" not in Path(site.file).parts
            ):
                where = self._place(site)
                counts[*where, site.what, reason] += site.count
                counts[*where, site.what, ""] -= site.count if reason else 0
        self._callers.clear()
        is_used = bool(cost.launches or any(site.what in USES for site in cost.sites))
        if is_used:
            self._tests_since_use = 0
        return {
            "used": is_used,
            "spawned": SPAWNED in cost.unknown,
            "sites": [[*key, count] for key, count in counts.items() if count],
        }

    def attribute_to(self, root: Path) -> AbstractContextManager[None]:
        """Attribute what installed packages do to lines of this repository, also of files that are loaded."""
        self.root, self.tells_sites = root, True
        self._own.clear()
        return attributing_to(self._is_own)

    def _end(self) -> Measurement:
        cost, self._cost = self._cost, None
        if cost is None:
            return Measurement()
        self.gpu._children.collect()
        self.gpu._machine.ledger.close(cost)
        return cost

    def _has_tensors(self) -> bool:
        """Return True if any are on a device, or pinned for one."""
        tags = list(self.gpu._machine.storages.tags.values())
        return any(tag.device != HOST or tag.pinned for tag in tags)

    def note(self, frame: FrameType) -> None:
        """Note which line of the repository leads to the line of a frame, for which something is counted."""
        site, caller = _line_of(frame), frame
        while not self._is_own(caller.f_code.co_filename):
            if caller.f_back is None:
                return
            caller = caller.f_back
        self._callers.setdefault(site, set()).add(_line_of(caller))

    def _place(self, site: Site) -> Line:
        """The line of the repository; of an installed package, the one that led there, if it was only one."""
        callers = self._callers.get((site.file, site.line, site.function), set())
        if len(callers) != 1 or not self._is_own(next(iter(callers))[0]):
            return INSTALLED
        ((file, line, function),) = callers
        return str(Path(file).relative_to(self.root)), line, function

    def _is_own(self, file: str) -> bool:
        if file not in self._own:
            path = Path(file)
            self._own[file] = (
                path.is_relative_to(self.root) and "site-packages" not in path.parts
            )
        return self._own[file]


def _line_of(frame: FrameType) -> Line:
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


@contextmanager
def measuring_tests(gpu: SimulatedCuda, root: Path) -> Iterator[Session]:
    """The session of tests on these devices."""
    session = Session(gpu, root)
    with listening(frame_listeners, session.note):
        session.begin()
        yield session


@dataclass
class Summary:
    """The results of a session's tests, in all processes that run tests."""

    devices: str
    root: Path
    outcomes: dict[str, str] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)
    spawning: dict[str, None] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    waits: Counter[Line] = field(default_factory=Counter)
    drains: Counter[Line] = field(default_factory=Counter)
    beside: dict[str, Any] = field(default_factory=dict)  # what others add to the JSON

    def add(
        self, test: str, phase: str, outcome: str, record: Mapping[str, Any]
    ) -> None:
        """Add one phase of a test, or the collection of a file, with its record."""
        # The first phase of a test that is run again begins anew.
        if phase == "setup" or outcome != "passed":
            self.outcomes[test] = outcome
        if record.get("used"):
            self.used[test] = None
        if record.get("spawned"):
            self.spawning[test] = None
        if reason := record.get("refused"):
            self.refused.setdefault(test, reason)
        for *where, what, _, count in (
            record.get("sites", ()) if phase != "collect" else ()
        ):
            (self.drains if what == "drains" else self.waits)[tuple(where)] += count

    def lines(self, most: int | None = MOST_ROWS) -> list[str]:
        """The table for people, with at most so many lines of code and so many refusals."""
        outcomes = Counter(self.outcomes[test] for test in self.used)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        used = f"{len(self.used)} test{'s' * (len(self.used) != 1)} used a device"
        lines = [used + (f": {counts}" if counts else "")]
        if self.waits:
            ranked = self.waits.most_common()
            rows = [
                (f"{count:5}", f"{self.drains[where]:6}", *self._described(where))
                for where, count in ranked[:most]
            ]
            lines += ["", *table([("waits", "drains", "where", "source"), *rows])]
            if others := ranked[len(rows) :]:
                lines.append(
                    f"and {len(others)} more lines, {sum(count for _, count in others)} waits"
                )
        refused = [f"{test}: {reason}" for test, reason in self.refused.items()]
        spawning = list(self.spawning)
        for title, shown in (
            (
                f"not counted: processes that use a device, spawned by tests: {len(spawning)}",
                spawning,
            ),
            (f"refused: {len(refused)}", refused),
        ):
            if shown:
                lines += ["", title, *shown[:most]]
            if rest := shown[len(shown[:most]) :]:
                lines.append(f"and {len(rest)} more")
        return lines

    def as_dict(self) -> dict[str, Any]:
        """The same, complete, as data for JSON."""
        data = {
            "devices": self.devices,
            "used": [
                {"test": test, "outcome": self.outcomes[test]} for test in self.used
            ],
            "waits": [
                dict(zip(("file", "line", "function"), where, strict=True))
                | {"waits": count, "drains": self.drains[where]}
                for where, count in self.waits.most_common()
            ],
            "spawning": list(self.spawning),
            "refused": [
                {"test": test, "reason": reason}
                for test, reason in self.refused.items()
            ],
            **self.beside,
        }
        return {"schema_version": 1, "kind": "simcuda-session", "data": data}

    def _described(self, where: Line) -> tuple[str, str]:
        if where == INSTALLED:
            return "in installed packages", ""
        file, line, function = where
        site = Site(str(self.root / file), line, function, "", 0)
        return place(site), source(site)


def refusal(error: BaseException | None) -> str | None:
    """Return why a simulated device refused an operation, from its error; None if it refused nothing."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        # The error of another process is the text of its traceback.
        for line in str(error).splitlines():
            if REFUSALS.search(line):
                return re.sub(r"^\w+(\.\w+)*: ", "", line.strip())
            if IN_OTHER_PROCESSES.search(line):
                return OTHER_PROCESS
        error = error.__cause__ or error.__context__
    return None
