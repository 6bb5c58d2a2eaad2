"""A verifier on its own: one command, torch alone, a table of laws."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Repository
from tests.verify.conftest import FIX, FOUND, VERIFIER

from simcuda.real import why_not

MAIN = "\nif __name__ == '__main__':\n    from finding_tickets.workload import main\n\n    main(workload)\n"
WITHOUT_REGISTER_LIBRARIES = """
import sys
for name in ("pydantic", "yaml", "typer", "jinja2", "pyromark"):
    sys.modules[name] = None
import runpy
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(repository: Repository, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the verifier as a user would, in a process in which only torch can be imported."""
    verifier = repository.write("verifiers/a_1.py", VERIFIER.format(ticket="A-1") + MAIN)
    command = [sys.executable, "-c", WITHOUT_REGISTER_LIBRARIES, str(verifier), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path("/"))


def test_laws_and_lines_are_printed(repository: Repository) -> None:
    """A column for each variant, a row for each metric that counts anything, and the lines that cause it."""
    repository.write("fixes/a_1/found.py", FOUND)
    repository.write("fixes/a_1/fix.py", FIX)
    done = start(repository)
    assert ("", 0) == (done.stderr, done.returncode)
    rows = [line.split() for line in done.stdout.split("\n")]
    assert ["metric", "found", "fix"] in rows
    assert ["syncs", "tensors", "1"] in rows
    assert ["fixes/a_1/found.py:5", "check", "stream_syncs", "tensors"] in rows


def test_what_cannot_be_measured_is_one_line(repository: Repository) -> None:
    """Without a variant there is no traceback, and the exit code is that for inconclusive."""
    nothing = start(repository)
    assert (3, "error: fixes/a_1: holds no variant of A-1\n") == (nothing.returncode, nothing.stderr)


@pytest.mark.skipif(why_not() is None, reason="there is a GPU that can be measured")
def test_a_missing_gpu_is_one_line(repository: Repository) -> None:
    """What is missing is told without a traceback, with the exit code for inconclusive."""
    repository.write("fixes/a_1/found.py", FOUND)
    no_gpu = start(repository, "--meter", "cuda")
    assert (3, f"error: no real GPU can be measured here: {why_not()}\n") == (
        no_gpu.returncode,
        no_gpu.stderr,
    )
