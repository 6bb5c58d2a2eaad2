"""The process between a caller and the server of its tasks: whatever becomes of the caller, nothing is left.

It is small, so that it is there at once, while the server is still loading torch. It makes the folder for
temporary files, says on a line of JSON where that is, and starts the server, to which the caller speaks from
then on. When the caller closes its end, or is killed, every process below ends, and the folder goes away.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from finding_tickets.measure.sandbox import sandboxed
from finding_tickets.measure.supervise import kill_descendants, reap_orphans
from finding_tickets.measure.worker import LOG

POLL_MILLISECONDS = 100
"""How often to look whether the server has ended; that the caller has is told at once."""


def main(program: str, command: list[str]) -> None:
    """Serve one caller, in a sandbox of ``program`` if that is given."""
    reap_orphans()
    try:
        folder = tempfile.mkdtemp(prefix="tickets-")
    except OSError as error:
        _tell(error=f"there is no folder for temporary files: {error.strerror}")
        return
    try:
        _serve(folder, sandboxed(command, program, folder) if program else command)
    except OSError as error:
        _tell(error=f"{error.filename}: {error.strerror}")
    finally:
        kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def _serve(folder: str, command: list[str]) -> None:
    log = os.open(Path(folder) / LOG, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    server = subprocess.Popen(command, stderr=log)  # noqa: S603 - this interpreter, and a module of ours
    _tell(folder=folder)
    # The caller reads to the end of what the server says, which is not to wait for this process.
    os.dup2(log, 1)
    os.dup2(log, 2)
    caller = select.poll()
    caller.register(0, 0)
    while server.poll() is None and not caller.poll(POLL_MILLISECONDS):
        pass


def _tell(**event: str) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
    os._exit(0)
