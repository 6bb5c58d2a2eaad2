"""A pattern of training code: how it is set up, what is measured, and what that must cost by its source.

A *row* is one line of code over the names of ``NAMES``; a *pattern* is a function that sets up and returns
the part to measure. Both say where their numbers are from. A number that does not follow from a source is
left out, as None: it is recorded, and nothing is expected of it.
"""

from __future__ import annotations

import importlib
import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, cast

import torch

from simcuda import Measurement

METRICS = ("waits", "h2d", "d2h", "d2d", "launches", "allocations")
"""What a pattern may expect: waits of any kind, copies by direction, kernels of any origin, allocations."""

WORD = re.compile(r"\w+")

WARM_UP, MEASURED = 1, 0
"""The seeds of the data on which a pattern is run once before, and is measured."""

ByVersion = dict[str, int]
"""A number by the version of torch from which on it holds, such as ``{"2.11": 2, "2.14": 0}``."""

Expected = int | ByVersion | None

Build = Callable[[], Callable[[], object]]
"""Sets a pattern up, and returns the part to measure."""


class NothingToRunError(Exception):
    """A pattern has nothing to run under this version of torch, with the reason."""


@dataclass(frozen=True)
class Pattern:
    """One pattern.

    Attributes:
        name: The code of a row, or the name of a function.
        source: A file of PyTorch, and what stands there.
        expected: What the measured part costs, by metric.
        since: The first version of torch that has what it needs.
        runs: Returns digits that differ where another version of torch makes another pattern of it.
    """

    name: str
    build: Build
    source: str
    expected: dict[str, Expected]
    since: str = ""
    runs: Callable[[], str] = str

    def runs_on(self, version: str) -> bool:
        """Return whether this version of torch has what the pattern needs."""
        return version_key(version) >= version_key(self.since or "0")

    def expected_on(self, version: str) -> dict[str, int]:
        """Return what is expected under a version of torch, without what is not known."""
        found: dict[str, int] = {}
        for metric, number in self.expected.items():
            if isinstance(number, dict):
                known = [each for each in number if version_key(each) <= version_key(version)]
                if known:
                    found[metric] = number[max(known, key=version_key)]
            elif number is not None:
                found[metric] = number
        return found


PATTERNS: dict[str, Pattern] = {}
"""Every pattern by its name; ``load`` fills it."""

FILES = ("patterns", "patterns_indexing", "patterns_training", "patterns_calls", "patterns_programs")
"""The files beside this one that have patterns."""
HELPERS: dict[str, object] = {}
"""What rows may use beside ``NAMES``: functions and modules of these files, by name."""


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, such as ``(2, 11)`` for ``2.11.0+cu130``: major and minor."""
    numbers = version.split("+", maxsplit=1)[0].split(".")[:2]
    return tuple(int(number) for number in numbers)


def add(pattern: Pattern) -> None:
    """Register a pattern under its name."""
    if pattern.name in PATTERNS:
        raise ValueError(f"there are two patterns {pattern.name!r}")
    PATTERNS[pattern.name] = pattern


class Numbers(TypedDict, total=False):
    """What a pattern is expected to cost, by metric."""

    waits: Expected
    h2d: Expected
    d2h: Expected
    d2d: Expected
    launches: Expected
    allocations: Expected


UNSTATED: dict[str, Expected] = {
    "waits": 0,
    "h2d": 0,
    "d2h": 0,
    "d2d": 0,
    "launches": None,
    "allocations": None,
}
"""Waits and copies are expected to be none; of kernels and allocations nothing is expected."""


def row(
    code: str, source: str, *, name: str = "", setup: str = "", since: str = "", **numbers: Unpack[Numbers]
) -> None:
    """Add a pattern of one line of code over ``NAMES``, ``HELPERS``, and what its ``setup`` makes.

    ``UNSTATED`` has the numbers that are not given; without a name it is called by its code.
    """
    prepared, measured = compile(setup, f"<{code}>", "exec"), compile(code, f"<{code}>", "exec")

    def build() -> Callable[[], object]:
        names = make_names(f"{setup} {code}")
        exec(prepared, names)  # noqa: S102 - the code is ours

        def run_code() -> object:
            exec(measured, names)  # noqa: S102 - the code is ours
            # What it made lives in these names until the measurement has ended.
            return names

        return run_code

    build.__name__ = name or code
    pattern(source, since=since, **numbers)(build)


def pattern(source: str, *, since: str = "", **numbers: Unpack[Numbers]) -> Callable[[Build], Build]:
    """Make a function a pattern: it sets up, and returns the part to measure. Numbers are as for ``row``."""
    expected = UNSTATED | cast("dict[str, Expected]", numbers)

    def register(build: Build) -> Build:
        add(Pattern(build.__name__, build, source, expected, since))
        return build

    return register


NAMES = """
x = torch.rand(8, device="cuda")
y = torch.rand(3, device="cuda")
rows = torch.rand(4, 6, device="cuda")
big = torch.rand(1024, 1024, device="cuda")
half = torch.rand(4, 6, device="cuda").half()
whole = torch.arange(24, device="cuda").view(4, 6)
value = torch.rand((), device="cuda")
one = torch.tensor(1, device="cuda")
three = torch.tensor(3, device="cuda")
index = torch.tensor([0, 2, 1], device="cuda")
mask = torch.tensor([True, False, True, True, False, False, True, False], device="cuda")
masks = rows > 0.5
classes = torch.tensor([0, 1, 2, 3], device="cuda")
leaf = torch.rand(4, device="cuda", requires_grad=True)
weights = torch.rand(4, 6, device="cuda", requires_grad=True)
eye = torch.eye(3, device="cuda")
host = torch.tensor([0, 2, 1])
host_mask = torch.tensor([True, False, True, True, False, False, True, False])
floats = torch.ones(4, 6)
pinned = torch.ones(4, 6).pin_memory()
"""
"""What the rows use: each has names of its own."""


STATEMENTS = [(line.partition(" = ")[0], line) for line in NAMES.strip().splitlines()]


def make_names(code: str) -> dict[str, Any]:
    """Return new names for one row: modules, helpers, and what its code uses of ``NAMES``."""
    # Compiling something switches the checks of distributions off (torch/_dynamo/eval_frame.py).
    torch.distributions.Distribution.set_default_validate_args(True)
    names: dict[str, Any] = {
        **HELPERS,
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "distributions": torch.distributions,
        "math": math,
        "io": io,
    }
    used = set(WORD.findall(code))
    needed = []
    for name, statement in reversed(STATEMENTS):
        if name in used:
            used.update(WORD.findall(statement))
            needed.append(statement)
    exec("\n".join(reversed(needed)), names)  # noqa: S102 - the code is ours
    return names


def seed(number: int) -> None:
    """Seed the host and the devices: to seed other accelerators, too, takes longer than many patterns."""
    seed_host: Any = torch.default_generator.manual_seed
    seed_host(number)
    torch.cuda.manual_seed_all(number)


def prepare(pattern: Pattern) -> Callable[[], object]:
    """Run a pattern once with other data, and return the part to measure."""
    seed(WARM_UP)
    pattern.build()()
    torch.cuda.synchronize()
    seed(MEASURED)
    return pattern.build()


def counts_of(cost: Measurement) -> dict[str, int]:
    """Return the metrics of patterns of a measurement."""
    return {metric: getattr(cost, "syncs" if metric == "waits" else metric) for metric in METRICS}


def load(kind: str = "patterns") -> dict[str, Pattern]:
    """Return the patterns of a kind: those of ``FILES``, or ``op_db``."""
    if kind == "op_db":
        from tests.gpu import op_db

        return op_db.load()
    for file in FILES:
        importlib.import_module(f"tests.gpu.{file}")
    return PATTERNS
