"""``tickets budget``: measured, kept, written and tightened."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import run_here

from finding_tickets.measure.processes.isolation import Isolation

if TYPE_CHECKING:
    from tests.conftest import Ended

TRAIN = """\
import sys

import torch
from lib import shown


def step(values):
    total = values.sum()
    if total.isnan():
        raise ValueError
    return shown(total)


def main(steps):
    values = torch.ones(256, device="cuda")
    for _ in range(steps):
        step(values)


main(int(sys.argv[1]))
"""
LIB = "def shown(value):\n    return value.item()\n"
INIT = ("budget", "init", "train.py", "--name", "train", "--sweep", "steps=2,3,5,9", "--", "{steps}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A program of two files."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "lib.py").write_text(LIB)
    return tmp_path


def data(ended: Ended) -> Any:
    """The budgets of the JSON output."""
    return json.loads(ended.out)["data"]


def edit(root: Path, name: str, old: str, new: str) -> None:
    """Replace a text in a file that has it."""
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


def test_a_first_budget_allows_what_is_there(root: Path) -> None:
    """Two lines wait in each step; a new one is refused at its line, and its fix accepted."""
    assert 0 == run_here(root, *INIT).code
    (budget,) = tomllib.loads((root / "tickets.toml").read_text())["budget"]
    assert ("train.py {steps}", {"steps": [2, 3, 5, 9]}) == (budget["run"], budget["sweep"])
    # 256 floats of 4 bytes, and a sum and a flag in blocks of their own: requested are 1024 + 4 + 1 bytes.
    # A limit of memory has a twentieth more: 1.05 * 1029 = 1080.45.
    assert {"syncs": "0", "peak_bytes": "1081"}.items() <= budget["limits"].items()
    allowed = [(each["file"], each["function"], each["text"], each["law"]) for each in budget["allow"]]
    assert [
        ("lib.py", "shown", "return value.item()", "steps"),
        ("train.py", "step", "if total.isnan():", "steps"),
    ] == allowed
    assert 0 == run_here(root, "budget").code
    edit(root, "train.py", "    return shown", "    print(float(total))\n    return shown")
    ended = run_here(root, "budget")
    assert 1 == ended.code
    assert "train.py:11: syncs: steps, at most 0 allowed; 2 at steps=2, here steps: print(" in ended.out
    edit(root, "train.py", "    print(float(total))\n", "")
    assert 0 == run_here(root, "budget").code


def test_what_is_known_is_not_measured_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the budget whose file has changed runs again, and comments of others are none of its business."""
    (root / "other.py").write_text("import torch\ntorch.ones(3, device='cuda').sum().item()\n")
    run_here(root, *INIT)
    assert 0 == run_here(root, "budget", "init", "other.py").code
    ran: list[str] = []
    real = Isolation.run

    def noted(self: Isolation, tasks: dict[Any, Any], *more: Any) -> Any:
        ran.extend(dict.fromkeys(name for name, _ in tasks))
        return real(self, tasks, *more)

    monkeypatch.setattr(Isolation, "run", noted)
    assert (0, []) == (run_here(root, "budget").code, ran)
    edit(root, "other.py", "3", "4")
    # A request of 4 floats has 16 bytes instead of 12: it exceeds the memory that was measured.
    assert (1, ["other.py"]) == (run_here(root, "budget").code, ran)
    ran.clear()
    edit(root, "lib.py", "value", "number")
    assert (0, ["train"]) == (run_here(root, "budget", "train").code, ran)


def test_a_budget_is_tightened(root: Path) -> None:
    """Limits and laws go down to what is spent, what is gone goes, what moved is written; comments stay."""
    run_here(root, *INIT)
    edit(root, "tickets.toml", 'syncs = "0"', 'syncs = "steps + 4"')
    edit(root, "tickets.toml", 'law = "steps"', 'law = "2*steps" # twice')
    edit(root, "train.py", "    if total.isnan():\n        raise ValueError\n", "")
    edit(root, "lib.py", "shown", "as_number")
    edit(root, "train.py", "shown", "as_number")
    assert 4 == run_here(root, "budget").code  # an allowance matches nothing
    assert "-limits" in run_here(root, "budget", "tighten", "--dry-run").out
    assert 0 == run_here(root, "budget", "tighten").code
    text = (root / "tickets.toml").read_text()
    (budget,) = tomllib.loads(text)["budget"]
    assert "0" == budget["limits"]["syncs"]
    (allowed,) = budget["allow"]
    assert ("as_number", "steps") == (allowed["function"], allowed["law"])
    assert ["file", "function", "text", "occurrence", "what", "law", "reason"] == [*allowed]
    assert "# twice" in text
    assert 0 == run_here(root, "budget").code
    assert "nothing can be tighter" in run_here(root, "budget", "tighten").err


def test_a_run_that_fails_is_inconclusive(root: Path) -> None:
    """Nothing is written of it, and no budget is kept by it."""
    run_here(root, *INIT)
    edit(root, "train.py", "raise ValueError", "pass\n    raise ValueError('no')")
    ended = run_here(root, "budget")
    assert 3 == ended.code
    assert "ValueError: no" in ended.out
    before = (root / "tickets.toml").read_text()
    assert 3 == run_here(root, "budget", "init", "train.py", "--", "2").code
    assert 3 == run_here(root, "budget", "tighten").code
    assert before == (root / "tickets.toml").read_text()


def test_no_budget_is_wrong_usage(root: Path) -> None:
    """The message says how to write one, and names those that are there."""
    ended = run_here(root, "budget")
    assert (2, True) == (ended.code, "tickets budget init" in ended.err)
    run_here(root, *INIT)
    assert "there are train" in run_here(root, "budget", "trains").err
    assert 2 == run_here(root, *INIT).code


def test_a_wait_in_a_package_is_the_callers(root: Path) -> None:
    """The repository's line that called it spends; nobody can edit the package."""
    package = root / "site-packages" / "logs.py"
    package.parent.mkdir()
    package.write_text("def log(value):\n    print(value.item())\n")
    (root / "main.py").write_text(
        "import sys, torch\nsys.path.insert(0, 'site-packages')\nimport logs\n\n"
        "value = torch.ones(1, device='cuda')\nlogs.log(value)\n"
    )
    assert 0 == run_here(root, "budget", "init", "main.py").code
    (budget,) = tomllib.loads((root / "tickets.toml").read_text())["budget"]
    assert [("main.py", "logs.log(value)")] == [(each["file"], each["text"]) for each in budget["allow"]]


def test_what_other_files_do_is_that_of_the_line_in_the_paths(root: Path) -> None:
    """A helper outside of them waits for whoever calls it."""
    run_here(root, *INIT)
    text = (
        (root / "tickets.toml").read_text().replace("[[budget]]\n", '[[budget]]\npaths = ["train.py"]\n', 1)
    )
    (root / "tickets.toml").write_text(text)
    ended = run_here(root, "budget", "--format", "json")
    # The allowance for lib.py has nothing left to allow; its wait is that of the call in step.
    assert 1 == ended.code
    assert ("train.py", 11) in {(each["file"], each["line"]) for each in data(ended)[0]["counted"]}


@pytest.mark.parametrize("how", [(), ("--static",)])
def test_a_target_that_is_not_there_is_named(root: Path, how: tuple[str, ...]) -> None:
    """Nothing is run, and it is no pass."""
    (root / "tickets.toml").write_text('[[budget]]\nrun = "trian.py"\nlimits = {syncs = "0"}\n')
    ended = run_here(root, "budget", *how)
    assert (3, True) == (ended.code, "there is no file trian.py" in ended.out)


def test_json_has_every_point(root: Path) -> None:
    """What was spent at each point, what is left, and the allowances with their lines."""
    run_here(root, *INIT)
    (found,) = data(run_here(root, "budget", "--format", "json"))
    syncs = next(each for each in found["limits"] if each["metric"] == "syncs")
    assert ([0, 0, 0, 0], "0", "2*steps", True) == tuple(
        syncs[key] for key in ("spent", "left", "allowed", "holds")
    )
    assert [("lib.py", 2, [2, 3, 5, 9]), ("train.py", 9, [2, 3, 5, 9])] == [
        (each["file"], each["line"], each["spent"]["syncs"]) for each in found["allowed"]
    ]


REGION = """\
import simcuda


def shown(value):
    with simcuda.allowed("logged"):
        return value.item()
"""


def test_a_region_counts_to_no_limit(root: Path) -> None:
    """It is shown as allowed, with its reason; no first budget lists it, and tighten passes it over."""
    (root / "lib.py").write_text(REGION)
    assert 0 == run_here(root, *INIT).code
    (budget,) = tomllib.loads((root / "tickets.toml").read_text())["budget"]
    assert ("0", ["train.py"]) == (budget["limits"]["syncs"], [each["file"] for each in budget["allow"]])
    (judged,) = data(run_here(root, "budget", "--format", "json"))
    (row,) = (each for each in judged["limits"] if each["metric"] == "syncs")
    # Two waits in each of 2, 3, 5 and 9 steps, one in a region and one by an allowance.
    assert ([0, 0, 0, 0], "2*steps") == (row["spent"], row["allowed"])
    (region,) = (each for each in judged["allowed"] if each["reason"] == "logged")
    assert ("lib.py", 6, [2, 3, 5, 9]) == (region["file"], region["line"], region["spent"]["syncs"])
    assert ("", "") == (region["owner"], region["until"])
    before = (root / "tickets.toml").read_text()
    assert 0 == run_here(root, "budget", "tighten").code
    assert before == (root / "tickets.toml").read_text()


def test_a_region_hides_nothing_from_a_probe(root: Path) -> None:
    """What a probe counts, and so what a ticket is verified by, is the same with a region and without."""
    counted = []
    for text in (LIB, REGION):
        (root / "lib.py").write_text(text)
        probed = json.loads(run_here(root, "probe", "--format", "json", "train.py", "--", "3").out)["data"][0]
        counted.append(probed["metrics"])
    assert 6 == counted[0]["syncs"]["values"][0]
    assert counted[0] == counted[1]


ALLOWLIST = """\
allow_paths:
- {path: "gone/**", reason: old}
allow_hits:
- {key: "lib.py:shown:item", owner: ada, reason: printed}
- {key: "lib.py:shown:item:1", owner: bob, reason: checked}
- {key: "lib.py:shown:item:2", owner: bob, reason: checked}
- {key: "train.py:step:item", owner: bob, reason: checked}
"""


def test_an_allowlist_becomes_a_budget(root: Path) -> None:
    """What its entries name is allowed, and what they do not find is told with its line."""
    (root / "allow.yaml").write_text(ALLOWLIST)
    (root / "lib.py").write_text(
        "def shown(value):\n    value.item(); value.item()\n    return value.item()\n"
    )
    imported = ("budget", "import", "allow.yaml", "--run", "train.py 3")
    shown = run_here(root, *imported, "--dry-run")
    assert (4, []) == (shown.code, [*root.glob("*.toml")])
    ended = run_here(root, *imported)
    assert (4, shown.out) == (ended.code, ended.out)
    found = [line for line in ended.err.splitlines() if line.startswith("allow.yaml:")]
    assert ["allow.yaml:2: gone/** matches nothing", "allow.yaml:7: train.py:step:item: finds nothing"] == [
        line.partition(";")[0] for line in found[:2]
    ]
    (budget,) = tomllib.loads((root / "tickets.toml").read_text())["budget"]
    assert ("allow", "train.py 3", {"syncs": "0"}) == (budget["name"], budget["run"], budget["limits"])
    # The key without a number is about the third call, which no other names; the others share a line.
    assert [("return value.item()", "ada", "printed"), ("value.item()", "bob", "checked")] == [
        (each["text"], each["owner"], each["reason"]) for each in budget["allow"]
    ]
    again = run_here(root, *imported)
    assert 2 == again.code
    assert "there is a budget allow" in again.err


@pytest.mark.parametrize(
    ("text", "run", "code"),
    [("version: 1\n", "train.py 3", 4), ("- [\n", "train.py 3", 4), (ALLOWLIST, "python train.py", 2)],
)
def test_an_import_that_cannot_be_writes_nothing(root: Path, text: str, run: str, code: int) -> None:
    """A file that is no allowlist, or a command that is none."""
    (root / "allow.yaml").write_text(text)
    assert code == run_here(root, "budget", "import", "allow.yaml", "--run", run).code
    assert not (root / "tickets.toml").exists()
