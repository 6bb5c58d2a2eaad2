"""``tickets verify --executor ray``: the same page, and what is said where there is no cluster."""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path

import pytest
from tests.conftest import Repository

from finding_tickets.cli.main import run
from finding_tickets.errors import ExitCode

VERIFIER = """
import torch

from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    return ([torch.rand(4, generator=generator).to(device) for _ in range(point.tensors)],)


workload = Workload(ticket="A-1", build=build, sweep=[Point(tensors=n) for n in (1, 2, 3, 5)])
"""
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


def test_a_cluster_that_lasts_as_long_as_the_run(
    register: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page, evidence and exit code are those of the local executor; no file or process is left."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'finding-tickets[ray]'")
    # Short, for sockets are made in it.
    with tempfile.TemporaryDirectory() as temporary:
        monkeypatch.setattr(tempfile, "tempdir", temporary)
        assert ExitCode.OK == verify(register)
        (file,) = register.root.glob("evidence/A-1/*.json")
        here, page = file.read_bytes(), capsys.readouterr().out
        file.unlink()
        assert ExitCode.OK == verify(register, "--executor", "ray")
        assert (here, page) == (file.read_bytes(), capsys.readouterr().out)
        assert [] == [each.name for each in Path(temporary).iterdir()]
        assert [] == processes_naming(temporary)


def processes_naming(text: str) -> list[str]:
    """The command lines with a text in them."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue  # it has ended meanwhile
    return [line for line in lines if text in line]


def test_a_cluster_that_is_not_there_is_said_at_once(
    register: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody listens at the address: nothing is measured or recorded, and the exit code says so."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'finding-tickets[ray]'")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    assert ExitCode.INCONCLUSIVE == verify(register, "--executor", "ray", "--address", address)
    assert f"there is no Ray cluster at {address}: " in capsys.readouterr().err
    assert not (register.root / "evidence").exists()


@pytest.mark.parametrize("address", ["nowhere", "ray://127.0.0.1:10001", "host:port", ":6379"])
def test_what_is_no_address_is_wrong_usage(
    register: Repository, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    """The message says what an address looks like."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'finding-tickets[ray]'")
    assert ExitCode.USAGE == verify(register, "--executor", "ray", "--address", address)
    assert f"--address {address}: no address of a Ray cluster (host:port, or auto)" in capsys.readouterr().err


def test_an_address_needs_the_executor_that_it_is_for(
    register: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ``--executor ray`` an address would be ignored in silence."""
    assert ExitCode.USAGE == verify(register, "--address", "127.0.0.1:6379")
    assert "--address is that of a Ray cluster (with --executor ray)" in capsys.readouterr().err


def test_without_ray_the_message_says_what_to_install(
    register: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray is an extra."""
    monkeypatch.setitem(sys.modules, "ray", None)
    assert ExitCode.USAGE == verify(register, "--executor", "ray")
    assert "python -m pip install 'finding-tickets[ray]'" in capsys.readouterr().err
