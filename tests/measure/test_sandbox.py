"""What runs in a sandbox measures as ever, and can neither write, nor connect, nor stay."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.other_python import other_python

from finding_tickets.errors import UsageError
from finding_tickets.measure.isolation import Isolation, Task

HERE = Path(__file__).parent
USABLE = shutil.which("bwrap") is not None and (
    subprocess.run(["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"], check=False).returncode == 0
)
needs_bubblewrap = pytest.mark.skipif(not USABLE, reason="bubblewrap is not installed, or not allowed here")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are found in ``bad_targets``."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this machine that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def asked(function: str, payload: Any, *, sandbox: bool) -> Any:
    """What a function of ``bad_targets`` answers, inside or outside."""
    task = Task(
        target=f"bad_targets:{function}", payload=payload, root=HERE, timeout=20.0, memory=256 * 1024**2
    )
    with Isolation(preload=(), sandbox=sandbox) as server:
        ((_, outcome),) = server.run({"one": task})
    assert outcome.reason is None
    return outcome.value


@needs_bubblewrap
@pytest.mark.usefixtures("here")
def test_another_python_is_in_the_sandbox_too(tmp_path: Path) -> None:
    """What it is started for can write no more than what the tool's own Python is."""
    python = str(other_python(tmp_path / "env"))
    payload = str(tmp_path / "inside")
    task = Task(target="bad_targets:write", payload=payload, root=HERE, timeout=20.0, memory=256 * 1024**2)
    with Isolation(preload=(), sandbox=True) as server:
        ((_, outcome),) = server.on(python).run({"one": task})
    assert "Read-only file system" == outcome.value


@needs_bubblewrap
@pytest.mark.usefixtures("here")
def test_files_cannot_be_written(tmp_path: Path) -> None:
    """A task that writes where it likes is refused inside, and not outside."""
    assert "Read-only file system" == asked("write", str(tmp_path / "inside"), sandbox=True)
    assert "" == asked("write", str(tmp_path / "outside"), sandbox=False)
    assert ["outside"] == [file.name for file in tmp_path.iterdir()]


@needs_bubblewrap
@pytest.mark.usefixtures("here")
def test_there_is_no_network(port: int) -> None:
    """A task reaches a port of the machine outside, and none inside."""
    assert asked("connect", port, sandbox=False)
    assert not asked("connect", port, sandbox=True)


@needs_bubblewrap
@pytest.mark.usefixtures("here")
def test_no_other_process_is_seen() -> None:
    """A task sees the process that runs this test outside; inside it sees the few of the sandbox."""
    assert os.getpid() in asked("processes", None, sandbox=False)
    # Bubblewrap's own first process, the server, and the task.
    assert 3 == len(asked("processes", None, sandbox=True))


@needs_bubblewrap
@pytest.mark.usefixtures("here")
def test_temporary_files_are_possible() -> None:
    """A task has a folder for temporary files, which is gone afterwards."""
    left = asked("litter", None, sandbox=True)
    assert not Path(left).exists()


CALLER = """
import sys
from pathlib import Path
from finding_tickets.measure.isolation import Isolation, Task

with Isolation(preload=(), sandbox=True) as server:
    task = Task(target="bad_targets:hang", payload=None, root=Path(), timeout=600, memory=1 << 30)
    list(server.run({"one": task}, on_start=lambda name: print(server.folder, flush=True)))
"""


@needs_bubblewrap
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_caller_that_ends(how: signal.Signals) -> None:
    """When the caller is interrupted or killed, the sandbox ends and its folder is gone."""
    with subprocess.Popen(
        [sys.executable, "-c", CALLER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as caller:
        assert caller.stdout
        folder = Path(caller.stdout.readline().strip())
        assert folder.is_dir()
        caller.send_signal(how)
        caller.wait(20)
    deadline = time.monotonic() + 20
    while (folder.exists() or _naming(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (False, []) == (folder.exists(), _naming(folder))


@needs_bubblewrap
@pytest.mark.usefixtures("here")
def test_nothing_outlives_the_server() -> None:
    """When what holds the sandbox is killed, its task ends with it, and the caller hears of it."""
    task = Task(target="bad_targets:hang", payload=None, root=HERE, timeout=60.0, memory=256 * 1024**2)
    with Isolation(preload=(), sandbox=True) as server:
        ((_, outcome),) = server.run({"one": task}, on_start=lambda _: _kill(server))
    assert outcome.never_ran
    assert [] == _naming(Path(server.folder))


def _kill(server: Isolation) -> None:
    assert server._server is not None
    server._server.kill()


def _naming(folder: Path) -> list[str]:
    """The processes whose command line names a folder."""
    found = subprocess.run(["pgrep", "-f", str(folder)], check=False, capture_output=True, text=True)
    return found.stdout.split()


def test_a_system_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the program is missing, the message says what to install, and nothing runs."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="needs bubblewrap, and there is no bwrap on PATH"):
        Isolation(preload=(), sandbox=True)
