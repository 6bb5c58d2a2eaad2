# Links are followed where that is said.
# ruff: noqa: PTH100
"""Start the server of isolated tasks on another Python, or in a sandbox.

Another Python finds the two packages that measure through a folder of links, so that it sees nothing else
of what is installed beside the tool. They need torch and the standard library alone. The sandbox is
bubblewrap's: a read-only file system and no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import site
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from finding_tickets.errors import UnreachableError, UsageError
from finding_tickets.ground.cache import cache_folder, folder_for, make_folder
from finding_tickets.measure.processes.server import FOLDER_VARIABLE, NO_ROOM
from finding_tickets.measure.tasks import CONTAINED

SOURCE = Path(__file__).parents[3]
PACKAGES = ("finding_tickets", "simcuda")
LINKS_KEPT = 8
GPU_FILES = ("nvidia*", "dxg")
PROGRAM = "bwrap"
# Folders that code in the sandbox may read, too: data that lies elsewhere.
READABLE = "TICKETS_READABLE"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/sys/devices/system")
OF_ETC = (
    "alternatives ca-certificates fonts group ld.so.cache ld.so.conf ld.so.conf.d localtime mime.types "
    "nsswitch.conf os-release passwd pki protocols services ssl timezone"
)
# The variables that a program needs to run, by how they begin or by the whole name; tokens and keys have
# other names, or one of the words below.
ALLOWED = "PYTHON TORCH PYTORCH CUDA OMP_ MKL_ KMP_ GOMP_ OPENBLAS_ LC_ TICKETS_"
ALLOWED_NAMES = "PATH LANG TZ TMPDIR USER LOGNAME LD_LIBRARY_PATH NVIDIA_VISIBLE_DEVICES"
SECRET = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY", "AUTH")
LARGEST_TMP = 1 << 30
ARGUMENTS = "sandbox"
# The folder is made and removed outside the sandbox: inside, only the folder itself can be written. What else
# is there stands in a file of it once the first task is known, and a line of input says so.
IN_SANDBOX = f"""
folder=${FOLDER_VARIABLE}
if [ -n "$folder" ]; then
    mkdir -p -m 700 "$folder"
else
    folder=$(mktemp -d "${{TMPDIR:-/tmp}}/tickets-XXXXXXXX") || exit
    printf '%s\\n' "$folder"
fi
export {FOLDER_VARIABLE}="$folder"
if read -r ready; then
    "$@" 3< "$folder/{ARGUMENTS}"
fi
rm -rf -- "$folder"
"""


def server_command(command: Sequence[str]) -> list[str]:
    """The command that runs another one in a sandbox, as soon as ``open_sandbox`` has said what is there.

    Raises:
        UsageError: This system has nothing to make a sandbox with.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise UsageError(
            f"--sandbox needs bubblewrap, and there is no {PROGRAM} on PATH",
            hint="install bubblewrap, or run in a container of your own and leave the option out",
        )
    return ["/bin/sh", "-c", IN_SANDBOX, "sh", program, "--args", "3", "--", *command]


def allowed_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that code in the sandbox sees."""
    begins, names = tuple(ALLOWED.split()), ALLOWED_NAMES.split()
    return {
        name: value
        for name, value in variables.items()
        if (name in names or name.startswith(begins)) and not any(word in name for word in SECRET)
    }


def open_sandbox(folder: str, interpreter: str, roots: Iterable[Path]) -> None:
    """Write down what is in the sandbox whose own folder is ``folder``; the rest of the machine is not there.

    Everything can be read alone: the libraries of the system, those of this Python and of the other
    ``interpreter``, and the repository (``roots``), where its revisions are, and what the user names.

    Raises:
        UnreachableError: There is no room.
    """
    places = {*SYSTEM, *(f"/etc/{name}" for name in OF_ETC.split()), str(SOURCE), sys.prefix, sys.base_prefix}
    # The first entry may be the current folder, which nobody named.
    places |= {entry for entry in sys.path if entry not in {"", str(Path.cwd())}}
    for name in (READABLE, "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_HOME"):
        places |= set(filter(None, os.environ.get(name, "").split(os.pathsep)))
    kinds = ("checkouts", "packages")
    caches = [*filter(None, [cache_folder()]), *map(folder_for, kinds)]
    kept = [cache / kind for cache in caches for kind in kinds]
    for root in roots:
        # The first revision says where all others will be.
        cache = next(filter(root.is_relative_to, caches), None)
        kept.append(cache / root.relative_to(cache).parts[0] if cache else root)
    for made in kept:
        # Only what is there can be bound.
        with suppress(OSError):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
    places |= set(map(str, kept))
    if interpreter:
        # It is not asked, for it may be the repository's: an environment, and the Python that it is made of.
        python = shutil.which(interpreter) or interpreter
        prefixes = {Path(each).parent.parent for each in (os.path.abspath(python), os.path.realpath(python))}
        places |= {str(prefix) for prefix in prefixes if not Path("~").expanduser().is_relative_to(prefix)}
    # The sandbox has a /dev of its own, so GPUs are passed in.
    gpus = sorted(str(file) for pattern in GPU_FILES for file in Path("/dev").glob(pattern))
    places |= {"/sys"} if gpus else set()
    arguments = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for tmpfs in ("/tmp", "/dev/shm"):  # noqa: S108 - inside
        arguments += ["--dev", "/dev"] if tmpfs.startswith("/dev") else []
        arguments += ["--size", str(LARGEST_TMP), "--tmpfs", tmpfs]
    arguments += ["--proc", "/proc", "--dir", "/tmp/home", "--setenv", "HOME", "/tmp/home"]  # noqa: S108
    # Packages that the user installed for themselves are found from home otherwise.
    arguments += ["--setenv", "PYTHONUSERBASE", site.getuserbase()] if site.ENABLE_USER_SITE else []
    # A folder comes before what is in it. A link is bound by its own name and by where it leads.
    bound = {each for place in places for each in (os.path.abspath(place), os.path.realpath(place))}
    arguments += [text for place in sorted(bound - {"/"}) for text in ("--ro-bind-try", place, place)]
    arguments += [text for gpu in gpus for text in ("--dev-bind", gpu, gpu)]
    arguments += ["--bind", folder, folder, "--remount-ro", "/", "--setenv", CONTAINED, "1"]
    try:
        Path(folder, ARGUMENTS).write_bytes(b"".join(os.fsencode(text) + b"\0" for text in arguments))
    except OSError as error:
        raise UnreachableError(f"nothing can be measured: {NO_ROOM}: {error.strerror}") from None


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
