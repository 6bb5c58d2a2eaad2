"""What docs/ci.md, the workflow and the hooks say is what the tool does."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from finding_tickets.cli.main import run
from finding_tickets.errors import ExitCode
from finding_tickets.gate import check
from finding_tickets.model.ticket import Problem
from finding_tickets.model.vocabulary import Level

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")


def read(path: str) -> Any:
    """A YAML file of the repository."""
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def commands() -> list[str]:
    """Every command line of ``tickets`` in the page, the workflow and the hooks."""
    workflow, action = read("templates/tickets.yml")["jobs"]["check"], read("action.yml")["runs"]
    steps = [step.get("run", "") for step in (*workflow["steps"], *action["steps"])]
    hooks = [hook["entry"] for hook in read(".pre-commit-hooks.yaml")]
    blocks = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for text in (*steps, *hooks, *blocks) for line in text.split("\n")]
    return [line.replace('"${options[@]}"', "--accept ID") for line in lines if line.startswith("tickets ")]


def test_the_page_has_every_rule_with_its_exit_code() -> None:
    """The table names each rule of the gate, and what it ends in."""
    rows = re.findall(r"^\| `(gate-[a-z-]+)` \|.*\| (\d) \|$", PAGE, re.MULTILINE)
    rules = {value for value in vars(check).values() if str(value).startswith("gate-")}
    assert rules == {name for name, _ in rows}
    for name, code in rows:
        level = Level.NOTE if name == check.STALE else Level.ERROR
        problem = Problem(level=level, rule=name, file="x", line=1, message="x")
        assert int(code) == check.exit_code([problem])


@pytest.mark.parametrize("line", commands())
def test_a_command_that_is_shown_exists(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its command and its options are those of the tool."""
    name, *words = shlex.split(line)[1:]
    assert ExitCode.OK == run([name, "--help"])
    shown = capsys.readouterr().out
    assert [] == [word for word in words if word.startswith("--") and word not in shown]


def test_the_workflow_needs_the_history_and_no_more_than_to_read() -> None:
    """A pull request runs code of anybody's: no secrets, a token that reads, and the whole history."""
    workflow = read("templates/tickets.yml")
    # YAML reads the key ``on`` as a truth.
    assert ["pull_request"] == list(workflow[True])
    assert {"contents": "read"} == workflow["permissions"]
    (checkout,) = [
        step["with"] for step in workflow["jobs"]["check"]["steps"] if "checkout" in step.get("uses", "")
    ]
    assert {"fetch-depth": 0, "persist-credentials": False} == checkout
    text = (ROOT / "templates/tickets.yml").read_text(encoding="utf-8")
    assert "secrets" not in text
    # The name is nobody's on PyPI: who registers it runs code wherever it is installed from there.
    assert ["@ git+https://github.com/OWNER/finding-tickets@COMMIT"] == re.findall(
        r"install .*finding-tickets (\S+ \S+?)\"", text
    )


def test_the_hooks_are_those_of_the_page() -> None:
    """What is documented can be asked for by its ID."""
    assert [hook["id"] for hook in read(".pre-commit-hooks.yaml")] == re.findall(r"- id: (\S+)", PAGE)


def test_the_plugin_has_a_skill_of_its_folders_name() -> None:
    """Clients find skills by the names of their folders, and show the description when they choose one."""
    manifest = json.loads((ROOT / "plugin.json").read_text(encoding="utf-8"))
    assert re.fullmatch(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", manifest["name"])
    (skill,) = ROOT.glob("skills/*/SKILL.md")
    _, head, _ = skill.read_text(encoding="utf-8").split("---\n", 2)
    stated = yaml.safe_load(head)
    assert skill.parent.name == stated["name"]
    # The most that the format allows.
    assert len(stated["description"]) <= 1024
