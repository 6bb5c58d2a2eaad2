"""Ten commits in the life of a defect, with its ticket, as they are lived at the command line."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cli.conftest import Ran
from tests.conftest import run_here

from finding_tickets.errors import ExitCode

pytestmark = pytest.mark.slow

STEP = '''\
"""A step of a model whose layers each have a weight and a bias."""

import torch

from pkg.monitor import norm


def step(layers):
    gradients = [torch.rand(size, device="cuda") for _ in range(layers) for size in (64, 8)]
    return norm(gradients)
'''
# One wait for all: 1.
ONCE = """\
import torch


def norm(tensors):
    return torch.stack([tensor.norm() for tensor in tensors]).norm().item()
"""
# One wait for each tensor, of which a layer has two: 2*layers.
EACH = """\
def norm(tensors):
    return sum(tensor.norm().item() ** 2 for tensor in tensors) ** 0.5
"""
# Another word for the same wait.
FLOAT = EACH.replace("tensor.norm().item()", "float(tensor.norm())")
BROKEN = "from pkg.gone import norm\n"
# One wait for each weight and one for all biases: layers + 1.
HALF = """\
import torch


def norm(tensors):
    biases = torch.stack([bias.norm() for bias in tensors[1::2]]).norm().item()
    return (biases**2 + sum(weight.norm().item() ** 2 for weight in tensors[::2])) ** 0.5
"""
FIX = """\
  fix: "@worktree"
claims:
  found:
    syncs: 2*layers
  fix:
    syncs: 1
```
"""
PROBE = ("probe", "pkg.step:step", "--sweep", "layers=1,2,5,8")
AT_EACH = {
    "begun": ("verified", "1"),
    "introduced": ("failed", "2*layers"),
    "filed": ("failed", "2*layers"),
    "mis-fixed": ("failed", "2*layers"),
    "broken": ("inconclusive", None),
    "fixed": ("verified", "1"),
    "moved": ("verified", "1"),
    "unrelated": ("verified", "1"),
    "brought back": ("failed", "2*layers"),
    "half fixed": ("failed", "layers + 1"),
}
"""What the claims come to where the code of a commit stands for the fix, and how often that waits."""


@dataclass(frozen=True)
class Life:
    """The repository, its commits by their messages, and what commands said on the way, by occasions."""

    root: Path
    commits: dict[str, str] = field(default_factory=dict)
    said: dict[str, Ran] = field(default_factory=dict)

    def tickets(self, *arguments: str) -> Ran:
        """Run ``tickets`` in the repository."""
        return Ran(*run_here(self.root, *arguments))

    def git(self, *arguments: str) -> str:
        """Run git, which has to succeed."""
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, message: str) -> None:
        """Commit all that there is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.commits[message] = self.git("rev-parse", "HEAD").strip()


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """The ten commits, with the commands that a user gives on the way."""
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patched.delenv(name)
        for role in ("AUTHOR", "COMMITTER"):
            patched.setenv(f"GIT_{role}_NAME", "Ada")
            patched.setenv(f"GIT_{role}_EMAIL", "ada@home")
        patched.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patched.setenv("GIT_CONFIG_SYSTEM", os.devnull)
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patched.setenv("CUDA_VISIBLE_DEVICES", "")
        lived = Life(tmp_path_factory.mktemp("life"))
        lived.git("init", "--quiet", "--initial-branch=main")
        live(lived)
        yield lived


def live(life: Life) -> None:
    """Make the commits; what the commands on the way say is asserted by the tests."""
    said, tickets = life.said, life.tickets
    life.write("src/pkg/__init__.py", "")
    life.write("src/pkg/step.py", STEP)
    life.write("src/pkg/monitor.py", ONCE)
    life.commit("begun")
    life.write("src/pkg/monitor.py", EACH)
    life.commit("introduced")

    said["init"] = tickets("init", "--yes", "--format", "json")
    said["draft"] = tickets(*PROBE, "--draft", "1", "--format", "json")
    said["reproduced"] = tickets("verify", "T-01", "--format", "json")
    life.commit("filed")

    life.git("switch", "--quiet", "--create", "fix")
    ticket = life.root / "tickets/T-01.md"
    life.write("tickets/T-01.md", ticket.read_text().partition("claims:\n")[0] + FIX)
    life.write("src/pkg/monitor.py", FLOAT)
    said["mis-fixed"] = tickets("verify", "T-01", "--format", "json")
    said["mis-fix closed"] = tickets("close", "T-01", "--as", "fixed")
    said["mis-fix checked"] = tickets("check", "--base", "main", "--format", "json")
    life.commit("mis-fixed")
    life.write("src/pkg/monitor.py", BROKEN)
    life.commit("broken")
    life.write("src/pkg/monitor.py", ONCE)
    said["fixed"] = tickets("verify", "T-01", "--format", "json")
    said["fix closed"] = tickets("close", "T-01", "--as", "fixed")
    life.commit("fixed")
    said["fix checked"] = tickets("check", "--base", "main", "--format", "json")
    life.git("switch", "--quiet", "main")
    life.git("merge", "--quiet", "--ff-only", "fix")

    life.git("mv", "src/pkg/monitor.py", "src/pkg/norms.py")
    life.write("src/pkg/step.py", STEP.replace("pkg.monitor", "pkg.norms"))
    said["stale"] = tickets("list", "--format", "json")
    said["measured again"] = tickets("verify", "--stale", "--format", "json")
    life.commit("moved")
    life.write("README", "A small trainer.\n")
    said["not stale"] = tickets("verify", "--stale")
    life.commit("unrelated")

    life.write("src/pkg/norms.py", EACH)
    said["back checked"] = tickets("check", "--base", "HEAD", "--format", "json")
    said["back"] = tickets("verify", "T-01", "--format", "json")
    said["back linted"] = tickets("lint", "--format", "json")
    said["reopened"] = tickets("reopen", "T-01", "--reason", "each norm is read again")
    said["open"] = tickets("list", "--format", "json")
    life.commit("brought back")
    life.write("src/pkg/norms.py", HALF)
    tickets("verify", "T-01")
    life.commit("half fixed")


def rules(ran: Ran) -> list[str]:
    """What the gate has against the ticket."""
    return [problem["rule"] for problem in ran.data[0]["problems"] if problem["level"] == "error"]


def measured(ran: Ran) -> tuple[int, str, Mapping[str, str | None]]:
    """The exit code, the verdict, and how often each variant waits."""
    (item,) = ran.data
    waits = {name: variant["laws"].get("syncs") for name, variant in item["variants"].items()}
    return ran.code, item["verdict"], waits


def test_a_register_is_made_with_a_ticket_about_the_line(life: Life) -> None:
    """``found`` in the draft is the commit that was probed, and its claim holds."""
    assert (0, 0) == (life.said["init"].code, life.said["draft"].code)
    ((site, *_), draft) = (life.said["draft"].data[0][key] for key in ("sites", "draft"))
    # EACH reads in its second line.
    assert ("src/pkg/monitor.py", 2, "2*layers") == (site["file"], site["line"], site["law"])
    commit = life.commits["introduced"][:12]
    assert {"id": "T-01", "files": ["tickets/T-01.md"], "found": commit} == draft
    assert f'found: "@{commit}"\n' in life.git("show", f"{life.commits['filed']}:tickets/T-01.md")
    assert (0, "reproduced", {"found": "2*layers"}) == measured(life.said["reproduced"])


def test_a_mis_fix_is_not_verified_and_cannot_be_closed(life: Life) -> None:
    """The gate refuses what ``close`` refuses, before it is committed."""
    waits = {"found": "2*layers", "fix": "2*layers"}
    assert (ExitCode.GATE_FAILED, "failed", waits) == measured(life.said["mis-fixed"])
    assert ExitCode.GATE_FAILED == life.said["mis-fix closed"].code
    # Reproduced at the base, and failed is worse than that.
    assert (ExitCode.GATE_FAILED, "gate-worse") == (
        life.said["mis-fix checked"].code,
        rules(life.said["mis-fix checked"])[0],
    )


def test_a_fix_is_verified_closed_and_let_through(life: Life) -> None:
    """Of three commits on the branch, the gate looks at where they lead."""
    assert (0, "verified", {"found": "2*layers", "fix": "1"}) == measured(life.said["fixed"])
    assert 0 == life.said["fix closed"].code
    checked = life.said["fix checked"]
    assert (0, []) == (checked.code, rules(checked))
    assert ("reproduced", "verified") == (checked.data[0]["base"], checked.data[0]["measured"])


def test_code_that_moved_makes_the_evidence_stale_until_it_is_measured(life: Life) -> None:
    """The files that changed are named; a file that nothing depends on changes nothing."""
    assert ["stale"] == [item["verdict"] for item in life.said["stale"].data]
    again = life.said["measured again"]
    (told,) = [line for line in again.err.splitlines() if line.startswith("T-01 is stale")]
    assert {"src/pkg/step.py", "src/pkg/monitor.py"} == set(told.partition(": ")[2].split(", "))
    assert (0, "verified", {"found": "2*layers", "fix": "1"}) == measured(again)
    assert (0, "") == (life.said["not stale"].code, life.said["not stale"].out)


def test_a_defect_that_comes_back_is_refused_and_reopened(life: Life) -> None:
    """The gate names what is worse; lint says that what is closed has failed; the ticket is open again."""
    checked = life.said["back checked"]
    assert ExitCode.GATE_FAILED == checked.code
    assert ["gate-worse", "gate-claim", "gate-stale"] == rules(checked)
    waits = {"found": "2*layers", "fix": "2*layers"}
    assert (ExitCode.GATE_FAILED, "failed", waits) == measured(life.said["back"])
    assert "fixed-but-refuted" in [problem["rule"] for problem in life.said["back linted"].data]
    assert 0 == life.said["reopened"].code
    assert [("open", "failed")] == [(item["status"], item["verdict"]) for item in life.said["open"].data]


# What bisect finds at all others is told below.
@pytest.mark.parametrize("message", ["introduced", "broken", "moved", "half fixed"])
def test_each_commit_has_its_verdict_and_its_law(life: Life, message: str) -> None:
    """Measured now, with the verifier and claims of now; nothing is recorded."""
    ran = life.tickets("verify", "T-01", "--at", life.commits[message], "--format", "json")
    verdict, law = AT_EACH[message]
    (item,) = ran.data
    codes = {"verified": 0, "failed": ExitCode.GATE_FAILED, "inconclusive": ExitCode.INCONCLUSIVE}
    assert (codes[verdict], verdict) == (ran.code, item["verdict"])
    if law is None:
        assert "No module named 'pkg.gone'" in item["reason"]
    else:
        assert {"found": "2*layers", "fix": law} == measured(ran)[2]
    assert "" == life.git("status", "--short")


def test_the_commits_that_turned_the_defect_are_found(life: Life) -> None:
    """Those that changed no code that runs are left out; the one that does not import is under suspicion."""
    ran = life.tickets("bisect", "T-01", "--format", "json")
    (item,) = ran.data
    assert [
        ("begun", "clean", None, "1"),
        ("introduced", "defect", "introduced", "2*layers"),
        ("mis-fixed", "defect", None, "2*layers"),
        ("broken", "skipped", None, None),
        ("fixed", "clean", "fixed", "1"),
        ("moved", "clean", None, "1"),
        ("brought back", "defect", "brought back", "2*layers"),
        # Neither the claim about found nor the one about the fix.
        ("half fixed", "changed", "changed", "layers + 1"),
    ] == [(each["subject"], each["state"], each["turn"], each["laws"].get("syncs")) for each in item["steps"]]
    (fixed,) = [each for each in item["steps"] if each["subject"] == "fixed"]
    assert [life.commits["broken"]] == fixed["suspects"]
    assert (0, 10) == (ran.code, item["commits"])


def test_the_evidence_in_git_tells_the_same(life: Life) -> None:
    """Each commit that changed the evidence, the newest first, with the verdict that was recorded in it."""
    ran = life.tickets("history", "T-01", "--format", "json")
    assert [
        ("half fixed", "failed"),
        ("brought back", "failed"),
        ("moved", "verified"),
        ("fixed", "verified"),
        ("mis-fixed", "failed"),
        ("filed", "reproduced"),
    ] == [(entry["subject"], entry["verdict"]) for entry in ran.data]
