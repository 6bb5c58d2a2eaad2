"""The programs, the page that they made, and the workflow that runs them every week belong together."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Any

import pytest
import yaml
from tests.compatibility import __main__ as command
from tests.compatibility.__main__ import ARCHITECTURES, PROGRAMS, ROOT, architectures, programs

PAGE = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
FOLDER = PROGRAMS.parent


@pytest.mark.parametrize("file", sorted(PROGRAMS.glob("*.py")), ids=lambda file: file.stem)
def test_a_file_of_programs_has_some_and_each_says_what_it_uses(file: Any) -> None:
    """It parses, and what is no program has a name of its own, with an underscore."""
    public = [
        node
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    assert public
    assert all(ast.get_docstring(node) for node in public)
    # What a program is given by ``tickets probe`` is nothing, but for the place of an architecture.
    assert all(not node.args.args for node in public) or file == ARCHITECTURES


def test_the_page_has_every_program_under_its_library() -> None:
    """In the order of the command; those that are refused have a row with the reason too."""
    listed = []
    for library, cells in re.findall(r"^\| (\w+) \d\S* \| (.*) \|$", PAGE, re.MULTILINE):
        listed += [f"{library}:{cell.split('`')[1]}" for cell in cells.split(", ")]
    assert [each.name for each in programs()] == listed
    refused = re.findall(r"^\| `(\S+)` \| (.*) \|$", PAGE.split("\n## Refused\n")[1], re.MULTILINE)
    wanted = [(each.name, f"{each.feature}: {each.refused}") for each in programs() if each.refused]
    assert wanted == refused


def test_the_page_has_every_architecture() -> None:
    """Each once, in the order of their file."""
    rows = PAGE.split("## Architectures")[1]
    assert architectures() == re.findall(r"^`(\w+)` \d+[,.]$", rows, re.MULTILINE)


@pytest.mark.parametrize(
    ("torch", "unknown", "code"),
    [
        # It is marked on the page by this name alone.
        ("2.13.0", ["c10d.allreduce_.default"], 0),
        ("2.13.0", ["c10d.allreduce_.default", "aten.mine.default"], 1),
        # The page says nothing about another release.
        ("2.12.0", ["aten.mine.default"], 0),
    ],
)
def test_a_row_that_is_worse_than_on_the_page_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], torch: str, unknown: Any, code: int
) -> None:
    """The command names it."""
    none = {"values": [0]}
    data = {"errors": [], "metrics": {"syncs": none, "drains": none}, "unknown": unknown, "approximate": []}
    monkeypatch.setattr(command, "probe", lambda *_: data)
    monkeypatch.setattr(command, "release", lambda _: torch)
    assert code == command.main(["torch:collectives_gloo"])
    assert ("torch:collectives_gloo" in capsys.readouterr().err) == bool(code)


def test_a_row_without_marks_that_gets_some_is_worse() -> None:
    """A new row is not, and neither is one with fewer."""
    then = command.marks(PAGE)
    assert {each.name for each in programs()} == then.keys()
    assert command.is_worse("~", then["torch:streams"])
    assert not command.is_worse("", then["torch:sparse_rows"])
    assert not command.is_worse("unknown: `aten.mine.default`", then.get("torch:new"))


def test_there_are_as_many_as_promised() -> None:
    """40 programs on 12 libraries, of which 36 run; 40 architectures."""
    counts = Counter(each.library for each in programs())
    assert counts.total() >= 40
    assert len(counts) >= 12
    assert sum(not each.refused for each in programs()) >= 36
    assert len(architectures()) >= 40


def test_each_library_is_pinned() -> None:
    """The workflow installs what the page is about."""
    pins = (FOLDER / "requirements.txt").read_text(encoding="utf-8")
    pinned = {name.replace("-", "_") for name in re.findall(r"^([a-z0-9-]+)==\d", pins, re.MULTILINE)}
    assert {each.library for each in programs()} - {"torch"} <= pinned


def test_the_workflow_runs_the_command_with_no_right_but_to_read() -> None:
    """Libraries and operators with one torch, features of torch with each; on demand and every week."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/compatibility.yml").read_text(encoding="utf-8"))
    # YAML reads the key ``on`` as a truth.
    assert {"schedule", "workflow_dispatch"} == workflow[True].keys()
    assert {"contents": "read"} == workflow["permissions"]
    runs = {name: job["steps"][-1]["run"].split(" >>")[0] for name, job in workflow["jobs"].items()}
    command = "python -m tests.compatibility"
    real = "python -m pytest tests/simcuda/real"
    files = ("tests/simcuda/test_op_db.py", "tests/simcuda/test_truth.py", "tests/gpu/test_op_db.py")
    operators = f"python -m pytest -m slow {' '.join(files)}"
    expected = {"libraries": command, "torch": f"{command} torch", "operators": operators, "real": real}
    assert expected == runs
    assert {"EVERY_OPERATOR": "1"} == workflow["jobs"]["operators"]["steps"][-1]["env"]
    versions = workflow["jobs"]["torch"]["strategy"]["matrix"]["torch"]
    tried = [f"2.{minor}" for minor in range(13, 15)]
    assert tried == [each.rpartition(".")[0] for each in versions]
