"""Import verifiers and variants from a repository or from installed packages.

Modules of a repository come from their sources alone: a cache of bytecode is neither read nor written.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from finding_tickets.measure.state import unpatched
from finding_tickets.measure.tasks import (
    TOOL,
    CannotMeasureError,
    FunctionPath,
    belongs_to,
)
from finding_tickets.measure.workloads import Workload

# The meter seeds it for every run: loaded here, it is loaded once for all workers.
if "numpy" in sys.modules:
    importlib.import_module("numpy.random")


def load_workload(path: str, root: Path, code: Path | None = None) -> Workload:
    """Return the ``workload`` of a verifier file; raise ``CannotMeasureError``, or errors of its import.

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
        raise CannotMeasureError(
            f"{path}: defines no 'workload' that is a finding_tickets.workload.Workload"
        )
    check_sweep(workload, path)
    return workload


def check_sweep(workload: Workload, path: str) -> None:
    """Raise ``CannotMeasureError`` unless there are points and all have the same variables."""
    if not workload.sweep:
        raise CannotMeasureError(
            f"{path}: the sweep is empty, so nothing can be measured"
        )
    expected = set(workload.sweep[0])
    for point in workload.sweep:
        if set(point) != expected:
            raise CannotMeasureError(
                f"{path}: {point} has other variables than {workload.sweep[0]}"
            )


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
            there = sorted(
                each
                for each, value in getattr(found, "__dict__", {}).items()
                if callable(value)
            )
            close = get_close_matches(name, there, n=1)
            like = f" (did you mean {close[0]}?)" if close else ""
        found = getattr(found, name, None)
    if not callable(found):
        raise CannotMeasureError(
            f"{path.module}: has no function {path.function}{like}"
        )
    function: Callable[..., Any] = found
    return function


def imported_files(root: Path) -> tuple[str, ...]:
    """The repository's files that this process has imported, relative to ``root`` and sorted."""
    loaded = (
        getattr(module, "__file__", None) for module in list(sys.modules.values())
    )
    # There are thousands, and hardly any is the repository's.
    paths = (Path(name) for name in loaded if name and name.startswith(str(root)))
    return tuple(
        sorted(
            {
                path.relative_to(root).as_posix()
                for path in paths
                if belongs_to(root, path)
            }
        )
    )


def import_from(root: Path) -> None:
    """Make the modules of a repository importable from their sources, before any that are installed."""
    for folder in (str(root / "src"), str(root)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    if SourceHook(root) not in sys.path_hooks:
        sys.path_hooks.insert(0, SourceHook(root))
        # Also where a loader is made by hand for a file, as ``spec_from_file_location`` does.
        SourceFileLoader.get_code = _compile  # type: ignore[assignment, method-assign]
        for folder in [each for each in sys.path_importer_cache if _is_ours(each)]:
            del sys.path_importer_cache[folder]


@dataclass(frozen=True)
class SourceHook:
    """The hook of Python's path for the modules of a repository, which come from their sources."""

    root: Path

    def __call__(self, folder: str) -> SourceFinder:
        """The finder for a folder; ``ImportError`` for one that is not the repository's."""
        folder = os.path.abspath(folder)  # noqa: PTH100 - a Path resolves links
        # A folder that is not there yet would answer imports; an archive is for another hook.
        if not _is_ours(folder) or os.path.isfile(folder):  # noqa: PTH113 - as above
            raise ImportError(folder)
        return SourceFinder(folder)


_CODE_OF = SourceFileLoader.get_code
_LOADERS: list[tuple[str, type[ExtensionFileLoader | SourceFileLoader]]] = [
    *((suffix, ExtensionFileLoader) for suffix in EXTENSION_SUFFIXES),
    *((suffix, SourceFileLoader) for suffix in SOURCE_SUFFIXES),
]


class SourceFinder(FileFinder):
    """Finds the modules in a folder: it asks for each candidate by name, so that all that counts is seen."""

    def find_spec(
        self,
        fullname: str,
        target: ModuleType | None = None,  # noqa: ARG002 - as Python calls it
    ) -> ModuleSpec | None:
        """As Python finds modules, but for those that are bytecode alone."""
        place = f"{self.path}/{fullname.rpartition('.')[2]}"
        is_folder = os.path.isdir(place)  # noqa: PTH112 - a Path takes longer, for every import
        for base in (f"{place}/__init__", place) if is_folder else (place,):
            for suffix, loader in _LOADERS:
                file = f"{base}{suffix}"
                if os.path.isfile(file):  # noqa: PTH113 - as above
                    inside = None if base == place else [place]
                    return importlib.util.spec_from_file_location(
                        fullname,
                        file,
                        loader=loader(fullname, file),
                        submodule_search_locations=inside,
                    )
        if not is_folder:
            return None
        # A folder without code is part of a namespace.
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [place]
        return spec


def _compile(loader: SourceFileLoader, fullname: str) -> CodeType | None:
    """The code of a module, compiled now where it is the repository's."""
    file = loader.get_filename(fullname)
    if not _is_ours(file):
        return _CODE_OF(loader, fullname)
    return loader.source_to_code(loader.get_data(file), file)


def _is_ours(place: str) -> bool:
    """Return True for a file of a repository; files installed in an environment inside it do not count."""
    whole = os.path.abspath(place)  # noqa: PTH100 - links stay as they are named
    roots = [hook.root for hook in sys.path_hooks if isinstance(hook, SourceHook)]
    # Hardly any place is below one, and a Path takes longer than to see that.
    if not any(whole.startswith(str(root)) for root in roots):
        return False
    path = Path(whole)
    roots = [root for root in roots if path.is_relative_to(root)]
    if not roots or any(path.is_relative_to(package) for package in TOOL):
        return False
    environments = [
        Path(prefix)
        for prefix in (sys.prefix, sys.base_prefix)
        if path.is_relative_to(prefix)
    ]
    return any(
        not folder.is_relative_to(root)
        for root in roots
        for folder in environments or [Path("/")]
    )


def _from_file(path: Path, root: Path) -> ModuleType:
    """Import a file by the name that the rest of the repository imports it by, if it has one."""
    if not path.is_file():
        raise CannotMeasureError(f"{path.relative_to(root).as_posix()}: no such file")
    folder = root / "src" if path.is_relative_to(root / "src") else root
    name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(
        ".__init__"
    )
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
        raise CannotMeasureError(
            f"{path.relative_to(root).as_posix()}: is no Python file"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
