"""Import verifiers and variants from a repository or from installed packages, and undo what that replaces.

Code that replaces parts of torch or of the meter would change what later runs do and count.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from finding_tickets.measure.places import belongs_to
from finding_tickets.measure.tasks import CannotMeasureError, FunctionPath
from finding_tickets.measure.workloads import Workload

MODULES = (torch, torch.cuda, torch.nn.functional, torch.nn.utils)
CLASSES = (torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.cuda.Stream, torch.cuda.Event)
# The packages that count and compare.
OURS = ("simcuda", "finding_tickets")

TORCH = str(Path(torch.__file__).parent)
# Names that torch itself rebinds: this one follows the default dtype.
FOLLOWS_A_SETTING = {"Storage"}
# What a class has in the place of a function.
WRAPPERS = (property, classmethod, staticmethod)


def load_workload(path: str, root: Path, code: Path | None = None) -> Workload:
    """The ``workload`` of a verifier file; raises ``CannotMeasureError`` and what importing it raises.

    If ``code`` is another folder than the root, the verifier imports from there first. Only what is beside it
    in a folder of verifiers comes from the root, as the verifier itself does.
    """
    import_from(root)
    if code and code != root:
        import_from(code)
        beside = (root / path).parent
        parts = beside.relative_to(root).parts
        name = ".".join(parts)
        # A package comes from the code, even one that holds verifiers.
        is_package = not parts or parts[0] == "src" or (beside / "__init__.py").exists()
        if not is_package and name not in sys.modules:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(beside)]
            sys.modules[name] = importlib.util.module_from_spec(spec)
    # The verifier may import the code under test, before any variant is loaded and watched.
    with unpatched(f"{path}: "):
        module = _from_file(root / path, root)
    workload = getattr(module, "workload", None)
    if not isinstance(workload, Workload):
        raise CannotMeasureError(f"{path}: defines no 'workload' that is a finding_tickets.workload.Workload")
    check_sweep(workload, path)
    return workload


def check_sweep(workload: Workload, path: str) -> None:
    """Raise ``CannotMeasureError`` unless there are points and all have the same variables."""
    if not workload.sweep:
        raise CannotMeasureError(f"{path}: the sweep is empty, so nothing can be measured")
    expected = set(workload.sweep[0])
    for point in workload.sweep:
        if set(point) != expected:
            raise CannotMeasureError(f"{path}: {point} has other variables than {workload.sweep[0]}")


def load_function(path: FunctionPath, root: Path) -> Callable[..., Any]:
    """The function of a variant; raises ``CannotMeasureError``, or whatever importing its module raises."""
    import_from(root)
    found: Any
    if path.module.endswith(".py"):
        found = _from_file(root / path.module, root)
    else:
        try:
            found = importlib.import_module(path.module)
        except ModuleNotFoundError as error:
            # The module itself may be there, and something that it imports be missing.
            if not f"{path.module}.".startswith(f"{error.name}."):
                raise
            raise CannotMeasureError(f"there is no module {error.name}") from None
    like = ""
    for name in path.function.split("."):
        if not like and not hasattr(found, name):
            there = sorted(each for each, value in getattr(found, "__dict__", {}).items() if callable(value))
            close = get_close_matches(name, there, n=1)
            like = f" (did you mean {close[0]}?)" if close else ""
        found = getattr(found, name, None)
    if not callable(found):
        raise CannotMeasureError(f"{path.module}: has no function {path.function}{like}")
    function: Callable[..., Any] = found
    return function


def devices_needed(order: dict[str, str]) -> int:
    """The most devices that a point needs, in the sweep of the ``verifier`` in ``root`` with ``code``."""
    workload = load_workload(order["verifier"], Path(order["root"]), Path(order["code"]))
    return max(map(workload.devices, workload.sweep), default=1)


def imported_files(root: Path) -> tuple[str, ...]:
    """The repository's files that this process has imported, relative to ``root`` and sorted."""
    loaded = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    paths = (Path(name) for name in loaded if name)
    return tuple(sorted({path.relative_to(root).as_posix() for path in paths if belongs_to(root, path)}))


def imported_digests(root: Path) -> dict[str, str]:
    """The SHA-256 of each of these files as it is now; that of nothing if it is gone."""
    contents = {
        file: (root / file).read_bytes() if (root / file).is_file() else b"" for file in imported_files(root)
    }
    return {file: hashlib.sha256(content).hexdigest() for file, content in contents.items()}


def import_from(root: Path) -> None:
    """Make the modules of a repository importable, before any that are installed."""
    for folder in (str(root / "src"), str(root)):
        if folder not in sys.path:
            sys.path.insert(0, folder)


def _from_file(path: Path, root: Path) -> ModuleType:
    """Import a file by the name that the rest of the repository imports it by, if it has one."""
    if not path.is_file():
        raise CannotMeasureError(f"{path.relative_to(root).as_posix()}: no such file")
    folder = root / "src" if path.is_relative_to(root / "src") else root
    name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    if all(part.isidentifier() for part in name.split(".")):
        try:
            # Looking for it imports the packages that it is in.
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError as error:
            # A folder on the way may have the name of another module, which is not a package.
            if not f"{name}.".startswith(f"{error.name}."):
                raise
            found = None
        if found and found.origin and Path(found.origin) == path:
            return importlib.import_module(name)
    # If that name cannot be imported, or is another module's, the file is named by its whole path.
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CannotMeasureError(f"{path.relative_to(root).as_posix()}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def unpatched(who: str = "") -> Iterator[None]:
    """Raise ``CannotMeasureError`` if the block replaces functions of torch or of the meter.

    Everything is put back first: replaced and deleted names, constants too, and what was added to a class to
    hide what it inherits. The message begins with ``who``.
    """
    owners: list[Any] = [*MODULES, *CLASSES]
    for name, module in list(sys.modules.items()):
        # Our own loaded modules, and the classes that they define.
        if name.partition(".")[0] in OURS:
            owners.append(module)
            classes = (value for value in vars(module).values() if isinstance(value, type))
            owners += (each for each in classes if each.__module__ == name)
    before = [(owner, dict(vars(owner))) for owner in owners]
    yield
    if patched := [name for owner, names in before for name in _restored(owner, names)]:
        raise CannotMeasureError(f"{who}replaces {', '.join(patched)}, which every other variant uses too")


def _restored(owner: Any, before: dict[str, Any]) -> Iterator[str]:
    """Put back what was replaced in a module or a class, and give the full names."""
    is_module = isinstance(owner, ModuleType)
    prefix = f"{owner.__name__}." if is_module else f"{owner.__module__}.{owner.__qualname__}."
    # A module may gain names by importing; a name added to a class hides one that it inherits.
    names = before.keys() if is_module else before.keys() | vars(owner).keys()
    for name in sorted(names - FOLLOWS_A_SETTING):
        old, new = before.get(name), vars(owner).get(name)
        # Code and constants are held to what they were; other values change as a program runs.
        is_code = any(callable(each) or isinstance(each, WRAPPERS) for each in (old, new))
        if old is new or not (is_code or name.isupper()):
            continue
        # Torch's compiler, once loaded, wraps some of torch's own functions for good.
        code = getattr(new, "__code__", None)
        if code is None or not code.co_filename.startswith(TORCH):
            if name in before:
                setattr(owner, name, old)
            else:
                delattr(owner, name)
            yield prefix + name
