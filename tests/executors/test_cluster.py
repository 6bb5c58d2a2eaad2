"""What a cluster verifies is what this machine verifies, also when a machine of it dies."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Git, Repository
from tests.executors.conftest import MEBIBYTE
from tests.executors.processes import wait_for

import finding_tickets
from finding_tickets.cli import main
from finding_tickets.documents.reading import Document
from finding_tickets.errors import ExitCode
from finding_tickets.executors import ray
from finding_tickets.executors.node import versions
from finding_tickets.executors.pack import pack_work_tree
from finding_tickets.executors.ray import RayCluster
from finding_tickets.ground import __version__
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.verify.verify import Settings, Verified, verify

pytestmark = pytest.mark.slow

VERIFIER = """
import torch

from finding_tickets.workload import Point, Workload

{first}

def build(point, device, generator):
    return ([torch.rand(4, generator=generator).to(device) for _ in range(point.tensors)],)


workload = Workload(ticket="{ticket}", build=build, sweep=[Point(tensors=n) for n in (1, 2)])
"""
READS_EACH = "def check(tensors):\n    return sum(tensor.sum().item() for tensor in tensors)\n"
READS_ONE = "import torch\n\n\ndef check(tensors):\n    return torch.cat(tensors).sum().item()\n"
RAISES = "def check(tensors):\n    raise ValueError('no')\n"
FIXED = "claims: {found: {syncs: tensors}, fix: {syncs: 1}}"
# One of each verdict that measuring can end in.
KINDS = [
    (FIXED, READS_EACH, READS_ONE),
    ("claims: {found: {syncs: 2*tensors}, fix: {syncs: 1}}", READS_EACH, READS_ONE),
    ("claims: {found: {syncs: tensors}, fix: {syncs: 0}}", READS_EACH, READS_ONE),
    (FIXED, RAISES, READS_ONE),
    ("claims: {found: {syncs: tensors}}", READS_EACH, None),
]
VERDICTS = [Verdict.VERIFIED, Verdict.REFUTED, Verdict.FAILED, Verdict.INCONCLUSIVE, Verdict.REPRODUCED]

SLEEPS_ONCE = """
import os, pathlib, time
note = pathlib.Path({note!r})
if not note.exists():
    note.write_text(str(os.getpid()))
    time.sleep(600)
"""
WAITS = """
import pathlib, time
while not pathlib.Path({note!r}).exists():
    time.sleep(0.1)
"""
WAITS_FOR_OTHERS = """
import pathlib, time
pathlib.Path({notes!r}, "{number}").touch()
while len(list(pathlib.Path({notes!r}).iterdir())) < 4:
    time.sleep(0.1)
"""
KILLS_ITS_WORKER = """
import os, pathlib, signal
process = os.getpid()
while process > 1 and not pathlib.Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::"):
    process = int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
if process > 1:
    os.kill(process, signal.SIGKILL)
"""


def add(repository: Repository, number: int, first: str = "", more: str = "") -> None:
    """A ticket whose verdict follows from its number; its verifier begins with ``first``."""
    claims, found, fix = KINDS[number % len(KINDS)]
    ticket, name = f"T-{number}", f"t_{number}"
    repository.ticket(ticket, more=f"## Remediation\n\n```yaml\n{more}{claims}\n```\n")
    repository.write(f"verifiers/{name}.py", VERIFIER.format(ticket=ticket, first=first))
    repository.write(f"fixes/{name}/found.py", found)
    if fix:
        repository.write(f"fixes/{name}/fix.py", fix)


def settings_of(repository: Repository, **more: Any) -> Settings:
    """The settings of a run; the evidence goes where ``more`` says."""
    known = {"root": repository.root, "meter": "simulated", "timeout": 60.0, "memory": 1 << 30}
    return Settings(**{"evidence": "evidence", **known, **more})


def run(where: RayCluster | Isolation, repository: Repository, **more: Any) -> list[Verified]:
    """Verify everything in the repository, on a cluster or on this machine."""
    documents, settings = repository.load().documents, settings_of(repository, **more)
    told: list[Document] = []
    if isinstance(where, RayCluster):
        return list(where.verify(documents, settings, told.append))
    return list(verify(documents, where, settings, told.append))


def verdicts(done: Sequence[Verified]) -> dict[str, Verdict]:
    """The verdicts by ID; each document has one."""
    found = {one.document.id.value: one.verification.verdict for one in done if one.verification}
    assert len(found) == len(done)
    return found


def sorted_ids(done: Sequence[Verified]) -> list[str]:
    """The IDs of the documents, each as often as there is a result for it."""
    return sorted(one.document.id.value for one in done)


def reason(done: Sequence[Verified], ticket: str) -> str:
    """Why a verdict is what it is."""
    (found,) = [one.verification for one in done if one.document.id.value == ticket]
    assert found is not None
    return found.reason


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its name there."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def on(cluster: Any) -> RayCluster:
    """The executor for a cluster."""
    return RayCluster(address=cluster.address)


def has_sandbox() -> bool:
    """Whether bubblewrap works here."""
    command = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(command, check=False).returncode == 0


def test_every_verdict_is_that_of_this_machine(
    repository: Repository, cluster: Any, isolation: Isolation
) -> None:
    """Three machines find the same, each document once, and leave the same evidence."""
    for number in range(len(KINDS)):
        add(repository, number)
    here = run(isolation, repository, evidence="here")
    there = run(on(cluster), repository, evidence="there")
    assert {f"T-{number}": verdict for number, verdict in enumerate(VERDICTS)} == verdicts(there)
    assert verdicts(here) == verdicts(there)
    assert sorted(f"T-{number}" for number in range(len(KINDS))) == sorted_ids(there)
    assert len(KINDS) == len(files(repository.root / "here"))
    assert files(repository.root / "here") == files(repository.root / "there")


def test_what_ran_on_a_machine_that_dies_runs_on_another(
    repository: Repository, cluster: Any, isolation: Isolation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In the middle of 8, of which every result is there once and is what it would have been.

    Nothing of the lost machine goes on.
    """
    note = tmp_path_factory.mktemp("note") / "pid"
    for number in range(8):
        add(repository, number, SLEEPS_ONCE.format(note=str(note)) if number == 6 else "")
    recorded: list[int] = []
    evidence = repository.root / "there"
    killer = threading.Thread(target=kill_machine, args=(cluster, note, evidence, recorded))
    killer.start()
    there = run(on(cluster), repository, evidence="there", timeout=600.0)
    killer.join()
    # The note is there now: nothing sleeps on this machine.
    here = run(isolation, repository, evidence="here")
    assert 0 < recorded[0] < 7
    assert sorted(f"T-{number}" for number in range(8)) == sorted_ids(there)
    assert verdicts(here) == verdicts(there)
    assert 8 == len(files(repository.root / "here"))
    assert files(repository.root / "here") == files(evidence)
    sleeper = int(note.read_text(encoding="ascii"))
    wait_for(lambda: not Path(f"/proc/{sleeper}").exists())
    assert not Path(f"/proc/{sleeper}").exists()
    cluster.add_node(num_cpus=1, object_store_memory=100 * MEBIBYTE)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail what would otherwise wait for ever."""

    def late(*_: object) -> None:
        raise AssertionError(f"still waiting after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def kill_machine(cluster: Any, note: Path, evidence: Path, recorded: list[int]) -> None:
    """Kill the machine on which a task has left its note, and tell how much is recorded by then."""
    wait_for(lambda: note.exists() and note.read_text(encoding="ascii"), 300.0)
    recorded.append(len(files(evidence)))
    above = ancestors(int(note.read_text(encoding="ascii")))
    (lost,) = [
        node
        for node in cluster.worker_nodes
        if any(process.process.pid in above for each in node.all_processes.values() for process in each)
    ]
    cluster.remove_node(lost, allow_graceful=False)


def ancestors(process: int) -> list[int]:
    """The processes above one."""
    above = []
    while process > 1:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        process = int(stat.rpartition(")")[2].split()[1])
        above.append(process)
    return above


def test_a_task_that_kills_its_worker_is_inconclusive(repository: Repository, cluster: Any) -> None:
    """It is refused what it tries, which is the reason; the others are verified."""
    add(repository, 0, KILLS_ITS_WORKER)
    add(repository, 5)
    done = run(on(cluster), repository)
    assert {"T-0": Verdict.INCONCLUSIVE, "T-5": Verdict.VERIFIED} == verdicts(done)
    assert reason(done, "T-0").endswith("PermissionError: [Errno 1] Operation not permitted")


def test_a_revision_travels_as_its_commit(
    repository: Repository, git: Git, cluster: Any, isolation: Isolation
) -> None:
    """The names of revisions are this repository's; the machines get their files without the history."""
    add(
        repository,
        0,
        more="variants: {found: 'fixes/t_0/found.py:check@HEAD~1', fix: 'fixes/t_0/fix.py:check'}\n",
    )
    git("add", ".")
    git("commit", "-m", "first")
    repository.write("fixes/t_0/found.py", RAISES)
    git("commit", "-am", "second")
    here = run(isolation, repository, evidence="here")
    there = run(on(cluster), repository, evidence="there")
    assert {"T-0": Verdict.VERIFIED} == verdicts(here) == verdicts(there)
    assert files(repository.root / "here") == files(repository.root / "there")


def test_a_commit_that_a_machine_does_not_have_is_said(
    repository: Repository, git: Git, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pack that lacks it makes those verifications inconclusive that need it."""
    add(
        repository,
        0,
        more="variants: {found: 'fixes/t_0/found.py:check@HEAD', fix: 'fixes/t_0/fix.py:check'}\n",
    )
    git("add", ".")
    git("commit", "-m", "first")
    add(repository, 5)
    monkeypatch.setattr(ray, "pack_work_tree", lambda root, _, say: pack_work_tree(root, [], say))
    done = run(on(cluster), repository)
    assert {"T-0": Verdict.INCONCLUSIVE, "T-5": Verdict.VERIFIED} == verdicts(done)
    assert f"found: HEAD: its commit {git('rev-parse', 'HEAD')[:12]} is not on this machine" == reason(
        done, "T-0"
    )


def test_a_machine_with_another_torch_measures_nothing(
    repository: Repository, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its evidence would be that of another environment: the versions are said, and nothing is recorded."""
    add(repository, 0)
    mine = versions()
    monkeypatch.setattr(ray, "versions", lambda: {**mine, "torch": "1.0"})
    done = run(on(cluster), repository)
    assert reason(done, "T-0").endswith(f": torch is {mine['torch']} there and 1.0 here")
    assert not (repository.root / "evidence").exists()


def test_what_one_machine_cannot_measure_others_do(
    repository: Repository,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A machine with another version of the tool is named once and left out; the exit code is 3."""
    tickets = [f"T-{5 * number}" for number in range(8)]
    for number in range(8):
        add(repository, 5 * number)
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(Path(finding_tickets.__file__).parent, other / "finding_tickets")
    stated = other / "finding_tickets/ground/__init__.py"
    stated.write_text(stated.read_text().replace(f'"{__version__}"', '"0.0.1"'))
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(other))
        unfit = cluster.add_node(num_cpus=1, object_store_memory=100 * MEBIBYTE)
    where = ["--root", str(repository.root), "--executor", "ray", "--address", cluster.address]
    try:
        cluster.wait_for_nodes()
        code = main.run(["verify", "--all", "--meter", "simulated", "--format", "json", *where])
    finally:
        cluster.remove_node(unfit)
    shown = capsys.readouterr()
    assert ExitCode.INCONCLUSIVE == code
    verified = [(each["ticket"], each["verdict"]) for each in json.loads(shown.out)["data"]]
    assert [(ticket, "verified") for ticket in tickets] == verified
    (said,) = (line for line in shown.err.splitlines() if line.startswith("nothing is measured"))
    assert said.endswith(f": finding-tickets is 0.0.1 there and {__version__} here")


def test_a_machine_that_joins_without_the_tool_measures_nothing(
    repository: Repository,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """It is asked when it is seen, and left out, which is said; no verification is lost to it."""
    note = tmp_path_factory.mktemp("note") / "said"
    for number in range(12):
        add(repository, 5 * number, WAITS.format(note=str(note)) if number == 0 else "")
    empty = tmp_path_factory.mktemp("empty")
    (empty / "finding_tickets").mkdir()
    (empty / "finding_tickets/__init__.py").touch()
    said: list[str] = []

    def tell(what: str) -> None:
        said.append(what)
        note.touch()

    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(empty))
        done = run_while_one_joins(cluster, repository, 1, tell)
    assert {Verdict.VERIFIED} == set(verdicts(done).values())
    (what,) = said
    assert what.endswith(f": there is no finding-tickets {__version__}")


def test_a_machine_that_joins_takes_its_share(
    repository: Repository, cluster: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of what waits by then: four wait for each other, and three machines were there at first."""
    notes = tmp_path_factory.mktemp("notes")
    for number in range(8):
        add(repository, 5 * number, WAITS_FOR_OTHERS.format(notes=str(notes), number=number))
    said: list[str] = []
    done = run_while_one_joins(cluster, repository, 6, said.append)
    assert {Verdict.VERIFIED} == set(verdicts(done).values())
    assert [] == said


def run_while_one_joins(
    cluster: Any, repository: Repository, after: int, tell: Callable[[str], None]
) -> list[Verified]:
    """Verify everything, with one more machine as soon as so many verifications are given away."""
    begun: list[Document] = []
    joined: list[Any] = []

    def on_start(document: Document) -> None:
        begun.append(document)
        if len(begun) == after:
            joined.append(cluster.add_node(num_cpus=1, object_store_memory=100 * MEBIBYTE))

    how = RayCluster(address=cluster.address, say=tell)
    try:
        return list(how.verify(repository.load().documents, settings_of(repository), on_start))
    finally:
        for node in joined:
            cluster.remove_node(node)


def test_a_cluster_without_what_is_asked_says_so_at_once(repository: Repository, cluster: Any) -> None:
    """A resource or a GPU that no machine has is named; documents without a verifier are told of as ever."""
    add(repository, 0)
    repository.ticket("U-1")
    done = run(on(cluster), repository, resources={"H100": 0.5})
    assert {"T-0": Verdict.INCONCLUSIVE, "U-1": Verdict.UNVERIFIED} == verdicts(done)
    missing = "no machine of the cluster has what it asks for: CPU 1, memory 1024 MiB, H100 0.5"
    assert missing == reason(done, "T-0")
    assert reason(run(on(cluster), repository, meter="cuda"), "T-0").endswith("memory 1024 MiB, GPU 1")
    assert not (repository.root / "evidence").exists()


def test_without_a_head_what_had_arrived_counts(
    repository: Repository, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is inconclusive with the reason; a head that died is stood for by one that does not answer."""
    for number in range(10):
        add(repository, number)
    connect = socket.create_connection

    def refused(*arguments: Any) -> socket.socket:
        if (repository.root / "evidence").exists():
            raise ConnectionRefusedError
        return connect(*arguments)

    monkeypatch.setattr(ray, "_HEAD_SECONDS", 0.5)
    monkeypatch.setattr(socket, "create_connection", refused)
    done = run(on(cluster), repository)
    assert sorted(f"T-{number}" for number in range(10)) == sorted_ids(done)
    recorded = {file.name for file in (repository.root / "evidence").iterdir()}
    lost = {f"T-{number}" for number in range(10)} - recorded
    assert lost
    assert {"the head of the cluster is gone"} == {reason(done, name) for name in lost}


def test_with_a_gpu_the_meter_auto_takes_it(
    repository: Repository, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each verification has a GPU of its own; a stand-in for what measures tells which one Ray gave it."""

    def told(order: dict[str, Any], _: bytes) -> dict[str, Any]:
        import os

        return {"reason": f"{order['settings']['meter']} with {os.environ['CUDA_VISIBLE_DEVICES']}"}

    for number in (1, 2):
        add(repository, number)
    monkeypatch.setattr(ray, "verify_on_ray", told)
    node = cluster.add_node(num_cpus=2, num_gpus=2, object_store_memory=100 * MEBIBYTE)
    try:
        cluster.wait_for_nodes()
        done = run(on(cluster), repository, meter="auto")
    finally:
        cluster.remove_node(node)
    reasons = {reason(done, name).partition(": ")[2] for name in ("T-1", "T-2")}
    assert reasons <= {"cuda with 0", "cuda with 1"}


def test_the_processes_of_a_machine_share_what_travelled(
    repository: Repository, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None has a copy of its own of a work tree that may be large."""

    def told(_: dict[str, Any], objects: Any) -> dict[str, Any]:
        (own,) = (
            line.split()[1]
            for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            if line.startswith("RssAnon:")
        )
        return {"reason": f"{own} {memoryview(objects).nbytes}"}

    def kibibytes_with(objects: bytes) -> int:
        monkeypatch.setattr(
            ray, "pack_work_tree", lambda root, _, say: (pack_work_tree(root, [], say)[0], objects)
        )
        own, size = reason(run(on(cluster), repository), "T-0").partition(": ")[2].split()
        assert len(objects) == int(size)
        return int(own)

    add(repository, 0)
    monkeypatch.setattr(ray, "verify_on_ray", told)
    assert kibibytes_with(bytes(48 * MEBIBYTE)) < kibibytes_with(b"") + 24 * 1024


@pytest.mark.skipif(not has_sandbox(), reason="bubblewrap is not installed, or not allowed here")
def test_a_sandbox_is_one_on_the_machines_too(repository: Repository, cluster: Any, tmp_path: Path) -> None:
    """What writes where it likes is refused there; what does not is verified."""
    add(repository, 0)
    add(repository, 5, f"open({str(tmp_path / 'written')!r}, 'w')")
    done = run(RayCluster(address=cluster.address, sandbox=True), repository)
    assert {"T-0": Verdict.VERIFIED, "T-5": Verdict.INCONCLUSIVE} == verdicts(done)
    # Of this machine's files, only what a run needs is there.
    assert "No such file or directory" in reason(done, "T-5")
