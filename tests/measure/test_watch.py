"""Whatever a task and its children use is seen, and nothing that is not theirs is in their reach."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from finding_tickets.measure.processes import isolation as isolation_module
from finding_tickets.measure.processes.isolation import SERVER_KILLED, Isolation, Task, TaskOutcome

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls are numbered for x86-64")

HERE = Path(__file__).parent
FORBIDDEN = {"EPERM", "EACCES"}


@pytest.fixture(scope="module")
def isolation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    """A server that can import ``reaching``, from where a ``sitecustomize`` is, too."""
    folder = tmp_path_factory.mktemp("customized")
    (folder / "sitecustomize.py").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(HERE)]))
        with Isolation(preload=(), workers=2) as server:
            yield server


def run(isolation: Isolation, function: str, payload: Any = None) -> TaskOutcome:
    """The outcome of a function of ``reaching``."""
    target = f"reaching:{function}"
    task = Task(target=target, payload=payload, root=HERE, timeout=20.0, memory=256 << 20)
    ((_, outcome),) = isolation.run({"one": task})
    assert outcome.reason is None, outcome.reason
    return outcome


def test_nothing_of_others_is_in_reach(isolation: Isolation) -> None:
    """A stranger, the command and the server, and the results of another task: each attempt is refused."""
    other = Path(isolation.folder) / "other"
    other.mkdir()
    (other / "result.json").write_text("found's")
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert isolation._server
    try:
        for pid in (stranger.pid, os.getpid(), isolation._server.pid):
            ended = run(isolation, "reach", {"pid": pid, "other": str(other)}).value
            # A program learns that there are no rings of calls, and does without.
            assert {"a ring of calls": "ENOSYS"} == {
                name: error for name, error in ended.items() if error not in FORBIDDEN
            }
    finally:
        stranger.kill()
        stranger.wait()
    assert ["found's"] == [file.read_text() for file in other.iterdir()]


def test_what_is_its_own_stays_in_its_reach(isolation: Isolation) -> None:
    """Signals, priorities and limits for itself and its children, in eight threads; nothing is said of it."""
    outcome = run(isolation, "use_own")
    expected = {"child": -signal.SIGTERM, "seen": [signal.SIGUSR1] * 2, "environment": True}
    assert {**expected, "forked": 0, "gone": "ESRCH"} == outcome.value
    assert () == outcome.unseen


def test_every_use_of_a_file_is_seen(isolation: Isolation, tmp_path: Path) -> None:
    """By the C library, by programs, by links, from folders, and where nothing is; with its state then."""
    for name in ("listed", "sub"):
        (tmp_path / name).mkdir()
    for name in ("looked", "native", "child", "dotted", "real", "led", "sub/inside", "sub/measured"):
        (tmp_path / name).write_text("12345")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "interpreter").symlink_to("/bin/sh")
    (tmp_path / "script").write_text(f"#!{tmp_path}/interpreter\ntrue\n")
    (tmp_path / "script").chmod(0o700)
    outcome = run(isolation, "look_around", str(tmp_path))
    seen: dict[tuple[str, str], int | None] = {
        (os.path.relpath(access.path, tmp_path), access.how): access.state and access.state[0]
        for access in outcome.accesses
        if access.path.startswith(f"{tmp_path}/") and len(access.path) < 200
    }
    for path, how, size in [
        ("looked", "looked", 5),
        ("missing", "looked", None),
        ("native", "read", 5),
        ("child", "read", 5),
        # It is made then.
        ("written", "written", None),
        ("made", "written", None),
        ("named", "written", None),
        ("sub/inside", "read", 5),
        ("sub/measured", "looked", 5),
        ("dotted", "read", 5),
        ("link", "read", 5),
        ("link", "linked", 5),
        ("real", "read", 5),
        ("led", "read", 5),
        ("script", "ran", (tmp_path / "script").stat().st_size),
        ("listed", "listed", (tmp_path / "listed").stat().st_size),
    ]:
        assert (path, how, size) == (path, how, seen.get((path, how), "not seen"))
    ran = {access.path for access in outcome.accesses if access.how == "ran"}
    # The shell is the script's interpreter, by a link of the repository.
    assert {os.path.realpath("/bin/sh"), f"{tmp_path}/script"} <= ran
    assert () == outcome.unseen


def test_what_the_server_has_loaded_is_named(isolation: Isolation) -> None:
    """A worker does not open the tool's own files again, nor the C library."""
    read = {access.path for access in run(isolation, "modules").accesses if access.how == "loaded"}
    assert isolation_module.__file__.replace("isolation.py", "server.py") in read
    assert any("/libc.so" in path for path in read)


def test_connections_are_named(isolation: Isolation) -> None:
    """By address, but for ports of this machine; a socket that is not there was looked for."""
    outcome = run(isolation, "connect")
    expected = ["a port of this machine", "192.0.2.1:9", "192.0.2.2:9", "the socket of a program"]
    assert tuple(f"connects to {each}" for each in expected) == outcome.unseen
    assert ("/nowhere/socket", "looked") in {(access.path, access.how) for access in outcome.accesses}


@pytest.mark.slow
def test_many_files_are_said_to_be_too_many(isolation: Isolation) -> None:
    """Those that no record has room for are said to be there; the task goes on as quickly."""
    outcome = run(isolation, "many", 20_500)
    assert ("it used more than 20000 files",) == outcome.unseen
    loaded = len(run(isolation, "modules").accesses)
    assert 20_000 <= len(outcome.accesses) <= 20_000 + loaded


def test_nothing_of_pythonpath_runs_in_the_server(isolation: Isolation) -> None:
    """A ``sitecustomize`` there is not imported; modules of it are, and children see the variable."""
    (path,) = run(isolation, "modules").value
    assert path.endswith(f"{os.pathsep}{HERE}")


def test_a_task_cannot_stop_the_clock(isolation: Isolation) -> None:
    """What stops all that it can find is ended when its time is up, and the other task has its result."""
    begin = time.monotonic()
    order = {"pids": [os.getpid(), os.getppid(), 1]}
    bad = Task(target="reaching:stop", payload=order, root=HERE, timeout=2.0, memory=256 << 20)
    good = Task(target="reaching:modules", payload=None, root=HERE, timeout=20.0, memory=256 << 20)
    outcomes = dict(isolation.run({"bad": bad, "good": good}))
    assert ("still running after 2 s", None) == (outcomes["bad"].reason, outcomes["good"].reason)
    assert time.monotonic() - begin < 15


def test_a_server_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """If somebody stops the server, the caller kills it some time after the deadline, and says so."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setattr(isolation_module, "PATIENCE_SECONDS", 0.5)
    task = Task(target="reaching:wait", payload=None, root=HERE, timeout=0.5, memory=256 << 20)
    with Isolation(preload=()) as server:

        def stop(_: str) -> None:
            assert server._server
            server._server.send_signal(signal.SIGSTOP)

        ((_, outcome),) = server.run({"one": task}, on_start=stop)
    assert TaskOutcome(reason=SERVER_KILLED, never_ran=True) == outcome
