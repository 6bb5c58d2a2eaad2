"""``tickets verify --executor ray``: the same page, and what is said where there is no cluster."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Repository
from tests.executors.processes import processes_naming, wait_for

from finding_tickets.cli.main import run
from finding_tickets.errors import ExitCode

pytestmark = pytest.mark.slow

VERIFIER = """
import torch

from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    return ([torch.rand(4, generator=generator).to(device) for _ in range(point.tensors)],)


workload = Workload(ticket="A-1", build=build, sweep=[Point(tensors=n) for n in (1, 2, 3, 5)])
"""
WITHOUT_RAY = "Ray is not installed: pip install 'finding-tickets[ray]'"
FOUND = "def check(tensors):\n    return sum(tensor.sum().item() for tensor in tensors)\n"
REMEDIATION = "## Remediation\n\n```yaml\nclaims: {found: {syncs: tensors}}\n```\n"


@pytest.fixture
def register(repository: Repository) -> Repository:
    """A register with one ticket that can be measured."""
    repository.ticket("A-1", more=REMEDIATION)
    repository.write("verifiers/a_1.py", VERIFIER)
    repository.write("fixes/a_1/found.py", FOUND)
    return repository


def verify(register: Repository, *more: str) -> int:
    """The exit code of verifying everything."""
    return run(["verify", "--all", "--meter", "simulated", "--root", str(register.root), *more])


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go, here and in what is started; short, for sockets are made in it."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def test_a_cluster_that_lasts_as_long_as_the_run(
    register: Repository, temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Page, evidence and exit code are those of the local executor; no file or process is left."""
    pytest.importorskip("ray", reason=WITHOUT_RAY)
    assert ExitCode.OK == verify(register)
    (file,) = register.root.glob("evidence/A-1/*.json")
    here, page = file.read_bytes(), capsys.readouterr().out
    file.unlink()
    assert ExitCode.OK == verify(register, "--executor", "ray")
    assert (here, page) == (file.read_bytes(), capsys.readouterr().out)
    wait_for(lambda: not left_in(temporary), 20)
    assert [] == left_in(temporary)


def test_a_run_that_is_killed_takes_its_cluster_with_it(register: Repository, temporary: Path) -> None:
    """Seconds after the command was killed while it measured, no file or process of it is left."""
    pytest.importorskip("ray", reason=WITHOUT_RAY)
    register.write("fixes/a_1/found.py", "import time\n\n\ndef check(tensors):\n    time.sleep(600)\n")
    command = [sys.executable, "-m", "finding_tickets", "verify", "--all", "--executor", "ray"]
    with subprocess.Popen([*command, "--root", str(register.root)], stderr=subprocess.DEVNULL) as killed:
        # The folder of the server, and in it that of the task at work.
        wait_for(lambda: any(temporary.glob("tickets-*/*/output.log")), 120)
        assert len(left_in(temporary)) > 2
        killed.kill()
    wait_for(lambda: not left_in(temporary), 20)
    assert [] == left_in(temporary)


def left_in(temporary: Path) -> list[str]:
    """The files in a folder, and the command lines that name it."""
    return [each.name for each in temporary.iterdir()] + processes_naming(str(temporary))


def test_an_interrupt_waits_until_ray_has_started(
    register: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is half started cannot be ended: the process would crash instead of saying 130."""
    ray = pytest.importorskip("ray", reason=WITHOUT_RAY)
    started = []

    def init(**_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)
        started.append("all of it")

    monkeypatch.setattr(ray, "init", init)
    assert ExitCode.INTERRUPTED == verify(register, "--executor", "ray")
    assert ["all of it"] == started


def test_a_cluster_that_is_not_there_is_said_at_once(
    register: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody listens at the address: nothing is measured or recorded, and the exit code says so."""
    pytest.importorskip("ray", reason=WITHOUT_RAY)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    assert ExitCode.INCONCLUSIVE == verify(register, "--executor", "ray", "--address", address)
    assert f"there is no Ray cluster at {address}: " in capsys.readouterr().err
    assert not (register.root / "evidence").exists()


def test_the_brackets_of_an_address_are_not_part_of_the_host(
    register: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They keep the colons of an IPv6 host from that of the port (RFC 3986, section 3.2.2)."""
    pytest.importorskip("ray", reason=WITHOUT_RAY)
    asked: list[tuple[str, int]] = []

    def refused(place: tuple[str, int], *_: object) -> None:
        asked.append(place)
        raise ConnectionRefusedError("nobody is here")

    monkeypatch.setattr(socket, "create_connection", refused)
    assert ExitCode.INCONCLUSIVE == verify(register, "--executor", "ray", "--address", "[::1]:6379")
    assert [("::1", 6379)] == asked
    assert "there is no Ray cluster at [::1]:6379: nobody is here" in capsys.readouterr().err


def test_a_cluster_that_is_gone_and_still_in_the_environment_is_said_at_once(
    register: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``auto`` is what Ray takes for it, which is the variable of its own."""
    pytest.importorskip("ray", reason=WITHOUT_RAY)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert ExitCode.INCONCLUSIVE == verify(register, "--executor", "ray", "--address", "auto")
    assert f"there is no Ray cluster at {address}: " in capsys.readouterr().err


def test_what_listens_must_be_a_cluster(register: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """The port of something else, such as Ray's dashboard, is found out at once and not after minutes."""
    pytest.importorskip("ray", reason=WITHOUT_RAY)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        other = threading.Thread(target=answer_in_http_1, args=(listening,))
        other.start()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        assert ExitCode.INCONCLUSIVE == verify(register, "--executor", "ray", "--address", address)
        other.join()
    assert f"there is no Ray cluster at {address}: another service listens there" in capsys.readouterr().err


def answer_in_http_1(listening: socket.socket) -> None:
    """Tell one caller that it is not understood."""
    caller, _ = listening.accept()
    with caller:
        caller.recv(1024)
        caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("address", ["nowhere", "ray://127.0.0.1:10001", "host:port", ":6379"])
def test_what_is_no_address_is_wrong_usage(
    register: Repository, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    """The message says what an address looks like."""
    pytest.importorskip("ray", reason=WITHOUT_RAY)
    assert ExitCode.USAGE == verify(register, "--executor", "ray", "--address", address)
    assert f"--address {address}: no address of a Ray cluster (host:port, or auto)" in capsys.readouterr().err


def test_an_address_needs_the_executor_that_it_is_for(
    register: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ``--executor ray`` an address would be ignored in silence."""
    assert ExitCode.USAGE == verify(register, "--address", "127.0.0.1:6379")
    assert "--address needs --executor ray" in capsys.readouterr().err


def test_without_ray_the_message_says_what_to_install(
    register: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray is an extra."""
    monkeypatch.setitem(sys.modules, "ray", None)
    assert ExitCode.USAGE == verify(register, "--executor", "ray")
    assert "python -m pip install 'finding-tickets[ray]'" in capsys.readouterr().err
