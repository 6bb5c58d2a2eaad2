# What is tried here are the calls themselves, in the ways that they may be made.
# ruff: noqa: PTH116, PTH208, S108
"""What code under test may try in order to see, stop or change what is not its own; tasks call these."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
# Ignored unless somebody asks for it, so that a test that fails harms nobody.
HARMLESS = signal.SIGURG


def system(*arguments: Any) -> int:
    """Call the C library's ``syscall``; raises ``OSError``."""
    answer: int = LIBC.syscall(*arguments)
    if answer < 0:
        raise OSError(ctypes.get_errno(), "")
    return answer


def own_folder() -> Path:
    """The task's own folder, which is beside those of others."""
    return Path(os.environ["TMPDIR"]).parent


def in_shell(command: str) -> None:
    """Run a command; raises ``OSError`` where it fails."""
    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True)
    if done.returncode:
        raise PermissionError(errno.EPERM, done.stderr)


def as_grandchild(action: Callable[[], object]) -> None:
    """Act in an orphan; raises what it raised."""
    ours, theirs = os.pipe()
    if not (middle := os.fork()):
        if not os.fork():
            number = 0
            try:
                action()
            except OSError as error:
                number = error.errno or 0
            os.write(theirs, bytes([number]))
        os._exit(0)
    os.waitpid(middle, 0)
    if number := os.read(ours, 1)[0]:
        raise OSError(number, "")


def through_owner(pid: int) -> None:
    """Have the kernel send signals for input to another process."""
    ours, _ = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, pid)


def by_handle(path: Path) -> int:
    """Open a file without its path."""

    class Handle(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint), ("kind", ctypes.c_int), ("bytes", ctypes.c_char * 128)]

    handle, mount = Handle(128, 0, b""), ctypes.c_int()
    with suppress(OSError):
        system(303, -100, str(path).encode(), ctypes.byref(handle), ctypes.byref(mount), 0)
    return system(304, -100, ctypes.byref(handle), 0)


def through_link(target: str) -> bytes:
    """Read what a link in the own folder leads to."""
    link = own_folder() / "tmp/link"
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    return link.read_bytes()


def through_current_folder(path: Path) -> bytes:
    """Read from the root, named by a link that means the current folder of whoever asks."""
    os.chdir("/")
    return through_link(f"/proc/self/cwd{path}")


def attempts(pid: int, other: Path) -> dict[str, Callable[[], object]]:
    """What a task can do to a process that is not its own, and to the folder of another task."""
    result, own = other / "result.json", own_folder() / "tmp/mine"
    return {
        "kill": lambda: os.kill(pid, HARMLESS),
        "kill by the C library": lambda: system(62, pid, HARMLESS),
        "kill a thread": lambda: system(234, pid, pid, HARMLESS),
        "kill everybody": lambda: os.kill(-1, HARMLESS),
        "kill its group": lambda: os.killpg(os.getpgid(pid), HARMLESS),
        "kill in a shell": lambda: in_shell(f"kill -URG {pid}"),
        "kill as an orphan": lambda: as_grandchild(lambda: os.kill(pid, HARMLESS)),
        "queue a signal": lambda: system(129, pid, HARMLESS, ctypes.create_string_buffer(128)),
        "name a process by a file": lambda: os.pidfd_open(pid),
        "kill by a folder of /proc": lambda: signal.pidfd_send_signal(
            os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY), HARMLESS
        ),
        "own a file for it": lambda: through_owner(pid),
        "trace": lambda: system(101, 16, pid, 0, 0),
        "limit": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64)),
        "starve": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
        "starve the user": lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19),
        "bind to a processor": lambda: os.sched_setaffinity(pid, {0}),
        "read its own memory past the device": lambda: Path("/proc/self/mem").open("rb"),
        "read memory": lambda: Path(f"/proc/{pid}/mem").open("rb"),
        "write memory": lambda: Path(f"/proc/{pid}/mem").open("r+b"),
        "read the environment": lambda: Path(f"/proc/{pid}/environ").read_bytes(),
        "its open files": lambda: os.listdir(f"/proc/{pid}/fd"),
        "let it be killed first": lambda: Path(f"/proc/{pid}/oom_score_adj").write_text("1000"),
        "a control group": lambda: Path("/sys/fs/cgroup/cgroup.procs").write_text("0"),
        "read a result": result.read_bytes,
        "list the results": lambda: os.listdir(other.parent),
        "go there": lambda: os.chdir(other),
        "move a result": lambda: result.rename(own),
        "link a result": lambda: os.link(result, own),
        "remove a result": result.unlink,
        "replace a result": lambda: result.write_text("{}"),
        "read through a link": lambda: through_link(str(result)),
        "read through the own root": lambda: Path(f"/proc/self/root{result}").read_bytes(),
        "read through its root": lambda: Path(f"/proc/{pid}/root{result}").read_bytes(),
        "read through the current folder": lambda: through_current_folder(result),
        "open by a handle": lambda: by_handle(result),
        "a ring of calls": lambda: system(425, 8, ctypes.create_string_buffer(128)),
        "memory without a path": lambda: system(29, 4711, 4096, 0o1600),
        "a queue of messages": lambda: system(68, 4711, 0o1600),
        "a named queue": lambda: system(240, b"queue", 0o102, 0o600, 0),
        "a key": lambda: system(248, b"user", b"key", b"found's", 7, -4),
        "memory that answers late": lambda: system(323, 0),
        "mount": lambda: system(165, b"/", str(own_folder()).encode(), 0, 4096, 0),
        "namespaces of its own": lambda: system(272, 0x00020000),
        "another root": lambda: os.chroot("/tmp"),
    }


def reach(order: dict[str, Any]) -> dict[str, str]:
    """The name of the error with which each attempt ended; nothing for those that went on."""
    ended = {}
    for name, attempt in attempts(order["pid"], Path(order["other"])).items():
        ended[name] = ""
        try:
            attempt()
        except OSError as error:
            ended[name] = errno.errorcode[error.errno or 0]
    return ended


def use_own(_: Any) -> dict[str, Any]:
    """What a task does to itself and to its children, as libraries do: all of it is allowed."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    os.kill(child.pid, 0)
    os.setpriority(os.PRIO_PROCESS, child.pid, 5)
    resource.prlimit(child.pid, resource.RLIMIT_NOFILE)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    environment = Path(f"/proc/{child.pid}/environ").read_bytes()
    os.killpg(child.pid, signal.SIGSTOP)
    signal.pidfd_send_signal(os.pidfd_open(child.pid), signal.SIGCONT)
    child.terminate()
    seen: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    threads = [threading.Thread(target=lambda: [os.stat(__file__) for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
    os.kill(0, HARMLESS)
    for thread in threads:
        thread.join()
    forked = os.fork()
    if not forked:
        os._exit(len(Path(__file__).read_bytes()) == 0)
    return {
        "child": child.wait(),
        "seen": seen,
        "environment": bool(environment),
        "forked": os.waitpid(forked, 0)[1],
        "gone": _error(lambda: os.kill(child.pid, 9)),
    }


def _error(action: Callable[[], object]) -> str:
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


def look_around(folder: str) -> None:
    """Use the files of a folder in ways that Python's audit events do not tell."""
    os.chdir(folder)
    os.stat("looked")
    assert not Path("missing").exists()
    LIBC.close(LIBC.open(b"native", os.O_RDONLY))
    in_shell("cat child > written; ls listed; ./script")
    Path("sub/../dotted").read_bytes()
    Path("made").mkdir()
    Path("named").symlink_to("real")
    Path("link").read_bytes()
    assert Path("link").readlink() == Path("real")
    folder_of = os.open("sub", os.O_RDONLY)
    os.close(os.open("inside", os.O_RDONLY, dir_fd=folder_of))
    # The flag only allows a name to be empty.
    os.chdir("/")
    system(262, folder_of, b"measured", ctypes.create_string_buffer(256), 0x1000)
    (own_folder() / "tmp/link").symlink_to(f"{folder}/led")
    (own_folder() / "tmp/link").read_bytes()
    with suppress(FileNotFoundError):
        os.stat("x" * 255)
    with suppress(OSError):
        os.stat("x/" * 5000)
    assert LIBC.open(1, os.O_RDONLY) == -1


def connect(_: Any) -> None:
    """Try to reach somebody."""
    with socket.socket() as line:
        line.settimeout(0.1)
        line.connect_ex(("127.0.0.1", 9))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line, suppress(OSError):
        line.sendto(b"", ("192.0.2.1", 9))
        line.sendmsg([b""], [], 0, ("192.0.2.2", 9))
    with socket.socket(socket.AF_UNIX) as line:
        line.connect_ex("\0nobody")
        line.connect_ex("/nowhere/socket")


def many(count: int) -> float:
    """Look for many files; how long that takes in seconds."""
    begin = time.perf_counter()
    for number in range(count):
        Path(f"/nowhere/{number}").exists()
    return time.perf_counter() - begin


def modules(_: Any) -> list[str]:
    """What was started with the server."""
    return [name for name in ("sitecustomize", "usercustomize") if name in sys.modules] + [
        os.environ.get("PYTHONPATH", "")
    ]


def wait(_: Any) -> None:
    """Never return."""
    while True:
        time.sleep(60)


def stop(order: dict[str, Any]) -> None:
    """Stop everything that may know the time, in every way, and wait."""
    for pid in (os.getppid(), *order["pids"], -1):
        for attempt in (
            lambda pid=pid: os.kill(pid, signal.SIGSTOP),
            lambda pid=pid: system(62, pid, signal.SIGKILL),
            lambda pid=pid: in_shell(f"kill -STOP {pid}"),
            lambda pid=pid: as_grandchild(lambda: os.kill(pid, signal.SIGSTOP)),
            lambda pid=pid: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGSTOP),
        ):
            with suppress(OSError):
                attempt()
    wait(None)


def inside(order: dict[str, Any]) -> dict[str, str]:
    """What a task in a sandbox may try; how each attempt ended, and nothing for those that went on."""
    here = Path(__file__).parent

    def abstract(family: int, address: Any) -> None:
        with socket.socket(family) as line:
            line.settimeout(1)
            line.connect(address)

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(b"out", ("192.0.2.1", 9))

    def found(what: object) -> None:
        if what:
            raise AssertionError(what)

    tried: dict[str, Callable[[], object]] = {
        "write outside": lambda: (here / "inside").write_text("here"),
        "write to the system": lambda: Path("/usr/inside").write_text("here"),
        "write at the root": lambda: Path("/inside").write_text("here"),
        "remount": lambda: system(165, b"none", str(here).encode(), 0, 0x1020, 0),
        "mount": lambda: system(165, b"none", b"/tmp", b"tmpfs", 0, 0),
        "change the kernel": lambda: Path("/proc/sys/kernel/hostname").write_text("inside"),
        "read a secret": lambda: Path(order["secret"]).read_bytes(),
        "connect by TCP": lambda: abstract(socket.AF_INET, ("127.0.0.1", order["port"])),
        "send by UDP": send,
        "connect to a socket": lambda: abstract(socket.AF_UNIX, order["socket"]),
        "connect to an abstract socket": lambda: abstract(socket.AF_UNIX, order["abstract"]),
        # Of AF_VSOCK, which no namespace holds back; its address would be that of the host.
        "open a socket to the host": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
        "kill": lambda: os.kill(order["pid"], 0),
        "read an environment": lambda: Path(f"/proc/{order['pid']}/environ").read_bytes(),
        "capabilities": lambda: found(
            [
                line
                for line in Path("/proc/self/status").read_text().splitlines()
                if line.startswith("Cap") and int(line.split()[1], 16)
            ]
        ),
        # Bubblewrap's own first process, the server and the task.
        "other processes": lambda: found(
            len([entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]) > 3
        ),
        "a token": lambda: found([name for name in os.environ if "TOKEN" in name or name == "ANYTHING"]),
        "its home": lambda: found(list(Path.home().iterdir())),
        "sockets of services": lambda: found([each for each in ("/run", "/var") if Path(each).exists()]),
    }
    ended = {}
    for name, attempt in tried.items():
        ended[name] = ""
        try:
            attempt()
        except OSError:
            ended[name] = "refused"
        except AssertionError as error:
            ended[name] = f"found: {error}"
    return ended
