"""How many processors there are to work with."""

from __future__ import annotations

import os
import sys


def usable() -> int:
    """How many this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
