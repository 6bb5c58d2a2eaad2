"""Commands import what they use and nothing heavy beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository
from tests.verify.conftest import add

from finding_tickets.cli.main import COMMANDS as ALL
from finding_tickets.cli.main import application

CODE = """
import json, sys
opened = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)
from finding_tickets.cli.main import run
code = run(sys.argv[1:])
tickets = [name for name in opened if name.endswith(".md")]
print(json.dumps([code, sorted(sys.modules), tickets]), file=sys.stderr)
"""
MOST_MODULES = 50
"""Of the tool, for a list of what was read before."""
SETTLED = 0.06
"""Seconds after which a file that was just written counts as unlikely to change within the same tick."""
HEAVY = {"torch", "numpy", "jinja2", "multiprocessing", "asyncio"}
# Those that write by templates come last.
COMMANDS = (
    ("list",),
    ("show", "B1-PT-01"),
    ("set", "B1-PT-01", "batch=3"),
    ("tick", "B1-PT-01", "1"),
    ("lint",),
    ("new", "--title", "x", "--severity", "P2", "--with-verifier"),
    ("report",),
)


def ran(*arguments: str) -> tuple[int, list[str], list[str]]:
    """How a command line ended in a process of its own, its modules, and the Markdown files it opened."""
    line = [sys.executable, "-c", CODE, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    code, modules, opened = json.loads(done.stderr.splitlines()[-1])
    return code, modules, opened


EACH = """
import contextlib, io, json, sys
from finding_tickets.cli.main import run
found = []
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()):
        code = run(line)
    found.append([code, sorted({name.partition(".")[0] for name in sys.modules})])
print(json.dumps(found))
"""


def test_commands_import_nothing_heavy(repository: Repository) -> None:
    """Only new and report load jinja2, and none of these commands loads torch."""
    repository.ticket()
    repository.write("evidence/readme", "")
    lines = [[name, "--root", str(repository.root), *words] for name, *words in COMMANDS]
    line = [sys.executable, "-c", EACH, json.dumps(lines)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    ends = json.loads(done.stdout)
    heavy = [[code, sorted(HEAVY.intersection(modules))] for code, modules in ends]
    # One process runs them in this order, and keeps what it has loaded.
    assert [[0, []]] * 5 + [[0, ["jinja2"]]] * 2 == heavy


NO_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
"""
WITHOUT_TORCH = """
import contextlib, io, json, sys
from finding_tickets.cli.main import run
ends = {}
for line in sys.argv[2:]:
    name, *words = line.split()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        ends[line] = run([name, "--root", sys.argv[1], *words]), said.getvalue()
print(json.dumps(ends))
"""


@pytest.mark.slow
def test_only_what_measures_needs_torch(repository: Repository, tickets: Tickets, tmp_path: Path) -> None:
    """Without torch a register is read, checked and edited, and its evidence counts.

    What would measure says in one sentence that torch is not installed, and ends as inconclusive (3).
    """
    add(repository, "A-1")
    repository.write("train.py", "")
    root = str(repository.root)
    assert 0 == tickets("verify", "A-1").code
    # Last the commands that write.
    reading = ["list", "list verdict:verified", "show A-1", "lint", "report", "graph", "verify --stale"]
    writing = ["set A-1 severity=P1", "new --title x --severity P2", "set A-1 status=open"]
    writing += ["close A-1 --as not-a-bug", "init --yes"]
    measuring = ["verify A-1", "verify --all", f"probe {root}/train.py", "audit A-1"]
    line = [sys.executable, "-c", WITHOUT_TORCH, root, *reading, *measuring, *writing]
    # Also in the processes that measure.
    (tmp_path / "sitecustomize.py").write_text(NO_TORCH)
    variables = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=variables)
    ends = json.loads(done.stdout)
    assert dict.fromkeys(reading + writing, 0) == {each: ends[each][0] for each in reading + writing}
    assert "1 of 1 document" in ends["list verdict:verified"][1]
    why = "error: nothing can be measured: torch is not installed (pip install torch)\n"
    assert [[3, why]] * len(measuring) == [ends[each] for each in measuring]


def test_a_command_does_not_load_the_others(repository: Repository) -> None:
    """`tickets list` imports one module of a command: its own."""
    _, modules, _ = ran("list", "--root", str(repository.root))
    others = {f"finding_tickets.cli.{name}" for name, *_ in [*COMMANDS[1:], ["verify"]]}
    assert set() == others & set(modules)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_an_overview_loads_no_command(option: str) -> None:
    """`tickets --help` and `tickets --version` load neither pydantic nor the Markdown parser."""
    code, modules, _ = ran(option)
    assert (0, set()) == (code, {"pydantic", "pyromark", "finding_tickets.cli.list"} & set(modules))


def test_the_overview_says_what_the_commands_say() -> None:
    """`tickets --help` shows each command's own first sentence, which it knows without loading it."""
    stated = {name: command.help for name, command in application(ALL).commands.items()}
    assert stated == {name: command.summary for name, command in ALL.items()}


@pytest.mark.slow
def test_a_list_that_was_read_before_opens_no_ticket(repository: Repository) -> None:
    """The second `tickets list` opens no ticket, and loads few modules, neither pydantic nor the parser."""
    repository.ticket("A-1")
    repository.ticket("A-2", severity="dire")
    time.sleep(SETTLED)
    arguments = ("list", "status:wont-fix", "--root", str(repository.root))
    assert ["A-1.md", "A-2.md"] == [path.rpartition("/")[2] for path in ran(*arguments)[2]]
    code, modules, opened = ran(*arguments)
    assert (0, []) == (code, opened)
    assert set() == {"pydantic", "pyromark", "yaml"} & set(modules)
    assert MOST_MODULES >= sum(name.partition(".")[0] == "finding_tickets" for name in modules)


def test_a_warm_list_of_measured_tickets_loads_little(repository: Repository, tickets: Tickets) -> None:
    """Verdicts and a configuration that was validated before come from the cache, in at most 50 modules."""
    add(repository, "A-1")
    repository.write("tickets.toml", "timeout = 60\n")
    root = ("--root", str(repository.root))
    assert 0 == tickets("verify", "A-1").code
    time.sleep(SETTLED)
    ran("list", "verdict:verified", *root)
    code, modules, opened = ran("list", "verdict:verified", *root)
    assert (0, []) == (code, opened)
    assert set() == {"pydantic", "pyromark", "yaml", "tomllib", "importlib.metadata"} & set(modules)
    assert 50 >= len([name for name in modules if name.startswith("finding_tickets")])
