"""``tickets claim`` says whether a claim about a cost holds, is false, or cannot be measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Repository

# ``norms`` waits once for each of n tensors; a run calls ``step`` 3 times with 2 of them, and reads once.
CODE = """\
import torch


def norms(n):
    tensors = [torch.ones(4, device="cuda") for _ in range(n)]
    return [each.norm().item() for each in tensors]


def step(odd=False):
    norms(1 if odd else 2)


def run():
    for _ in range(3):
        step()
    print(torch.ones(2, device="cuda").sum().item())


if __name__ == "__main__":
    run()
"""
RUN = ["--run", "train.py"]
CALL = ["--function", "train:norms", "--sweep", "n=0,1,2,3,5"]


@pytest.fixture(autouse=True)
def _code(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("train.py", CODE)
    repository.write("dies.py", "1 / 0\n")
    repository.write("host.py", "import torch\ntorch.ones(2).sum().item()\n")
    monkeypatch.chdir(repository.root)


@pytest.mark.parametrize(
    ("claim", "target", "code", "said"),
    [
        ("syncs is 7", RUN, 0, "holds: syncs is 7; measured 7\n  train.py:6   waits 6x"),
        (
            "waits of train.py:6 is < 6",
            RUN,
            1,
            "false: waits of train.py:6 is < 6; measured 6\n  train.py:6  ",
        ),
        ("d2h of train.py:16 is 1", RUN, 0, "measured 1\n  train.py:16  waits 1x, copies d2h  print("),
        ("syncs of train.py:15 is 0", RUN, 0, "train.py:15 is 0; measured 0; nothing was counted there: "),
        ("syncs is 0", ["--run", "host.py"], 3, "cannot be measured: nothing ran on the device"),
        ("retained_bytes of train.py:step is 0", RUN, 3, "cannot be measured: retained_bytes has no value"),
        ("syncs of train.py:step are 1", RUN, 1, "measured in each of 2 calls: 2\n  train.py:6  waits 2x"),
        ("syncs of train:norms is n", CALL, 0, "holds: syncs of train:norms is n; measured n\n"),
        ("syncs is O(1)", CALL, 1, "false: syncs is O(1); measured n, in which n is not bounded"),
        ("syncs is m", CALL, 2, "'m': unknown variable 'm' at column 1 (known: n)"),
        ("launches of train.py:6 is 1", RUN, 2, "launches is not counted by line (known: syncs, "),
        ("syncs of train.py:400 is 1", RUN, 2, "there is no statement at train.py:400"),
        ("syncs of train.py:stop is 1", RUN, 2, "has no function stop (did you mean step?)"),
        ("it is slow", RUN, 2, "it is not counted"),
        ("too many syncs", RUN, 2, "'too many syncs' is no claim (write "),
        ("syncs is 7", [], 2, "what is to run? (--run "),
        ("syncs is 7", ["--run", "train.py", "--function", "train:run"], 2, "what is to run? (--run "),
        (
            "syncs is 0",
            ["--run", "dies.py"],
            3,
            "syncs is 0: cannot be measured: dies.py:1: ZeroDivisionError",
        ),
    ],
)
def test_a_claim(tickets: Callable[..., Ran], claim: str, target: list[str], code: int, said: str) -> None:
    """The numbers are derived above; what is false comes with the statements that contradict it."""
    ran = tickets("claim", claim, *target)
    assert (code, True) == (ran.code, said in ran.out + ran.err), ran.out + ran.err


def test_a_claim_for_machines(tickets: Callable[..., Ran], repository: Repository) -> None:
    """JSON has the answer, the points that contradict it, and the statements."""
    ran = tickets("claim", "syncs is <= 2", *CALL, "--format", "json")
    (item,) = ran.data
    assert (1, False, "n", ["n=3: 3", "n=5: 5"]) == (
        ran.code, item["holds"], item["measured"], item["counterexamples"]
    )  # fmt: skip
    assert {("train.py", 6)} == {(each["file"], each["line"]) for each in item["sites"]} - {("train.py", 5)}
    assert [] == [*repository.root.glob("tickets/*.md")]


def test_calls_that_differ_are_no_answer(tickets: Callable[..., Ran], repository: Repository) -> None:
    """A number for each call would be true of some calls alone."""
    odd = CODE.replace("for _ in range(3):\n        step()", "for n in range(3):\n        step(n == 2)")
    repository.write("train.py", odd)
    # No call copies to the device, whatever else they differ in.
    assert 0 == tickets("claim", "h2d of train.py:step is 0", *RUN).code
    ran = tickets("claim", "syncs of train.py:step is 2", *RUN)
    assert (3, True) == (ran.code, "cannot be measured: calls differ: call 3 costs something else" in ran.err)
