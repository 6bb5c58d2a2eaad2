"""Budgets of a configuration: their meaning, and what is wrong with one, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.errors import BadDataError
from finding_tickets.register.config import read_config

TEXT = """\
[[budget]]
name = "train"
run = "train.py {n} {m}"
sweep = {n = [1, 2, 3], m = [4, 5]}
max = {syncs = 1, peak_bytes = "6*n"}

[[budget.allow]]
file = "train.py"
code = "loss.item()"
reason = "as found"
owner = "ada"
"""


def test_a_budget_is_read(tmp_path: Path) -> None:
    """Every table knows its line; a budget that says nothing else allows no wait."""
    (tmp_path / "tickets.toml").write_text(TEXT + '[[budget]]\nrun = "a:f"\n')
    first, second = read_config(tmp_path).budgets
    assert {"syncs": 1, "peak_bytes": "6*n"} == first.max
    assert (1, 7) == (first.line, first.allow[0].line)
    assert (12, "a:f", {"syncs": 0}) == (second.line, second.name, second.max)
    # 3 values of n with 2 of m.
    assert [(1, 4), (1, 5), (2, 4), (2, 5), (3, 4), (3, 5)] == [(at["n"], at["m"]) for at in first.points]
    assert [{}] == second.points


def test_a_project_has_budgets(tmp_path: Path) -> None:
    """They are below tool.tickets there."""
    text = TEXT.replace("[[budget", "[[tool.tickets.budget")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n" + text)
    (budget,) = read_config(tmp_path).budgets
    assert (3, [9]) == (budget.line, [each.line for each in budget.allow])


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('run = "train.py {n} {m}"\n', "", 1, "missing required field `run`"),
        ('"6*n"', '"6*"', 1, "6*: "),
        ('"6*n"', '"6*batch"', 1, "unknown variable 'batch'"),
        ('"6*n"', '"6*calls"', 1, "unknown variable 'calls'"),
        ("syncs = 1", "sincs = 1", 1, "there is no metric sincs (did you mean 'syncs'?"),
        ("train.py {n} {m}", "train.py {n}", 1, "nothing uses m of the sweep"),
        ("train.py {n} {m}", "python train.py", 1, "run: 'python' is nothing that Python runs"),
        ("[4, 5]", "[]", 1, "length >= 1"),
        ("sweep =", "sweeps =", 1, "unknown field `sweeps`"),
        ("name =", 'within = "step"\nname =', 1, "$.within"),
        ("syncs = 1", "syncs = -1", 1, ">= 0"),
        # At n = 1 it is -1.
        ("6*n", "n - 2", 1, "n - 2: is below 0"),
        ('owner = "ada"', "", 7, "missing required field `owner`"),
        ('owner = "ada"', 'owner = "x"\nwhy = "y"', 7, "unknown field `why`"),
        ('owner = "ada"', 'owner = "x"\nlaw = "k"', 7, "unknown variable 'k'"),
        ('file = "train.py"', 'file = "../train.py"', 7, "leaves the repository"),
        ("max = {", "limits = {", 1, "the key 'limits' is gone (write max)"),
        ("max =", "paths = []\nmax =", 1, "the key 'paths' is gone (write within, "),
        ("code =", "text =", 7, "the key 'text' is gone (write code)"),
        ("code =", "occurrence = 2\ncode =", 7, "the key 'occurrence' is gone (write one allowance for each"),
        ("code =", "what = ['syncs']\ncode =", 7, "the key 'what' is gone (an allowance is about waits)"),
        ("code =", "until = 2030-01-31\ncode =", 7, "the key 'until' is gone (remove the allowance when"),
    ],
)
def test_a_mistake_is_named_by_its_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    """No command goes on with a budget that nobody can check."""
    file = tmp_path / "tickets.toml"
    assert old in TEXT
    file.write_text(TEXT.replace(old, new))
    with pytest.raises(BadDataError) as raised:
        read_config(tmp_path)
    assert (str(file), line) == (raised.value.file, raised.value.line)
    assert message in str(raised.value)


def test_two_budgets_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    """Each is named on the command line."""
    (tmp_path / "tickets.toml").write_text(TEXT + TEXT)
    with pytest.raises(BadDataError, match=r"tickets\.toml:12: budget 'train' is there twice"):
        read_config(tmp_path)
