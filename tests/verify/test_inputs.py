"""What a verdict rests on: a change of any of it makes the verdict stale, and of nothing else."""

from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.conftest import Repository, Server
from tests.verify.conftest import FIX, FOUND, VERIFIER, add, verify_all

from finding_tickets.measure.processes.isolation import Isolation, TaskOutcome
from finding_tickets.measure.processes.watch import Access, How
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.files import UNREADABLE
from finding_tickets.register.staleness import OF_OLDER_VERSION, PYTHON, InstalledPackages
from finding_tickets.verify.evidence import RestsOn, current_verdict, dump, load, rests_on

if TYPE_CHECKING:
    from finding_tickets.verify.plan import Plan

# The fix reads a file, looks for another one, lists a folder and imports a module beside the verifier.
USES = """
import json, os, pathlib, time
import torch
from verifiers import helper
HERE = pathlib.Path(__file__).parents[2]
MODE = json.loads((HERE / "settings.json").read_text())["mode"]
FLAG = os.path.exists(HERE / "flag.txt")
NAMES = sorted(HERE.glob("data/*.csv"))
LATEST = (HERE / "latest").resolve().name
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
    assert (Verdict.VERIFIED, ()) == (found.verdict, found.unseen)
    assert Verdict.VERIFIED == now(repository.root)[0]
    return repository.root


def now(root: Path) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict on the ticket, and what has changed."""
    current = current_verdict(Repository(root).load().find("A-1"), root)
    return current.verdict, current.changed


def write(root: Path, path: str, text: str = "") -> None:
    """A file, with the folders that it is in."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def link(root: Path, path: str, target: str) -> None:
    """A link that leads elsewhere from now on."""
    (root / path).unlink()
    (root / path).symlink_to(target)


def unchecked(root: Path, module: str = "verifiers/helper", code: str = "SIZE = 2\n") -> None:
    """A cache of other code, which Python would run for the source without looking at that."""
    write(root, "other.py", code)
    cache = root / Path(module).parent / f"__pycache__/{Path(module).name}.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(
        str(root / "other.py"), str(cache), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )


CHANGES: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "data": (lambda root: write(root, "settings.json", '{"mode": "slow!"}'), "settings.json"),
    "what was not there": (lambda root: write(root, "flag.txt"), "flag.txt"),
    "a listed folder": (lambda root: write(root, "data/two.csv"), "data"),
    "where a link leads": (lambda root: link(root, "latest", "verifiers"), "latest"),
    "a package beside a module": (
        lambda root: write(root, "verifiers/helper/__init__.py"),
        "verifiers/helper/__init__.py",
    ),
    "a package around modules": (lambda root: write(root, "verifiers/__init__.py"), "verifiers/__init__.py"),
    "an extension module beside a source": (
        lambda root: write(root, "verifiers/helper.so"),
        "verifiers/helper.so",
    ),
    "a module of Python's own": (lambda root: write(root, "json.py"), "json.py"),
    "a module that is installed": (lambda root: write(root, "src/torch.py"), "src/torch.py"),
    "a module that is part of Python": (lambda root: write(root, "time.py"), None),
    "a helper": (lambda root: write(root, "verifiers/helper.py", "SIZE = 2\n"), "verifiers/helper.py"),
    "a cache": (unchecked, None),
    "a file beside": (lambda root: write(root, "notes.txt"), None),
    "another module": (lambda root: write(root, "verifiers/other.py"), None),
    "times": (lambda root: os.utime(root / "settings.json", (1, 1)), None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_was_used_makes_a_verdict_stale(measured: Path, tmp_path: Path, name: str) -> None:
    """Whatever it is, and in a clone elsewhere, too; what was not used changes nothing."""
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


@pytest.mark.slow
def test_a_cache_that_is_checked_in_is_not_run(repository: Repository, isolation: Isolation) -> None:
    """The source of the fix waits as often as the code as found, and its cache once."""
    add(repository, "A-1", verifier=VERIFIER.format(ticket="A-1"), fix=FOUND)
    unchecked(repository.root, "fixes/a_1/fix", FIX)
    found = verify_all(repository, isolation)["A-1"].verification
    assert found is not None
    assert Verdict.FAILED == found.verdict


@pytest.mark.slow
def test_what_nobody_can_check_later_is_said(
    repository: Repository, isolation: Isolation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The clock, a file elsewhere and one in shared memory; the verdict counts nevertheless."""
    place = tmp_path_factory.mktemp("elsewhere") / "data.bin"
    place.write_text("1")
    shared = Path(f"/dev/shm/{place.parent.name}-{os.getpid()}")  # noqa: S108 - what is tried
    shared.write_text("1")
    add(repository, "A-1", verifier=VERIFIER.format(ticket="A-1"))
    repository.write(
        "fixes/a_1/fix.py",
        f"import time\nNOW = time.time()\nopen({str(place)!r}).read()\nopen({str(shared)!r}).read()\n{FIX}",
    )
    try:
        found = verify_all(repository, isolation)["A-1"].verification
    finally:
        shared.unlink()
    assert found is not None
    assert Verdict.VERIFIED == found.verdict
    assert (f"files outside of the repository: {shared}, {place}",) == found.unseen
    assert ("fixes/a_1/fix.py",) == found.clock


LARGE = """
import pathlib
HERE = pathlib.Path(__file__).parents[2]
for place in range(20_500):
    (HERE / f"many/{place}").open().close()
with (HERE / "large.bin").open("rb") as file:
    FIRST = file.read(1)
"""


@pytest.mark.slow
def test_much_input_is_known_in_part_and_that_is_said(repository: Repository, isolation: Isolation) -> None:
    """Of 20,500 files some, of 10 GB the beginning and the size: a change there is found, and work ends."""
    add(repository, "A-1", verifier=VERIFIER.format(ticket="A-1"))
    repository.write("fixes/a_1/fix.py", LARGE + FIX)
    (repository.root / "many").mkdir()
    for place in range(20_500):
        (repository.root / f"many/{place}").touch()
    large = repository.write("large.bin", b"1")
    os.truncate(large, 10_000_000_000)
    found = verify_all(repository, isolation, timeout=300.0)["A-1"]
    assert found.verification is not None
    assert found.evidence is not None
    unseen = " ".join(found.verification.unseen)
    assert Verdict.VERIFIED == found.verification.verdict
    assert "it used more than 20000 files" in unseen
    assert "only 10000 of" in unseen
    # Those of the repository; besides there are versions, the Remediation and packages.
    assert 10_000 <= len(found.evidence.inputs) < 10_100
    (file,) = (repository.root / "evidence").rglob("*.json")
    assert file.stat().st_size < 10_000_000
    assert Verdict.VERIFIED == now(repository.root)[0]
    (repository.root / "many/1").write_text("1")
    assert (Verdict.STALE, ("many/1",)) == now(repository.root)


def test_of_a_large_file_the_beginning_and_the_size_are_known(tmp_path: Path) -> None:
    """10 GB are not read: what is known changes with the first byte and with the length."""
    large = tmp_path / "large.bin"
    values: list[str] = []
    for content, size in ((b"1", 10_000_000_000), (b"1", 10_000_000_001), (b"2", 10_000_000_001)):
        with large.open("wb") as opened:
            opened.write(content)
            opened.truncate(size)
        rests = rests_on_files(tmp_path, large)
        values += [each.value for each in rests.repository if each.kind == "file"]
        assert rests.unseen == (f"large.bin, of which only the beginning is known: it has {size} bytes",)
    assert 3 == len(set(values))


def rests_on_files(root: Path, *files: Path) -> RestsOn:
    """What a run that read these files rests on."""
    states = ((str(file), file.stat()) for file in files)
    accesses = (Access(path, "read", (state.st_size, state.st_mtime_ns)) for path, state in states)
    apart = cast("Plan", SimpleNamespace(root=root, files=()))
    return rests_on([TaskOutcome(accesses=tuple(accesses))], apart, root, [])


def test_a_file_that_cannot_be_read_again_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts by its name, and the verdict says that nobody can tell whether it has changed."""
    secret = tmp_path / "secret.key"
    secret.write_text("1")
    opened = Path.open

    def refuse(path: Path, *more: Any) -> Any:
        if path == secret:
            raise PermissionError(13, "Permission denied")
        return opened(path, *more)

    # Root reads whatever its permissions are.
    monkeypatch.setattr(Path, "open", refuse)
    rests = rests_on_files(tmp_path, secret)
    assert ["secret.key"] == [each.name for each in rests.repository if each.value == UNREADABLE]
    assert ("what cannot be read again: secret.key",) == rests.unseen


def test_a_package_without_record_is_known_by_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its own name and no version; a change of what ran is one of the package."""
    site = tmp_path / "lib/site-packages"
    write(site, "library/work.py", "x = 1\n")
    monkeypatch.syspath_prepend(site)
    (value,) = (each for each in rests_on_files(tmp_path / "r", site / "library/work.py").environment[1:])
    assert ("library", "package", "", "library/work.py") == (
        value.name,
        value.kind,
        *value.value.split("\n")[::2],
    )
    given = [(value.name, value.kind, value.value)]
    assert () == InstalledPackages(tmp_path / "r").changes(given)
    write(site, "library/work.py", "x = 2\n")
    assert ("library",) == InstalledPackages(tmp_path / "r").changes(given)


@pytest.mark.parametrize(("code", "named"), [("import torch\n", []), ("import triton\n", ["triton"])])
def test_triton_is_part_of_torch_unless_the_code_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, named: list[str]
) -> None:
    """Torch for CUDA imports it for itself: the evidence is that of torch for the CPU, which has none."""
    site = tmp_path / "lib/site-packages"
    write(site, "torch/utils/_triton.py", "import triton\n")
    write(site, "triton/__init__.py")
    write(tmp_path / "r", "train.py", code)
    monkeypatch.syspath_prepend(site)
    used = [tmp_path / "r/train.py", site / "torch/utils/_triton.py", site / "triton/__init__.py"]
    rests = rests_on_files(tmp_path / "r", *used)
    assert named == [each.name for each in rests.environment if each.kind == "package"]


@pytest.mark.slow
def test_evidence_of_older_versions_is_stale_with_the_reason(measured: Path, tmp_path: Path) -> None:
    """It names no Python, for it was recorded before that counted; no error."""
    root = tmp_path / "clone"
    copytree(measured, root, symlinks=True)
    (file,) = (root / "evidence").rglob("*.json")
    evidence = load(file.read_bytes())
    inputs = tuple(each for each in evidence.inputs if each.name != PYTHON)
    file.write_bytes(dump(evidence.model_copy(update={"inputs": inputs})))
    assert (Verdict.STALE, (OF_OLDER_VERSION,)) == now(root)


def test_a_program_that_is_named_like_its_package_is_not_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the command comes first on the path, and has ``pytest`` as well."""
    write(tmp_path, "bin/tool", "#!/bin/sh")
    write(tmp_path, "lib/tool/__init__.py")
    monkeypatch.setattr("sys.path", [f"{tmp_path}/bin", f"{tmp_path}/lib"])
    assert f"{tmp_path}/lib" == InstalledPackages(tmp_path / "repository").base("tool")


def test_what_is_said_of_the_clock_is_the_same_on_every_machine(tmp_path: Path) -> None:
    """A file of a revision has its name in the repository, once; files of the system are no news."""
    root, checkout = tmp_path / "work", tmp_path / "cache/7092c85"
    for folder in (root, checkout):
        write(folder, "train.py", "import time\nprint(time.time())\n")
    used = [root / "train.py", checkout / "train.py", *map(Path, ("/etc/inputrc", "/etc/locale.alias"))]
    outcome = TaskOutcome(accesses=tuple(Access(str(path), "read", (1, 1)) for path in used))
    apart = cast("Plan", SimpleNamespace(root=root, files=()))
    rests = rests_on([outcome], apart, root, [str(checkout)])
    assert (("train.py",), ()) == (rests.clock, rests.unseen)


def test_what_a_run_only_writes_is_no_input(tmp_path: Path) -> None:
    """Nor are the folders around it; what it reads, looks for or lists before is said, and is none either."""
    for name in ("train.py", "runs/log.txt", "kept/state.bin", "tries/1/log.txt", "data.csv"):
        write(tmp_path, name, "1")

    def use(path: str, *hows: How) -> list[Access]:
        state = (1, (tmp_path / path).stat().st_mtime_ns)
        return [Access(str(tmp_path / path), how, state) for how in hows]

    used = [*use("train.py", "read"), *use("data.csv", "looked", "read"), *use("runs", "looked", "written")]
    used += [*use("runs/log.txt", "written", "read"), *use("kept/state.bin", "looked", "read", "written")]
    used += [*use("tries", "listed"), *use("tries/1", "written"), *use("tries/1/log.txt", "written")]
    rests = rests_on(
        [TaskOutcome(accesses=tuple(used))],
        cast("Plan", SimpleNamespace(root=tmp_path, files=())),
        tmp_path,
        [],
    )
    names = {each.name for each in rests.repository if each.kind in {"file", "path", "names"}}
    assert {"train.py", "data.csv"} == names
    assert (
        "what it reads or looks for in the repository, and writes itself: kept/state.bin, tries",
    ) == rests.unseen
