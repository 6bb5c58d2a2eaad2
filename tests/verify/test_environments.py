"""Evidence has the same bytes wherever it is measured with the same versions.

In the environment of these tests it is what is committed: tests/contract/test_evidence.py measures it again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the environments are those of Linux"),
]

ROOT = Path(__file__).parents[2]
# Its results are compared, and it is measured soonest.
TICKET = "B3-CR-05"
NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
# Fails what Docker's default profile, or an older kernel, fails: the numbers are those of x86-64. The filter
# is one of seccomp(2), in the form of linux/filter.h.
CONTAINER = """
import ctypes, errno, os, struct, sys
LOAD, EQUAL, BITS, RETURN, ALLOW, FAIL = 0x20, 0x15, 0x45, 0x06, 0x7FFF0000, 0x00050000 | errno.EPERM
NEW_USER, CLONE = 0x10000000, 56
refused = {"pidfd_getfd": 438, "process_vm_readv": 310, "pidfd_open": 434, "unshare": 272, "clone3": 435}
code = [(LOAD, 0, 0, 0)]
for number in refused.values():
    code += [(EQUAL, 0, 1, number), (RETURN, 0, 0, errno.ENOSYS | 0x00050000 if number == 435 else FAIL)]
code += [(EQUAL, 0, 3, CLONE), (LOAD, 0, 0, 16), (BITS, 0, 1, NEW_USER), (RETURN, 0, 0, FAIL)]
code += [(RETURN, 0, 0, ALLOW)]
content = b"".join(struct.pack("HBBI", *each) for each in code)
buffer = ctypes.create_string_buffer(content, len(content))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
program = struct.pack("H6xP", len(code), ctypes.addressof(buffer))
assert libc.prctl(22, 2, program) == 0, ctypes.get_errno()
try:
    os.pidfd_open(os.getpid())
except PermissionError:
    pass
else:
    sys.exit("the filter does not filter")
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This register without its evidence, where every user can read it."""
    root = tmp_path_factory.mktemp("environments") / "register"
    for folder in ("tickets", "fixes", "verifiers"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def evidence(folder: Path) -> dict[str, bytes]:
    """Every file of evidence on the ticket, by its path."""
    files = (folder / TICKET).rglob("*.json")
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def measure(register: Path, *command: str) -> dict[str, bytes]:
    """The evidence that a command records."""
    shutil.rmtree(register / "evidence", ignore_errors=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HOME": str(register.parent / "home")}
    done = subprocess.run(
        [*command, "-m", "finding_tickets", "verify", TICKET],
        cwd=register,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return evidence(register / "evidence")


def find_needed(name: str, found: dict[str, Distribution]) -> None:
    """Add a distribution and all that it needs, without what is optional or for other systems."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found:
        return
    try:
        found[key] = distribution(name)
    except PackageNotFoundError:
        return
    for requirement in found[key].requires or ():
        other = re.match(r"[\w.-]+", requirement)
        if other and "extra ==" not in requirement:
            find_needed(other[0], found)


def with_the_tool_alone(folder: Path) -> str:
    """The Python of an environment that has nothing but what the tool needs."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    found: dict[str, Distribution] = {}
    find_needed("finding-tickets", found)
    del found["finding-tickets"]
    for each in found.values():
        tops = {file.parts[0] for file in each.files or ()}
        for top in tops - {"..", "__pycache__"}:
            (site / top).symlink_to(Path(str(each.locate_file(top))))
    return str(folder / "bin/python")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the calls are numbered for x86-64")
def test_with_the_tool_alone_as_another_user_in_a_container(register: Path, tmp_path: Path) -> None:
    """Nothing is said of what that environment lacks, such as numpy.

    The user has no rights, and a home that cannot be written; nobody looks into another process or makes a
    namespace. Where users are not allowed one of their own, this user measures.
    """
    python = with_the_tool_alone(tmp_path / "alone")
    assert 1 == subprocess.run([python, "-c", "import numpy"], check=False, capture_output=True).returncode
    is_allowed = subprocess.run([*NOBODY, "true"], check=False, capture_output=True).returncode == 0
    user = NOBODY if is_allowed else ()
    command = (*user, sys.executable, "-c", CONTAINER, python)
    assert evidence(ROOT / "evidence") == measure(register, *command)
