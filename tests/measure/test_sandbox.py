"""What runs in a sandbox measures as ever, and can neither write, nor connect, nor stay."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.other_python import other_python

from finding_tickets.errors import UsageError
from finding_tickets.measure.processes import isolation as isolation_module
from finding_tickets.measure.processes.isolation import Isolation, Task
from finding_tickets.measure.tasks import CONTAINED, describe

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


REFUSED = (
    "write outside",
    "write to the system",
    "write at the root",
    "remount",
    "mount",
    "change the kernel",
    "read a secret",
    "connect by TCP",
    "send by UDP",
    "connect to a socket",
    "connect to an abstract socket",
    "open a socket to the host",
    "kill",
    "read an environment",
)
ABSENT = ("capabilities", "other processes", "a token", "its home", "sockets of services")
# What the test for another user runs: it prints how each attempt ended.
AS_ANOTHER = """
import json, os, sys
from pathlib import Path
from finding_tickets.measure.processes.isolation import Isolation, Task

order = json.loads(sys.argv[1])
task = Task(target="reaching:inside", payload=order, root=Path(order["root"]), timeout=60, memory=1 << 30)
with Isolation(preload=(), sandbox=True) as server:
    ((_, outcome),) = server.run({"one": task})
print(json.dumps(outcome.value if outcome.reason is None else outcome.reason))
"""
NOBODY = 65534


@pytest.fixture(scope="module", params=["this user", "another user"])
def inside(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """How attempts ended in a sandbox, by their names, for a copy of the tool that everybody can read."""
    with tempfile.TemporaryDirectory(prefix="tickets-test-") as made, ExitStack() as stack:
        folder = Path(made)
        folder.chmod(0o755)
        for package in ("finding_tickets", "simcuda"):
            source = Path(isolation_module.__file__).parents[3] / package
            shutil.copytree(source, folder / "source" / package, ignore=shutil.ignore_patterns("__pycache__"))
        # Nothing is measured, and the other user may not see what is installed here.
        (folder / "source/torch.py").touch()
        (folder / "code").mkdir()
        shutil.copy(HERE / "reaching.py", folder / "code")
        (folder / "secret").write_text("a key that anybody could read")
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        order = {"root": str(folder / "code"), "secret": str(folder / "secret"), "pid": os.getpid()}
        order |= {"socket": str(folder / "socket"), "abstract": f"\0{folder.name}"}
        for name in (order["socket"], order["abstract"]):
            line = stack.enter_context(socket.socket(socket.AF_UNIX))
            line.bind(str(name))
            line.listen()
        Path(str(order["socket"])).chmod(0o777)
        own: dict[str, Any] = {}
        python = sys.executable
        if request.param == "another user":
            python = "/usr/bin/python3"
            able = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            if os.getuid() or subprocess.run(able, check=False).returncode:
                pytest.skip("only root becomes another user, and the system's Python must be 3.11 or newer")
            own = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        variables = {name: value for name, value in os.environ.items() if not name.startswith("XDG")}
        variables |= {"PYTHONPATH": f"{folder}/source:{folder}/code", "HOME": str(folder), "A_TOKEN": "a"}
        order["port"] = listening.getsockname()[1]
        done = subprocess.run(
            [python, "-c", AS_ANOTHER, json.dumps(order)],
            cwd=folder,
            env={**variables, "ANYTHING": "else", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            **own,
        )
        assert 0 == done.returncode, done.stderr
        yield json.loads(done.stdout)


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize("attempt", REFUSED)
def test_an_attempt_is_refused(inside: dict[str, str], attempt: str) -> None:
    """For root and for another user, whatever the permissions of files outside say."""
    assert "refused" == inside[attempt]


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize("what", ABSENT)
def test_nothing_of_the_machine_is_there(inside: dict[str, str], what: str) -> None:
    """No capability, process, variable, file or service that the run does not need."""
    assert "" == inside[what]


@needs_bubblewrap
@pytest.mark.usefixtures("here")
def test_another_python_is_in_the_sandbox_too(tmp_path: Path) -> None:
    """What it is started for can write no more than what the tool's own Python is."""
    python = str(other_python(tmp_path / "env"))
    payload = str(tmp_path / "env/inside")
    task = Task(target="bad_targets:write", payload=payload, root=HERE, timeout=20.0, memory=256 * 1024**2)
    with Isolation(preload=(), sandbox=True) as server:
        ((_, outcome),) = server.on(python).run({"one": task})
    assert "Read-only file system" == outcome.value


@needs_bubblewrap
@pytest.mark.usefixtures("here")
def test_files_cannot_be_written(tmp_path: Path) -> None:
    """A task writes where it likes outside; inside a folder for all programs is its own and goes with it."""
    assert "Read-only file system" == asked("write", str(HERE / "inside"), sandbox=True)
    assert "No such file or directory" == asked("write", str(tmp_path / "inside"), sandbox=True)
    assert "" == asked("write", "/tmp/inside", sandbox=True)  # noqa: S108 - inside
    assert not Path("/tmp/inside").exists()  # noqa: S108
    assert "" == asked("write", str(tmp_path / "outside"), sandbox=False)
    assert ["outside"] == [file.name for file in tmp_path.iterdir()]


def test_a_file_that_cannot_be_written_names_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that writes beside itself fails there for no reason of its own."""
    error = OSError(errno.EROFS, os.strerror(errno.EROFS), "runs")
    outside = describe(error)
    monkeypatch.setenv(CONTAINED, "1")
    said = " (the sandbox lets code write to the folder for temporary files alone)"
    assert ("OSError: [Errno 30] Read-only file system: 'runs'", outside + said) == (outside, describe(error))


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
from finding_tickets.measure.processes.isolation import Isolation, Task

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
