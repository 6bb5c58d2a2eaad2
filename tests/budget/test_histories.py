"""Histories of a repository: what spends more is refused at its line, and what spends nothing is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest
from tests.budget.histories import CHANGES, Change, Style, program, render, styles
from tests.conftest import Ended, Git, Repository, run_here

from finding_tickets.errors import ExitCode

Run = Callable[..., Ended]


@pytest.fixture
def run(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``tickets`` in the repository."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return lambda *words: run_here(repository.root, *words)


def write(repository: Repository, files: Mapping[str, str]) -> None:
    """Let these be the only modules of the repository."""
    for file in repository.root.rglob("*.py"):
        file.unlink()
    for path, text in files.items():
        repository.write(path, text)


def commit(git: Git, message: str, who: str = "Ada") -> None:
    """Commit everything."""
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "-m", message, who=who)


def errors(done: Ended, *, of_check: bool) -> list[dict[str, Any]]:
    """The errors of ``tickets check`` or of ``tickets budget``."""
    data = json.loads(done.out)
    problems = data["problems"] if of_check else data["data"][0]["problems"]
    return [each for each in problems if each["level"] == "error"]


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_what_spends_more_is_refused_at_its_line(
    repository: Repository, git: Git, run: Run, change: Change
) -> None:
    """By both commands; and the commit that takes it back is not."""
    repository.write(".gitignore", "__pycache__/\n")
    files = program()
    write(repository, files)
    commit(git, "first")
    assert change.old in files[change.file]
    text = files[change.file].replace(change.old, change.new)
    number = next(at for at, line in enumerate(text.splitlines(), 1) if change.line in line)
    repository.write(change.file, text)
    commit(git, change.name)
    checked = run("check", "--base", "HEAD~1", "--format", "json")
    assert ExitCode.GATE_FAILED == checked.code, checked.out + checked.err
    assert {("gate-budget", change.file, number)} == {
        (each["rule"], each["file"], each["line"]) for each in errors(checked, of_check=True)
    }
    done = run("budget", "--format", "json")
    assert ExitCode.GATE_FAILED == done.code
    places = [(each["rule"], each["file"], each["line"]) for each in errors(done, of_check=False)]
    assert ("budget-exceeded", change.file, number) == places[0]
    repository.write(change.file, files[change.file])
    commit(git, f"without {change.name}")
    for words in (("check", "--base", "HEAD~1"), ("budget",)):
        done = run(*words)
        assert ExitCode.OK == done.code, done.out + done.err


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_what_spends_nothing_is_not_refused(repository: Repository, git: Git, run: Run, seed: int) -> None:
    """Moves, renames, formatting, comments and refactorings: each kind once, one after the other."""
    repository.write(".gitignore", "__pycache__/\n")
    # What spends nothing at one size spends nothing at another one, and half as many runs take half as long.
    repository.write("tickets.toml", program()["tickets.toml"].replace("[2, 3]", "[2]"))
    write(repository, render(Style()))
    commit(git, "first")
    done = []
    for name, style in styles(seed, len(fields(Style))):
        done.append(name)
        write(repository, render(style))
        commit(git, name)
        for words in (("budget",), ("check", "--base", "HEAD~1")):
            ended = run(*words)
            assert ExitCode.OK == ended.code, f"{done}\n{ended.out}{ended.err}"
