"""What ``docs/security.md`` promises about commands that run no code, and about the network."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Repository
from tests.verify.conftest import VERIFIER, add_with_few_points

from finding_tickets.cli.main import COMMANDS, run
from finding_tickets.ground.git import GitError, ask
from finding_tickets.report.status import ReportFormat

ROOT = Path(__file__).parents[1]
RUN_CODE = {
    "budget",
    "budget init",
    "verify",
    "fix",
    "close",
    "check",
    "claim",
    "audit",
    "probe",
}
TRACE = str(Path(__file__).parent / "cli/trace.json")
SARIF = """{"version": "2.1.0", "runs": [{
    "tool": {"driver": {"name": "other"}},
    "results": [{
        "message": {"text": "it waits"},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": "code.py"}, "region": {"startLine": 1}}}
        ]
    }]
}]}"""
REMEDIATION = """
## Remediation

```yaml
verifier: verifiers/a_1.py
variants:
  found: fixes/a_1/found.py:step
  fix: package.code:step
claims:
  found:
    syncs: 1
```
"""
LINES: dict[str, list[list[str]]] = {
    "init": [["--dry-run"]],
    "list": [["verdict:unverified"], ["--by", "disposition"], ["--format", "json"]],
    "show": [["A-1", "--history"]],
    "graph": [[]],
    "lint": [[], ["--fix"]],
    "report": [["--format", name] for name in ReportFormat],
    "import": [["other.sarif"]],
    "new": [["--title", "It copies", "--severity", "P2", "--with-verifier"]],
    "trace": [[TRACE], [TRACE, "--lines"]],
    "set": [["A-1", "severity=P1"]],
    "tick": [["A-1", "1"]],
    "close": [["A-1", "--as", "wont-fix", "--reason", "rare"]],
}


def commit(folder: Path) -> None:
    """Make a repository of a folder, and a commit of all that is there."""
    person = ["-c", "user.name=Ada", "-c", "user.email=ada@home"]
    for command in (["init", "-q"], ["add", "."], [*person, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


@pytest.fixture
def booby_trapped(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A register in git of which every file of Python leaves a mark when it runs; the mark."""
    mark = repository.root / "mark"
    trap = f"open({str(mark)!r}, 'a').write(__file__)\ndef step():\n    pass\n"
    for file in (
        "verifiers/a_1.py",
        "fixes/a_1/found.py",
        "code.py",
        "package/__init__.py",
        "package/code.py",
        "conftest.py",
        "sitecustomize.py",
        "jinja2.py",
        "yaml.py",
        "finding_tickets.py",
    ):
        repository.write(file, trap)
    repository.ticket("A-1", status="open", more=REMEDIATION)
    repository.ticket("A-2", status="open")
    repository.ticket("A-3", status="wont-fix")
    repository.write("other.sarif", SARIF)
    commit(repository.root)
    monkeypatch.chdir(repository.root)
    return mark


def test_every_command_is_looked_at() -> None:
    """A command either runs code or is tried here."""
    assert set(COMMANDS) == RUN_CODE | set(LINES)


def test_the_page_names_the_commands_that_run_code() -> None:
    """The table's first row names the same commands."""
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    row = next(
        line
        for line in page.split("\n")
        if line.endswith("| yes: verifiers, variants, and what they import |")
    )
    assert {name.partition(" ")[0] for name in RUN_CODE} == set(re.findall(r"`(\w+)`", row))


@pytest.mark.parametrize("command", LINES)
def test_no_code_runs(command: str, booby_trapped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does its work, imports no file of the repository, starts git alone, and opens no connection."""
    started: list[str] = []
    begin = subprocess.Popen.__init__

    def noted(self: Any, arguments: list[str], *rest: Any, **named: Any) -> None:
        started.append(Path(arguments[0]).name)
        begin(self, arguments, *rest, **named)

    def refused(*_: Any) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    monkeypatch.setattr(socket.socket, "connect", refused)
    for arguments in LINES[command]:
        # A trace in which nothing is decided is inconclusive.
        assert run([command, *arguments]) in ({0, 3} if command == "trace" else {0, 1})
    assert not booby_trapped.exists()
    # A trace is read, and its operations are replayed, in a process of the tool's own.
    assert set(started) <= {"git", *([Path(sys.executable).name] if command == "trace" else [])}


def test_a_started_tool_imports_nothing_from_the_folder_it_is_in(booby_trapped: Path) -> None:
    """The tool as a program of its own does not take a file of the repository for a library."""
    program = Path(sys.executable).with_name("tickets")
    listed = subprocess.run([program, "report"], check=True, capture_output=True, text=True)
    assert "A-1" in listed.stdout
    assert not booby_trapped.exists()


def test_git_fetches_nothing(tmp_path: Path, repository: Repository) -> None:
    """In a clone without the contents of files, what is missing is missing."""
    repository.write("code.py", "x = 1\n")
    commit(repository.root)
    subprocess.run(["git", "config", "uploadpack.allowFilter", "true"], cwd=repository.root, check=True)
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--no-checkout", "--filter=blob:none", repository.root.as_uri(), clone],
        check=True,
    )
    assert "x = 1\n" == ask(repository.root, "cat-file", "-p", "HEAD:code.py")
    with pytest.raises(GitError):
        ask(clone, "cat-file", "-p", "HEAD:code.py")
    fetched = subprocess.run(
        ["git", "cat-file", "-p", "HEAD:code.py"], cwd=clone, check=True, capture_output=True
    )
    assert b"x = 1\n" == fetched.stdout


@pytest.mark.slow
def test_the_command_runs_in_namespaces_of_its_own(repository: Repository) -> None:
    """As the page says; a branch with another verifier is measured there by that of the base, and refused."""
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    recipe = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[-1]
    assert recipe.startswith("unshare ")
    if subprocess.run(["unshare", "--map-root-user", "true"], check=False, capture_output=True).returncode:
        pytest.skip("user namespaces are not allowed here")
    add_with_few_points(repository, "A-1")
    subprocess.run(["git", "init", "-q", "--initial-branch=main"], cwd=repository.root, check=True)
    commit(repository.root)
    repository.write("verifiers/a_1.py", VERIFIER.format(ticket="A-1"))
    before = {file: file.stat().st_mtime_ns for file in repository.root.rglob("*")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", recipe],
        cwd=repository.root,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (1, True) == (done.returncode, "A-1" in done.stdout), done.stdout + done.stderr
    assert before == {file: file.stat().st_mtime_ns for file in repository.root.rglob("*")}
