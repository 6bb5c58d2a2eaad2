"""What one command starts and runs."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.conftest import Repository
from tests.verify.conftest import FIX, add_with_few_points

# Tickets about a statement, and evidence by lines, brought five modules.
MOST_MODULES, MOST_FUNCTIONS, MOST_LEVELS = 65, 450, 3
# Told by every process of the command: its parent, and each module and function of the tool that runs in it.
WATCH_CALLS = """\
import os, sys, threading

def tell(*words):
    # Workers close what they inherit, so that the file is opened each time.
    with open(os.environ["CALL_LOG"], "a") as log:
        print(*words, file=log)

seen = set()

def called(frame, event, _):
    code = frame.f_code
    if event == "call" and code not in seen and f"{os.sep}finding_tickets{os.sep}" in code.co_filename:
        seen.add(code)
        if code.co_name == "<module>":
            tell("module", code.co_filename)
        elif code.co_flags & 1 and not code.co_name.startswith("<"):
            tell("function", code.co_filename, code.co_qualname)

def begun():
    tell("process", os.getpid(), os.getppid())

begun()
os.register_at_fork(after_in_child=begun)
threading.setprofile(called)
sys.setprofile(called)
"""
SIX = [f"A-{number:02}" for number in range(1, 7)]
WATCH = """\
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        # A look-up, whether it is there, loads nothing.
        if name == "torch" and sys._getframe(2).f_code.co_name != "find_spec":
            with open(os.environ["TORCH_LOG"], "a") as log:
                print(os.getpid(), file=log)

sys.meta_path.insert(0, Watch())
"""
# The process that imports the variant says which one it is.
SAYS_WHO = """
import os
with open(os.environ["RUN_LOG"], "a") as log:
    print(os.getpid(), file=log)
"""
WAITS_FOR_THE_SECOND = """
import time
from pathlib import Path
deadline = time.monotonic() + 20
while not Path("evidence/A-02").exists() and time.monotonic() < deadline:
    time.sleep(0.02)
"""


def python_with(code: str, folder: Path) -> Path:
    """A Python that runs code before anything else, in servers too, and has the packages of this one."""
    venv.create(folder, with_pip=False, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    lines = [f"import site; site.addsitedir({entry!r})" for entry in sys.path if Path(entry).is_dir()]
    (own / "watched_calls.py").write_text(code)
    (own / "watched_calls.pth").write_text("\n".join([*lines, "import watched_calls"]) + "\n")
    return folder / "bin/python"


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="on one processor nothing runs beside another")
def test_six_tickets_load_torch_once_and_stay_in_order(repository: Repository, tmp_path: Path) -> None:
    """One process loads torch, each ticket runs in another one; progress is in the order of their ends."""
    for ticket in SIX:
        add_with_few_points(repository, ticket, "claims: {found: {syncs: tensors}}")
        file = f"fixes/{ticket.lower().replace('-', '_')}/found.py"
        repository.write(file, SAYS_WHO + (repository.root / file).read_text())
    # One of its two processes waits, and the other processor is free for the rest.
    repository.write("fixes/a_01/fix.py", WAITS_FOR_THE_SECOND + FIX)
    python = python_with(WATCH, tmp_path / "environment")
    logs = {name: tmp_path / name for name in ("TORCH_LOG", "RUN_LOG")}
    done = subprocess.run(
        [python, "-m", "finding_tickets", "verify", "--all", "--meter", "simulated"],
        cwd=repository.root,
        env={**os.environ} | {name: str(log) for name, log in logs.items()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    loaded, ran = (logs[name].read_text().split() for name in ("TORCH_LOG", "RUN_LOG"))
    assert 1 == len(loaded)
    assert (6, set()) == (len(set(ran)), {*loaded} & {*ran})
    shown = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("A-")]
    ended = [line.partition("] ")[2].partition(":")[0] for line in done.stderr.splitlines() if line[0] == "["]
    assert SIX == shown
    assert SIX == sorted(ended)
    assert ended.index("A-02") < ended.index("A-01")


@pytest.mark.slow
def test_one_ticket_takes_few_modules_functions_and_processes(repository: Repository, tmp_path: Path) -> None:
    """Counted in the command and all its children."""
    add_with_few_points(repository, "A-1")
    command = [sys.executable, "-m", "finding_tickets"]
    # What the documents say comes from the index, as it does for everybody after the first command.
    subprocess.run([*command, "list"], cwd=repository.root, check=True, capture_output=True, timeout=300)
    command[0] = str(python_with(WATCH_CALLS, tmp_path / "environment"))
    log = tmp_path / "calls"
    done = subprocess.run(
        [*command, "verify", "A-1", "--meter", "simulated"],
        cwd=repository.root,
        env={**os.environ, "CALL_LOG": str(log)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    told = [line.split(" ") for line in log.read_text().splitlines()]
    found = {kind: {tuple(rest) for what, *rest in told if what == kind} for kind in ("module", "function")}
    parents = {int(each[1]): int(each[2]) for each in told if each[0] == "process"}
    levels = max(sum(1 for _ in _line_of(child, parents)) for child in parents)
    counted = (len(found["module"]), len(found["function"]), levels)
    bounds = (MOST_MODULES, MOST_FUNCTIONS, MOST_LEVELS)
    assert all(number <= most for number, most in zip(counted, bounds, strict=True)), counted


def _line_of(process: int, parents: Mapping[int, int]) -> Iterator[int]:
    """A process and those that it came from, as far as they belong to the command."""
    while process in parents:
        yield process
        process = parents[process]
