"""What isolated code may do to the process it runs in; tests start these functions as tasks."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def answer(payload: Any) -> Any:
    """Return what came in, and something about the process."""
    return {"payload": payload, "cwd": str(Path.cwd()), "flavour": os.environ.get("FLAVOUR")}


def hang(_: Any) -> None:
    """Never return."""
    while True:
        time.sleep(60)


def leave(_: Any) -> None:
    """Look like a success to anyone who asks for the exit code alone."""
    os._exit(0)


def leave_with(code: int) -> None:
    """End with an exit code, past every handler."""
    os._exit(code)


def call_exit(_: Any) -> None:
    """End as a script would."""
    sys.exit(5)


def fail(_: Any) -> None:
    """Raise an exception with a message of several lines."""
    raise ValueError("not like this\nnor like that")


def crash(_: Any) -> None:
    """Read at address 0."""
    ctypes.string_at(0)


def litter(_: Any) -> str:
    """Leave temporary files behind, as many libraries do; where they are."""
    tempfile.mkdtemp()
    return subprocess.run(["mktemp"], check=True, capture_output=True, text=True).stdout.strip()


def kill_itself(number: int | None) -> None:
    """End by a signal; as if the system had run out of memory, if no other is named."""
    os.kill(os.getpid(), number or signal.SIGKILL)


def fail_with(text: str) -> None:
    """Raise an exception with a message of the caller's."""
    raise ValueError(text)


def forge(text: str) -> None:
    """Leave a result of one's own and be gone."""
    _result().write_text(text, encoding="utf-8")
    os._exit(0)


def forge_pipes(number: int) -> None:
    """Leave what to read never ends in place of the result and the log, and end by a signal, or by none."""
    (_result().parent / "output.log").unlink()
    os.mkfifo(_result().parent / "output.log")
    os.mkfifo(_result())
    os.kill(os.getpid(), number)
    os._exit(0)


def _result() -> Path:
    return Path(os.environ["TMPDIR"]).parent / "result.json"


def eat_memory(_: Any) -> None:
    """Allocate until something gives."""
    eaten = []
    while True:
        eaten.append(bytes(32 << 20))


def talk(_: Any) -> str:
    """Print what looks like an answer, and what is no text at all."""
    print('{"id": 0, "reason": "mine"}\n' * 1000)
    os.write(1, b"\0\xff" * 100_000)
    os.write(2, b"Traceback: nothing\n")
    return "heard"


def flood(_: Any) -> str:
    """Write a file without end, sparsely so that the test is quick."""
    with Path("/dev/stdout").open("wb") as stream:
        os.truncate(stream.fileno(), 2 << 30)
    return "flooded"


def no_json(_: Any) -> Any:
    """Return what JSON cannot carry."""
    return object()


def spawn(note: str) -> None:
    """Leave two processes behind in sessions of their own, one of them an orphan, and hang."""
    own = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    if not (middle := os.fork()):
        os.setsid()
        if orphan := os.fork():
            aside = Path(f"{note}.part")
            aside.write_text(f"{own.pid} {orphan}", encoding="ascii")
            aside.replace(note)
            os._exit(0)
        time.sleep(600)
    os.waitpid(middle, 0)
    hang(None)


def keep_an_orphan(_: Any) -> bool:
    """Start a process whose parent ends, and tell whether it is still there when other tasks have ended."""
    line = ["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"]
    orphan = int(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    time.sleep(1)
    return "sleep" in Path(f"/proc/{orphan}/stat").read_text(encoding="ascii")


def kill_parent(note: str) -> None:
    """Start a process in a session of its own, and kill the one that would end it."""
    own = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    Path(note).write_text(str(own.pid), encoding="ascii")
    os.kill(os.getppid(), signal.SIGKILL)
    hang(None)


def take_time(_: Any) -> tuple[float, float]:
    """Return when this began and ended, as all processes see the clock."""
    begin = time.monotonic()
    time.sleep(0.1)
    return begin, time.monotonic()


def meet_nobody(_: Any) -> str:
    """Take long enough to be at work when another task is."""
    time.sleep(1)
    return "alone"


def stop_parent(_: Any) -> None:
    """Stop the process that looks at the clock."""
    os.kill(os.getppid(), signal.SIGSTOP)
    hang(None)


def fork(note: str) -> None:
    """Fork in each child once more, forty in all, each in a session of its own, and hang in all of them."""
    for _ in range(20):
        if not os.fork():
            os.setsid()
            os.fork()
            with Path(note).open("a", encoding="ascii") as file:
                file.write(f"{os.getpid()}\n")
            hang(None)
    hang(None)


def hang_in_c(_: Any) -> None:
    """Wait for a signal in C and let no other thread of Python run."""
    ctypes.PyDLL(None).pause()


def descriptors(_: Any) -> list[int]:
    """The numbers of the open files, but for the first three."""
    return [number for number in range(3, 1024) if Path(f"/dev/fd/{number}").exists()]
