"""What runs already is measured at each variant's revision, and evidence knows what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conftest import Git, Repository
from tests.verify.conftest import verify_all

from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import Verdict

TRAIN = """\
import argparse
from pathlib import Path
import torch
from step import step

parser = argparse.ArgumentParser()
parser.add_argument("--layers", type=int, required=True)
parser.add_argument("--name", required=True)
options = parser.parse_args()
assert options.name == "a; b 7", options.name
# A run that saw what another one wrote would wait more often.
left = Path("left.txt")
layers = [torch.ones(4, device="cuda") for _ in range(options.layers + left.exists())]
step(layers)
if Path("writes").exists():
    left.write_text("")
"""
SLOW = "def step(layers):\n    return [layer.sum().item() for layer in layers]\n"
FAST = (
    "import torch\n\ndef step(layers):\n    return torch.stack([layer.sum() for layer in layers]).tolist()\n"
)
BLOCK = """\
## Remediation

```yaml
{block}
```
"""
CLAIMS = 'claims: {found: {syncs: layers}, fix: {syncs: 1}}\nvariants: {found: "@first", fix: "@worktree"}'
SCRIPT = "run: train.py --layers {layers} --name 'a; b {x}'\nsweep: {layers: [1, 2, 3, 5], x: [7]}\n"


def add(repository: Repository, block: str) -> None:
    """A ticket with this remediation."""
    repository.ticket(more=BLOCK.format(block=block))


@pytest.fixture
def revisions(repository: Repository, git: Git) -> Repository:
    """A script whose step waits for each layer at the tag ``first``, and once in the work tree."""
    repository.write("train.py", TRAIN)
    repository.write("step.py", SLOW)
    repository.write("writes", "")
    # Nothing of the script uses this.
    repository.write("other.py", "import time\nprint(time.time())\n")
    git("add", ".")
    git("commit", "-qm", "first")
    git("tag", "first")
    repository.write("step.py", FAST)
    (repository.root / "writes").unlink()
    return repository


@pytest.mark.slow
def test_a_script_at_two_revisions(revisions: Repository, git: Git, isolation: Isolation) -> None:
    """Each variant runs the code of its revision, in a folder that it alone writes to; evidence stays."""
    add(revisions, SCRIPT + CLAIMS)
    before = git("status", "--porcelain")
    first = verify_all(revisions, isolation)["B1-PT-01"].verification
    assert first
    # Of 5 layers of 16 bytes, found makes a sum of 4 bytes at a time, the fix all five and a copy of them.
    more = f"peak_bytes {5 * 16 + 4} -> {5 * 16 + 5 * 4 + 5 * 4}"
    assert (Verdict.VERIFIED, f"every claim about found and fix holds; costs more otherwise: {more}") == (
        first.verdict,
        first.reason,
    )
    assert ["layers", "1"] == [first.variants[name].laws["syncs"] for name in ("found", "fix")]
    assert ("step.py", 2) == (first.variants["found"].sites[0].file, first.variants["found"].sites[0].line)
    assert {*before.splitlines(), "?? evidence/"} == set(git("status", "--porcelain").splitlines())
    (evidence,) = revisions.root.glob("evidence/*/*.json")
    content = evidence.read_bytes()
    again = verify_all(revisions, isolation, operations=True)["B1-PT-01"].verification
    assert again
    # At the last point there are five layers.
    heaviest = again.variants["found"].operations[0]
    assert ("aten._local_scalar_dense.default", 5) == (heaviest.operation, heaviest.costs["syncs"])
    assert content == evidence.read_bytes()
    (document,) = revisions.load().documents
    assert Verdict.VERIFIED is revisions.measured(document.id.value).verdict
    for file in ("step.py", "train.py"):
        text = (revisions.root / file).read_text()
        revisions.write(file, f"{text}\n")
        changed = revisions.measured(document.id.value)
        assert (Verdict.STALE, (file,)) == (changed.verdict, changed.changed)
        revisions.write(file, text)


ON_LINE = "tickets/B1-PT-01.md:31"
REQUIRED = "the following arguments are required: --name"
TROUBLES = {
    "no script": ("run: gone.py", f"found: there is no file gone.py in the work tree ({ON_LINE})"),
    "no script then": (
        'run: late.py\nvariants: {found: "@first"}',
        f"found: there is no file late.py at first ({ON_LINE})",
    ),
    "no module": ("run: pkg.gone", f"found: there is no module pkg.gone ({ON_LINE})"),
    "an argument is missing": (
        "run: train.py --layers 1",
        f"found: train.py:9 called sys.exit(2): train.py: error: {REQUIRED}",
    ),
    "a parameter is missing": (
        "run: late.py:work",
        f"found: late.py:work: missing a required argument: 'n' ({ON_LINE})",
    ),
    "it raises": ("run: train.py --layers 1 --name x", "found: train.py:10: AssertionError: x"),
    "it exits": ("run: late.py 3", "found: late.py:4 called sys.exit(3)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_cannot_be_measured(revisions: Repository, isolation: Isolation, trouble: str) -> None:
    """The reason says what is wrong, and on which line of the code or of the ticket."""
    revisions.write("late.py", LATE)
    block, reason = TROUBLES[trouble]
    add(revisions, f"{block}\nclaims: {{found: {{syncs: 1}}}}")
    done = verify_all(revisions, isolation, meter="simulated")["B1-PT-01"].verification
    assert done
    assert (Verdict.INCONCLUSIVE, reason) == (done.verdict, done.reason)


@pytest.fixture
def ran(isolation: Isolation, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The names of the tasks that were run, in the order of their ends."""
    names: list[Any] = []
    run = isolation.run

    def run_noted(asked: Any) -> Iterator[Any]:
        for name, outcome in run(asked):
            names.append(name)
            yield name, outcome

    monkeypatch.setattr(isolation, "run", run_noted)
    return names


def test_what_two_tickets_run_alike_is_run_once(
    repository: Repository, isolation: Isolation, ran: list[Any]
) -> None:
    """Both are verified from the same runs; what fails is run for each, since the reason names the ticket."""
    repository.write("train.py", "import torch\nprint(torch.ones(4, device='cuda').sum().item())\n")
    for number, within in enumerate(["", "", "within: train.py:step\n", "within: train.py:step\n"]):
        block = BLOCK.format(block=f"run: train.py\n{within}claims: {{found: {{syncs: 1}}}}")
        repository.ticket(f"A-{number}", more=block)
    # They come as they end.
    found = [done.verification for _, done in sorted(verify_all(repository, isolation).items())]
    verdicts = [each.verdict for each in found if each]
    assert [Verdict.REPRODUCED] * 2 + [Verdict.INCONCLUSIVE] * 2 == verdicts
    assert [2, 3] == [
        number for number in range(4) for each in found if each and f"A-{number}.md" in each.reason
    ]
    # The only point is run twice, to find costs that differ: for both tickets together, or for each.
    assert [2, 0, 2, 2] == [sum(f"A-{number}" in key for key, _ in ran) for number in range(4)]


def test_what_is_run_alike_is_compared_for_each_ticket(
    repository: Repository, isolation: Isolation, git: Git, ran: list[Any]
) -> None:
    """Two tickets of one fix have the same runs, and each accepts its own differences."""
    code = "import torch\nxs = torch.ones(4, device='cuda')\ntotal = sum(x.item() for x in xs)\n"
    repository.write("train.py", code)
    git("add", ".")
    git("commit", "-qm", "first")
    git("tag", "first")
    repository.write("train.py", code.replace("sum(x.item() for x in xs)", "xs.max().item()"))
    variants = 'variants: {found: "@first", fix: "@worktree"}\nclaims: {found: {syncs: 4}, fix: {syncs: 1}}'
    for number, differs in enumerate(["", "differs: [total]\n"]):
        block = BLOCK.format(block=f"run: train.py\n{differs}{variants}")
        repository.ticket(f"A-{number}", status="open", more=block)
    found = {name: done.verification for name, done in verify_all(repository, isolation).items()}
    verdicts = {name: each.verdict for name, each in found.items() if each}
    assert {"A-0": Verdict.FAILED, "A-1": Verdict.VERIFIED} == verdicts
    # Each of two variants is run twice for both tickets, and each ticket is compared.
    assert 2 * 2 + 2 == len(ran)


@pytest.mark.slow
def test_costs_that_differ_from_run_to_run(repository: Repository, isolation: Isolation) -> None:
    """The point is run twice, and the reason names the metric, both counts and the line."""
    # Only one of two runs can make the folder: it alone copies to the device and back.
    made = "try:\n    os.mkdir('seen')\nexcept FileExistsError:\n    torch.ones(1).cuda().item()\n"
    repository.write("once.py", f"import os, torch\n{made}")
    add(repository, "run: once.py\nclaims: {found: {syncs: 0}}")
    done = verify_all(repository, isolation, meter="simulated")["B1-PT-01"].verification
    assert done
    what = "found: costs differ from run to run of the same work: syncs"
    assert done.reason in {f"{what} {costs} at once.py:5" for costs in ("0, then 2", "2, then 0")}


LATE = """\
import sys

if sys.argv[1:] == ["3"]:
    sys.exit(3)

def work(n): ...
"""
