"""``tickets budget``: a first budget holds, and fails for one more wait."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Ended, run_here

TRAIN = """\
import sys

import torch


def shown(value):
    return value.item()


def step(values):
    total = values.sum()
    if total.isnan():
        raise ValueError
    return shown(total)


def main(steps):
    values = torch.ones(256, device="cuda")
    print(values.max().item())
    for number in range(steps):
        step(values)


main(int(sys.argv[1]))
"""
INIT = ("budget", "init", "train.py", "--name", "train", "--", "3")

# It logs in every tenth step.
LOGGING = """\
import torch


def load():
    stream = torch.cuda.Stream()
    stream.synchronize()
    while True:
        yield torch.ones(4, device="cuda")


def step(loader, number):
    loss = next(loader).sum()
    if number % 10 == 0:
        print(loss.item())


loader = load()
for number in range(31):
    step(loader, number)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A program that waits once to set itself up, and twice in each step."""
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def data(ended: Ended) -> Any:
    """Return the budgets of the JSON output."""
    return json.loads(ended.out)["data"]


def edit(root: Path, name: str, old: str, new: str) -> None:
    """Replace a text in a file that has it."""
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


@pytest.mark.slow
def test_a_first_budget_allows_the_waits_in_loops(root: Path) -> None:
    """It says nothing about set-up; a new wait fails at its line, and a fixed one never does."""
    assert 0 == run_here(root, *INIT).code
    (budget,) = tomllib.loads((root / "tickets.toml").read_text())["budget"]
    assert {"name", "run", "only", "max", "allow"} == set(budget)
    assert {"syncs": 0} == budget["max"]
    places = [(each["function"], each["code"]) for each in budget["allow"]]
    assert [("shown", "return value.item()"), ("step", "if total.isnan():")] == places
    assert (0, "") == (run_here(root, "budget").code, run_here(root, "budget", "--format", "github").out)
    # A second wait of the set-up is nothing that the budget limits; one in the loop waits 3 times.
    edit(root, "train.py", "    print(", "    print(values.min().item())\n    print(")
    edit(root, "train.py", "        step(", "        print(values.max().item())\n        step(")
    ended = run_here(root, "budget", "--format", "github")
    assert 1 == ended.code
    (message,) = ended.out.splitlines()
    assert message.startswith("::error file=train.py,line=22,")
    assert "budget train: syncs: 3, at most 0 allowed: print(values.max().item())" in message
    # Without its waits a statement needs no allowance.
    edit(root, "train.py", "        print(values.max().item())\n", "")
    edit(root, "train.py", "    if total.isnan():\n        raise ValueError\n", "")
    ended = run_here(root, "budget", "--format", "github")
    assert 0 == ended.code
    (warning,) = ended.out.splitlines()
    assert warning.startswith("::warning file=tickets.toml,line=14,")
    assert "nothing waits at train.py step `if total.isnan():`" in warning


def test_names_and_lines_may_change(root: Path) -> None:
    """An allowance is about a statement, whatever the names in it, or about the one in its place."""
    run_here(root, *INIT)
    text = (root / "train.py").read_text().replace("total", "loss").replace("shown", "read_value")
    (root / "train.py").write_text(f"# A comment\n{text}")
    assert 0 == run_here(root, "budget").code
    # The same read, written in another way, in another statement of the function.
    again = "    other = float(value)\n    return other"
    (root / "train.py").write_text(TRAIN.replace("    return value.item()", again))
    assert (0, "") == (run_here(root, "budget").code, run_here(root, "budget", "--format", "github").out)
    # Beside it, another read is one more; and what is still there, without a wait, has no other in its place.
    for more, line in (("print(value.max().item())", 8), ("if other < 0:\n        return value.item()", 7)):
        text = again.replace("    return", f"    {more}\n    return")
        (root / "train.py").write_text(TRAIN.replace("    return value.item()", text))
        ended = run_here(root, "budget", "--format", "github")
        assert (1, True) == (ended.code, f"line={line},col=1,title=budget-exceeded" in ended.out), ended.out


def test_an_allowance_is_for_one_statement(root: Path) -> None:
    """Of two equal statements the second one counts."""
    run_here(root, *INIT)
    edit(root, "train.py", "    return value.item()", "    value.item()\n    value.item()\n    return 0")
    edit(root, "tickets.toml", "return value.item()", "value.item()")
    ended = run_here(root, "budget", "--format", "github")
    assert 1 == ended.code
    (message,) = ended.out.splitlines()
    assert message.startswith("::error file=train.py,line=8,")
    text = (root / "tickets.toml").read_text()
    (first, _) = text.split("\n\n[[budget.allow]]")[1:]
    (root / "tickets.toml").write_text(f"{text}\n[[budget.allow]]{first}")
    assert 0 == run_here(root, "budget").code


@pytest.mark.slow
def test_a_bound_by_call(tmp_path: Path) -> None:
    """A step that may log every tenth time has a law in the number of calls; the first call is set apart."""
    (tmp_path / "log.py").write_text(LOGGING)
    ended = run_here(tmp_path, "budget", "init", "log.py", "--within", "log.py:step", "--name", "log")
    assert 0 == ended.code
    (budget,) = tomllib.loads((tmp_path / "tickets.toml").read_text())["budget"]
    (allowance,) = budget["allow"]
    assert ("print(loss.item())", None) == (allowance["code"], allowance.get("law"))
    edit(tmp_path, "tickets.toml", 'reason = "as found"', 'law = "ceil(calls/10)"\nreason = "as found"')
    # Of the 30 calls behind the first one three log: number 10, 20 and 30.
    (item,) = data(run_here(tmp_path, "budget", "--format", "json"))
    assert [[3]] == [line["syncs"] for line in item["lines"] if line["allowed"]]
    edit(tmp_path, "log.py", "    if number % 10 == 0:", "    if number % 5 == 0:")
    ended = run_here(tmp_path, "budget")
    assert 1 == ended.code
    # 6 of 30 calls log, and 30/10 may.
    assert "log.py:14: waits 6 times, " in ended.out
    edit(tmp_path, "log.py", "    if number % 5 == 0:", "    if number % 10 == 0:\n        loss.item()")
    ended = run_here(tmp_path, "budget")
    assert 1 == ended.code
    assert "log.py:14: syncs: 1, at most 0 allowed: loss.item()" in ended.out


LOADING = """\
import torch
from torch.utils.data import DataLoader


class Normalize:
    def __init__(self):
        self.mean = None

    def __call__(self, rows):
        batch = torch.stack(rows)
        if self.mean is None:
            self.mean = batch.to("cuda").mean().item()
        return batch - self.mean


def step(batch):
    return batch.to("cuda", non_blocking=True).square().mean()


loader = DataLoader(list(torch.rand(12, 3)), 2, collate_fn=Normalize(), pin_memory=True)
for batch in loader:
    loss = step(batch)
"""


@pytest.mark.slow
def test_a_data_loader_that_waits_at_its_first_batch(tmp_path: Path) -> None:
    """It may, as often as its law says; one more wait is refused at its line, as is one at each batch."""
    (tmp_path / "load.py").write_text(LOADING)
    assert 0 == run_here(tmp_path, "budget", "init", "load.py").code
    # It copies from memory that is not pinned, and reads the mean.
    edit(tmp_path, "tickets.toml", 'reason = "as found"', 'law = "2"\nreason = "as found"')
    assert 0 == run_here(tmp_path, "budget").code
    edit(tmp_path, "load.py", "square().mean()", "square().mean().item()")
    ended = run_here(tmp_path, "budget", "--format", "github")
    (message,) = ended.out.splitlines()
    assert (1, True) == (ended.code, message.startswith("::error file=load.py,line=17,"))
    # 12 rows make 6 batches.
    assert "budget load.py: syncs: 6, at most 0 allowed: return batch.to(" in message
    (tmp_path / "load.py").write_text(LOADING.replace("        if self.mean is None:\n    ", ""))
    ended = run_here(tmp_path, "budget", "--format", "github")
    (message,) = ended.out.splitlines()
    assert (1, True) == (ended.code, message.startswith("::error file=load.py,line=11,"))
    assert "waits 12 times, nobody yet allowed 2: self.mean = batch.to('cuda')" in message


RACE = """\
import torch

values = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    more = values + 1
torch.cuda.current_stream().wait_stream(side)
print((more + 1).sum().item())
"""


def test_hazards_always_fail(tmp_path: Path) -> None:
    """They need no limit; a budget that was written where one was there already allows as many."""
    (tmp_path / "race.py").write_text(RACE)
    run_here(tmp_path, "budget", "init", "race.py")
    edit(tmp_path, "race.py", "torch.cuda.current_stream().wait_stream(side)\n", "")
    ended = run_here(tmp_path, "budget")
    assert 1 == ended.code
    said = " ".join(ended.out.split())
    assert "race.py:8: hazards: 1, at most 0 allowed, not ordered after race.py:7: more = values + 1" in said
    # Of two races each has its own line, and what came before is one of two.
    with (tmp_path / "race.py").open("a") as file:
        file.write("with torch.cuda.stream(side):\n    less = values - 1\nprint((less + 1).sum().item())\n")
    said = " ".join(run_here(tmp_path, "budget").out.split())
    before = "not ordered after one of race.py:7: more = values + 1; race.py:10: less = values - 1: "
    for line in (8, 11):
        assert f"race.py:{line}: hazards: 2, at most 0 allowed, here 1, {before}" in said
    (tmp_path / "tickets.toml").unlink()
    run_here(tmp_path, "budget", "init", "race.py")
    assert 0 == run_here(tmp_path, "budget").code


@pytest.mark.slow
def test_more_than_waits_may_be_limited(tmp_path: Path) -> None:
    """Memory has a twentieth of room, and is told by the lines with large requests; laws are of the sweep."""
    (tmp_path / "ops.py").write_text(
        "import torch\n\ndef f(n):\n    a = torch.ones(256 * n, device='cuda')\n    return a.sum()\n"
    )
    words = ("ops.py:f", "--sweep", "n=1,2,3,5", "--max", "peak_bytes", "--max", "launches")
    assert 0 == run_here(tmp_path, "budget", "init", *words).code
    (budget,) = tomllib.loads((tmp_path / "tickets.toml").read_text())["budget"]
    # 256*n floats of 4 bytes, and the sum; a kernel each fills and adds them up.
    assert {"syncs": 0, "peak_bytes": "1.05*(1024*n + 4)", "launches": 2} == budget["max"]
    edit(tmp_path, "ops.py", "256", "300")
    ended = run_here(tmp_path, "budget")
    assert 1 == ended.code
    # 1200 + 4 bytes at n=1, where 1.05*1028 = 1079.4 are allowed.
    assert "ops.py:4: peak_bytes: 1204 at n=1, at most 1.05*(1024*n + 4) allowed" in ended.out


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no data')", "ValueError: no data"),
        (
            "import os, torch\nx = torch.ones(1, device='cuda')\nfor _ in range(os.getpid() % 99): x.item()",
            "differ",
        ),
    ],
)
def test_what_cannot_be_measured_is_inconclusive(tmp_path: Path, code: str, said: str) -> None:
    """The reason is printed; no budget is written for it."""
    (tmp_path / "x.py").write_text(f"{code}\n")
    (tmp_path / "tickets.toml").write_text('[[budget]]\nrun = "x.py"\n')
    ended = run_here(tmp_path, "budget")
    assert 3 == ended.code
    assert said in ended.out
    assert 3 == run_here(tmp_path, "budget", "init", "x.py", "--name", "other").code
    assert "other" not in (tmp_path / "tickets.toml").read_text()


def test_wrong_usage(tmp_path: Path) -> None:
    """Nothing to measure, an unknown budget and a second one of a name are told before anything runs."""
    assert 2 == run_here(tmp_path, "budget").code
    (tmp_path / "tickets.toml").write_text('[[budget]]\nrun = "x.py"\n')
    ended = run_here(tmp_path, "budget", "y")
    assert (2, "error: y: no such budget (there are x.py)\n") == (ended.code, ended.err)
    assert 2 == run_here(tmp_path, "budget", "init", "x.py").code
    assert 2 == run_here(tmp_path, "budget", "import", "x.yaml").code


def test_two_runs_in_the_work_tree_do_not_mix_their_files(root: Path) -> None:
    """Each reads what it has written itself, although a budget runs a program twice."""
    code = (
        "import os, time, torch\n"
        "from pathlib import Path\n"
        "own, file = str(os.getpid()), Path('scratch.txt')\n"
        "file.write_text(own)\n"
        "time.sleep(0.5)\n"
        "x = torch.ones(2, device='cuda')\n"
        "for _ in range(2 if file.read_text() == own else 1):\n"
        "    x.sum().item()\n"
    )
    (root / "train.py").write_text(code)
    ended = run_here(root, "budget", "init", "train.py")
    assert (0, True) == (ended.code, 'code = "x.sum().item()"' in ended.out), ended.err
