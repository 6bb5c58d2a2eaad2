"""The process in which code of a ticket runs: bounded in memory, silent, and with one way to return."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from finding_tickets.measure.places import describe, is_out_of_host_memory, place
from finding_tickets.measure.report import CannotMeasureError

RESULT = "result.json"
LOG = "output.log"
TEMPORARY = "tmp"
LARGEST_FILE = 1 << 30
VARIABLE = "CUDA_VISIBLE_DEVICES"
"""Read by CUDA when it starts, which is after the fork."""
NO_ROOM = "there is no room for its temporary files"
UNWRITABLE = 74
"""The exit code for what cannot be written, EX_IOERR of sysexits.h."""


def said(log: Path) -> str:
    """What a log says: nothing where code of a ticket has removed it, or put a pipe without end there."""
    try:
        return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    except OSError:
        return ""


def work(task: dict[str, Any]) -> NoReturn:
    """Call the task's target with its payload and write what it returns, or why it failed; never returns."""
    # What is measured is left as it was, also where caches of compiled files are not ignored by git.
    sys.dont_write_bytecode = True
    folder = Path(task["folder"])
    with _writing():
        _silence(folder / LOG)
        _keep_temporary_files(folder / TEMPORARY)
    if task["gpus"]:
        os.environ[VARIABLE] = ",".join(task["gpus"])
    _bound_disk()
    _bound_memory(int(task["memory"]))
    outcome = _outcome(task)
    with _writing():
        _write(folder, outcome)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _outcome(task: dict[str, Any]) -> dict[str, Any]:
    module, _, function = task["target"].partition(":")
    try:
        return {"value": getattr(import_module(module), function)(task["payload"])}
    except BaseException as error:
        return {"error": _failure(error, task)}


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
def _writing() -> Iterator[None]:
    """End this process where there is no room, or no leave to write."""
    try:
        yield
    except OSError:
        os._exit(UNWRITABLE)


def _write(folder: Path, outcome: dict[str, Any]) -> None:
    aside = folder / f"{RESULT}.part"
    # Messages and names may hold what no encoding has, such as half a surrogate pair.
    aside.write_bytes(json.dumps(outcome, ensure_ascii=False).encode(errors="replace"))
    aside.replace(folder / RESULT)


def _silence(log: Path) -> None:
    """Send all output to a file, where a crash leaves its traceback too; there is nothing to read."""
    output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in [(nothing, 0), (output, 1), (output, 2)]:
        os.dup2(source, target)
    close_inherited()
    faulthandler.enable(file=2)


def close_inherited() -> None:
    """Close all files but stdin, stdout and stderr: whoever keeps a pipe of the server makes it wait."""
    # Of numbers that a file may have there are a thousand million in some containers.
    for file in list(Path("/dev/fd").iterdir()):
        if (descriptor := int(file.name)) > 2:
            # That of the list is closed by now.
            with suppress(OSError):
                os.close(descriptor)


def _keep_temporary_files(folder: Path) -> None:
    """Have temporary files made where they go away with the task."""
    folder.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)


def _bound_disk() -> None:
    """No core dumps, and no output without end."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = LARGEST_FILE if most == resource.RLIM_INFINITY else min(LARGEST_FILE, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))


def _bound_memory(extra: int) -> None:
    """Allow ``extra`` bytes beyond what is in use; a limit on address space would break OpenMP."""
    if used := _data_bytes():
        resource.setrlimit(resource.RLIMIT_DATA, (used + extra, used + extra))


def _data_bytes() -> int | None:
    """Private writable memory of this process; None where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    return next(
        (int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData")), None
    )
