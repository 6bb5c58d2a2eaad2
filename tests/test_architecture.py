"""The house keeps its rules: which room may import which, and what each room may depend on."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from finding_tickets.measure import tasks as measuring
from finding_tickets.measure.isolation import PRELOADED

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"

# A room may import itself, the rooms named here, and the two leaves that everyone shares.
ROOMS = {
    "__main__": {"cli"},
    "cli": {"cluster", "report", "verify", "register", "markdown", "model"},
    "cluster": {"verify", "register", "markdown", "model"},
    "report": {"verify", "register", "markdown", "model"},
    "verify": {"register", "markdown", "model", "meter", "workload"},
    "register": {"markdown", "model", "verify"},
    "markdown": {"model"},
    "model": set(),
    "meter": {"workload", "simcuda"},
    "workload": {"meter", "verify"},
    "simcuda": set(),
}
LEAVES = {"errors", "processors", ""}
OURS = ("finding_tickets.", "simcuda.")
IMPORTS_TORCH = {"meter", "simcuda", "workload"}


def modules() -> dict[str, Path]:
    """Every module of both packages by its dotted name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(path: Path) -> Iterator[str]:
    """Absolute names that a file imports anywhere, also inside functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            yield module
            yield from (
                f"{module}.{alias.name}" for alias in node.names if f"{module}.{alias.name}" in MODULES
            )


def room(name: str) -> str:
    """The room a module of ours belongs to: ``finding_tickets.claims.laws`` is in ``verify``."""
    package, _, rest = name.partition(".")
    return "simcuda" if package in {"simcuda", "pytest_simcuda"} else rest.partition(".")[0]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_run_one_way(name: str) -> None:
    """A module imports only from its own room and the rooms below it."""
    here = room(name)
    if here in LEAVES:
        return
    ours = {
        room(target)
        for target in imports(MODULES[name])
        if target.split(".")[0] in {"finding_tickets", "simcuda"}
    }
    assert set() == ours - ROOMS[here] - LEAVES - {here}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_only_the_measuring_rooms_import_torch(name: str) -> None:
    """Torch is imported by the meters, the simulated device and (for types) the workload, by nobody else."""
    uses_torch = any(target.split(".")[0] == "torch" for target in imports(MODULES[name]))
    assert not uses_torch or room(name) in IMPORTS_TORCH


@pytest.mark.parametrize("name", sorted(MODULES))
def test_only_the_cluster_imports_ray(name: str) -> None:
    """Ray is for those who have a cluster: nothing else knows of it."""
    uses_ray = any(target.split(".")[0] == "ray" for target in imports(MODULES[name]))
    assert not uses_ray or room(name) == "cluster"


STANDALONE = ["finding_tickets.workload", "finding_tickets.measure.run", "simcuda"]
"""What running a verifier on its own loads."""
TARGETS = [value.partition(":")[0] for value in vars(measuring).values() if str(value).startswith(OURS)]
MEASURING = ["finding_tickets.measure.forkserver", *PRELOADED, *TARGETS]
"""What is loaded where another Python than the tool's own measures."""


def reached_from(names: Iterable[str]) -> set[str]:
    """All modules that loading some can load, by following every import."""
    reached: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in reached:
            continue
        reached.add(name)
        pending += [target for target in imports(MODULES[name]) if target in MODULES]
    return reached


@pytest.mark.parametrize("names", [STANDALONE, MEASURING], ids=["a verifier on its own", "another Python"])
def test_measuring_needs_torch_alone(names: list[str]) -> None:
    """What ``python verifiers/<id>.py`` can reach, or the server of another Python, needs nothing else."""
    foreign = {
        (name, target)
        for name in reached_from(names)
        for target in imports(MODULES[name])
        if target.split(".")[0] not in sys.stdlib_module_names | {"torch", "finding_tickets", "simcuda"}
    }
    assert set() == foreign


def test_the_simulated_device_knows_nothing_of_tickets() -> None:
    """The library simcuda stands on its own."""
    importers = {
        name
        for name, path in MODULES.items()
        if name.startswith("simcuda")
        and any(target.startswith("finding_tickets") for target in imports(path))
    }
    assert set() == importers
