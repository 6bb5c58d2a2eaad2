"""The process in which code of a ticket runs: bounded in memory, silent, and with one way to return."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from finding_tickets.measure.places import describe, is_out_of_host_memory, place
from finding_tickets.measure.tasks import CannotMeasureError

RESULT = "result.json"
LOG = "output.log"
LARGEST_FILE = 1 << 30
FOLDER_VARIABLE = "TICKETS_FOLDER"
"""Tells a server its folder for temporary files, where that is made already."""
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
"""Read by CUDA when it starts, which is after the fork."""
NO_ROOM = "there is no room for its temporary files"
UNWRITABLE = 74
"""The exit code for what cannot be written, EX_IOERR of sysexits.h."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def read_log(log: Path) -> str:
    """What a log says: nothing where code of a ticket has removed it, or put a pipe without end there."""
    try:
        return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    except OSError:
        return ""


def adopt_orphans() -> None:
    """Have the orphans among the descendants of this process become its children."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def work(task: dict[str, Any], server: int) -> NoReturn:
    """Call the task's target with its payload and write what it returns, or why it failed; never returns.

    ``server`` is the process that forked this one; this one dies with it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != server:
            os._exit(1)
    # The server gets the orphans of this task when it has ended, and so can tell them from those of others.
    adopt_orphans()
    os.setsid()
    # What is measured is left as it was, also where caches of compiled files are not ignored by git.
    sys.dont_write_bytecode = True
    folder = Path(task["folder"])
    with _exit_if_unwritable():
        folder.mkdir()
        _silence(folder / LOG)
        # Temporary files are made where they go away with the task.
        temporary = folder / "tmp"
        temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    # CUDA has not started: the server asks for no GPU.
    if task["gpus"]:
        os.environ[VISIBLE_DEVICES] = ",".join(task["gpus"])
    _limit_resources(int(task["memory"]))
    module, _, function = task["target"].partition(":")
    outcome: dict[str, Any]
    try:
        outcome = {"value": getattr(import_module(module), function)(task["payload"])}
    except BaseException as error:
        outcome = {"error": _failure(error, task)}
    # Messages and names may hold what no encoding has, such as half a surrogate pair.
    content = json.dumps(outcome, ensure_ascii=False).encode(errors="replace")
    with _exit_if_unwritable():
        aside = folder / f"{RESULT}.part"
        aside.write_bytes(content)
        aside.replace(folder / RESULT)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _failure(error: BaseException, task: dict[str, Any]) -> str:
    roots = [Path(root) for root in dict.fromkeys([task["root"], task["code"]])]
    if is_out_of_host_memory(error):
        mebibytes = int(task["memory"]) >> 20
        return f"{place(error, *roots) or 'it'} needs more memory than the {mebibytes} MiB allowed"
    if isinstance(error, CannotMeasureError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"{place(error, *roots) or 'it'} called sys.exit({error.code!r})"
    return describe(error, *roots)


@contextmanager
def _exit_if_unwritable() -> Iterator[None]:
    """End this process where there is no room, or no leave to write."""
    try:
        yield
    except OSError:
        os._exit(UNWRITABLE)


def _silence(log: Path) -> None:
    """Send all output to a file, where a crash leaves its traceback too; there is nothing to read."""
    output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in [(nothing, 0), (output, 1), (output, 2)]:
        os.dup2(source, target)
    # Whoever keeps a pipe of the server makes it wait. Of numbers that a file may have there are a thousand
    # million in some containers, so that only those that are open are looked at.
    for file in list(Path("/dev/fd").iterdir()):
        if (descriptor := int(file.name)) > 2:
            # That of the list is closed by now.
            with suppress(OSError):
                os.close(descriptor)
    faulthandler.enable(file=2)


def _limit_resources(memory: int) -> None:
    """No core dumps, no file without end, and ``memory`` bytes beyond what is in use."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = LARGEST_FILE if most == resource.RLIM_INFINITY else min(LARGEST_FILE, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    # Private writable memory: a limit on address space would break OpenMP. Not every system tells it.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData"):
                limit = (int(line.split()[1]) << 10) + memory
                resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
