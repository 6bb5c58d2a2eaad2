"""All benchmarks, each in a process of its own: what one of them does leaves the others alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from pydantic import TypeAdapter

from benchmarks.machine import ROOT, load
from benchmarks.result import Result, Size

NAMES = (
    "startup",
    "reading",
    "listing",
    "index",
    "measured_list",
    "importing",
    "reports",
    "laws",
    "simulation",
    "gpu_tests",
    "verify_all",
    "ten_tickets",
    "path",
)
"""Modules of this package."""
DIGITS = 4
_RESULT = TypeAdapter(Result)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A benchmark that ran: its results, how long it took, the load before and after, and why it failed."""

    name: str
    seconds: float
    load_before: float
    load_after: float
    results: tuple[Result, ...]
    failure: str = ""


def ran(name: str, size: Size, on_result: Callable[[Result], None]) -> Ran:
    """Run a benchmark, which may fail; ``on_result`` is told each result as soon as it is there."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json"]
    command += [] if size is Size.FULL else [f"--{size}"]
    results, before, start = [], load(), time.perf_counter()
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        for line in process.stdout or ():
            results.append(_RESULT.validate_python(json.loads(line, parse_float=_rounded)))
            on_result(results[-1])
        failure = _failure(errors) if process.wait() else ""
    seconds = round(time.perf_counter() - start, 1)
    return Ran(
        name=name,
        seconds=seconds,
        load_before=before,
        load_after=load(),
        results=tuple(results),
        failure=failure,
    )


def _rounded(number: str) -> float:
    """As many digits as can be told from noise."""
    return float(f"{float(number):.{DIGITS}g}")


def _failure(errors: IO[bytes]) -> str:
    """The last line that a process has said, which says why it ended."""
    errors.seek(0)
    said = errors.read().decode(errors="replace").strip().splitlines()
    return said[-1].strip() if said else "it said nothing"
