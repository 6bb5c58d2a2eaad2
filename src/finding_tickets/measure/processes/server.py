"""The process that has torch loaded, and the worker that it forks for every task; ``isolation.py`` starts it.

The first line it writes to stdout names its folder for temporary files. Then it reads one task per line of
stdin, pickled, and writes a line to stdout when a task begins and when it has ended. Tasks begin in the order
in which they came, each on a GPU of its own if it needs one. The server itself runs no torch op: a process
that is forked after a parallel op hangs in the next one.

A worker has limited memory, prints nothing, and returns its result in the file ``RESULT`` of its own folder.

When stdin ends, because the caller is done or was killed, this process kills everything below it and removes
its folder.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import gc
import json
import os
import pickle
import re
import resource
import select
import shutil
import signal
import stat
import sys
import tempfile
import time
from base64 import b64decode
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module, invalidate_caches
from pathlib import Path
from threading import Thread
from traceback import format_exception_only
from typing import Any, NoReturn

from finding_tickets.measure.processes.used_files import note_used_files
from finding_tickets.measure.tasks import (
    COPY,
    KEPT,
    OWN_FOLDER,
    PROBE,
    RUN,
    CannotMeasureError,
    describe,
    is_out_of_host_memory,
    place,
)

RESULT, LOG, USED = "result.json", "output.log", "used"
LARGEST_FILE = 1 << 30
# Names the folder for temporary files to a server that does not make one of its own.
FOLDER_VARIABLE = "TICKETS_FOLDER"
NO_ROOM = "there is no room for its temporary files"
# The exit code of a worker that cannot write: EX_IOERR of sysexits.h.
UNWRITABLE = 74
# Torch's compiler, which the first optimizer of a process loads; that takes longer than most programs.
COMPILER = "torch._dynamo"
# The module that guards the code that measures, if it is loaded.
GUARD = "finding_tickets.measure.state"
# A line that is no task: those at work are to end, and to answer what they have so far.
END = b"end"
CHUNK = 1 << 16
POLL_SECONDS = 0.005
PATIENCE_SECONDS = 5.0
FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
# Python has no function for it; the options are those of linux/prctl.h.
_prctl = ctypes.CDLL(None).prctl
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


@dataclass(frozen=True, kw_only=True)
class Task:
    """A call of ``target`` (``module:function``) with a payload; it is trusted, so pickle carries it.

    ``timeout`` is in seconds; ``memory`` in bytes, more than a process uses with torch loaded. Places in
    error messages are relative to ``root``, or to ``code`` if the code comes from there. Beside a task that
    runs ``alone`` no other one is at work. One that is ``first`` does not wait for others.

    The files that it leaves in ``KEPT`` of its own folder are moved to the folder ``kept``; it finds those of
    the folder ``given`` there. So no other task can know their places. With ``copied``, it has the code in
    ``COPY``, too, where it may write.
    """

    target: str
    payload: Any
    root: Path
    timeout: float
    memory: int
    code: Path | None = None
    alone: bool = False
    first: bool = False
    kept: str = ""
    given: str = ""
    copied: bool = False


def main(most: int, preload: Sequence[str]) -> None:
    """Load modules and serve one caller, at most ``most`` tasks at a time."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Removed, so that a server that the code of a ticket starts makes a folder of its own.
    folder = os.environ.pop(FOLDER_VARIABLE, "")
    try:
        if folder:
            Path(folder).mkdir(0o700, exist_ok=True)
        else:
            folder = tempfile.mkdtemp(prefix="tickets-")
            print(folder, flush=True)
        log = os.open(Path(folder) / LOG, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        # The caller may be gone and read neither the folder nor this.
        with suppress(BrokenPipeError):
            print(
                f"there is no folder for temporary files: {error.strerror}",
                file=sys.stderr,
            )
        return
    os.dup2(log, 2)
    # What torch's compiler keeps is removed with the rest.
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    try:
        # Hardly anything that is loaded is garbage; looking for it takes an eighth of the time.
        gc.disable()
        with _ending_with_caller(folder):
            for name in preload:
                import_module(name)
        _prepare_forks()
        # A garbage collection in a fork would write to every page of what is loaded, and so copy it.
        gc.freeze()
        gc.enable()
        ForkServer(most).serve()
    except Exception as error:
        is_full = isinstance(error, OSError) and error.errno in {
            errno.ENOSPC,
            errno.EDQUOT,
        }
        _tell(failure=NO_ROOM if is_full else format_exception_only(error)[-1].strip())
    finally:
        _kill_children()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _ending_with_caller(folder: str) -> Iterator[None]:
    """End this process and remove its folder if the caller goes away during the block.

    Loading torch takes seconds. The thread that watches ends before anything is forked.
    """
    done, finish = os.pipe()

    def watch() -> None:
        poll = select.poll()
        poll.register(0, 0)
        poll.register(done, 0)
        if 0 in dict(poll.poll()):
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        os.close(finish)
        watcher.join()
        os.close(done)


@dataclass(frozen=True)
class RunningTask:
    """A task, its folder, and when its time is up."""

    task: Task
    folder: str
    deadline: float


class ForkServer:
    """Runs tasks in workers, at most ``most`` at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Each with the folder that its worker will make.
        self._waiting: deque[tuple[str, Task]] = deque()
        self._running: dict[int, RunningTask] = {}

    def serve(self) -> None:
        """Serve until stdin ends."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        unread = b""
        while True:
            # Nothing tells that a worker has ended, so that these are asked now and then.
            if poll.poll(POLL_SECONDS * 1000 if self._running else None):
                chunk = os.read(0, CHUNK)
                if not chunk:
                    return
                *lines, unread = (unread + chunk).split(b"\n")
                for line in lines:
                    if line == END:
                        for worker in self._running:
                            os.kill(worker, signal.SIGALRM)
                        continue
                    folder, task = pickle.loads(b64decode(line))  # noqa: S301 - the caller's, whom nobody else can reach
                    # What ends a ticket comes before what begins another one.
                    (self._waiting.appendleft if task.first else self._waiting.append)(
                        (folder, task)
                    )
            self._end_tasks()
            while self._waiting and self._has_room_for(self._waiting[0][1]):
                self._start_task(*self._waiting.popleft())

    def _has_room_for(self, task: Task) -> bool:
        """Return True if a task can begin now."""
        running = [each.task for each in self._running.values()]
        most = 1 if any(each.alone for each in (task, *running)) else self._most
        is_in_the_way = _writes_in_place(task) and any(map(_writes_in_place, running))
        return len(running) < most and not is_in_the_way

    def _start_task(self, folder: str, task: Task) -> None:
        """Fork a worker for a task."""
        is_traced = getattr(task.payload, "graph_breaks", False)
        if (is_traced or task.target in (PROBE, RUN)) and COMPILER not in sys.modules:
            # A program is about to train, or a function to be traced, and so is the next one.
            import_module(COMPILER)
            _prepare_forks()
            gc.freeze()
        server = os.getpid()
        if worker := os.fork():
            self._running[worker] = RunningTask(
                task, folder, time.monotonic() + task.timeout
            )
            _tell(folder=folder, started=True)
            return
        try:
            # What else is measured is nothing that code of this task could find.
            self._waiting.clear()
            self._running.clear()
            work(task, folder, server)
        except OSError:
            # The disk is full, or nothing may be written. What the code raises is a result.
            os._exit(UNWRITABLE)
        finally:
            os._exit(1)

    def _end_tasks(self) -> None:
        """Report the tasks that have ended or whose time is up, after killing what they left behind."""
        for worker, running in list(self._running.items()):
            ended, status = os.waitpid(worker, os.WNOHANG)
            if ended or time.monotonic() >= running.deadline:
                del self._running[worker]
                # If its time is up, that includes the worker itself.
                _kill_children(but=self._running)
                task, folder = running.task, Path(running.folder)
                reason = _why_it_ended(status if ended else None, task, folder)
                _tell(folder=running.folder, started=False, reason=reason)


def _writes_in_place(task: Task) -> bool:
    """Return True for a program in the work tree: two at a time would write the same files."""
    return task.target == RUN and not task.copied and task.payload.kind != "function"


def _prepare_forks() -> None:
    """Look up here what each worker would look up in the modules that are loaded."""
    # The threads of a worker may outlive what it is doing when they start, and work when it is counted.
    if simulation := sys.modules.get("simcuda.simulation"):
        simulation.prepare_forks()
    if guard := sys.modules.get(GUARD):
        with guard.unpatched(), guard.unpatched(only_ours=True):
            pass


def _tell(**event: object) -> None:
    """Write an event for the caller, as a line of JSON."""
    # A caller that is gone has closed stdin too, and the server ends there.
    with suppress(BrokenPipeError):
        print(json.dumps(event), flush=True)


def _kill_children(but: Collection[int] = ()) -> None:
    """Kill every child of this process except some, until their orphans are gone too."""
    own = b"%d" % os.getpid()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        children = []
        # Every task ends here, on machines with hundreds of processes: pathlib would take twice as long.
        for process in os.listdir("/proc"):  # noqa: PTH208
            # Most of what is no process has no such file, and nothing of it has this process as its parent.
            with suppress(OSError), open(f"/proc/{process}/stat", "rb") as status:  # noqa: PTH123
                # The name of the program, in brackets, may hold spaces and brackets too.
                if status.read().rpartition(b")")[2].split()[1] == own:
                    children.append(int(process))
        if not (strays := set(children).difference(but)):
            return
        for child in strays:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(POLL_SECONDS)


def _why_it_ended(status: int | None, task: Task, folder: Path) -> str:
    """Return why a worker left no result; empty if it left one. The status is None if its time was up."""
    if status is None:
        return f"still running after {task.timeout:g} s"
    code = os.waitstatus_to_exitcode(status)
    if code == UNWRITABLE:
        return NO_ROOM
    if code >= 0:
        # Reading something other than a file, such as a pipe, might never end.
        has_result = not code and (folder / RESULT).is_file()
        return (
            "" if has_result else f"ended with exit code {code} before it had a result"
        )
    try:
        name = signal.Signals(-code).name
    except ValueError:  # most of those for real time have no name
        name = f"signal {-code}"
    # The place of the crash is the innermost frame in the repository's own files.
    _, _, trace = read_log(folder / LOG).rpartition("Fatal Python error")
    for frame in FRAME.finditer(trace):
        file = Path(frame["file"])
        # Code of a revision may have run in a copy of its own.
        for root in (task.root, task.code or task.root, folder / COPY):
            if file.is_relative_to(root):
                return f"killed by {name} at {file.relative_to(root).as_posix()}:{frame['line']}"
    return f"killed by {name}"


def read_log(log: Path) -> str:
    """Return the text of a log; empty if a ticket's code removed it, or put a pipe there."""
    try:
        return (
            log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        )
    except OSError:
        return ""


def work(task: Task, own_folder: str, server: int) -> NoReturn:
    """Call a task's target with its payload and write what it returns, or why it failed; never return.

    This process dies with ``server``, the one that forked it.
    """
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != server:
        os._exit(1)
    # Orphans stay below this worker until it ends, so that the server knows which task they belong to.
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.setsid()
    # Leave no caches of compiled files in the repository: git may not ignore them.
    sys.dont_write_bytecode = True
    folder = Path(own_folder)
    folder.mkdir()
    if task.given:
        Path(task.given).rename(folder / KEPT)
    else:
        (folder / KEPT).mkdir()
    _silence(folder / LOG)
    # Temporary files of the task are removed with its folder.
    temporary = folder / "tmp"
    temporary.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    root, code = str(task.root), str(task.code or task.root)
    shown = {root: root, code: code}
    if task.copied:
        _copy_code(code, folder / COPY)
        shown[str(folder / COPY)] = code
    os.environ[OWN_FOLDER] = str(folder)
    _limit_resources(task.memory)
    # A file may be new since the server looked for modules.
    invalidate_caches()
    note_used_files(folder / USED, shown)
    module, _, function = task.target.partition(":")
    outcome: dict[str, Any]
    try:
        outcome = {"value": getattr(import_module(module), function)(task.payload)}
    except BaseException as error:
        outcome = {"error": _failure(error, task)}
    # Messages and names may hold what cannot be encoded, such as half a surrogate pair.
    content = json.dumps(outcome, ensure_ascii=False).encode(errors="replace")
    aside = folder / f"{RESULT}.part"
    aside.write_bytes(content)
    aside.replace(folder / RESULT)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _failure(error: BaseException, task: Task) -> str:
    """Return what an error of a task's code says, with its place in the repository."""
    roots = list(dict.fromkeys([task.root, task.code or task.root]))
    who = place(error, *roots) or "it"
    if is_out_of_host_memory(error):
        return f"{who} needs more memory than the {task.memory >> 20} MiB allowed"
    if isinstance(error, CannotMeasureError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"{who} called sys.exit({error.code!r})"
    return describe(error, *roots)


def _copy_code(code: str, copy: Path) -> None:
    """Copy a folder of code, which may be one that nothing can be written to."""
    shutil.copytree(code, copy, symlinks=True)
    for file in copy.rglob("*"):
        if not file.is_symlink():
            file.chmod(file.stat().st_mode | stat.S_IWUSR)


def _silence(log: Path) -> None:
    """Send all output, tracebacks too, to a file; give nothing to read, and leave no other file open."""
    output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in [(nothing, 0), (output, 1), (output, 2)]:
        os.dup2(source, target)
    # A worker that kept a pipe of the server open would make the caller wait for ever. Some containers allow
    # a thousand million open files, so only those that are open are closed.
    for name in os.listdir("/dev/fd"):  # noqa: PTH208
        if (descriptor := int(name)) > 2:
            # The listing itself used one, which is closed by now.
            with suppress(OSError):
                os.close(descriptor)
    faulthandler.enable(file=2)


def _limit_resources(memory: int) -> None:
    """Allow no core dumps, no huge files, and ``memory`` bytes more than are in use now."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = (
        LARGEST_FILE if most == resource.RLIM_INFINITY else min(LARGEST_FILE, most)
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    # Limit private writable memory: a limit on address space breaks OpenMP. Not every system reports it.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData"):
                limit = (int(line.split()[1]) << 10) + memory
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
    os._exit(0)
