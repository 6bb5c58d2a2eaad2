"""``tickets check`` holds a branch to the budgets of its base."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from tests.conftest import run_here

if TYPE_CHECKING:
    from tests.conftest import Git, Repository

TRAIN = """\
import torch
from lib import shown


def step(values):
    total = values.sum()
    return shown(total)


values = torch.ones(256, device="cuda")
for number in range(3):
    step(values)
"""
LIB = "def shown(value):\n    return value.item()\n"
CONFIG = """\
[[budget]]
name = "train"
run = "train.py"
only = "loops"

[[budget.allow]]
file = "lib.py"
function = "shown"
code = "return value.item()"
reason = "the curve"
owner = "ada"
"""
WAIT = "    print(total.item())\n    return"
Check = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def base(repository: Repository, git: Git) -> Repository:
    """A program within its budget, and a branch of it."""
    for file, text in {"train.py": TRAIN, "lib.py": LIB, "tickets.toml": CONFIG}.items():
        repository.write(file, text)
    git("add", "--all")
    git("commit", "--quiet", "-m", "base")
    git("switch", "--quiet", "--create", "branch")
    return repository


@pytest.fixture
def check(base: Repository) -> Check:
    """``check("--accept", "budget:train")`` returns the exit code and the annotations."""

    def run(*options: str) -> tuple[int, list[str]]:
        ended = run_here(base.root, "check", "--base", "main", "--format", "github", *options)
        return ended.code, ended.out.splitlines()

    return run


def edit(base: Repository, file: str, old: str, new: str) -> None:
    """Replace a text that a file has."""
    text = (base.root / file).read_text()
    assert old in text
    base.write(file, text.replace(old, new))


def test_a_new_wait_is_refused_at_its_line(base: Repository, check: Check) -> None:
    """One message for one cause, and none for what the base has already."""
    edit(base, "train.py", "    return", WAIT)
    code, (message,) = check()
    assert 1 == code
    assert message.startswith(
        "::error file=train.py,line=7,col=1,title=budget-exceeded::budget train: syncs: 3"
    )
    assert "print(total.item())" in message


def test_a_harmless_change_passes(base: Repository, check: Check) -> None:
    """It is silent, but for an allowance that is not needed any more."""
    edit(base, "train.py", "def step", "# The step\ndef step")
    edit(base, "train.py", "values.sum()", "values.sum() + values.max()")
    edit(base, "lib.py", "value", "number")
    assert (0, []) == check()
    edit(base, "train.py", "return shown(total)", "return total")
    code, (message,) = check()
    assert (0, True) == (code, "budget-unused" in message), message


def test_a_branch_does_not_raise_its_budget(base: Repository, check: Check) -> None:
    """A larger limit, a new allowance and a region need ``--accept``, and do not count without it."""
    edit(base, "train.py", "    return", WAIT)
    edit(base, "tickets.toml", 'only = "loops"', 'only = "loops"\nmax = {syncs = 3}')
    code, messages = check()
    assert 1 == code
    assert ["budget-raised", "budget-exceeded"] == [
        each.split("title=")[1].split("::")[0] for each in messages
    ]
    assert "file=tickets.toml,line=1," in messages[0]
    assert "max: syncs is 3, and 0 at the base (if that is meant: --accept budget:train)" in messages[0]
    assert (0, []) == check("--accept", "budget:train")


def test_a_new_allowance_needs_a_word(base: Repository, check: Check) -> None:
    """One for renamed code is none, and neither is a stricter budget."""
    allowance = "[[budget.allow]]" + CONFIG.partition("[[budget.allow]]")[2]
    more = allowance.replace("lib.py", "train.py").replace("shown", "step").replace("return value", "x")
    base.write("tickets.toml", f"{CONFIG}\n{more}")
    code, messages = check()
    assert 1 == code
    assert "train.py step `x.item()` is allowed" in messages[0]
    base.write("tickets.toml", CONFIG.replace("value", "number").replace("reason", 'law = "3"\nreason'))
    edit(base, "lib.py", "value", "number")
    assert (0, []) == check()
    # Half of it is more strict than the code.
    edit(base, "tickets.toml", 'law = "3"', 'law = "2"')
    code, messages = check()
    assert 1 == code
    assert "waits 3 times, ada allowed 2" in messages[0]


def test_a_budget_is_not_removed(base: Repository, check: Check) -> None:
    """Without its budget the code is held to that of the base."""
    base.write("tickets.toml", "")
    edit(base, "train.py", "    return", WAIT)
    code, messages = check()
    assert (1, 2) == (code, len(messages))
    assert "budget train: is removed" in messages[0]
    assert (0, []) == check("--accept", "budget:train")
    assert 2 == check("--accept", "budget:tran")[0]


def test_code_does_not_allow_itself_more(base: Repository, check: Check) -> None:
    """A region around a new wait is told at its line; one of the base is fine."""
    edit(
        base,
        "lib.py",
        "    return value.item()",
        "    return read(value)\n\n\ndef read(value):\n    with simcuda.allowed('x'):\n        value.item()",
    )
    edit(base, "lib.py", "def shown", "import simcuda\n\n\ndef shown")
    code, messages = check()
    assert 1 == code
    assert "file=lib.py,line=10," in messages[0]
    assert "simcuda.allowed('x') is new: value.item()" in messages[0]


@pytest.mark.slow
def test_a_base_that_exceeds_its_budget(base: Repository, git: Git, check: Check) -> None:
    """A branch is not blamed for it; only for what it adds."""
    edit(base, "train.py", "    return", WAIT)
    git("commit", "--quiet", "--all", "-m", "a wait")
    git("branch", "--force", "main")
    edit(base, "lib.py", "value", "number")
    code, (note,) = check()
    assert 0 == code
    assert note.startswith("::notice file=tickets.toml,line=1,")
    edit(base, "train.py", "    print(", "    total.tolist()\n    print(")
    code, (message,) = check()
    assert (1, True) == (code, message.startswith("::error file=train.py,line=7,"))


def test_a_program_that_fails_is_inconclusive(base: Repository, check: Check) -> None:
    """It is no pass."""
    edit(base, "lib.py", "return value", "raise ValueError(value)\n    return value")
    code, (message,) = check()
    assert 3 == code
    assert "not measured: lib.py:2: ValueError" in message
