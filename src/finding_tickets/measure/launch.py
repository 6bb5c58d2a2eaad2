"""How the server of isolated tasks is started: on which Python, and in a sandbox or not.

Another Python than the tool's own is given the packages that measuring takes, which need torch and the
standard library alone, through a folder with two links: what else is installed beside the tool stays where it
is. The sandbox is bubblewrap's: a read-only file system and no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from finding_tickets.errors import UnreachableError, UsageError
from finding_tickets.ground.cache import cache_folder, make_folder
from finding_tickets.measure.worker import FOLDER_VARIABLE

PACKAGES = ("finding_tickets", "simcuda")
LINKS_KEPT = 8
OLDEST = (3, 11)
START = f"""
import sys
if sys.version_info < {OLDEST}:
    sys.exit("Python " + sys.version.split()[0] + " is too old to measure with: it takes 3.11")
if not sys.flags.safe_path:
    del sys.path[0]
from runpy import run_module
run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""What ``-P -m`` does, said so that an old Python understands what is wrong."""

PROGRAM = "bwrap"
IN_SANDBOX = f"""
folder=${FOLDER_VARIABLE}
if [ -n "$folder" ]; then
    mkdir -p -m 700 "$folder"
else
    folder=$(mktemp -d "${{TMPDIR:-/tmp}}/tickets-XXXXXXXX") || exit
    printf '%s\\n' "$folder"
fi
export {FOLDER_VARIABLE}="$folder"
program=$1
shift
"$program" --ro-bind / / --dev /dev --proc /proc --bind "$folder" "$folder" \\
    --unshare-all --die-with-parent "$@"
rm -rf -- "$folder"
"""
"""The folder is made and removed outside: from inside, its place cannot be written."""


def find_bubblewrap() -> str:
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


def server_command(python: str, program: str, server: Sequence[str]) -> list[str]:
    """The command that runs a module of ours with its arguments (``server``).

    ``python`` is the interpreter, the tool's own if empty. ``program`` is bubblewrap where the module runs in
    a sandbox, in which it can write nothing but its own folder, and else empty.
    """
    command = [python, "-c", START] if python else [sys.executable, "-P", "-m"]
    command += server
    if not program:
        return command
    # The sandbox has a /dev of its own, without GPUs.
    gpus = sorted(map(str, Path("/dev").glob("nvidia*")))
    visible = [argument for gpu in gpus for argument in ("--dev-bind", gpu, gpu)]
    return ["/bin/sh", "-c", IN_SANDBOX, "sh", program, *visible, "--", *command]


def server_environment(python: str) -> dict[str, str]:
    """The variables by which an interpreter finds what measures; the tool's own needs none.

    Raises:
        UnreachableError: There is no folder for the links.
    """
    if not python:
        return {}
    places = {}
    for name in PACKAGES:
        # The package is not imported for that.
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise UnreachableError(f"there is no package {name}")
        places[name] = str(Path(spec.origin).parent)

    def write(folder: Path) -> None:
        for name, place in places.items():
            (folder / name).symlink_to(place, target_is_directory=True)

    if cache_folder() is None:
        raise UnreachableError("there is no cache folder, through which another Python finds what measures")
    digest = hashlib.sha256("\n".join(places.values()).encode()).hexdigest()
    try:
        links = make_folder("packages", digest, write, LINKS_KEPT)
    except OSError as error:
        raise UnreachableError(f"the links to what measures cannot be made: {error.strerror}") from None
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(links), *([inherited] if inherited else [])])}
