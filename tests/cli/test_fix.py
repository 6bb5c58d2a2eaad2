"""``tickets fix`` adds the fix and the claims that hold for it; ``tickets close`` measures what is stale."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Git, Repository
from tests.verify.conftest import FIX, FOUND, VERIFIER

SLOW = "import torch\n\nfor _ in range(4):\n    torch.ones(2, device='cuda').sum().item()\n"
FAST = "import torch\n\nsum(torch.ones(2, device='cuda').sum() for _ in range(4)).item()\n"
PINNED = """\
## Remediation

```yaml
run: train.py
variants:
  found: "@first"  # before
claims:
  found:
    syncs: 4
    d2h: 4

checklist:
  - {item: Count the waits, claims: [fix.syncs]}
```
"""
BESIDE = PINNED.partition("```yaml\n")[2].removesuffix("```\n")
# The script waits four times, once after each sum; and once in the end, when it is fixed.
ADDED = ['+  fix: "@worktree"', "+  fix: {syncs: 1, d2h: 1}"]


def added(diff: str) -> list[str]:
    """The lines that a diff adds, if it removes none."""
    lines = diff.splitlines()
    assert not [line for line in lines if line.startswith("-") and not line.startswith("---")]
    return [line for line in lines if line.startswith("+") and not line.startswith("+++")]


@pytest.fixture
def pinned(repository: Repository, git: Git) -> Repository:
    """A script that waits in its loop, committed with the tag ``first``."""
    repository.write("train.py", SLOW)
    git("add", ".")
    git("commit", "-qm", "first")
    git("tag", "first")
    return repository


@pytest.mark.slow
def test_a_remediation_beside_its_ticket(pinned: Repository, tickets: Tickets) -> None:
    """The fix is added there, with line ends as they are."""
    pinned.ticket(status="open")
    file = pinned.write("tickets/B1-PT-01.remediation.yaml", BESIDE.replace("\n", "\r\n"))
    before = file.read_bytes().splitlines(keepends=True)
    pinned.write("train.py", FAST)
    assert 0 == tickets("fix", "B1-PT-01").code
    assert [f"{line[1:]}\r\n".encode() for line in ADDED] == [
        line for line in file.read_bytes().splitlines(keepends=True) if line not in before
    ]


@pytest.mark.slow
def test_from_a_script_that_waits_to_a_closed_ticket(pinned: Repository, tickets: Tickets) -> None:
    """Edit, fix, close."""
    file = pinned.ticket(status="open", more=PINNED)
    before = file.read_bytes()
    # Nothing has changed yet.
    done = tickets("fix", "B1-PT-01")
    assert (3, True) == (done.code, "found and fix are the same code" in done.out), done.err
    assert "nothing was written; change the code" in done.err
    pinned.write("train.py", f"{SLOW}# not yet\nimport math\n")
    done = tickets("fix", "B1-PT-01")
    assert (1, True) == (done.code, "costs what the code as found does" in done.err), done.err
    assert before == file.read_bytes()
    pinned.write("train.py", FAST)
    done = tickets("fix", "B1-PT-01", "--dry-run")
    assert (0, ADDED) == (done.code, added(done.out)), done.err
    assert before == file.read_bytes()
    assert not (pinned.root / "evidence").exists()
    done = tickets("fix", "B1-PT-01")
    assert 0 == done.code, done.err
    # The line of the code as found is that of its commit, and not what stands there now.
    assert "syncs: 4  torch.ones(2, device='cuda').sum().item()" in done.out
    assert ADDED == [
        f"+{line}" for line in file.read_text().splitlines() if line not in before.decode().splitlines()
    ]
    assert ["verified"] == [each["verdict"] for each in tickets("list", "--format", "json").data]
    # Evidence is fresh: closing measures nothing.
    done = tickets("close", "B1-PT-01")
    assert (0, False) == (done.code, "measuring" in done.err), done.err
    (item,) = tickets("list", "--format", "json").data
    assert ("fixed", "verified", [True]) == (
        item["status"],
        item["verdict"],
        [each["done"] for each in item["checklist"]],
    )


@pytest.mark.slow
def test_close_measures_what_is_stale(pinned: Repository, tickets: Tickets) -> None:
    """A dry run too, which records nothing; and what is not verified stays open."""
    pinned.write("train.py", FAST)
    block = PINNED.replace("# before", '\n  fix: "@worktree"').replace(
        "\nchecklist", "  fix: {syncs: 1}\nchecklist"
    )
    pinned.ticket(status="open", more=block)
    done = tickets("close", "B1-PT-01", "--dry-run")
    assert (0, True) == (done.code, "+- [x] Count the waits" in done.out), done.err
    assert not (pinned.root / "evidence").exists()
    pinned.write("train.py", f"{FAST}torch.ones(1, device='cuda').item()\n")
    done = tickets("close", "B1-PT-01")
    # One wait more: fix.syncs is 2.
    assert (1, True) == (done.code, "claimed 1, measured 2" in done.err), done.err
    pinned.write("train.py", FAST)
    assert 0 == tickets("close", "B1-PT-01").code
    assert "Status:** Fixed" in (pinned.root / "tickets/B1-PT-01.md").read_text()


@pytest.mark.slow
def test_a_function_that_a_verifier_compares(repository: Repository, git: Git, tickets: Tickets) -> None:
    """The fix is the same function in the work tree; its results are claimed to be those of found."""
    repository.write("code.py", FOUND)
    git("add", ".")
    git("commit", "-qm", "first")
    claims = "claims: {found: {syncs: tensors}}"
    block = f"verifier: v.py\nvariants: {{found: code.py:check@HEAD}}\n{claims}"
    repository.ticket(more=f"## Remediation\n\n```yaml\n{block}\n```\n")
    repository.write("v.py", VERIFIER.format(ticket="B1-PT-01"))
    repository.write("code.py", FIX)
    assert 0 == tickets("fix", "B1-PT-01").code
    text = (repository.root / "tickets/B1-PT-01.md").read_text()
    # HEAD moves along when the fix is committed: what was found there gets its commit.
    commit = git("rev-parse", "HEAD")[:12]
    assert f'variants: {{found: "code.py:check@{commit}", fix: code.py:check}}' in text
    assert "claims: {found: {syncs: tensors}, fix: {syncs: 1, same_result_as: found}}" in text


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("run: code.py", "its code as found is that of the work tree"),
        (
            "verifier: v.py\nvariants: {found: code.py:slow}",
            'pin it to the commit that has it: found: "code.py:slow@',
        ),
        ("decision: fix", "has no Remediation with run or a verifier"),
    ],
)
def test_nothing_to_fix(repository: Repository, tickets: Tickets, block: str, why: str) -> None:
    """Without code as found apart from the work tree there is nothing to compare."""
    repository.write("v.py", "")
    repository.ticket(more=f"## Remediation\n\n```yaml\n{block}\n```\n")
    done = tickets("fix", "B1-PT-01")
    assert (2, True) == (done.code, why in done.err), done.err
