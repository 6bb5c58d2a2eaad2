"""What ``tickets probe`` says of targets as people have them: what happened comes first, then what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ran
    from tests.conftest import Repository

    Tickets = Callable[..., Ran]

# A weight of 4 x 4 and a bias of 4 are on the device before anything is called.
AT_THE_TOP = """\
import torch

net = torch.nn.Linear(4, 4).cuda()


def step(n):
    for _ in range(n):
        net.weight.sum().item()
"""
WHERE_THERE_IS_ONE = """\
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def step(n):
    for _ in range(n):
        torch.ones(2, device=DEVICE).sum().item()
"""
COMPILED = """\
import torch

twice = torch.compile(lambda x: 2 * x)


def step(x):
    return twice(x).sum().item()


for _ in range(3):
    step(torch.ones(2, device="cuda"))
"""
ARGUMENTS = """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", required=True)
parser.parse_args()
"""
ENDLESS = """\
import torch

x = torch.ones(2, device="cuda")
while True:
    x.sum().item()
"""
# The file, its code, the rest of the command line, the exit code, and texts in the order in which they come.
TARGETS: dict[str, tuple[str, str, tuple[str, ...], int, tuple[str, ...]]] = {
    "a notebook": (
        "a.ipynb",
        "{}",
        ("a.ipynb",),
        2,
        ("error: a.ipynb is a notebook (jupyter nbconvert --to script a.ipynb makes a script of it)",),
    ),
    "a module that uses the device when it is imported": (
        "mod.py",
        AT_THE_TOP,
        ("mod:step", "--sweep", "n=1,2,3"),
        0,
        ("mod.py:8  drains n times, copies d2h",),
    ),
    "a module that asks for the device when it is imported": (
        "mod.py",
        WHERE_THERE_IS_ONE,
        ("mod.py:step", "--sweep", "n=1,2,3"),
        0,
        ("mod.py:8  drains n times, copies d2h",),
    ),
    "a missing import": (
        "a.py",
        "import not_there\n",
        ("a.py",),
        3,
        ("not run to its end: a.py:1: ModuleNotFoundError: No module named 'not_there'\n", "until then"),
    ),
    "a library for CUDA alone": (
        "a.py",
        "import flash_attn\n",
        ("a.py",),
        3,
        ("not run to its end: a.py:1: ", "; flash_attn is built for real GPUs: import it only where"),
    ),
    "missing arguments": (
        "a.py",
        ARGUMENTS,
        ("a.py",),
        3,
        ("not run to its end: a.py:5 called sys.exit(2): a.py: error: the following arguments", "until then"),
    ),
    "a loop without an end": (
        "a.py",
        ENDLESS,
        ("a.py", "--timeout", "1"),
        3,
        ("not run to its end: still running after 1 s, at a.py:5\n", "a.py:5  drains "),
    ),
    # Of three calls the first is set apart.
    "compiled code within": (
        "a.py",
        COMPILED,
        ("a.py", "--within", "a.py:step"),
        0,
        ("per call, in 2 calls after the first\n", "a.py:7  drains 1x, copies d2h"),
    ),
    "a name that is not there": (
        "mod.py",
        AT_THE_TOP,
        ("mod:stepp",),
        2,
        ("error: mod: has no function stepp (did you mean step?)",),
    ),
}


@pytest.mark.parametrize("what", TARGETS)
def test_a_target(
    repository: Repository, tickets: Tickets, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Its exit code, and what is said in which order; nothing is said to wait where nothing ran."""
    file, code, words, ending, texts = TARGETS[what]
    repository.write(file, code)
    monkeypatch.chdir(repository.root)
    done = tickets("probe", *words)
    said = done.out + done.err
    assert ending == done.code, said
    places = [said.find(text) for text in texts]
    assert -1 not in places, said
    assert sorted(places) == places
