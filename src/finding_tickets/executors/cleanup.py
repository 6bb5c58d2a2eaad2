"""Leave nothing behind, however a process ends: what Ray kills cannot clean up after itself."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "TICKETS_TEMPORARY"
"""A variable that names a folder, for the processes that are to end with it."""
# The loop runs in the background, so that it is no child of the process it waits for. It spares our own
# processes and other such shells, which clean up after themselves. It goes on for a while, as a process that
# ends late may make files again.
_WHEN_INPUT_ENDS = """
exec 3<&0
(
    cat <&3
    quiet=0
    for second in $(seq 60); do
        for environ in $(grep -lsF "$2=$1" /proc/[0-9]*/environ); do
            quiet=0
            process=${environ%/environ}
            grep -qsF -e finding_tickets -e "$2" "$process/cmdline" || kill -9 "${process#/proc/}"
        done
        [ -e "$1" ] && quiet=0 && rm -rf "$1"
        quiet=$((quiet + 1))
        [ $quiet -gt 2 ] && exit
        sleep 1
    done
) >/dev/null 2>&1 &
"""


def remove_afterwards(folder: str) -> int:
    """Have a folder removed within seconds of the end of this process, or of closing what is returned."""
    # The other end of the pipe closes with this process, for nothing inherits it.
    read, write = os.pipe()
    command = ["/bin/sh", "-c", _WHEN_INPUT_ENDS, "sh", folder, MARK]
    subprocess.run(command, stdin=read, start_new_session=True, check=True)  # noqa: S603 - a program of ours
    os.close(read)
    return write


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """A folder that is gone when the block is left, and soon after the end of this process."""
    folder = f"{tempfile.gettempdir()}/{prefix}{secrets.token_hex(8)}"
    # Whoever is to remove it is there first.
    end = remove_afterwards(folder)
    try:
        Path(folder).mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(end)
