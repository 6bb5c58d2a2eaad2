"""A defect from its first commit to its return, and what each command that measures says of it, in JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.conftest import measured, wordless

if TYPE_CHECKING:
    from tests.contract.conftest import Answer, Frozen, Tool

STEP = '''\
"""A step of a model whose layers each have a weight and a bias."""

import torch

from pkg.norms import norm


def step(layers):
    gradients = [torch.rand(size, device="cuda") for _ in range(layers) for size in (64, 8)]
    return norm(gradients)


def broken(layers):
    step(layers)
    raise ValueError("no")
'''
# One wait for all.
ONCE = """\
import torch


def norm(tensors):
    return torch.stack([tensor.norm() for tensor in tensors]).norm().item()
"""
# One wait for each tensor, of which a layer has two.
EACH = """\
def norm(tensors):
    return sum(tensor.norm().item() ** 2 for tensor in tensors) ** 0.5
"""
VERIFIER = """\
from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    return (point.layers,)


workload = Workload(ticket="T-01", build=build, sweep=[Point(layers=n) for n in (1, 2, 3, 5, 8)])
"""
FOUND = """\
verifier: verifiers/t_01.py
variants:
  found: src/pkg/step.py:step@{commit}
claims:
  found:
    syncs: 2*layers
checklist:
"""
FIX = """\
  fix: src/pkg/step.py:step
claims:
  found:
    syncs: 2*layers
  fix:
    syncs: 1
    same_result_as: {is: found, tolerance: 0.00001}
```
"""
SWEEP = ("--sweep", "layers=1,2,3,5,8")
JSON = ("--format", "json")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("torch_of_the_data")]


@dataclass(frozen=True)
class Life:
    """The repository, the names of its commits by their hashes, and what was said on the way."""

    root: Path
    tool: Tool
    commits: dict[str, str] = field(default_factory=dict)
    said: dict[str, Answer] = field(default_factory=dict)

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def commit(self, name: str) -> None:
        """Commit all that there is, each commit a day after the one before."""
        self.commits[self.tool.commit(self.root, name, f"2026-01-{len(self.commits) + 1:02}")] = name

    def say(self, occasion: str, *words: str) -> None:
        """Run a command line with JSON as its format, and keep what it said."""
        self.said[occasion] = self.tool(self.root, *words, *JSON)

    def shown(self, occasion: str) -> dict[str, Any]:
        """The exit code and the JSON of an occasion, with commits by their names."""
        answer = self.said[occasion]
        text = answer.out.replace(str(self.root), "ROOT")
        for commit, name in self.commits.items():
            text = re.sub(commit[:10] + "[0-9a-f]*", f"<{name}>", text)
        assert text.startswith("{"), f"{occasion}: exit code {answer.code}: {answer.err}"
        return {"code": answer.code, **json.loads(text)}


@pytest.fixture(scope="module")
def life(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Five commits: the code, its defect, a ticket, a fix on a branch, and the defect again."""
    life = Life(tmp_path_factory.mktemp("life") / "repository", tool)
    life.write("src/pkg/__init__.py", "")
    life.write("src/pkg/step.py", STEP)
    life.write("src/pkg/norms.py", ONCE)
    life.write("train.py", "from pkg.step import step\n\nstep(3)\n")
    life.write(".gitignore", "__pycache__/\n")
    life.commit("begun")
    life.write("src/pkg/norms.py", EACH)
    life.commit("introduced")
    life.say("init", "init", "--yes")
    life.say("probe with a draft", "probe", "pkg.step:step", *SWEEP, "--draft", "1")
    # What is run returns no results to compare: a verifier takes its place.
    ticket = life.root / "tickets/T-01.md"
    before, _, run = ticket.read_text(encoding="utf-8").partition("run: ")
    life.write("verifiers/t_01.py", VERIFIER)
    found = FOUND.format(commit=tool.git(life.root, "rev-parse", "--short=12", "HEAD").strip())
    life.write("tickets/T-01.md", before + found + run.partition("checklist:\n")[2])
    life.say("reproduced", "verify", "T-01")
    life.commit("filed")

    tool.git(life.root, "switch", "--quiet", "--create", "fix")
    life.write("tickets/T-01.md", ticket.read_text(encoding="utf-8").partition("claims:\n")[0] + FIX)
    life.say("a claim that is false", "verify", "T-01")
    life.say("a branch without a fix", "check", "--seed", "7", "--base", "main")
    life.write("src/pkg/norms.py", ONCE)
    life.say("a fix that was not measured", "list")
    life.say("fixed", "verify", "--stale")
    life.say("closed", "close", "T-01", "--as", "fixed")
    life.commit("fixed")
    life.say("a branch with a fix", "check", "--seed", "7", "--base", "main")
    life.say("a named change", "check", "--seed", "7", "--base", "main", "--accept", "T-01")

    tool.git(life.root, "switch", "--quiet", "main")
    tool.git(life.root, "merge", "--quiet", "--ff-only", "fix")
    life.write("src/pkg/norms.py", EACH)
    life.say("a branch that undoes the fix", "check", "--seed", "7", "--base", "HEAD")
    life.say("back", "verify", "T-01")
    life.say("lint of what is back", "lint")
    life.say("opened again", "set", "T-01", "status=open")
    life.commit("brought back")
    return life


@pytest.mark.parametrize("occasion", ["reproduced", "a claim that is false", "fixed", "back"])
def test_verify(life: Life, frozen: Frozen, occasion: str) -> None:
    """Verdict, claims, laws and sites, before the fix and after it."""
    shown = life.shown(occasion)
    frozen("life", f"verify: {occasion}", {**shown, "data": [measured(item) for item in shown["data"]]})


@pytest.mark.parametrize(
    "occasion",
    [
        "a branch without a fix",
        "a branch with a fix",
        "a named change",
        "a branch that undoes the fix",
    ],
)
def test_check(life: Life, frozen: Frozen, occasion: str) -> None:
    """What the gate has against a branch: rules, changes and verdicts."""
    frozen("life", f"check: {occasion}", wordless(life.shown(occasion)))


@pytest.mark.parametrize(
    "occasion", ["init", "a fix that was not measured", "closed", "lint of what is back", "opened again"]
)
def test_the_register(life: Life, frozen: Frozen, occasion: str) -> None:
    """What is said of the ticket on the way; the text of the draft is the tool's own."""
    worded = ("diff", "remediation", "title", "text", "line", "column")
    frozen("life", occasion, wordless(life.shown(occasion), *worded))


def test_history_of_a_document(life: Life, frozen: Frozen) -> None:
    """Who wrote it when, and the commits that name it."""
    life.say("show", "show", "T-01", "--history")
    frozen("life", "show --history", wordless(life.shown("show")["data"][0]["history"]))


def test_audit(life: Life, frozen: Frozen) -> None:
    """Cheats in the place of a fix are caught, by the same claims."""
    life.tool.git(life.root, "switch", "--quiet", "--detach", "HEAD~1")
    life.say("audit", "audit", "T-01", "--seed", "7")
    life.tool.git(life.root, "switch", "--quiet", "main")
    frozen("life", "audit", wordless(life.shown("audit"), "does", "why"))


@pytest.mark.parametrize(
    ("occasion", "words"),
    [
        ("probe a function", ("pkg.step:step", *SWEEP)),
        ("probe a function that raises", ("src/pkg/step.py:broken", "--sweep", "layers=1,2")),
        ("probe a script", ("train.py",)),
    ],
)
def test_probe(life: Life, frozen: Frozen, occasion: str, words: tuple[str, ...]) -> None:
    """The costs of a target and the lines that cause them."""
    life.say(occasion, "probe", *words)
    frozen("life", occasion, wordless(life.shown(occasion), "errors"))


def test_a_draft(life: Life, frozen: Frozen) -> None:
    """A ticket about the heaviest line, with claims that hold."""
    frozen("life", "probe with a draft", wordless(life.shown("probe with a draft"), "errors"))
