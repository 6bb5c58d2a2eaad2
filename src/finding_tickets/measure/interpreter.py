"""Measuring with another Python than the tool's own: one that has another torch, and nothing of the tool.

It is given the packages that measuring takes, which need torch and the standard library alone, through a
folder with two links: what else is installed beside the tool stays where it is.
"""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from finding_tickets.errors import UnreachableError
from finding_tickets.ground.cache import cache_folder
from finding_tickets.ground.folders import make

FOLDER = "packages"
_PACKAGES = ("finding_tickets", "simcuda")
_KEEP = 8
_PATH = "PYTHONPATH"
_OLDEST, _OLDEST_NAME = (3, 11), "3.11"
_START = f"""
import sys
if sys.version_info < {_OLDEST}:
    sys.exit("Python " + sys.version.split()[0] + " is too old to measure with: it takes {_OLDEST_NAME}")
if not sys.flags.safe_path:
    del sys.path[0]
from runpy import run_module
run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""What ``-P -m`` does, said so that an old Python understands what is wrong."""


def command(python: str) -> list[str]:
    """How the interpreter ``python`` runs a module, whose name comes next; the tool's own for no path."""
    return [python, "-c", _START] if python else [sys.executable, "-P", "-m"]


def environment(python: str) -> dict[str, str]:
    """The variables by which an interpreter finds what measures; the tool's own needs none.

    Raises:
        UnreachableError: There is no folder for the links.
    """
    if not python:
        return {}
    inherited = os.environ.get(_PATH)
    return {_PATH: os.pathsep.join([str(_links()), *([inherited] if inherited else [])])}


def _links() -> Path:
    """The folder with links to the packages that measuring takes, in the user's cache."""
    places = {name: _place(name) for name in _PACKAGES}
    cache = cache_folder()
    if cache is None:
        raise UnreachableError("there is no cache folder, through which another Python finds what measures")
    folder = cache / FOLDER / hashlib.sha256("\n".join(places.values()).encode()).hexdigest()

    def write(aside: Path) -> None:
        for name, place in places.items():
            (aside / name).symlink_to(place, target_is_directory=True)

    try:
        make(folder, write, _KEEP)
    except OSError as error:
        raise UnreachableError(f"{folder} cannot be made: {error.strerror}") from None
    return folder


def _place(package: str) -> str:
    """The folder of a package, which is not imported for that."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise UnreachableError(f"there is no package {package}")
    return str(Path(spec.origin).parent)
