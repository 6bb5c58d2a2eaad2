"""What makes evidence stale, seen from the command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository
from tests.verify.conftest import FIX
from tests.verify.conftest import add_with_few_points as add

CODE = """
import json, subprocess, sys
from finding_tickets.cli.main import run
class Popen(subprocess.Popen):
    def __init__(self, *command, **more):
        print(json.dumps("a process"), file=sys.stderr)
        super().__init__(*command, **more)
subprocess.Popen = Popen
code = run(sys.argv[1:])
print(json.dumps([code, "torch" in sys.modules]), file=sys.stderr)
"""
HELPED = FIX.replace("import torch\n", "import torch\n\nfrom helpers.{name} import nothing\n")
STALE = re.compile(r"^(\S+) is stale; changed since it was measured: (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where what was measured for the first test of this file is copied, for all others."""
    return tmp_path_factory.mktemp("measured") / "register"


@pytest.fixture
def verified(repository: Repository, tickets: Tickets, measured: Path) -> Repository:
    """Two verified tickets, each with a helper module of its own and one that both import."""
    if measured.exists():
        shutil.copytree(measured, repository.root, dirs_exist_ok=True)
        return repository
    for name in ("one", "two"):
        repository.write(f"helpers/{name}.py", "from helpers.shared import nothing\n")
    repository.write("helpers/shared.py", "nothing = None\n")
    add(repository, "A-1", fix=HELPED.format(name="one"))
    add(repository, "B-1", fix=HELPED.format(name="two"))
    assert 0 == tickets("verify", "--all").code
    shutil.copytree(repository.root, measured)
    return repository


def test_fresh_evidence_costs_nothing(verified: Repository) -> None:
    """``verify --stale`` starts no process and imports no torch where all is fresh."""
    line = [sys.executable, "-c", CODE, "verify", "--stale", "--root", str(verified.root)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    *said, ended = done.stderr.splitlines()
    assert ["0 of 0 documents with a verifier"] == said
    assert [0, False] == json.loads(ended)
    assert "" == done.stdout


def test_what_has_no_verifier_any_more_stays_stale(verified: Repository, tickets: Tickets) -> None:
    """Nothing can be measured, which is not fine; what is missing is named."""
    (verified.root / "verifiers/a_1.py").unlink()
    ran = tickets("verify", "--stale")
    assert (3, [("A-1", "verifiers/a_1.py")]) == (ran.code, STALE.findall(ran.err))


def test_what_all_depend_on_makes_all_stale(verified: Repository, tickets: Tickets) -> None:
    """A shared helper concerns both; measuring again makes all fresh, also what was never measured."""
    verified.write("helpers/shared.py", "nothing = 0\n")
    shown = [_squeezed(tickets("show", ticket).out) for ticket in ("A-1", "B-1")]
    assert [True, True] == ["changed since it was measured: helpers/shared.py)" in page for page in shown]
    add(verified, "C-1")
    ran = tickets("verify", "--stale")
    assert [("A-1", "helpers/shared.py"), ("B-1", "helpers/shared.py")] == STALE.findall(ran.err)
    assert ["A-1", "B-1", "C-1"] == re.findall(r"^(\S+) +verified", ran.out, re.MULTILINE)
    assert [] == STALE.findall(tickets("verify", "--stale").err)


def _squeezed(page: str) -> str:
    return re.sub(r"^ +", "", page, flags=re.MULTILINE)
