"""What one command starts and runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.verify.conftest import VERIFIER, add

if TYPE_CHECKING:
    from tests.conftest import Repository

TEN = [f"A-{number:02}" for number in range(1, 11)]
WATCH = """\
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
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


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="on one processor nothing runs beside another")
def test_ten_tickets_load_torch_once_and_stay_in_order(repository: Repository, tmp_path: Path) -> None:
    """One process loads torch, each ticket runs in another one; progress is in the order of their ends."""
    for ticket in TEN:
        add(repository, ticket, "claims: {found: {syncs: tensors}}")
        file = f"fixes/{ticket.lower().replace('-', '_')}/found.py"
        repository.write(file, SAYS_WHO + (repository.root / file).read_text())
    repository.write("verifiers/a_01.py", WAITS_FOR_THE_SECOND + VERIFIER.format(ticket="A-01"))
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch/sitecustomize.py").write_text(WATCH)
    path = os.pathsep.join([str(tmp_path / "watch"), os.environ.get("PYTHONPATH", "")])
    logs = {name: tmp_path / name for name in ("TORCH_LOG", "RUN_LOG")}
    done = subprocess.run(
        [sys.executable, "-m", "finding_tickets", "verify", "--all", "--meter", "simulated"],
        cwd=repository.root,
        env={**os.environ, "PYTHONPATH": path} | {name: str(log) for name, log in logs.items()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    loaded, ran = (logs[name].read_text().split() for name in ("TORCH_LOG", "RUN_LOG"))
    assert 1 == len(loaded)
    assert (10, set()) == (len(set(ran)), {*loaded} & {*ran})
    shown = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("A-")]
    ended = [line.partition("] ")[2].partition(":")[0] for line in done.stderr.splitlines() if line[0] == "["]
    assert TEN == shown
    assert TEN == sorted(ended)
    assert ended.index("A-02") < ended.index("A-01")
