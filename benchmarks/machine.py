"""The machine that benchmarks run on, and what runs on it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEASURED = (
    "src",
    "tickets",
    "fixes",
    "verifiers",
    "evidence",
    "benchmarks/*.py",
    "templates",
    "pyproject.toml",
)
"""What the results depend on, as git takes paths."""
QUICKEST = "B3-CR-05"
"""The ticket of this repository that is measured soonest, for what is to take least."""


@dataclass(frozen=True)
class Machine:
    """The model of its processor, how many cores this process may use, and its memory in GiB."""

    processor: str
    cores: int
    memory: int

    def __str__(self) -> str:
        """In words."""
        return f"{self.processor}, {self.cores} cores, {self.memory} GiB"


def this_machine() -> Machine:
    """The one at work."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(_processor(), len(os.sched_getaffinity(0)), round(memory / 2**30))


def system() -> str:
    """The distribution and the kernel's version, as in ``Debian GNU/Linux 12 (bookworm), Linux 6.18``."""
    kernel = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except OSError:
        return kernel


def python() -> str:
    """The interpreter and its version."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def torch() -> str:
    """The version of torch, which is not loaded for that."""
    return version("torch")


def commit() -> str:
    """The commit that is checked out; empty where there is no git to ask."""
    return _git("rev-parse", "HEAD")


def is_changed() -> bool:
    """Whether something that is measured differs from the commit."""
    return bool(_git("status", "--porcelain", "--", *MEASURED))


def load() -> float:
    """How many processes have wanted a processor in the last minute, on average."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    try:
        described = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        described = ""
    model = re.search(r"^model name\s*:\s*(.+)$", described, re.MULTILINE)
    return model[1].strip() if model else platform.machine()


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
