"""``tickets report --since REV``: what is different from a revision, from git's objects alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.staleness import own_torch
from finding_tickets.verify.evidence import dump

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Git, Repository

Tickets = Callable[..., "Ran"]


def evidence(
    repository: Repository,
    name: str,
    verdict: Verdict,
    meter: str = "simulated",
    file: str = "a",
    torch: str = "2",
) -> None:
    """Record a verdict on a ticket."""
    done = Verification(
        ticket=name,
        verdict=verdict,
        reason="so",
        meter=meter,
        torch=torch,
        device="h200",
        sweep=(),
        variants={},
        claims=(),
    )
    content = dump(Evidence(inputs=(), verification=done))
    repository.write(f"evidence/{name}/{file}.json", content)


def section(text: str) -> list[str]:
    """The lines of the report that say what has changed, but for empty ones."""
    lines = text.partition("## Since ")[2].partition("\n## ")[0].splitlines()
    return [line for line in lines[1:] if line]


@pytest.fixture
def changed(repository: Repository, git: Git) -> Git:
    """A commit tagged v1, then a ticket of every fate: committed, only in the work tree, moved or not."""
    for name in ("A-1", "A-2", "A-3", "A-4", "A-5"):
        repository.ticket(name, status="open")
    evidence(repository, "A-1", Verdict.REPRODUCED)
    evidence(repository, "A-2", Verdict.REPRODUCED)
    git("add", "--all")
    git("commit", "--quiet", "-m", "five tickets")
    git("tag", "v1")
    evidence(repository, "A-1", Verdict.VERIFIED)
    (repository.root / "tickets/A-3.md").unlink()
    repository.ticket("A-4", status="fixed", path="tickets/done/A-4.md")
    (repository.root / "tickets/A-4.md").unlink()
    git("add", "--all")
    git("commit", "--quiet", "-m", "on they go")
    repository.ticket("A-2", status="open", severity="P0")
    repository.ticket("A-6", status="open")
    evidence(repository, "A-5", Verdict.REFUTED)
    return git


@pytest.mark.usefixtures("changed")
def test_every_fate(tickets: Tickets) -> None:
    """Added, removed, moved and changed, in severity, disposition and recorded verdict, committed or not."""
    lines = section(tickets("report", "--since", "v1").out)
    assert [
        "| severity | added | changed | sum |",
        "|---|---:|---:|---:|",
        # A-2; and the new A-6
        "| P0 | 0 | 1 | 1 |",
        "| P2 | 1 | 3 | 4 |",
        "| sum | 1 | 4 | 5 |",
        "- A-6: added",
        "- A-3: removed, and in no table",
        "- A-1: verdict reproduced -> verified",
        "- A-2: severity P2 -> P0",
        "- A-4: disposition open -> fixed",
        "- A-5: verdict unverified -> refuted",
    ] == lines[1:]


@pytest.mark.usefixtures("changed")
def test_nothing_of_the_repository_is_touched(tickets: Tickets, repository: Repository) -> None:
    """Work tree, index and references stay as they are, byte for byte."""

    def everything() -> dict[str, bytes]:
        files = (file for file in repository.root.rglob("*") if file.is_file())
        return {str(file): file.read_bytes() for file in files}

    before = everything()
    assert "- A-6: added" in tickets("report", "--since", "v1").out
    assert before == everything()


@pytest.mark.usefixtures("changed")
def test_a_query_chooses_what_is_compared(tickets: Tickets) -> None:
    """Of documents that are gone, those count that the query means."""
    lines = section(tickets("report", "severity:P0", "--since", "v1").out)
    assert ["| P0 | 1 | 1 |", "| sum | 1 | 1 |", "- A-2: severity P2 -> P0"] == lines[3:]
    lines = section(tickets("report", "status:open", "severity:P2", "--since", "v1").out)
    assert "- A-3: removed, and in no table" in lines


def test_nothing_has_changed(tickets: Tickets, repository: Repository, git: Git) -> None:
    """Since the commit that is checked out, everything is as it was."""
    repository.ticket("A-1")
    git("add", "--all")
    git("commit", "--quiet", "-m", "one ticket")
    assert ["| P2 | 1 | 1 |", "| sum | 1 | 1 |"] == section(tickets("report", "--since", "HEAD").out)[3:]


def test_a_register_below_the_top_of_its_repository(
    tickets: Tickets, repository: Repository, git: Git
) -> None:
    """Paths are those of the register, wherever the repository begins."""
    repository.write("part/tickets.toml", "")
    repository.ticket("A-1", path="part/tickets/A-1.md", status="open")
    git("add", "--all")
    git("commit", "--quiet", "-m", "one ticket")
    repository.ticket("A-1", path="part/tickets/A-1.md", status="fixed")
    ran = tickets("report", "--root", str(repository.root / "part"), "--since", "HEAD")
    assert "- A-1: disposition open -> fixed" == section(ran.out)[-1]


def test_evidence_that_cannot_be_read(tickets: Tickets, repository: Repository, git: Git) -> None:
    """Unreadable ones are named as such; one that decides outranks a real GPU, and that the others."""
    repository.ticket("A-1")
    repository.ticket("A-2")
    repository.write("evidence/A-1/a.json", "{")
    evidence(repository, "A-2", Verdict.INCONCLUSIVE, meter="cuda", file="b")
    evidence(repository, "A-2", Verdict.VERIFIED)
    git("add", "--all")
    git("commit", "--quiet", "-m", "two tickets")
    evidence(repository, "A-1", Verdict.VERIFIED)
    evidence(repository, "A-2", Verdict.FAILED, meter="cuda", file="b")
    assert [
        "- A-1: verdict unreadable -> verified",
        "- A-2: verdict verified -> failed",
    ] == section(tickets("report", "--since", "HEAD").out)[-2:]


def test_of_a_matrix_the_tools_own_torch_counts(tickets: Tickets, repository: Repository, git: Git) -> None:
    """What another torch says is no change of the verdict, though its file is the first."""
    for name in ("A-1", "A-2"):
        repository.ticket(name)
        evidence(repository, name, Verdict.VERIFIED, torch="1.99.0", file="a")
        evidence(repository, name, Verdict.VERIFIED, torch=own_torch(), file="b")
    git("add", "--all")
    git("commit", "--quiet", "-m", "two tickets")
    evidence(repository, "A-1", Verdict.FAILED, torch=own_torch(), file="b")
    evidence(repository, "A-2", Verdict.FAILED, torch="1.99.0", file="a")
    told = section(tickets("report", "--since", "HEAD").out)[5:]
    assert ["- A-1: verdict verified -> failed"] == told


@pytest.mark.parametrize("revision", ["nowhere", "--all", "HEAD~99", ""])
def test_a_revision_that_does_not_exist(
    tickets: Tickets, repository: Repository, git: Git, revision: str
) -> None:
    """Wrong usage that names the option, and no report."""
    repository.ticket("A-1")
    git("add", "--all")
    git("commit", "--quiet", "-m", "one ticket")
    ran = tickets("report", f"--since={revision}")
    assert (2, "") == (ran.code, ran.out)
    assert "--since" in ran.err


def test_without_a_repository(tickets: Tickets, repository: Repository) -> None:
    """Where there is no history, there is no report of it."""
    repository.ticket("A-1")
    ran = tickets("report", "--since", "HEAD")
    assert (2, "") == (ran.code, ran.out)
    assert "not a git repository" in ran.err


def test_names_that_are_no_utf8(tickets: Tickets, repository: Repository, git: Git) -> None:
    """A file whose name is only bytes is the same file at both times."""
    text = repository.ticket("A-1").read_bytes()
    file = repository.root / "tickets" / b"\xff.md".decode(errors="surrogateescape")
    file.write_bytes(text.replace(b"A-1", b"A-9"))
    git("add", "--all")
    git("commit", "--quiet", "-m", "two tickets")
    file.write_bytes(file.read_bytes().replace(b"`wont-fix`", b"`open`"))
    assert "- A-9: disposition wont-fix -> open" == section(tickets("report", "--since", "HEAD").out)[-1]


def test_files_that_are_no_documents(tickets: Tickets, repository: Repository, git: Git) -> None:
    """What would not be read now was no ticket then: other files, hidden folders, and what is too large."""
    text = repository.ticket("A-1").read_bytes()
    for number, path in enumerate(["tickets/A-2.txt", "tickets/.old/A-3.md", "tickets/A-4.md"], 2):
        more = b"x" * 3000 * (number == 4)
        repository.write(path, text.replace(b"A-1", b"A-%d" % number) + more)
    repository.write("tickets.toml", "largest_file = 2000\n")
    git("add", "--all")
    git("commit", "--quiet", "-m", "one ticket")
    for path in ["tickets/A-2.txt", "tickets/.old/A-3.md", "tickets/A-4.md"]:
        (repository.root / path).unlink()
    assert ["| P2 | 1 | 1 |", "| sum | 1 | 1 |"] == section(tickets("report", "--since", "HEAD").out)[3:]


def test_two_documents_with_one_id(tickets: Tickets, repository: Repository, git: Git) -> None:
    """Each is compared with what it was; one that was moved, with the first of its ID."""
    repository.ticket("A-1", path="tickets/a.md")
    repository.ticket("A-1", path="tickets/b.md", severity="P0")
    git("add", "--all")
    git("commit", "--quiet", "-m", "two tickets")
    assert "| sum | 2 | 2 |" == section(tickets("report", "--since", "HEAD").out)[-1]
    (repository.root / "tickets/b.md").rename(repository.root / "tickets/c.md")
    assert "- A-1: severity P2 -> P0" == section(tickets("report", "--since", "HEAD").out)[-1]


def test_settings_that_show_differences_otherwise(tickets: Tickets, repository: Repository, git: Git) -> None:
    """What somebody has configured git to do with differences changes nothing."""
    repository.ticket("A-1", status="open")
    git("add", "--all")
    git("commit", "--quiet", "-m", "one ticket")
    git("config", "diff.external", "false")
    git("config", "diff.noprefix", "true")
    git("config", "color.ui", "always")
    git("config", "diff.renames", "copies")
    repository.ticket("A-1", status="fixed")
    assert "- A-1: disposition open -> fixed" == section(tickets("report", "--since", "HEAD").out)[-1]


@pytest.mark.parametrize(
    ("file", "table"), [("tickets.toml", ""), ("pyproject.toml", "[tool.tickets]\n")], ids=["own", "project"]
)
def test_folders_that_were_moved(
    tickets: Tickets, repository: Repository, git: Git, file: str, table: str
) -> None:
    """Documents and evidence are looked for where the configuration of then has them."""
    repository.write(file, f'{table}tickets = "old"\nevidence = "old-evidence"\n')
    repository.ticket("A-1", path="old/A-1.md", status="open")
    repository.ticket("A-2", path="old/A-2.md")
    evidence(repository, "A-1", Verdict.REPRODUCED)
    (repository.root / "evidence").rename(repository.root / "old-evidence")
    git("add", "--all")
    git("commit", "--quiet", "-m", "two tickets")
    repository.write(file, f'{table}tickets = "new/docs"\n')
    (repository.root / "new").mkdir()
    (repository.root / "old").rename(repository.root / "new/docs")
    (repository.root / "old-evidence").rename(repository.root / "evidence")
    assert ["| P2 | 2 | 2 |", "| sum | 2 | 2 |"] == section(tickets("report", "--since", "HEAD").out)[3:]
    (repository.root / "new/docs/A-2.md").unlink()
    evidence(repository, "A-1", Verdict.VERIFIED)
    changed = section(tickets("report", "--since", "HEAD").out)[5:]
    assert ["- A-2: removed, and in no table", "- A-1: verdict reproduced -> verified"] == changed


def test_a_configuration_that_could_not_be_read_then(
    tickets: Tickets, repository: Repository, git: Git
) -> None:
    """The folders are then those of today, and the usual ones."""
    repository.ticket("A-1", path="tickets/A-1.md")
    repository.write("tickets.toml", "tickets = [")
    git("add", "--all")
    git("commit", "--quiet", "-m", "a ticket")
    repository.write("tickets.toml", 'tickets = "tickets"')
    assert ["| P2 | 1 | 1 |", "| sum | 1 | 1 |"] == section(tickets("report", "--since", "HEAD").out)[3:]
