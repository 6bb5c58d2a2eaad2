"""What ``tickets budget`` refuses, prints and loads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Ended, run_here

from finding_tickets.errors import ExitCode

CODE = """\
import sys

import torch


def step(values):
    print(values.sum().item())
    print(values.sum().item())


for _ in range(int(sys.argv[1])):
    step(torch.ones(2, device="cuda"))
"""
BUDGET = """\
meter = "simulated"

[[budget]]
run = "train.py {n}"
sweep = {n = [2, 3, 5]}
limits = {syncs = "0"}
"""
ALLOW = """
[[budget.allow]]
file = "train.py"
function = "step"
text = "print(values.sum().item())"
occurrence = 1
what = ["syncs"]
law = "n"
reason = "shown"
"""
TWICE = ALLOW + ALLOW.replace("occurrence = 1", "occurrence = 2")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A program whose two waits are allowed."""
    (tmp_path / "train.py").write_text(CODE)
    (tmp_path / "tickets.toml").write_text(BUDGET + TWICE)
    return tmp_path


def said(done: Ended) -> list[tuple[str, str, int]]:
    """The rule and place of each error."""
    problems = [each for item in json.loads(done.out)["data"] for each in item["problems"]]
    return [(each["rule"], each["file"], each["line"]) for each in problems if each["level"] == "error"]


# Each on its line of the configuration: what is wrong in a budget on its own line, which is 3 to 6, what is
# wrong in the first allowance on 8 or below, as pydantic tells no more of it.
@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ('run = "train.py {n}"\n', "", 3, "has no target"),
        ('"0"', '"2*"', 6, "syncs: "),
        ('"0"', '"m"', 6, "unknown variable 'm'"),
        ('"0"', '"10/(n - 2)"', 6, "division by zero"),
        ('law = "n"', 'law = "n +"', 8, "law: "),
        ('law = "n"', 'law = "1/(n - 3)"', 8, "division by zero"),
        ("syncs =", "sincs =", 6, "sincs: no metric"),
        ('reason = "shown"', 'until = "2030-02-31"\nreason = "shown"', 8, "neither a date nor a ticket"),
        ('reason = "shown"', "", 8, "an allowance has no reason"),
        ('file = "train.py"', 'file = "../train.py"', 8, "leaves the repository"),
    ],
)
def test_what_cannot_be_read_is_bad_data(root: Path, old: str, new: str, line: int, text: str) -> None:
    """Before anything runs, with file and line, by every command."""
    (root / "tickets.toml").write_text((BUDGET + TWICE).replace(old, new, 1))
    for words in (("budget",), ("budget", "--static"), ("budget", "tighten")):
        done = run_here(root, *words)
        assert ExitCode.BAD_DATA == done.code
        assert f"tickets.toml:{line}: " in done.err
        assert text in done.err


@pytest.mark.parametrize(
    ("old", "new", "rule", "code"),
    [
        ("occurrence = 1\n", "", "budget-allowance", ExitCode.BAD_DATA),
        ("values.sum().item()", "values.mean().tolist()", "budget-gone", ExitCode.BAD_DATA),
        ('reason = "shown"', 'reason = "shown"\nuntil = 2020-01-01', "budget-expired", ExitCode.GATE_FAILED),
        ('reason = "shown"', 'reason = "shown"\nuntil = "B1-PT-01"', "budget-allowance", ExitCode.BAD_DATA),
    ],
)
def test_an_allowance_that_does_not_count_is_never_a_pass(
    root: Path, old: str, new: str, rule: str, code: ExitCode
) -> None:
    """It is named at its line, also where nothing is run."""
    (root / "tickets.toml").write_text((BUDGET + TWICE).replace(old, new, 1))
    for words in ((), ("--static",)):
        done = run_here(root, "budget", "--format", "json", *words)
        assert (rule, "tickets.toml", 8) in said(done)
        assert code == done.code
    assert [] == json.loads(done.out)["data"][0]["limits"]


def test_a_target_that_ends_badly_is_inconclusive(root: Path) -> None:
    """It is said at the line of its budget."""
    (root / "train.py").write_text(CODE + "raise ValueError\n")
    done = run_here(root, "budget", "--format", "json")
    assert (ExitCode.INCONCLUSIVE, [("budget-inconclusive", "tickets.toml", 3)]) == (done.code, said(done))


def test_nothing_is_run_by_the_static_check(root: Path) -> None:
    """The program would fail, and is not started."""
    (root / "train.py").write_text(CODE + "raise ValueError\n")
    assert ExitCode.OK == run_here(root, "budget", "--static").code


def test_a_law_holds_at_sizes_beyond_its_sweep(root: Path) -> None:
    """It is no list of samples: 2 lines wait n times each at 7 and at 11, too; a number is none for them."""
    (root / "tickets.toml").write_text(BUDGET.replace("[2, 3, 5]", "[7, 11]").replace('"0"', '"2*n"'))
    assert ExitCode.OK == run_here(root, "budget").code
    (root / "tickets.toml").write_text(BUDGET.replace("[2, 3, 5]", "[7, 11]").replace('"0"', '"2*5"'))
    assert ExitCode.GATE_FAILED == run_here(root, "budget").code


def test_a_change_of_growth_is_refused_at_the_smallest_size(root: Path) -> None:
    """The same two waits for each element: 2 elements make 2*2*n of 2*n, so that n=2 alone tells."""
    text = BUDGET.replace("[2, 3, 5]", "[2]").replace('"0"', '"2*n"')
    (root / "tickets.toml").write_text(text)
    assert ExitCode.OK == run_here(root, "budget").code
    each = CODE.replace("    step(", "    for value in ").replace(' device="cuda"))', ' device="cuda"):')
    (root / "train.py").write_text(f"{each}        step(value)\n")
    done = run_here(root, "budget")
    assert ExitCode.GATE_FAILED == done.code
    assert "syncs: 8, at most 2*n allowed; 8" in done.out


def test_every_format_has_the_line(root: Path) -> None:
    """Annotations, SARIF and Markdown, which a summary is, too."""
    (root / "tickets.toml").write_text(BUDGET + ALLOW)
    assert (
        "::error file=train.py,line=8,col=1,title=budget-exceeded::"
        in run_here(root, "budget", "--format", "github").out
    )
    done = run_here(root, "budget", "--format", "sarif", "--summary", str(root / "page.md"))
    (run,) = json.loads(done.out)["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert ("train.py", 8) == (place["artifactLocation"]["uri"], place["region"]["startLine"])
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    assert ("budget-exceeded", "error") == (rules[result["ruleIndex"]], result["level"])
    page = (root / "page.md").read_text()
    assert page == run_here(root, "budget", "--format", "markdown").out
    assert "| syncs | n | 0 | -n | n |" in page
    assert "**error** train.py:8" in page


LOADED = """
import json, sys
from finding_tickets.cli.main import run
code = run(["budget", "--root", sys.argv[1]])
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def test_what_is_known_is_judged_without_anything_heavy(root: Path) -> None:
    """Neither torch nor pydantic, YAML or TOML; and some 30 modules of the tool."""
    assert ExitCode.OK == run_here(root, "budget").code
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(root)], capture_output=True, text=True, check=True
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert ExitCode.OK == code
    heavy = {"torch", "numpy", "pydantic", "yaml", "jinja2", "rich", "tomllib", "tomlkit", "multiprocessing"}
    assert set() == heavy & {name.partition(".")[0] for name in modules}
    # 31 when this was written.
    assert len([name for name in modules if name.startswith("finding_tickets")]) <= 35
