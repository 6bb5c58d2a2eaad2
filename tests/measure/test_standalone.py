"""A verifier on its own: one command, torch alone, a table of laws."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Repository
from tests.verify.conftest import FIX, FOUND, VERIFIER

from simcuda.real import why_not

pytestmark = pytest.mark.slow

MAIN = "\nif __name__ == '__main__':\n    from finding_tickets.workload import main\n\n    main(workload)\n"
# Loading torch takes longer than all the rest: one process runs several verifiers, one after the other.
WITHOUT_REGISTER_LIBRARIES = """
import sys
for name in ("pydantic", "yaml", "typer", "jinja2", "pyromark"):
    sys.modules[name] = None
import contextlib, io, json, runpy
ended = []
for line in json.loads(sys.argv[1]):
    sys.argv, code = line, 0
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            runpy.run_path(line[0], run_name="__main__")
        except SystemExit as end:
            code = end.code or 0
    ended.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""
Ended = tuple[int, str, str]
"""An exit code, and what was printed to stdout and to stderr."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """Verifiers as a user would run them, in a process in which only torch can be imported."""
    lines = {}
    for name, options in {"sound": (), "empty": (), "gpu": ("--meter", "cuda")}.items():
        repository = Repository(tmp_path_factory.mktemp(name))
        verifier = repository.write("verifiers/a_1.py", VERIFIER.format(ticket="A-1") + MAIN)
        if name != "empty":
            repository.write("fixes/a_1/found.py", FOUND)
            repository.write("fixes/a_1/fix.py", FIX)
        lines[name] = [str(verifier), *options]
    command = [sys.executable, "-c", WITHOUT_REGISTER_LIBRARIES, json.dumps(list(lines.values()))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path("/"))
    return {name: tuple(each) for name, each in zip(lines, json.loads(done.stdout), strict=True)}


def test_laws_and_lines_are_printed(ended: dict[str, Ended]) -> None:
    """A column for each variant, a row for each metric that counts anything, and the lines that cause it."""
    code, out, err = ended["sound"]
    assert ("", 0) == (err, code)
    rows = [line.split() for line in out.split("\n")]
    assert ["metric", "found", "fix"] in rows
    assert ["syncs", "tensors", "1"] in rows
    assert ["fixes/a_1/found.py:5", "check", "stream_syncs", "tensors"] in rows


def test_what_cannot_be_measured_is_one_line(ended: dict[str, Ended]) -> None:
    """Without a variant there is no traceback, and the exit code is that for inconclusive."""
    assert (3, "", "error: fixes/a_1: holds no variant of A-1\n") == ended["empty"]


@pytest.mark.skipif(why_not() is None, reason="there is a GPU that can be measured")
def test_a_missing_gpu_is_one_line(ended: dict[str, Ended]) -> None:
    """What is missing is told without a traceback, with the exit code for inconclusive."""
    assert (3, "", f"error: no real GPU can be measured here: {why_not()}\n") == ended["gpu"]
