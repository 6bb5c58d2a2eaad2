"""Budgets of a configuration: what they mean, and what is wrong with one, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.errors import BadDataError
from finding_tickets.register.config import read_config

TEXT = """\
[[budget]]
name = "train"
run = "train.py {n}"
sweep = {n = [1, 2, 3], m = [4, 5]}
limits = {syncs = 1, peak_bytes = "6*n"}
"""
ALLOW = """
[[budget.allow]]
file = "train.py"
reason = "as found"
until = 2030-01-31
"""
SOUND = TEXT.replace("{n}", "{n} {m}") + ALLOW


def test_a_budget_is_read(tmp_path: Path) -> None:
    """Numbers are laws, dates are texts, and every table knows its line."""
    (tmp_path / "tickets.toml").write_text(SOUND + '[[budget]]\nrun = "a:f"\nlimits = {syncs = "0"}\n')
    first, second = read_config(tmp_path).budgets
    assert {"syncs": "1", "peak_bytes": "6*n"} == first.limits
    assert ("2030-01-31", 7) == (first.allow[0].until, first.allow[0].line)
    assert (1, 11, "a:f") == (first.line, second.line, second.name)
    # 3 values of n with 2 of m.
    assert [(1, 4), (1, 5), (2, 4), (2, 5), (3, 4), (3, 5)] == [(at["n"], at["m"]) for at in first.points]
    assert () == second.points


def test_a_project_has_budgets(tmp_path: Path) -> None:
    """They are below tool.tickets there."""
    text = SOUND.replace("[[budget", "[[tool.tickets.budget")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n" + text)
    (budget,) = read_config(tmp_path).budgets
    assert (3, [9]) == (budget.line, [each.line for each in budget.allow])


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('run = "train.py {n} {m}"\n', "", 1, "a budget has no target"),
        ('limits = {syncs = 1, peak_bytes = "6*n"}\n', "", 1, "limits: none is stated"),
        ('"6*n"', '"6*"', 5, "peak_bytes: "),
        ('"6*n"', '"6*batch"', 5, "unknown variable 'batch'"),
        ("syncs = 1", "sincs = 1", 5, "sincs: no metric"),
        ("train.py {n} {m}", "train.py {n}", 3, "nothing uses m of the sweep"),
        ("train.py {n} {m}", "python train.py", 3, "run: 'python' is nothing that Python runs"),
        ("[4, 5]", "[]", 4, "sweep: m needs"),
        ("sweep =", "sweeps =", 1, "unknown key 'sweeps'"),
        ('reason = "as found"', "", 7, "an allowance has no reason"),
        ('reason = "as found"', 'reason = "x"\nwhy = "y"', 7, "unknown key 'why'"),
        ('reason = "as found"', 'reason = "x"\nlaw = "n"', 7, "law: needs the metrics"),
        ('reason = "as found"', 'reason = "x"\nwhat = "syncs"\nlaw = "k"', 7, "unknown variable 'k'"),
        ("syncs = 1", "syncs = -1", 5, "syncs: -1 is below 0"),
        # At n = 1 it is -1.
        ("6*n", "n - 2", 5, "peak_bytes: n - 2 is below 0"),
        ('reason = "as found"', 'reason = "x"\nwhat = "syncs"\nlaw = "-3"', 7, "law: -3 is below 0"),
        ('reason = "as found"', 'reason = "x"\nwhat = "peak_bytes"', 7, "peak_bytes: no metric"),
        ('reason = "as found"', 'reason = "x"\noccurrence = 1', 7, "occurrence: needs a text"),
        ("2030-01-31", '"2030-02-31"', 7, "neither a date nor a ticket"),
        ('file = "train.py"', 'file = "../train.py"', 7, "leaves the repository"),
        ("name =", 'within = "step"\nname =', 2, "within: 'step' is no function"),
    ],
)
def test_a_mistake_is_named_by_its_line(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    """No command goes on with a budget that nobody can check."""
    file = tmp_path / "tickets.toml"
    assert old in SOUND
    file.write_text(SOUND.replace(old, new))
    with pytest.raises(BadDataError) as raised:
        read_config(tmp_path)
    assert (str(file), line) == (raised.value.file, raised.value.line)
    assert message in str(raised.value)


def test_two_budgets_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    """Each is named on the command line."""
    (tmp_path / "tickets.toml").write_text(SOUND + SOUND)
    with pytest.raises(BadDataError, match=r"tickets\.toml:11: budget 'train' is there twice"):
        read_config(tmp_path)
