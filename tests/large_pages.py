"""Keep the memory of the server that all tests share in large pages: forking its workers then takes less.

The server imports this last. Where the kernel has no such call, nothing changes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import torch._dynamo  # noqa: F401 - the first program would load it, after this

LARGE = 1 << 21
MADV_COLLAPSE = 25  # linux/mman.h, since Linux 6.1
madvise = ctypes.CDLL(None).madvise
madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
maps = Path("/proc/self/maps")
for line in maps.read_text(encoding="ascii").splitlines() if maps.exists() else ():
    where, access, _, _, _, *name = line.split()
    begin, end = (int(each, 16) for each in where.split("-"))
    if access == "rw-p" and name in ([], ["[heap]"]):
        for place in range(-(-begin // LARGE) * LARGE, end - LARGE + 1, LARGE):
            madvise(place, LARGE, MADV_COLLAPSE)

# What is measured finds no module of the tests.
own, _, theirs = os.environ.pop("PYTHONPATH").partition(os.pathsep)
sys.path.remove(own)
if theirs:
    os.environ["PYTHONPATH"] = theirs
