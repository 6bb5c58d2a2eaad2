"""Define the jobs of a worker, and the names of the functions that run them.

The functions are named and not imported, because the process that asks needs no torch. Places in code are
named the same way on every machine: relative to the repository or to what is installed.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any, Literal, cast

from finding_tickets.errors import BadDataError
from finding_tickets.ground.imports import places_of
from finding_tickets.ground.statements import parse_file

TARGET = "finding_tickets.measure.run:measure"
PROBE = "finding_tickets.measure.probe:probe_payload"
RUN = "finding_tickets.measure.probe:run_payload"
TRACE = "finding_tickets.measure.recorded:trace_payload"
CHEAT = "finding_tickets.measure.cheating:measure_payload"
COMPARISON = "finding_tickets.measure.results:compare_saved"
OUTCOMES = "finding_tickets.measure.outcomes:compare_outcomes"
CHOICE = "finding_tickets.measure.meter:chosen_name"
# Names the folder of a worker.
OWN_FOLDER = "TICKETS_WORKER"
# The folders below it: for results of variants, and for a copy of the code.
KEPT, COPY = "kept", "tmp/code"
METERS = ("auto", "simulated", "cuda")
SIMULATED_DEVICE = "h200-cuda13"
# All other names stand before ``fix``.
ORDER_OF_VARIANTS = {"found": 0, "recommended": 1, "applied": 2, "fix": 4}
TOOL = [
    Path(__file__).parents[2] / package for package in ("finding_tickets", "simcuda")
]
INSTALLED = {"site-packages", "dist-packages"}

VARYING = "costs differ from run to run of the same work"

At = dict[str, int]
# Points that are added to a sweep: sizes beyond it, or also 0 and 1 of each variable.
Further = Literal["", "sizes", "edges"]


def own_folder() -> Path:
    """The folder of the worker that this is called in."""
    return Path(os.environ[OWN_FOLDER])


class CannotMeasureError(Exception):
    """A verifier, a variant or a meter cannot be used; the message says which and why."""


class WrongTargetError(Exception):
    """The target does not exist, or takes other arguments; the hint shows a command that works."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message


@dataclass(frozen=True)
class FunctionPath:
    """The place of a function: a file below the root or a module by its dotted name."""

    module: str
    function: str


@dataclass(frozen=True)
class ResultPair:
    """A variant whose results should equal the results of ``target``, exactly or within ``tolerance``."""

    variant: str
    target: str
    tolerance: float | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """A variant of a ticket to measure.

    ``root`` is absolute and ``verifier`` relative to it. The function is imported from ``code``, which is
    another folder for one at a revision. ``meter`` is one of ``METERS``. With ``graph_breaks`` these are
    counted. With ``keeps``, the results of the variant are written to the worker's own folder. The ``seed``
    takes the place of the workload's. With ``further``, points are measured that no file states, on a GPU of
    another name. With ``operations``, what each of them costs is told.
    """

    root: str
    code: str
    verifier: str
    variant: str
    function: FunctionPath
    meter: str = "simulated"
    graph_breaks: bool = False
    keeps: bool = False
    seed: int | None = None
    further: Further = ""
    operations: bool = False


@dataclass(frozen=True, kw_only=True)
class RunJob:
    """A run of a script, a module, a function or a test, as the user names it.

    ``kind`` is ``script`` (``target`` is its path, absolute or from ``code``), ``module``, ``function``
    (``module:function`` or ``path.py:function``, the path from ``code``) or ``test`` (a pytest node).
    ``code`` is the absolute folder that has the code. ``arguments`` are those of a script or a module, or
    further ones of pytest. A function is called with the values of each point of the ``sweep`` by name, or
    with the arguments that the ``verifier``, a file below ``code``, builds. With ``within`` only what happens
    inside calls of that function counts, as ``CallMeter`` says; ``after`` is for that.
    """

    code: str
    kind: str
    target: str
    arguments: Sequence[str] = ()
    sweep: Sequence[At] = ()
    verifier: str = ""
    meter: str = "simulated"
    devices: int = 1
    compiling: Literal["eager", "refuse"] = "eager"
    within: str = ""
    after: int | None = None
    repeated: bool = False  # whether functions run again, to find costs that differ
    operations: bool = False  # whether to tell what each operation costs
    # Of a probe: where the command was given, in which the target runs.
    folder: str = ""
    seconds: float = 0.0  # after which it is ended, and what it did until then counts
    # Of a ticket: code that is not the work tree's runs in a copy, which sees ``data`` of the work tree.
    # ``stated`` is where the ticket says so.
    work_tree: str = ""
    data: Sequence[str] = ()
    stated: str = ""
    keeps: str = ""  # the name that its outcome is saved under, if results are compared
    # Of a budget or a ticket about a place: what installed packages do counts at the line of the repository
    # that led there, and calls may differ.
    own_lines: bool = False
    with_chains: bool = False  # whether to tell by which calls each line was reached


def find_variants(folder: str, root: Path) -> dict[str, FunctionPath]:
    """The variants in ``folder``, which is relative to ``root``, by file name: ``found`` first.

    The function is the only public one that all files of the folder define. Files are read, never imported.

    Raises:
        BadDataError: A file cannot be read, or the files do not share exactly one public function.
    """
    files = sorted(
        (root / folder).glob("[!_]*.py"),
        key=lambda file: (ORDER_OF_VARIANTS.get(file.stem, 3), file.stem),
    )
    if not files:
        return {}
    public: dict[str, set[str]] = {}
    for file in files:
        name = file.relative_to(root).as_posix()
        try:
            tree = ast.parse(file.read_bytes(), filename=name)
        except SyntaxError as error:
            raise BadDataError(
                f"not Python: {error.msg}", file=name, line=error.lineno
            ) from None
        except (OSError, ValueError) as error:
            raise BadDataError(f"cannot be read: {error}", file=name) from None
        functions = (
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )
        public[file.name] = {
            node.name for node in functions if not node.name.startswith("_")
        }
    shared = sorted(set.intersection(*public.values()))
    if len(shared) != 1:
        what = f"the functions {', '.join(shared)}" if shared else "no public function"
        raise BadDataError(
            f"the variants {', '.join(public)} share {what}; they must share exactly one",
            file=folder,
            hint="name them under 'variants:' in the ticket's Remediation block",
        )
    return {
        file.stem: FunctionPath(f"{folder}/{file.name}", shared[0]) for file in files
    }


def code_of(path: FunctionPath, root: Path) -> tuple[str, str]:
    """Return the code of a function and the rest of its file, without comments, docstrings and layout.

    Both are empty if the function does not exist. The file is read, never imported.
    """
    tree, body, function = find_function(path, root)
    if tree is None or function is None:
        return "", ""
    body.remove(function)
    function.name = "f"
    return ast.unparse(function), ast.unparse(tree)


def find_function(
    path: FunctionPath, root: Path
) -> tuple[
    ast.Module | None, list[ast.stmt], ast.FunctionDef | ast.AsyncFunctionDef | None
]:
    """The file of a function without docstrings, the body that the function stands in, and the function."""
    is_file = path.module.endswith(".py")
    files = [
        root / place for place in ([path.module] if is_file else places_of(path.module))
    ]
    tree = next(
        (found for file in reversed(files) if (found := parse_code(file))), None
    )
    body, scope = list[ast.stmt](), cast("Any", tree)
    for name in path.function.split("."):
        body = getattr(scope, "body", [])
        scope = next(
            (each for each in body if getattr(each, "name", None) == name), None
        )
    return (
        tree,
        body,
        scope if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) else None,
    )


def parse_code(file: Path) -> ast.Module | None:
    """A file of Python without its docstrings; None where it is none."""
    tree = parse_file(file)
    for node in ast.walk(tree) if tree else ():
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if (
            isinstance(node, documented)
            and ast.get_docstring(node, clean=False) is not None
        ):
            del node.body[0]
    return tree


def belongs_to(root: Path, file: Path) -> bool:
    """Return True for a file of the repository that is part neither of this tool nor of an environment."""
    if not file.is_relative_to(root) or any(
        file.is_relative_to(package) for package in TOOL
    ):
        return False
    return INSTALLED.isdisjoint(file.relative_to(root).parts)


def portable(file: str, root: Path) -> str:
    """A POSIX path relative to ``root``, or else to where the file is installed; never absolute."""
    path = Path(file)
    if belongs_to(root, path):
        return path.relative_to(root).as_posix()
    # The longest entry gives the name by which the file is imported.
    entries = [
        Path(entry) for entry in sys.path if entry and path.is_relative_to(entry)
    ]
    longest = max(entries, key=lambda entry: len(entry.parts), default=path.parent)
    return path.relative_to(longest).as_posix()


def describe(error: BaseException, *roots: Path) -> str:
    """An exception in one line: its place, its type and the first line of its message."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return ": ".join(filter(None, (place(error, *roots), text)))


def place(error: BaseException, *roots: Path) -> str:
    """The innermost line of the repository's own code that led to an exception; empty if none did.

    The repository may have several roots: its work tree, and its files at a revision.
    """
    # A syntax error has no frame in the file that it is about.
    frames = [
        (frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno or 1))
    ours = [
        (root, file, line)
        for file, line in frames
        for root in roots
        if belongs_to(root, Path(file))
    ]
    root, file, line = ours[-1] if ours else (Path(), "", 0)
    return f"{portable(file, root)}:{line}" if ours else ""


def is_out_of_host_memory(error: BaseException) -> bool:
    """Return True if this process ran out of host memory; the device may have enough."""
    return isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error)
