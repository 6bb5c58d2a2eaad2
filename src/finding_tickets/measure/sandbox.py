"""A sandbox for the code of tickets, made by bubblewrap: a read-only file system and no network."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from finding_tickets.errors import UsageError

PROGRAM = "bwrap"


def bubblewrap() -> str:
    """Where bubblewrap is.

    Raises:
        UsageError: This system has none.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise UsageError(
            f"--sandbox needs bubblewrap, and there is no {PROGRAM} on PATH",
            hint="install bubblewrap, or run in a container of your own and leave the option out",
        )
    return program


def sandboxed(command: Sequence[str], program: str, folder: str) -> list[str]:
    """How ``program`` runs a command that can write nothing but ``folder``, and ends when its caller does."""
    gpus = [
        argument
        for device in sorted(map(str, Path("/dev").glob("nvidia*")))
        for argument in ("--dev-bind", device, device)
    ]
    return [
        program,
        *("--ro-bind", "/", "/"),
        *("--dev", "/dev"),
        *gpus,
        *("--proc", "/proc"),
        *("--bind", folder, folder),
        "--unshare-all",
        "--die-with-parent",
        "--",
        *command,
    ]
