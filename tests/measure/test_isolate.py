"""Code that misbehaves ends with a reason, leaves nothing behind and disturbs nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from finding_tickets.measure.processes import isolation as isolation_module
from finding_tickets.measure.processes.isolation import SERVER_KILLED, Isolation, Task, TaskOutcome

HERE = Path(__file__).parent
MEBIBYTE = 1024**2


@pytest.fixture(scope="module")
def isolation() -> Iterator[Isolation]:
    """A server that can import ``bad_targets`` and has nothing preloaded, so that it starts at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HERE))
        patch.setenv("FLAVOUR", "caller's own")
        with Isolation(preload=(), workers=4) as server:
            yield server


def task(function: str, payload: Any = None, timeout: float = 20.0, **more: Any) -> Task:
    """A call of a function of ``bad_targets``."""
    target = f"bad_targets:{function}"
    return Task(target=target, payload=payload, root=HERE, timeout=timeout, memory=256 * MEBIBYTE, **more)


def run(isolation: Isolation, one: Task) -> TaskOutcome:
    """The outcome of a single task."""
    ((_, outcome),) = isolation.run({"one": one})
    return outcome


def line_of(text: str) -> int:
    """The line of ``bad_targets.py`` that contains ``text``."""
    lines = (HERE / "bad_targets.py").read_text(encoding="utf-8").split("\n")
    return next(number for number, line in enumerate(lines, 1) if text in line)


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_result_comes_back(isolation: Isolation) -> None:
    """The payload goes in, the value comes out, in the caller's directory and environment."""
    expected = {"payload": {"n": [1, 2]}, "cwd": str(Path.cwd()), "flavour": "caller's own"}
    assert TaskOutcome(expected) == run(isolation, task("answer", {"n": [1, 2]}))


# Of the signals for real time only the first and the last have names.
NAMELESS = signal.SIGRTMIN + 1
BAD = {
    ("leave",): "ended with exit code 0 before it had a result",
    ("leave_with", 7): "ended with exit code 7 before it had a result",
    ("no_json",): "ended with exit code 1 before it had a result",
    ("call_exit",): "bad_targets.py:{sys.exit(5)} called sys.exit(5)",
    ("fail",): "bad_targets.py:{raise ValueError}: ValueError: not like this",
    ("crash",): "killed by SIGSEGV at bad_targets.py:{ctypes.string_at}",
    ("kill_itself",): "killed by SIGKILL",
    ("kill_itself", NAMELESS): f"killed by signal {NAMELESS}",
    ("flood",): "bad_targets.py:{os.truncate}: OSError: [Errno 27] File too large",
    ("eat_memory",): "bad_targets.py:{eaten.append} needs more memory than the 256 MiB allowed",
}


@pytest.mark.parametrize("call", BAD, ids=str)
def test_a_bad_ending_is_explained(isolation: Isolation, call: tuple[Any, ...]) -> None:
    """The reason says what happened and, where that is known, on which line."""
    before, _, rest = BAD[call].partition("{")
    text, _, after = rest.partition("}")
    expected = f"{before}{line_of(text)}{after}" if text else before
    assert expected == run(isolation, task(*call)).reason


def test_what_has_no_encoding_is_told_without_it(isolation: Isolation) -> None:
    """Half a surrogate pair, or a byte of a name that is no UTF-8, comes back as what can be written."""
    where = f"bad_targets.py:{line_of('raise ValueError(text)')}"
    text = "\ud800 and \udcff"
    assert f"{where}: ValueError: ? and ?" == run(isolation, task("fail_with", text)).reason
    assert "? and ?" == run(isolation, task("answer", text)).value["payload"]


FORGED = {
    "no JSON": "{",
    "nothing": "",
    "no object": "[]",
    "another object": '{"verdict": "verified"}',
    "a reason that is no text": '{"error": 5}',
    "no encoding": '{"error": "\\ud800"}',
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED)
def test_what_a_task_leaves_in_place_of_a_result_is_none(isolation: Isolation, text: str) -> None:
    """Code that writes where its result would be, and is gone, ends with a reason as all others do."""
    assert TaskOutcome(reason="invalid result from the worker") == run(isolation, task("forge", text))


def test_a_pipe_in_place_of_a_result_or_a_log_is_not_waited_for(isolation: Isolation) -> None:
    """Nobody will ever write to it."""
    assert "ended with exit code 0 before it had a result" == run(isolation, task("forge_pipes", 0)).reason
    assert "killed by SIGKILL" == run(isolation, task("forge_pipes", int(signal.SIGKILL))).reason


def test_a_hanging_task_is_stopped(isolation: Isolation) -> None:
    """A task that never returns ends when its time is up, also one that Python cannot interrupt."""
    for function in ("hang", "hang_in_c"):
        assert TaskOutcome(reason="still running after 0.3 s") == run(isolation, task(function, timeout=0.3))


def test_output_reaches_nobody(isolation: Isolation, capfd: pytest.CaptureFixture[str]) -> None:
    """What a task prints, answers to our own protocol included, is neither shown nor believed."""
    assert TaskOutcome("heard") == run(isolation, task("talk"))
    assert ("", "") == tuple(capfd.readouterr())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to their subreaper")
def test_nothing_outlives_a_task(isolation: Isolation, tmp_path: Path) -> None:
    """Processes that a task started, also those in sessions of their own, are gone when it has ended."""
    note = tmp_path / "pids"
    assert "still running after 1 s" == run(isolation, task("spawn", str(note), timeout=1.0)).reason
    left = [pid for pid in map(int, note.read_text(encoding="ascii").split()) if alive(pid)]
    assert [] == left


def test_temporary_files_go_with_the_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a task, or a program that it starts, leaves in the folder for such files is gone in the end."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Isolation(preload=()) as server:
        left = run(server, task("litter")).value
        assert Path(left).is_relative_to(tmp_path)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to their subreaper")
def test_a_task_that_kills_its_parent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has started ends with it, and another task, which then runs again, has its result."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    note = tmp_path / "pid"
    with Isolation(preload=(), workers=2) as server:
        outcomes = dict(server.run({"bad": task("kill_parent", str(note)), "other": task("meet_nobody")}))
    assert TaskOutcome(reason=SERVER_KILLED, never_ran=True) == outcomes["bad"]
    assert TaskOutcome("alone") == outcomes["other"]
    assert not alive(int(note.read_text(encoding="ascii")))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_a_task_that_stops_its_parent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller kills a server that says nothing for some time after the limit of a task."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setattr(isolation_module, "PATIENCE_SECONDS", 0.5)
    begin = time.monotonic()
    with Isolation(preload=()) as server:
        outcome = run(server, task("stop_parent", timeout=0.5))
    assert TaskOutcome(reason=SERVER_KILLED, never_ran=True) == outcome
    assert time.monotonic() - begin < 20


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to their subreaper")
def test_a_task_that_forks_ends_with_all_that_it_forked(isolation: Isolation, tmp_path: Path) -> None:
    """20 children and a child of each, in sessions of their own."""
    note = tmp_path / "pids"
    assert "still running after 2 s" == run(isolation, task("fork", str(note), timeout=2.0)).reason
    started = [int(pid) for pid in note.read_text(encoding="ascii").split()]
    assert (40, []) == (len(started), [pid for pid in started if alive(pid)])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to their subreaper")
def test_an_orphan_lives_as_long_as_its_task(isolation: Isolation) -> None:
    """The end of another task is not its end."""
    outcomes = dict(isolation.run({"long": task("keep_an_orphan"), "short": task("answer")}))
    assert TaskOutcome(True) == outcomes["long"]


def test_the_others_go_on(isolation: Isolation) -> None:
    """Whatever some tasks do, each of the others has its result."""
    tasks = {name: task(name, timeout=1.0) for name in ["hang", "crash", "leave", "fail"]}
    tasks |= {f"good {number}": task("answer", number) for number in range(6)}
    outcomes = dict(isolation.run(dict(tasks)))
    assert set(tasks) == set(outcomes)
    payloads = [outcomes[f"good {number}"].value["payload"] for number in range(6)]
    assert [0, 1, 2, 3, 4, 5] == payloads


def test_no_file_of_the_server_is_open_in_a_task(isolation: Isolation) -> None:
    """However many there are: a task that keeps a pipe of the server open has it wait for ever."""
    assert TaskOutcome([]) == run(isolation, task("descriptors"))


def test_a_server_that_cannot_start_says_why() -> None:
    """A module that cannot be preloaded, a misspelt one for instance, is the reason of every task."""
    with Isolation(preload=("no_such_module",)) as server:
        outcome = run(server, task("answer"))
    expected = "the measuring process ended: ModuleNotFoundError: No module named 'no_such_module'"
    assert TaskOutcome(reason=expected, never_ran=True) == outcome


INTERRUPTED = """
import sys
from pathlib import Path
from finding_tickets.measure.processes.isolation import Isolation, Task

with Isolation(preload=()) as server:
    print("ready", flush=True)
    note = sys.argv[1]
    task = Task(
        target="bad_targets:spawn", payload=note, root=Path(), timeout=600, memory=1 << 30
    )
    list(server.run({"one": task}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_caller(tmp_path: Path, how: signal.Signals) -> None:
    """When the caller is interrupted or killed, server, task, what it started and all files are gone."""
    note, temporary = tmp_path / "pids", tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-c", INTERRUPTED, str(note)]
    environment = {**os.environ, "PYTHONPATH": str(HERE), "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as caller:
        wait_for(note.exists)
        caller.send_signal(how)
        caller.wait(20)
    started = [int(pid) for pid in note.read_text(encoding="ascii").split()]
    wait_for(lambda: not any(map(alive, started)) and not any(temporary.iterdir()))
    assert [] == [pid for pid in started if alive(pid)]
    assert [] == list(temporary.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_nothing_outlives_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the server is killed, its tasks and what they started are gone too, and the caller hears of it."""
    note = tmp_path / "pids"
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    with Isolation(preload=()) as server:
        killer = threading.Thread(target=kill_once_started, args=(server, note))
        killer.start()
        outcome = run(server, task("spawn", str(note), timeout=600.0))
        killer.join()
    started = [int(pid) for pid in note.read_text(encoding="ascii").split()]
    wait_for(lambda: not any(map(alive, started)))
    assert (True, []) == (outcome.never_ran, [pid for pid in started if alive(pid)])


def kill_once_started(server: Isolation, note: Path) -> None:
    """Kill a server when its task has left its note."""
    wait_for(note.exists)
    assert server._server is not None
    server._server.kill()


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    """Wait until a condition is true, or time is up."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which processors a process may use")
def test_no_more_tasks_run_at_once_than_there_are_processors_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """On one processor of a large machine each task begins when the one before it has ended."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    with Isolation(preload=()) as on_one:
        spans = [outcome.value for _, outcome in on_one.run({"a": task("take_time"), "b": task("take_time")})]
    (_, end), (begin, _) = sorted(spans)
    assert end <= begin


def test_a_task_that_runs_alone_waits_for_all_others(isolation: Isolation) -> None:
    """Nothing else runs until it has ended: it has the GPUs of the machine for itself."""
    tasks = {"a": task("take_time"), "b": task("take_time", alone=True), "c": task("take_time")}
    first, second, third = sorted(outcome.value for _, outcome in isolation.run(tasks))
    assert first[1] <= second[0]
    assert second[1] <= third[0]
