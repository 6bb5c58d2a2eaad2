"""Start the server of isolated tasks on another Python, or in a sandbox.

Another Python finds the two packages that measure through a folder of links, so that it sees nothing else
of what is installed beside the tool. They need torch and the standard library alone. The sandbox is
bubblewrap's: a read-only file system and no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from finding_tickets.errors import UnreachableError, UsageError
from finding_tickets.ground.cache import make_folder
from finding_tickets.measure.server import FOLDER_VARIABLE

SOURCE = Path(__file__).parents[2]
PACKAGES = ("finding_tickets", "simcuda")
LINKS_KEPT = 8
OLDEST = (3, 11)
# Does what ``-P -m`` does, in a form that an old Python can read and refuse.
START = f"""
import sys
if sys.version_info < {OLDEST}:
    sys.exit("Python " + sys.version.split()[0] + " is too old to measure with: it takes 3.11")
if not sys.flags.safe_path:
    del sys.path[0]
from runpy import run_module
run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""

PROGRAM = "bwrap"
# The folder is made and removed outside the sandbox: inside, only the folder itself can be written.
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


def server_command(server: Sequence[str], python: str, *, sandbox: bool) -> list[str]:
    """The command that runs a module of ours with its arguments (``server``).

    ``python`` is the interpreter, the tool's own if empty. In a ``sandbox`` the module can write nothing but
    its own folder.

    Raises:
        UsageError: This system has nothing to make a sandbox with.
    """
    command = [python, "-c", START, *server] if python else [sys.executable, "-P", "-m", *server]
    if not sandbox:
        return command
    program = shutil.which(PROGRAM)
    if program is None:
        raise UsageError(
            f"--sandbox needs bubblewrap, and there is no {PROGRAM} on PATH",
            hint="install bubblewrap, or run in a container of your own and leave the option out",
        )
    # The sandbox has a /dev of its own, so GPUs are passed in.
    gpus = sorted(map(str, Path("/dev").glob("nvidia*")))
    visible = [argument for gpu in gpus for argument in ("--dev-bind", gpu, gpu)]
    return ["/bin/sh", "-c", IN_SANDBOX, "sh", program, *visible, "--", *command]


def server_path() -> str:
    """The ``PYTHONPATH`` by which another Python finds what measures.

    Raises:
        UnreachableError: There is no folder for the links.
    """
    places = {name: str(SOURCE / name) for name in PACKAGES}

    def write(folder: Path) -> None:
        for name, place in places.items():
            (folder / name).symlink_to(place, target_is_directory=True)

    digest = hashlib.sha256("\n".join(places.values()).encode()).hexdigest()
    try:
        links = make_folder("packages", digest, write, LINKS_KEPT)
    except OSError as error:
        why = error.strerror or error
        raise UnreachableError(f"cannot link what measures for another Python: {why}") from None
    return os.pathsep.join(filter(None, [str(links), os.environ.get("PYTHONPATH")]))
