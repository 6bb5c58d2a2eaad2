"""Whatever breaks while tickets are verified: evidence is valid, nothing is left behind, and it goes on."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from tests.conftest import release_folders
from tests.test_nothing_touched import MARK, Place, processes, ticket
from tests.verify.conftest import CLAIMS, FIX, FOUND

from finding_tickets.ground import cache
from finding_tickets.ground.files import replace
from finding_tickets.verify.evidence import load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="processes are found by the environment that /proc shows"
    ),
]

KILLS = 2
SEED = 6
SECONDS_TO_END = 5.0
TICKETS = (sys.executable, "-m", "finding_tickets")
VERIFY = (*TICKETS, "verify")
IDS = ("A-1", "A-2", "A-3")
# The first one is at a revision, and enough where all would do as these.
TWO = IDS[:2]
# Each starts a program in a session of its own, which starts another one. The last ticket waits as long as
# there is such a file.
VERIFIER = """
import os
import subprocess
import time
from functools import partial
from pathlib import Path

import torch

from finding_tickets.workload import Point, Workload

subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"], start_new_session=True)
while "{ticket}" == "A-3" and Path(os.environ["HOLD"]).exists():
    time.sleep(0.01)


def build(point, device, generator):
    return ([torch.rand(point.size, generator=generator).to(device) for _ in range(point.tensors)],)


sweep = [Point(tensors=n, size=s) for n, s in [(1, 7), (2, 64)]]
workload = Workload(ticket="{ticket}", build=build, sweep=sweep)
"""
# The first one has a variant at a revision, which is checked out into the cache.
AT_A_REVISION = "variants: {found: 'fixes/a_1/found.py:check@HEAD', fix: 'fixes/a_1/fix.py:check'}\n"
# Runs a shell's commands where it can mount, and then the arguments.
APART = ("unshare", "--map-root-user", "--mount", "sh", "-ec")
FULL = "mount -t tmpfs -o size=4096 none {}"
READ_ONLY = "mount --bind {0} {0}; mount -o remount,bind,ro {0}"
ALL_READ_ONLY = """
while read -r _ point _; do
    mount -o remount,bind,ro "$point" 2>/dev/null || true
done </proc/self/mounts
"""
USABLE = (
    shutil.which("unshare") is not None
    and subprocess.run([*APART, "true"], check=False, capture_output=True).returncode == 0
)
needs_namespaces = pytest.mark.skipif(not USABLE, reason="user namespaces are not allowed here")
Files = Mapping[str, bytes]
REMOVING = """
import os, shutil, signal
from finding_tickets.ground import cache

shutil.rmtree = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
cache.make_folder("kind", "next", lambda _: None, 1)
"""


class Broken(Place):
    """A repository with cheap tickets, and the runs that something happens to."""

    def evidence(self) -> Files:
        """The files of evidence, and all else that is in their folder but what git needs, by their names."""
        folder = self.root / "evidence"
        return {
            str(file.relative_to(folder)): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file() and file.name != ".gitattributes"
        }

    def recorded(self) -> set[str]:
        """The tickets that there is evidence on."""
        # The name of an unfinished file begins with a dot; a run that is killed then has recorded nothing.
        return {
            folder
            for folder, _, file in (name.partition("/") for name in self.evidence())
            if not file.startswith(".")
        }

    def restore(self, evidence: Files) -> None:
        """Have these files of evidence and no others."""
        shutil.rmtree(self.root / "evidence", ignore_errors=True)
        for name, content in evidence.items():
            file = self.root / "evidence" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def verifying(self, mark: str, *options: str) -> AbstractContextManager[subprocess.Popen[str]]:
        """A run of ``verify`` that goes on meanwhile."""
        return self.running(mark, *VERIFY, *(options or ("--all",)))

    @contextmanager
    def running(self, mark: str, *command: str) -> Iterator[subprocess.Popen[str]]:
        """A run of a command that goes on meanwhile."""
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment | {MARK: mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            yield run

    @property
    def environment(self) -> dict[str, str]:
        """That of a user, and where verifiers look what they are to wait for."""
        return super().environment | {"HOLD": str(self.hold)}

    @property
    def hold(self) -> Path:
        """The file for which the last ticket waits to be gone."""
        return self.around / "hold"

    def left(self, mark: str) -> list[str]:
        """Processes, temporary files, unfinished files and work trees that a run has left."""
        places = ("temporary/*", "repository/evidence/**/.*.part", "cache/*/.*", "cache/*/*/.*")
        return [*processes(mark), *(str(file) for place in places for file in self.around.glob(place))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Broken:
    """Three tickets in a repository of git's, not yet measured."""
    made = Broken(tmp_path_factory.mktemp("broken"))
    for folder in ("repository", "home", "temporary", "cache"):
        (made.around / folder).mkdir()
    made.git("init", "--quiet", "--initial-branch=main")
    for name in IDS:
        key = name.lower().replace("-", "_")
        section = f"## Remediation\n\n```yaml\n{AT_A_REVISION * (name == 'A-1')}{CLAIMS}\n```\n"
        made.write(f"tickets/{name}.md", ticket(name, "open", section))
        made.write(f"verifiers/{key}.py", VERIFIER.format(ticket=name))
        made.write(f"fixes/{key}/found.py", FOUND)
        made.write(f"fixes/{key}/fix.py", FIX)
    made.git("add", ".")
    made.git("commit", "--quiet", "--message", "code")
    return made


@pytest.fixture(scope="module")
def undisturbed(place: Broken) -> tuple[Files, float]:
    """The evidence of a run to which nothing happens, and how many seconds that takes."""
    began = time.monotonic()
    assert 0 == verified(place)
    seconds = time.monotonic() - began
    shutil.copytree(place.around / "cache", place.around / "full cache")
    return place.evidence(), seconds


def verified(place: Broken) -> int:
    """The exit code of a whole run."""
    with place.verifying("") as run:
        run.communicate(timeout=300)
    return run.returncode


def measuring(said: str) -> set[str]:
    """The tickets that a run has said it measures."""
    return {
        name for names in re.findall(r"^measuring (.*)$", said, re.MULTILINE) for name in names.split(", ")
    }


def eventually(nothing: Callable[[], list[str]], seconds: float = SECONDS_TO_END) -> list[str]:
    """What is left when time is up, or as soon as nothing is."""
    deadline = time.monotonic() + seconds
    while (left := nothing()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def test_a_killed_run_leaves_valid_evidence_and_nothing_else(
    place: Broken, undisturbed: tuple[Files, float]
) -> None:
    """At any moment every file is the old or the new one, nobody is left, and the next run completes.

    ``verify --stale`` measures what the killed run had not recorded, and nothing else.
    """
    complete, seconds = undisturbed
    chance = random.Random(SEED)  # noqa: S311 - chance, not secrecy
    # Each at a moment of its own share of the time that a run takes.
    for share in range(KILLS):
        # A trailing space is no part of what is read, and makes the content another.
        old = {name: content + b" " for name, content in complete.items()} if share % 2 else {}
        place.restore(old)
        shutil.rmtree(place.around / "cache", ignore_errors=True)
        mark = uuid4().hex
        with place.verifying(mark) as run:
            with suppress(subprocess.TimeoutExpired):
                run.wait(chance.uniform(share, share + 1) / KILLS * seconds)
            run.kill()
        assert [] == eventually(partial(place.left, mark))
        found = place.evidence()
        assert set(old) <= set(found) <= set(complete)
        for name, content in found.items():
            assert content in (complete[name], old.get(name))
            assert load(content).verification.ticket == name.partition("/")[0]
    place.restore({})
    place.hold.touch()
    try:
        with place.verifying("") as run:
            assert [] == eventually(lambda: [] if "A-1" in place.recorded() else ["missing"], 120)
            run.kill()
    finally:
        place.hold.unlink()
    # With two processors the variants of the last one keep both, before those of A-2 are compared.
    missing = set(IDS) - place.recorded()
    assert {"A-3"} <= missing <= {"A-2", "A-3"}
    with place.verifying("", "--stale") as rest:
        _, said = rest.communicate(timeout=300)
    assert (0, missing) == (rest.returncode, measuring(said))
    assert complete == place.evidence()
    assert [place.git("rev-parse", "--show-toplevel").strip()] == [
        line.split()[0] for line in place.git("worktree", "list").splitlines()
    ]


def test_a_check_that_is_killed_while_git_writes_its_base_leaves_nothing(place: Broken) -> None:
    """Nothing is measured yet; what git goes on to write for a moment is gone too."""
    shutil.rmtree(place.around / "cache", ignore_errors=True)
    attributes = place.root / ".git/info/attributes"
    attributes.write_text("A-1.md filter=slow\n")
    place.git("config", "filter.slow.smudge", "sleep 1; cat")
    mark = uuid4().hex
    unfinished = (place.around / "cache/finding-tickets/checkouts").glob
    try:
        with place.running(mark, *TICKETS, "check", "--base", "HEAD") as run:
            assert [] == eventually(lambda: [] if [*unfinished(".*/files/fixes")] else ["nothing"], 60)
            run.kill()
        assert [] == eventually(partial(place.left, mark))
    finally:
        attributes.unlink()


def test_a_run_that_is_killed_while_it_removes_checkouts_leaves_none_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has begun to remove has no name any more, by which another run would take it for whole."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kind = tmp_path / "finding-tickets/kind"
    for name in ("first", "last"):
        cache.make_folder("kind", name, lambda _: None, 2)
    release_folders()
    removing = subprocess.run([sys.executable, "-c", REMOVING], check=False)
    assert -signal.SIGKILL == removing.returncode
    assert [] == eventually(lambda: [str(file) for file in kind.glob(".*")])
    assert ["last"] == [folder.name for folder in kind.iterdir()]


def test_two_runs_at_once_leave_what_one_leaves(place: Broken, undisturbed: tuple[Files, float]) -> None:
    """Both succeed, beginning with neither evidence nor cache, and no file of theirs is left."""
    complete = of(undisturbed[0], TWO)
    place.restore({})
    shutil.rmtree(place.around / "cache", ignore_errors=True)
    mark = uuid4().hex
    with place.verifying(mark, *TWO) as one, place.verifying(mark, *TWO) as other:
        for run in (one, other):
            run.communicate(timeout=300)
    assert [0, 0] == [one.returncode, other.returncode]
    assert complete == place.evidence()
    assert [] == eventually(lambda: place.left(mark))


def of(evidence: Files, tickets: tuple[str, ...]) -> Files:
    """The evidence of some tickets."""
    return {name: content for name, content in evidence.items() if name.startswith(tickets)}


@needs_namespaces
@pytest.mark.parametrize(
    ("what", "code", "message", "measured"),
    [
        (FULL.format("../repository/evidence"), 4, "cannot be written: No space left", True),
        (FULL.format("../temporary"), 3, "there is no room for", False),
        (ALL_READ_ONLY, 3, "there is no folder for temporary files", False),
    ],
    ids=["full evidence", "full temporary", "all read-only"],
)
def test_what_cannot_be_written_is_said(
    place: Broken, undisturbed: tuple[Files, float], what: str, code: int, message: str, measured: bool
) -> None:
    """The exit code is that of data that is bad, or of nothing measured; the evidence stays as it was."""
    place.restore(old := {name: content + b" " for name, content in of(undisturbed[0], TWO).items()})
    shutil.rmtree(place.around / "cache", ignore_errors=True)
    (place.around / "cache").mkdir()
    mark = uuid4().hex
    # The list is of what is left where the run has seen it, which may be nowhere else. The shell is still in
    # what was there before its folder was mounted over.
    script = f"""{what}
        cd "$PWD"
        "$@" || code=$?
        find evidence/ -name ".*.part" >&2
        exit ${{code:-0}}"""
    done = place.run(*APART, script, "sh", *VERIFY, *TWO, mark=mark)
    assert (code, True) == (done.returncode, message in done.stdout + done.stderr), done.stdout + done.stderr
    assert "evidence/" not in done.stderr
    assert measured == bool(re.search(r"^A-2 +verified", done.stdout, re.MULTILINE))
    assert old == place.evidence()
    assert [] == eventually(lambda: place.left(mark))


@needs_namespaces
def test_a_cache_that_can_only_be_read_is_read(place: Broken, undisturbed: tuple[Files, float]) -> None:
    """A checkout that is there serves, and all is measured."""
    complete = of(undisturbed[0], ("A-1",))
    place.restore({})
    shutil.rmtree(place.around / "cache")
    shutil.copytree(place.around / "full cache", place.around / "cache")
    done = place.run(*APART, f'{READ_ONLY.format("../cache")}; "$@"', "sh", *VERIFY, "A-1")
    assert 0 == done.returncode, done.stderr
    assert complete == place.evidence()


@needs_namespaces
def test_nobody_needs_a_home(place: Broken, undisturbed: tuple[Files, float]) -> None:
    """Without a folder for a cache all is measured; checkouts are made among the temporary files."""
    complete = of(undisturbed[0], ("A-1",))
    place.restore({})
    mark = uuid4().hex
    nobody = ("unshare", "--user", "--map-user=54321", "env", "-u", "HOME", "-u", "XDG_CACHE_HOME")
    done = place.run(*nobody, *VERIFY, "A-1", mark=mark)
    assert 0 == done.returncode, done.stderr
    assert complete == place.evidence()
    assert [] == eventually(lambda: place.left(mark))


def test_a_replaced_file_has_content_and_mode(tmp_path: Path) -> None:
    """And nothing stands beside it."""
    file = tmp_path / "file"
    for content in (b"one", b"two"):
        replace(file, content, mode=0o644)
        assert [(file, content, 0o644)] == [
            (each, each.read_bytes(), each.stat().st_mode & 0o777) for each in tmp_path.iterdir()
        ]


def test_what_a_killed_process_left_beside_a_file_is_removed(tmp_path: Path) -> None:
    """The next one that writes there does it; what is still being written, or is not ours, stays."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    long_ago = time.time() - 60
    ours, others = f".{gone.pid}-{'a' * 16}.part", {f".{os.getpid()}-{'a' * 16}.part", ".a.part", "a.part"}
    for name in (ours, *others):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (long_ago, long_ago))
    # A process of another machine may be writing this one.
    fresh = f".{gone.pid}-{'b' * 16}.part"
    (tmp_path / fresh).touch()
    replace(tmp_path / "file", b"new")
    assert {"file", fresh, *others} == {each.name for each in tmp_path.iterdir()}


LINKED = """
import os, signal, sys
from pathlib import Path
from finding_tickets.ground.files import replace

Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
replace(Path(sys.argv[1]), b"new")
"""


def test_a_process_killed_before_its_file_is_in_place_is_cleaned_up_after(tmp_path: Path) -> None:
    """What it leaves has the name by which the next one knows it."""
    file = tmp_path / "file"
    assert (
        -signal.SIGKILL == subprocess.run([sys.executable, "-c", LINKED, str(file)], check=False).returncode
    )
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    replace(file, b"new")
    assert {"file": b"new"} == {each.name: each.read_bytes() for each in tmp_path.iterdir()}
