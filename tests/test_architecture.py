"""The house keeps its floors: imports run downwards and never in a circle, and torch stays below."""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"

# From the top down: a room imports from its own and from the floors below it.
FLOORS = (
    {"__main__"},
    {"cli"},
    {"executors"},
    {"report"},
    {"gate"},
    {"budget"},
    {"verify", "lint", "importers"},
    {"workload"},
    {"measure", "register"},
    {"documents", "claims"},
    {"model"},
    {"ground"},
    {"errors"},
)
FLOOR_OF = {room: height for height, rooms in enumerate(reversed(FLOORS)) for room in rooms}
MOST_MODULES = 16
"""In a folder; but ``cli`` has a file for each command, and a list of rules is as long as it is."""
LISTS = {"finding_tickets/cli", "finding_tickets/lint/rules", "simcuda/costs/rules"}

MOST_NODES = {
    "finding_tickets": 214965,
    "finding_tickets.__main__": 42,
    "finding_tickets.budget": 3898,
    "finding_tickets.claims": 8923,
    "finding_tickets.cli": 22386,
    "finding_tickets.documents": 35449,
    "finding_tickets.errors": 335,
    "finding_tickets.executors": 967,
    "finding_tickets.gate": 7691,
    "finding_tickets.ground": 6751,
    "finding_tickets.importers": 8643,
    "finding_tickets.lint": 8808,
    "finding_tickets.measure": 33778,
    "finding_tickets.model": 4907,
    "finding_tickets.register": 28837,
    "finding_tickets.report": 25289,
    "finding_tickets.verify": 18084,
    "finding_tickets.workload": 34,
    "simcuda": 99984,
    "simcuda.agree": 216,
    "simcuda.assertions": 1197,
    "simcuda.basis": 544,
    "simcuda.costs": 31911,
    "simcuda.device": 11020,
    "simcuda.ledger": 2402,
    "simcuda.measurement": 1948,
    "simcuda.profile": 380,
    "simcuda.real": 5415,
    "simcuda.session": 2118,
    "simcuda.simulation": 1618,
    "simcuda.torch_api": 29539,
    "simcuda.traces": 11633,
}
"""Nodes of syntax in a package and in each of its rooms. A number here may only fall."""
MOST_BRANCHES = {"finding_tickets": 6553, "simcuda": 2551}
MOST_NODES_A_LINE = {"finding_tickets": 6.44, "simcuda": 6.0}
MOST_FLAGGED_DOCSTRINGS = {"finding_tickets": 2.0, "simcuda": 4.0}
"""In percent of all docstrings."""
BRANCHES = (
    *(ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.With),
    *(ast.BoolOp, ast.comprehension, ast.match_case),
)
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
FLAGGED = re.compile(
    r"^(What|Whether|Why|How|Which|Where|Who)\b"
    r"|\b(of (which|whom)|(that|those) of|nobody|somebody|(is|are) no [a-z]+|beside|c[ao]me of|is told"
    r"|ha(s|ve) \w+ ignore|another one|says? (nothing|something)|as \w+ do(es)?|meanwhile|all the same)\b"
)
"""Finds a docstring that opens with a question word, or that reads as translated."""


def modules() -> dict[str, Path]:
    """Every module of both packages by its dotted name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@pytest.fixture(scope="module", autouse=True)
def _syntax_is_let_go() -> Iterator[None]:
    """Hundreds of thousands of nodes are searched for cycles neither here nor in the tests that follow."""
    gc.disable()
    yield
    gc.enable()
    nodes.cache_clear()


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return every node of a module's syntax."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports(path: Path) -> list[str]:
    """Absolute names that a file imports anywhere, also inside functions and under TYPE_CHECKING."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            submodules = [f"{module}.{alias.name}" for alias in node.names]
            names = [name for name in submodules if name in MODULES]
            # ``from package import module`` needs the package only to find the module.
            yield from names if len(names) == len(submodules) else [module, *names]


@cache
def graph() -> dict[str, set[str]]:
    """What each module imports of both packages."""
    return {
        name: {target for target in imports(path) if target in MODULES and target != name}
        for name, path in MODULES.items()
    }


def room(name: str) -> str:
    """The room of a module: ``verify`` for ``finding_tickets.verify.plan``."""
    return name.partition(".")[2].partition(".")[0]


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The nodes that reach themselves, grouped by the circle that they are in."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        pending = [*graph[start]]
        while pending:
            if (node := pending.pop()) not in found:
                found.add(node)
                pending += graph.get(node, ())
        return found

    reach = {node: reached(node) for node in graph}
    groups = {
        tuple(sorted(other for other in reach[node] if node in reach.get(other, ())))
        for node in graph
        if node in reach[node]
    }
    return sorted(map(list, groups))


def test_imports_run_downwards() -> None:
    """A module imports only from its own room and from the floors below it."""
    upwards = {
        (name, target)
        for name, targets in graph().items()
        for target in targets
        if name.startswith("finding_tickets.")
        and target.startswith("finding_tickets.")
        and room(target) != room(name)
        and FLOOR_OF[room(target)] >= FLOOR_OF[room(name)]
    }
    assert set() == upwards


def test_no_modules_import_each_other() -> None:
    """No module reaches itself, whatever way its imports go."""
    assert [] == cycles(graph())


@pytest.mark.parametrize("package", ["finding_tickets", "simcuda"])
def test_no_rooms_import_each_other(package: str) -> None:
    """No room reaches itself; the face of a package may name every room."""
    rooms: dict[str, set[str]] = {}
    for name, targets in graph().items():
        if name.startswith(f"{package}."):
            others = {room(target) for target in targets if target.startswith(f"{package}.")}
            rooms.setdefault(room(name), set()).update(others - {room(name)})
    assert [] == cycles(rooms)


def test_no_folder_is_a_heap() -> None:
    """A folder has few enough modules to be read as a table of contents."""
    sizes: dict[str, int] = {}
    for path in MODULES.values():
        folder = path.parent.relative_to(SOURCE).as_posix()
        sizes[folder] = sizes.get(folder, 0) + (path.name != "__init__.py")
    assert {} == {each: size for each, size in sizes.items() if size > MOST_MODULES and each not in LISTS}


def test_only_what_measures_imports_torch() -> None:
    """Torch is imported by the room that runs code, the face of verifiers and the simulated device."""
    allowed = {"finding_tickets.measure", "finding_tickets.workload", "simcuda", "pytest_simcuda"}
    importers = {
        ".".join(name.split(".")[:2]) if name.startswith("finding_tickets") else name.split(".")[0]
        for name, path in MODULES.items()
        if any(target.split(".")[0] == "torch" for target in imports(path))
    }
    assert set() == importers - allowed


def test_only_the_executors_import_ray() -> None:
    """Ray is for those who have a cluster: nothing else knows of it."""
    importers = {
        name
        for name, path in MODULES.items()
        if any(target.split(".")[0] == "ray" for target in imports(path))
    }
    assert {"executors"} == set(map(room, importers))


def reached_from(names: Iterable[str]) -> set[str]:
    """All modules that loading some can load, by following every import."""
    reached: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += graph()[name]
    return reached


@pytest.mark.parametrize(
    "names",
    [["finding_tickets.workload", "simcuda"], [each for each in MODULES if room(each) == "measure"]],
    ids=["a verifier on its own", "the room that measures"],
)
def test_measuring_needs_torch_alone(names: list[str]) -> None:
    """What ``python verifiers/<id>.py`` or a worker under another Python can load needs nothing else."""
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
        if name.split(".")[0] in {"simcuda", "pytest_simcuda"}
        and any(target.startswith("finding_tickets") for target in imports(path))
    }
    assert set() == importers


def modules_of(package: str) -> dict[str, Path]:
    """Return every module of a package."""
    return {name: path for name, path in MODULES.items() if name.split(".")[0] == package}


@pytest.mark.parametrize("package", ["finding_tickets", "simcuda"])
def test_no_room_has_more_nodes_than_it_had(package: str) -> None:
    """Each package and each of its rooms stays below its number of nodes of syntax."""
    sizes = {package: 0}
    for name, path in modules_of(package).items():
        size = len(nodes(path))
        room_of_module = ".".join(name.split(".")[:2])
        sizes[package] += size
        if room_of_module != package:
            sizes[room_of_module] = sizes.get(room_of_module, 0) + size
    assert {} == {name: size for name, size in sizes.items() if size > MOST_NODES.get(name, 0)}


@pytest.mark.parametrize("package", ["finding_tickets", "simcuda"])
def test_code_does_not_become_denser(package: str) -> None:
    """A package has no more branches than it had, and no more nodes on a line."""
    paths = modules_of(package).values()
    walked = [node for path in paths for node in nodes(path)]
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
    branches = sum(isinstance(node, BRANCHES) for node in walked)
    assert branches <= MOST_BRANCHES[package]
    assert len(walked) / lines <= MOST_NODES_A_LINE[package]


@pytest.mark.parametrize("package", ["finding_tickets", "simcuda"])
def test_docstrings_read_as_instructions(package: str) -> None:
    """No more docstrings than before open with a question word or an idiom of a translation."""
    docstrings = []
    for path in modules_of(package).values():
        documented = [node for node in nodes(path) if isinstance(node, DOCUMENTED)]
        docstrings += [text for node in documented if (text := ast.get_docstring(node))]
    flagged = [text for text in docstrings if FLAGGED.search(text)]
    assert 100 * len(flagged) / len(docstrings) <= MOST_FLAGGED_DOCSTRINGS[package]
