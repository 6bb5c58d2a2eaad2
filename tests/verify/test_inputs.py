"""What a verdict depends on: a change of any of it makes the verdict stale, and of nothing else."""

from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from tests.conftest import Repository, Server
from tests.verify.conftest import FIX, VERIFIER, add, verify_all

from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import Verdict

# The fix reads two files, one through a link, looks for another one, lists a folder and imports a module.
USES = """
import json, os, pathlib, time
import torch
from verifiers import helper
HERE = pathlib.Path(__file__).parents[2]
MODE = json.loads((HERE / "settings.json").read_text())["mode"]
FLAG = os.path.exists(HERE / "flag.txt")
NAMES = sorted(HERE.glob("data/*.csv"))
ONE = (HERE / "latest/one.csv").read_text()
"""


@pytest.fixture(scope="module")
def measured(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one verified ticket."""
    repository = Repository(tmp_path_factory.mktemp("measured"))
    add(repository, "A-1", verifier=VERIFIER.format(ticket="A-1"))
    repository.write("fixes/a_1/fix.py", USES + FIX)
    repository.write("verifiers/helper.py", "SIZE = 1\n")
    repository.write("settings.json", '{"mode": "quick"}')
    repository.write("data/one.csv", "1")
    (repository.root / "latest").symlink_to("data")
    found = verify_all(repository, server())["A-1"].verification
    assert found is not None
    assert Verdict.VERIFIED == found.verdict
    assert Verdict.VERIFIED == now(repository.root)[0]
    return repository.root


def now(root: Path) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict on the ticket, and what has changed."""
    current = Repository(root).measured("A-1")
    return current.verdict, current.changed


def write(root: Path, path: str, text: str = "") -> None:
    """A file, with the folders that it is in."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def unchecked(root: Path, module: str = "verifiers/helper", code: str = "SIZE = 2\n") -> None:
    """A cache of other code, which Python would run for the source without looking at that."""
    write(root, "other.py", code)
    cache = root / Path(module).parent / f"__pycache__/{Path(module).name}.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(
        str(root / "other.py"), str(cache), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )


def relink(root: Path) -> None:
    """Have a link lead to a folder with another file of the same name."""
    write(root, "other/one.csv", "2")
    (root / "latest").unlink()
    (root / "latest").symlink_to("other")


CHANGES: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "data": (lambda root: write(root, "settings.json", '{"mode": "slow!"}'), "settings.json"),
    "data behind a link": (lambda root: write(root, "data/one.csv", "2"), "latest/one.csv"),
    "where a link leads": (relink, "latest/one.csv"),
    # Nobody opened these.
    "what was looked for": (lambda root: write(root, "flag.txt"), None),
    "a listed folder": (lambda root: write(root, "data/two.csv"), None),
    "a file beside": (lambda root: write(root, "notes.txt"), None),
    "another module": (lambda root: write(root, "verifiers/other.py"), None),
    "a cache": (unchecked, None),
    "times": (lambda root: os.utime(root / "settings.json", (1, 1)), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_was_used_makes_a_verdict_stale(measured: Path, tmp_path: Path, name: str) -> None:
    """In a clone elsewhere, too; what was not opened changes nothing."""
    root = tmp_path / "clone"
    copytree(measured, root, symlinks=True)
    change, expected = CHANGES[name]
    change(root)
    stale = (Verdict.STALE, (expected,))
    assert (stale if expected else (Verdict.VERIFIED, ())) == now(root)


@pytest.mark.slow
def test_a_clone_elsewhere_gives_the_same_bytes(measured: Path, tmp_path: Path, isolation: Isolation) -> None:
    """Also where bytecode of other code lies beside the source, which nobody runs."""
    root = tmp_path / "clone"
    copytree(measured, root, symlinks=True)
    rmtree(root / "evidence")
    unchecked(root)
    (root / "other.py").unlink()
    verify_all(Repository(root), isolation)
    (file,) = (measured / "evidence").rglob("*.json")
    assert file.read_bytes() == (root / file.relative_to(measured)).read_bytes()
