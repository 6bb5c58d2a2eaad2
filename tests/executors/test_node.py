"""What a machine of a cluster answers to an order, without a cluster around it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.conftest import Repository
from tests.executors.processes import processes_naming, wait_for, with_git_that_stalls
from tests.verify.conftest import TakesGpu

from finding_tickets.executors import node
from finding_tickets.executors.node import Order, verified_from, verify_on_ray, versions
from finding_tickets.executors.pack import FOLDER, pack_work_tree
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.measure.processes.server import NO_ROOM
from finding_tickets.measure.tasks import VISIBLE_DEVICES
from finding_tickets.model.vocabulary import Verdict

pytestmark = pytest.mark.slow

VERIFIER = """
import time

import torch

from finding_tickets.workload import Point, Workload

time.sleep({seconds})


def build(point, device, generator):
    return ([torch.rand(4, generator=generator).to(device) for _ in range(point.tensors)],)


workload = Workload(ticket="{ticket}", build=build, sweep=[Point(tensors=n) for n in (1, 2, 3, 5)])
"""
FOUND = "def check(tensors):\n    return sum(tensor.sum().item() for tensor in tensors)\n"


@pytest.fixture(scope="module", autouse=True)
def _servers() -> Iterator[None]:
    """One server for all tests that end none."""
    yield
    node._end_servers()


@pytest.fixture
def no_server() -> Iterator[None]:
    """None that others have started or will find."""
    node._end_servers()
    yield
    node._end_servers()


@pytest.fixture
def register(repository: Repository) -> Repository:
    """Three tickets: the verifier of the second takes its time, the claim of the third has no meaning."""
    for ticket, seconds, claim in (("A-1", 0, "tensors"), ("A-2", 600, "tensors"), ("A-3", 0, "tensor")):
        name = ticket.lower().replace("-", "_")
        repository.ticket(
            ticket, more=f"## Remediation\n\n```yaml\nclaims: {{found: {{syncs: {claim}}}}}\n```\n"
        )
        repository.write(f"verifiers/{name}.py", VERIFIER.format(ticket=ticket, seconds=seconds))
        repository.write(f"fixes/{name}/found.py", FOUND)
    return repository


def order_of(register: Repository, ticket: str, **more: Any) -> tuple[dict[str, Any], bytes]:
    """An order as JSON carries it, and the objects of its pack."""
    document = f"tickets/{ticket}.md"
    pack, objects = pack_work_tree(register.root, [], pytest.fail)
    settings = {"meter": more.pop("meter", "simulated"), "timeout": 900.0, "memory": 1 << 30}
    known = {"sandbox": False, "versions": versions(), "limit": 900.0, "settings": settings, **more}
    return json.loads(Order(document=document, pack=pack, **known).model_dump_json()), objects


def answer(register: Repository, ticket: str, objects: bytes | None = None, **more: Any) -> dict[str, Any]:
    """What the machine answers, as JSON carries it."""
    order, known = order_of(register, ticket, **more)
    told: dict[str, Any] = json.loads(json.dumps(verify_on_ray(order, known if objects is None else objects)))
    return told


def test_an_answer_has_verdict_and_evidence(register: Repository) -> None:
    """Both come back as the records that they were; the machine writes neither."""
    document = register.load().find("A-1")
    done = verified_from(answer(register, "A-1"), document)
    assert done.verification is not None
    assert done.evidence is not None
    # Each of the tensors is read, and there is no fix.
    assert (Verdict.REPRODUCED, "tensors") == (
        done.verification.verdict,
        done.verification.variants["found"].laws["syncs"],
    )
    assert {"verifiers/a_1.py", "fixes/a_1/found.py"} <= {each.name for each in done.evidence.inputs}
    assert not (register.root / "evidence").exists()


def test_an_error_in_a_ticket_comes_back_with_its_place(register: Repository) -> None:
    """File, line and hint are those of the ticket here."""
    done = verified_from(answer(register, "A-3"), register.load().find("A-3"))
    assert done.error is not None
    assert "tickets/A-3.md" == done.error.file
    assert "did you mean 'tensors'? known: tensors" == done.error.hint


def test_a_ticket_that_git_ignores_is_no_fault_of_the_machine(register: Repository) -> None:
    """It did not travel, to no machine: the reason is its own, and the others are measured."""
    register.write(".gitignore", "tickets/A-1.md\n")
    told = answer(register, "A-1")
    assert "tickets/A-1.md did not travel: git ignores it, or it is in a repository inside" == told["reason"]
    assert "of_machine" not in told
    assert "reason" not in answer(register, "A-3")


@pytest.mark.usefixtures("git")
def test_a_register_that_did_not_travel_is_no_fault_of_the_machine(register: Repository) -> None:
    """So it is with a folder of which git ignores everything."""
    register.write(".gitignore", "below\n")
    file = register.ticket("B-1", path="below/tickets/B-1.md")
    below = Repository(file.parents[1])
    told = answer(below, "B-1")
    assert "of_machine" not in told
    assert told["reason"].startswith("the register cannot be read there: ")


def test_two_files_that_are_the_same_ticket_are_measured_both(register: Repository) -> None:
    """An order says which of them is meant."""
    text = (register.root / "tickets/A-1.md").read_text(encoding="utf-8")
    register.write("tickets/again.md", text)
    order, objects = order_of(register, "A-1")
    for path in ("tickets/A-1.md", "tickets/again.md"):
        assert "reason" not in verify_on_ray({**order, "document": path}, objects)


def test_an_order_ends_at_its_limit_and_the_next_one_is_done(register: Repository) -> None:
    """What it left running is ended with it."""
    assert "still running after 3 s" == answer(register, "A-2", limit=3.0)["reason"]
    assert "reason" not in answer(register, "A-1")


def test_a_server_that_was_killed_is_replaced(register: Repository) -> None:
    """Only the verification that killed it is lost, and none of those that follow."""
    assert "reason" not in answer(register, "A-1")
    (isolation,) = node._servers.values()
    server = isolation._server
    assert server is not None
    server.kill()
    server.wait()
    again = verified_from(answer(register, "A-1"), register.load().find("A-1"))
    assert again.evidence is not None


@pytest.mark.usefixtures("no_server")
def test_a_machine_on_which_nothing_runs_says_so(
    register: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is preloaded cannot be, as where torch is broken: that is no fault of the ticket."""
    monkeypatch.setattr(node, "Isolation", partial(Isolation, ["no_such_module"]))
    told = answer(register, "A-1")
    assert told["of_machine"]
    assert (
        "the measuring process ended: ModuleNotFoundError: No module named 'no_such_module'" == told["reason"]
    )


REMOVES_ITS_FOLDER = """
import pathlib, shutil, tempfile
shutil.rmtree(pathlib.Path(tempfile.gettempdir()).parent)
"""


def test_a_ticket_that_spoils_its_own_folder_is_no_fault_of_the_machine(register: Repository) -> None:
    """Nothing of it arrives, as on a full disk, and without what it left others can be measured."""
    register.write("verifiers/a_1.py", REMOVES_ITS_FOLDER)
    told = answer(register, "A-1")
    assert "of_machine" not in told
    assert ("inconclusive", NO_ROOM) == (told["verification"]["verdict"], told["verification"]["reason"])
    assert told["evidence"] is None


def test_a_server_that_is_replaced_leaves_nothing_open(register: Repository) -> None:
    """Neither a pipe nor the processes that wait at its other end."""
    answer(register, "A-3")
    node._end_servers()
    before = open_files()
    answer(register, "A-3")
    (isolation,) = node._servers.values()
    folder = isolation.folder
    assert waiting_for(folder)
    node._end_servers()
    assert before == open_files()
    wait_for(lambda: not waiting_for(folder))
    assert [] == waiting_for(folder)


def open_files() -> set[Path]:
    """The file descriptors of this process."""
    return set(Path("/proc/self/fd").iterdir())


def waiting_for(folder: str) -> list[str]:
    """The processes that were started to remove a folder."""
    return [line for line in processes_naming(folder) if line.startswith("/bin/sh")]


@pytest.mark.usefixtures("no_server")
def test_other_versions_are_said_before_anything_is_unpacked(register: Repository) -> None:
    """Tool and torch count; what they would measure here is nobody's evidence."""
    mine = versions()
    other = {"finding-tickets": "0.0.1", "torch": "1.0"}
    reason = answer(register, "A-1", objects=b"", versions=other)["reason"]
    assert f"finding-tickets is {mine['finding-tickets']} there and 0.0.1 here, torch is" in reason
    assert {} == node._servers


@pytest.mark.parametrize("spoilt", [b"PACK", b""])
def test_objects_that_do_not_arrive_whole_are_said(register: Repository, spoilt: bytes) -> None:
    """What git says of them is the reason, and nothing half made is left for the next order."""
    assert "the work tree cannot be unpacked: early EOF" == answer(register, "A-1", objects=spoilt)["reason"]
    assert "reason" not in answer(register, "A-1")


def test_a_machine_without_git_says_so(register: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work tree travels as git's objects."""
    order, objects = order_of(register, "A-1")
    monkeypatch.setattr("finding_tickets.ground.git.shutil.which", lambda _: None)
    reason = verify_on_ray(order, objects)["reason"]
    assert "the work tree cannot be unpacked: git is not installed" == reason


UNPACKS = """
import json, sys
from pathlib import Path
from finding_tickets.executors.node import verify_on_ray
order, objects = map(Path, sys.argv[1:])
verify_on_ray(json.loads(order.read_text()), objects.read_bytes())
"""


def test_who_is_killed_while_unpacking_leaves_no_file(
    register: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is half unpacked is gone from the cache within seconds."""
    folder = tmp_path_factory.mktemp("around")
    note = folder / "note"
    files = [folder / "order", folder / "objects"]
    order, objects = order_of(register, "A-1")
    files[0].write_text(json.dumps(order), encoding="utf-8")
    files[1].write_bytes(objects)
    packs = Path(os.environ["XDG_CACHE_HOME"]) / "finding-tickets" / FOLDER
    with subprocess.Popen(
        [sys.executable, "-c", UNPACKS, *files], env=with_git_that_stalls(folder, "index-pack", note)
    ) as killed:
        wait_for(lambda: note.exists() and note.read_text())
        assert 1 == len(list(packs.iterdir()))
        killed.kill()
    os.kill(int(note.read_text()), signal.SIGKILL)
    wait_for(lambda: not any(packs.iterdir()), 10)
    assert [] == list(packs.iterdir())


class TwoGpus(TakesGpu):
    """Stands for a process to which Ray gave two GPUs, of which the workload of ``A-1`` needs as many."""

    made: ClassVar[list[str | None]] = []

    def __init__(self, **_: Any) -> None:
        super().__init__(["0", "1"], wanted={"verifiers/a_1.py": 2})
        self.made.append(os.environ.get(VISIBLE_DEVICES))
        self._path = tempfile.mkdtemp()

    @property
    def folder(self) -> str:
        """One that is there without a server."""
        return self._path


@pytest.mark.usefixtures("no_server")
def test_other_gpus_have_another_server(register: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that is given other ones than before has them for what it measures."""
    monkeypatch.setattr(node, "Isolation", TwoGpus)
    TwoGpus.made.clear()
    for gpus in ("0", "0", "1"):
        monkeypatch.setenv(VISIBLE_DEVICES, gpus)
        answer(register, "A-1", meter="cuda")
    assert ["0", "1"] == TwoGpus.made
    assert 1 == len(node._servers)
