"""``tickets show --history``: what git knows of a ticket, beside what the ticket says."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Git, Repository

from finding_tickets.register.recorded import write_facts


@pytest.fixture
def ticket(repository: Repository, git: Git) -> None:
    """A ticket that Ada committed, and a commit of Bob's that names it."""
    repository.ticket()
    git("add", "--all")
    git("commit", "--quiet", "-m", "File a finding", who="Ada", when="2026-01-02")
    git("commit", "--quiet", "--allow-empty", "-m", "Fix b1-pt-01", who="Bob", when="2026-01-05")


@pytest.mark.usefixtures("ticket")
def test_the_history_follows_the_page(tickets: Tickets, git: Git) -> None:
    """Dates, short ids, people and subjects in columns, after what `show` says without it."""
    fix, filed = git("log", "--format=%H").split()
    ran = tickets("show", "b1-pt-01", "--history")
    page = tickets("show", "b1-pt-01").out
    assert (0, "") == (ran.code, ran.err)
    assert "History" not in page
    assert [
        *page.splitlines(),
        "",
        "History",
        f"  First commit  2026-01-02  {filed[:10]}  Ada  File a finding",
        f"  Last change   2026-01-02  {filed[:10]}  Ada  File a finding",
        "  Authors: Ada",
        "  Commits that name it",
        f"    2026-01-05  {fix[:10]}  Bob  Fix b1-pt-01",
    ] == ran.out.splitlines()


def test_recorded_verdicts_follow(tickets: Tickets, repository: Repository, git: Git) -> None:
    """One for each commit that changed a file of evidence, the newest first; one that was edited has none."""
    repository.ticket()
    for number, verdict in enumerate(["verified", "failed"], 1):
        content = write_facts([["verdict", {"verdict": verdict}]])
        repository.write("evidence/B1-PT-01/simulated.json", content)
        git("add", "--all")
        git("commit", "--quiet", "-m", f"Run {number}", when=f"2026-01-0{number}")
    file = repository.write("evidence/B1-PT-01/simulated.json", content.replace(b"failed", b"refuted"))
    git("commit", "--quiet", "--all", "-m", "Edit it", when="2026-01-03")
    file.unlink()
    git("commit", "--quiet", "--all", "-m", "Remove it", when="2026-01-04")
    commits = git("log", "--format=%H").split()
    (item,) = tickets("show", "B1-PT-01", "--history", "--format", "json").data
    expected = ["removed", "unreadable", "failed", "verified"]
    assert expected == [each["verdict"] for each in item["history"]["verdicts"]]
    first = item["history"]["verdicts"][-1]
    assert {
        "commit": commits[-1],
        "date": "2026-01-01T12:00:00+00:00",
        "file": "evidence/B1-PT-01/simulated.json",
        "verdict": "verified",
    } == first
    lines = tickets("show", "B1-PT-01", "--history").out.partition("Verdicts recorded\n")[2].splitlines()
    assert f"    2026-01-01  {commits[-1][:10]}  Ada  Run 1      verified" == lines[-1]


def test_what_git_does_not_know_is_said(
    tickets: Tickets, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without git the ticket is shown all the same, and the reason stands where the history would."""
    repository.ticket()
    monkeypatch.setenv("PATH", str(repository.root))
    ran = tickets("show", "B1-PT-01", "--history")
    assert 0 == ran.code
    assert ran.out.endswith("\nHistory\n  the history is not known: git is not installed\n")
