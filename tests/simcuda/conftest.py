"""The devices on which nearly all of these tests run."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Ended

import simcuda
from simcuda import SimulatedCuda

WORD = re.compile(r"\w+")
# Has loaded torch, and forks a process for each line, which runs code as ``python -c`` would.
TORCH_ALONE = """
import json, os, sys, torch
for line in iter(sys.stdin.readline, ""):
    code, *outputs = json.loads(line)
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for descriptor, file in enumerate(outputs, 1):
    os.dup2(os.open(file, os.O_CREAT | os.O_WRONLY), descriptor)
exec(code, {"__name__": "__main__"})
"""


def statements_for(code: str, statements: str) -> str:
    """Return those of some assignments that make what code names, and all that are none."""
    kept: list[str] = []
    for line in reversed(statements.strip().splitlines()):
        targets, is_assignment, _ = line.partition(" = ")
        if not is_assignment or set(WORD.findall(targets)).intersection(WORD.findall(code)):
            kept.insert(0, line)
            code += line
    return "\n".join(kept)


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Iterator[SimulatedCuda]:
    """Open one simulated device, an H200 under CUDA 13, or as many as the file names by ``DEVICES``."""
    with simcuda.device(getattr(request.module, "DEVICES", 1)) as simulated:
        yield simulated


@pytest.fixture(scope="module")
def shared_gpu() -> Iterator[SimulatedCuda]:
    """Open one device for a file with hundreds of calls, which take less time than to open it."""
    with simcuda.device() as simulated:
        yield simulated


@pytest.fixture(scope="session")
def torch_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Ended]]:
    """``torch_alone(code)`` runs code in a process that has loaded torch, but nothing of the simulation."""
    files = [tmp_path_factory.mktemp("torch-alone") / name for name in ("out", "err")]
    line = [sys.executable, "-c", TORCH_ALONE]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def run(code: str) -> Ended:
            assert process.stdin
            assert process.stdout
            for file in files:
                file.unlink(missing_ok=True)
            print(json.dumps([code, *map(str, files)]), file=process.stdin, flush=True)
            return Ended(int(process.stdout.readline()), *map(Path.read_text, files))

        yield run
        # A process that was forked meanwhile may have the other end of its input.
        process.terminate()
