"""Commands import what they use and nothing heavy beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Repository

CODE = """
import json, sys
from finding_tickets.cli.main import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""
TEMPLATES = {"jinja2"}
HEAVY = {"torch", "numpy", "rich", "jinja2", "multiprocessing", "asyncio"}
COMMANDS = {
    "list": ([], set()),
    "show": (["B1-PT-01"], set()),
    "lint": ([], set()),
    "new": (["--title", "x", "--severity", "P2", "--with-verifier"], TEMPLATES),
    "report": ([], TEMPLATES),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_nothing_heavy(repository: Repository, command: str) -> None:
    """Only new and report load jinja2, and none of these commands loads torch or rich."""
    repository.ticket()
    repository.write("evidence/readme", "")
    arguments, allowed = COMMANDS[command]
    line = [sys.executable, "-c", CODE, command, "--root", str(repository.root), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert 0 == code
    assert set() == (HEAVY - allowed) & {name.partition(".")[0] for name in modules}
    assert allowed <= set(modules)


def test_a_command_does_not_load_the_others(repository: Repository) -> None:
    """`tickets list` imports one module of a command: its own."""
    line = [sys.executable, "-c", CODE, "list", "--root", str(repository.root)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    _, modules = json.loads(done.stderr.splitlines()[-1])
    others = {f"finding_tickets.cli.{name}" for name in [*COMMANDS, "verify"] if name != "list"}
    assert set() == others & set(modules)
