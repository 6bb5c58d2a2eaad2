"""Verdicts over git history, from the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.verify.conftest import FIX, FOUND, add

from finding_tickets.errors import ExitCode

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Git, Repository

Tickets = Callable[..., "Ran"]


@pytest.fixture
def history(repository: Repository, git: Git, tickets: Tickets) -> list[str]:
    """Three commits, the newest first: the fix at work, undone and at work again; and one about the code."""
    commits: list[str] = []
    for day, (fix, message) in enumerate([(FIX, "fix it"), (FOUND, "undo it"), (FIX, "fix it again")], 1):
        add(repository, "A-1", fix=fix)
        tickets("verify", "A-1")
        git("add", "evidence", "tickets")
        git("commit", "--quiet", "-m", message, when=f"2026-01-0{day}")
        commits.insert(0, git("rev-parse", "HEAD").strip())
    git("add", "fixes")
    git("commit", "--quiet", "-m", "code alone")
    return commits


def evidence(repository: Repository) -> Path:
    """The one file of evidence."""
    (file,) = repository.root.glob("evidence/A-1/*.json")
    return file


def test_each_commit_of_the_evidence_has_its_verdict_and_law(history: list[str], tickets: Tickets) -> None:
    """Newest first, with the law by which the claims say that the code waits; other commits are left out."""
    ran = tickets("history", "a-1")
    rows = [line.split("  ") for line in ran.out.splitlines()[1:]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    # The code as found reads each tensor, the fix reads once, and undone it is as the code was found.
    expected = [
        ["2026-01-03", history[0][:10], "verified", "syncs: tensors -> 1"],
        ["2026-01-02", history[1][:10], "failed", "syncs: tensors -> tensors"],
        ["2026-01-01", history[2][:10], "verified", "syncs: tensors -> 1"],
    ]
    assert (ExitCode.OK, expected) == (ran.code, [row[:4] for row in cells])
    assert ["fix it again", "undo it", "fix it"] == [row[-1] for row in cells]


def test_json_has_every_law(history: list[str], tickets: Tickets) -> None:
    """The keys are those of the page, and the laws are those of every claimed metric."""
    ran = tickets("history", "A-1", "--format", "json")
    assert "history" == json.loads(ran.out)["kind"]
    newest = ran.data[0]
    assert (history[0], "Ada", "verified", None) == (
        newest["commit"],
        newest["author"],
        newest["verdict"],
        newest["problem"],
    )
    assert [{"metric": "syncs", "before": "tensors", "after": "1"}] == newest["laws"]
    page = (Path(__file__).parents[2] / "docs/json.md").read_text(encoding="utf-8")
    section = page.partition("\n## history\n")[2].partition("\n## ")[0]
    assert [] == [key for key in newest if f"`{key}`" not in section]


@pytest.mark.slow
@pytest.mark.usefixtures("history")
def test_evidence_that_cannot_be_believed_is_said(repository: Repository, git: Git, tickets: Tickets) -> None:
    """Edited, of no form that is known, not even text, removed, not committed: each in its row."""
    file = evidence(repository)
    sound = file.read_bytes()
    for content in (sound.replace(b'"verified"', b'"refuted"'), b'{"schema_version": 1}', b"\xff\n\n", None):
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        git("add", "--all", "evidence")
        git("commit", "--quiet", "-m", "break it")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(sound)
    first, *broken = tickets("history", "A-1", "--format", "json").data[:5]
    assert (None, "verified") == (first["commit"], first["verdict"])
    assert [
        "removed",
        "is no evidence: it is no JSON",
        "is no evidence: it is no in-toto Statement of a test result",
        "is no evidence: it was edited: its content is not what its digest says",
    ] == [step["problem"] for step in broken]


@pytest.mark.slow
def test_git_is_asked_three_times(
    history: list[str], tickets: Tickets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many commits there are: for their log, for their files, and whether the clone is shallow."""
    started: list[Any] = []
    start = subprocess.Popen.__init__

    def noted(self: Any, arguments: Any, *rest: Any, **named: Any) -> None:
        started.append(arguments)
        start(self, arguments, *rest, **named)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    assert len(history) == len(tickets("history", "A-1", "--format", "json").data)
    assert 3 == len(started)


@pytest.mark.slow
@pytest.mark.usefixtures("history")
def test_a_merge_counts_where_it_is_neither_of_its_parents(
    repository: Repository, git: Git, tickets: Tickets
) -> None:
    """One that takes a branch as it is adds nothing to it; one that makes a third thing of two is a step."""
    before = len(tickets("history", "A-1", "--format", "json").data)
    file = evidence(repository)
    git("switch", "--quiet", "--create", "other")
    file.write_bytes(file.read_bytes() + b"\n")
    git("commit", "--quiet", "--all", "-m", "other")
    git("switch", "--quiet", "main")
    git("merge", "--quiet", "--no-ff", "-m", "merge", "other")
    subjects = [step["subject"] for step in tickets("history", "A-1", "--format", "json").data]
    assert (before + 1, "other") == (len(subjects), subjects[0])
    for branch, content in (("other", b"1"), ("main", b"2")):
        git("switch", "--quiet", branch)
        file.write_bytes(content)
        git("commit", "--quiet", "--all", "-m", branch)
    git("merge", "--quiet", "--strategy", "ours", "--no-commit", "other")
    file.write_bytes(b"3")
    git("commit", "--quiet", "--all", "-m", "both")
    subjects = [step["subject"] for step in tickets("history", "A-1", "--format", "json").data]
    assert (before + 4, "both") == (len(subjects), subjects[0])


def test_without_history_it_says_so(repository: Repository, tickets: Tickets) -> None:
    """Outside a repository of git there is none."""
    repository.ticket()
    ran = tickets("history", "B1-PT-01")
    assert (ExitCode.USAGE, True) == (ran.code, "cannot read git history: not a git repository" in ran.err)


def test_without_evidence_there_is_nothing_to_show(
    repository: Repository, git: Git, tickets: Tickets
) -> None:
    """That is said on stderr, and is no error."""
    repository.ticket()
    git("add", "--all")
    git("commit", "--quiet", "-m", "a ticket")
    ran = tickets("history", "B1-PT-01")
    assert (ExitCode.OK, "") == (ran.code, ran.out)
    assert "B1-PT-01 has no evidence in any commit of the current branch\n" == ran.err
