"""Probing a target: what it costs by line, with laws, and how every bad target ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from finding_tickets.errors import UnreachableError, UsageError
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.verify.probing import Probed, ProbeRequest, points, probe

FILES = {
    "src/pkg/__init__.py": "",
    "src/pkg/mod.py": """\
import torch


def norms(n, size=8):
    tensors = [torch.ones(size, device="cuda") for _ in range(n)]
    total = 0.0
    for tensor in tensors:
        total += tensor.norm().item()
    return total


def once():
    return torch.ones(3, device="cuda").sum().item()


def named(*, n):
    return norms(n)


class Model:
    @staticmethod
    def step(n):
        return norms(n)


def uneven():
    torch.ones(2, device="cuda").sum().item()
    norms(3)


def raises(n):
    norms(n)
    raise ValueError("no")


def yields(n):
    yield n


def prints(n):
    print("x" * 1_000_000)


def leaves(n):
    import os

    os._exit(4)
""",
    "wraps.py": """\
import torch

from pkg.mod import norms

original = torch.select
torch.select = lambda *args: original(*args)
norms(2)
""",
    "cheats.py": """\
import simcuda.ledger

simcuda.ledger.Ledger.count = lambda *_: None
""",
    "train.py": """\
import sys

from pkg.mod import norms

if __name__ == "__main__":
    print(norms(int(sys.argv[1])))
    sys.exit(int(sys.argv[2]))
""",
    "src/pkg/steps.py": """\
import threading

import torch


class Trainer:
    def __init__(self):
        self.state = []

    def step(self, n):
        if not self.state:
            self.state.append(torch.ones(100, device="cuda").sum().item())
        data = torch.ones(25 * n, device="cuda")
        return data.sum().item()


def again(n):
    torch.ones(1, device="cuda").item()
    return again(n - 1) if n else None


def pieces():
    yield torch.ones(1, device="cuda").item()


def main(*sizes):
    trainer = Trainer()

    def inner(n):
        return trainer.step(n)

    for n in sizes:
        thread = threading.Thread(target=inner, args=(n,))
        thread.start()
        thread.join()
    again(2)
    list(pieces())
    barrier = threading.Barrier(2)

    def waits():
        barrier.wait()
        barrier.wait()

    pair = [threading.Thread(target=waits) for _ in range(2)]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join()


def quarter(n):
    main(n, n, n)
""",
    "steps.py": """\
import sys

from pkg.steps import main

main(*map(int, sys.argv[1:]))
""",
    "src/pkg/__main__.py": """\
import sys

from pkg.mod import norms

norms(len(sys.argv))
""",
    "tests/test_it.py": """\
import pytest
import torch
from pkg.mod import norms


@pytest.fixture
def data():
    assert torch.ones(4).cuda().sum().item() == 4
    return torch.ones(4).cuda()


@pytest.mark.parametrize("n", [2, 3])
def test_it(data, n):
    assert norms(n) > 0


def test_fails(data):
    assert norms(1) < 0


def test_fails_on_a_tensor(data):
    assert (data * norms(1)).shape == (5,)


def test_counts(gpu):
    with gpu.measure() as cost:
        norms(4)
    assert cost.syncs == 4


@pytest.mark.skip(reason="not today")
def test_skipped():
    pass
""",
    "verifiers/v.py": """\
from finding_tickets.workload import Point, Workload


def build(point, device, generator):
    return (2 * point.n,)


workload = Workload(ticket="V", build=build, sweep=[Point(n=n) for n in (1, 2, 4, 8)])
""",
}
LINE, WAIT = "src/pkg/mod.py", "total += tensor.norm().item()"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a package, a script, a test and a verifier."""
    folder = tmp_path_factory.mktemp("probed")
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.fixture(autouse=True)
def _here(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def probed(isolation: Isolation, target: str, **more: Any) -> Probed:
    """The probe of a target in the current folder."""
    limits = {"timeout": 60.0, "memory": 8 * 1024**3}
    wanted = ProbeRequest(target=target, root=Path.cwd(), **{"meter": "simulated", **limits, **more})
    return probe(wanted, isolation)


def waits(found: Probed) -> list[tuple[str, int, str, str, str]]:
    """Place, text and cost of the lines that wait."""
    return [
        (site.file, site.line, site.function, site.text, str(site.cost))
        for site in found.sites
        if site.what == "stream_syncs"
    ]


def test_a_script(isolation: Isolation) -> None:
    """A script runs once as __main__, with its arguments and what it imports; each item() waits once."""
    found = probed(isolation, "train.py", arguments=["5", "0"])
    assert [(LINE, 8, "norms", WAIT, "5")] == waits(found)
    assert ("script", ({"run": 1},), ()) == (found.kind, found.points, found.errors)
    # A script is run, not imported, and decides no less what was measured.
    assert ("src/pkg/__init__.py", "src/pkg/mod.py", "train.py") == found.files
    # A number of at most 17 digits, its point and the end of the line.
    assert 2 < found.printed <= 19


def test_a_module(isolation: Isolation) -> None:
    """A module runs as with python -m; with two arguments, argv has three entries."""
    found = probed(isolation, "pkg", arguments=["a", "b"])
    assert [(LINE, 8, "norms", WAIT, "3")] == waits(found)
    assert "src/pkg/__main__.py" in found.files


def test_a_function_is_warmed_up(isolation: Isolation, root: Path) -> None:
    """What a function does in its first call alone is not counted, as it is not when it is verified."""
    (root / "first.py").write_text(
        "import torch\nkept = []\ndef f():\n    if not kept:\n        kept.append(torch.ones(2).cuda())\n"
    )
    assert () == probed(isolation, "first:f").sites


@pytest.mark.parametrize(
    ("target", "function"),
    [
        ("pkg.mod:named", "src/pkg/mod.py:named"),
        ("src/pkg/mod.py:Model.step", "src/pkg/mod.py:Model.step"),
    ],
)
def test_functions_of_all_kinds(isolation: Isolation, target: str, function: str) -> None:
    """Methods, functions named by their file, and arguments that have to be named."""
    found = probed(isolation, target, sweep=["n=1,2,4,8"])
    assert function == found.function
    assert [(LINE, 8, "norms", WAIT, "n")] == waits(found)


def test_a_verifier_builds_the_arguments(isolation: Isolation) -> None:
    """The sweep is the workload's, which builds twice the size here."""
    found = probed(isolation, "pkg.mod:norms", verifier=Path("verifiers/v.py"))
    assert [(LINE, 8, "norms", WAIT, "2*n")] == waits(found)


def test_a_node_of_pytest(isolation: Isolation) -> None:
    """All its tests count as one run, 2 + 3 waits; the wait in the fixture does not count."""
    found = probed(isolation, "tests/test_it.py::test_it")
    assert [(LINE, 8, "norms", WAIT, "5")] == waits(found)
    assert () == found.errors


@pytest.mark.slow
def test_a_test_that_counts_itself(isolation: Isolation) -> None:
    """The fixture gpu of simcuda has the devices of the probe: both count the four waits."""
    found = probed(isolation, "tests/test_it.py::test_counts")
    assert ((), [(LINE, 8, "norms", WAIT, "4")]) == (found.errors, waits(found))


def test_the_heaviest_comes_first(isolation: Isolation) -> None:
    """Waiting comes before copying, and that before allocating; of one kind the larger count comes first."""
    found = probed(isolation, "train.py", arguments=["2", "0"])
    kinds = ["drains", "stream_syncs", "implicit_syncs", "d2h", "allocations", "allocations"]
    assert kinds == [site.what for site in found.sites]
    # One wait in a line of the function itself, three in the line that it calls.
    assert [(8, "3"), (27, "1")] == [
        (place[1], place[4]) for place in waits(probed(isolation, "pkg.mod:uneven"))
    ]


STEPS = "src/pkg/steps.py"


@pytest.mark.parametrize("within", ["pkg.steps:Trainer.step", f"{STEPS}:main.inner"])
def test_within_a_function(isolation: Isolation, within: str) -> None:
    """Each call costs the same but for the first; that of a thread counts too, what is outside does not.

    A call waits once; it holds 50 floats of 4 bytes and their sum, 4 more.
    """
    found = probed(isolation, "steps.py", arguments=["2", "2", "2"], within=within)
    assert [(STEPS, 14, "step", "return data.sum().item()", "1")] == waits(found)
    assert ("1", "204") == (str(found.metrics["syncs"]), str(found.metrics["peak_bytes"]))
    assert [(2, 1, "")] == [(calls.counted, calls.apart, calls.differ) for calls in found.calls]


def test_calls_that_differ(isolation: Isolation) -> None:
    """A range for every cost, and the first call that differs: with none set apart, the second."""
    found = probed(isolation, "steps.py", arguments=["2", "2", "2"], within="pkg.steps:Trainer.step", after=0)
    assert [(12, "0..1"), (14, "1")] == sorted((line, cost) for _, line, _, _, cost in waits(found))
    (calls,) = found.calls
    assert "call 2 costs something else than call 1: syncs 2, then 1; " in calls.differ
    assert f"drains at {STEPS}:12 1, then 0" in calls.differ


def test_a_call_inside_another(isolation: Isolation) -> None:
    """A function that calls itself is called once, and the only call counts: of 2, of 1 and of 0, 3 waits."""
    found = probed(isolation, "steps.py", within="pkg.steps:again")
    assert [("3", 1, 0)] == [(str(found.metrics["syncs"]), each.counted, each.apart) for each in found.calls]


def test_within_a_function_over_a_sweep(isolation: Isolation) -> None:
    """The costs of a call have laws too: 25 * n floats of 4 bytes, and 4 bytes of their sum."""
    within = f"{STEPS}:Trainer.step"
    found = probed(isolation, "pkg.steps:quarter", sweep=["n=1,2,3,5"], within=within)
    assert ("1", "100*n + 4") == (str(found.metrics["syncs"]), str(found.metrics["peak_bytes"]))


@pytest.mark.parametrize(
    ("within", "more", "reason"),
    [
        ("src/pkg/mod.py:norms", {}, "src/pkg/mod.py:norms is never called"),
        ("pkg.mod:norms", {}, "pkg.mod:norms is never called: pkg.mod is not imported"),
        ("pkg.steps:Trainer.stop", {}, "is never called: pkg.steps has no such function"),
        ("pkg.steps:Trainer.step", {"after": 2}, "Trainer.step is called 2x, and the first 2 calls"),
        ("pkg.steps:pieces", {}, "is a generator or a coroutine"),
        ("pkg.steps:main.waits", {}, "runs in several threads at a time"),
    ],
)
def test_a_function_that_has_no_calls(
    isolation: Isolation, within: str, more: dict[str, Any], reason: str
) -> None:
    """Nothing is counted, which is no zero: the reason says why."""
    with pytest.raises(UnreachableError, match=re.escape(reason)):
        probed(isolation, "steps.py", arguments=["1", "1"], within=within, **more)


@pytest.mark.parametrize(
    ("target", "more", "error"),
    [
        ("pkg.mod:raises", {"sweep": ["n=2"]}, "src/pkg/mod.py:33: ValueError: no"),
        ("train.py", {"arguments": ["2", "3"]}, "train.py:7 called sys.exit(3)"),
        # What pytest would say of the tensor took it 19 waits.
        ("tests/test_it.py::test_fails_on_a_tensor", {}, "tests/test_it.py:22: AssertionError"),
    ],
)
def test_a_target_that_does_not_end_well(
    isolation: Isolation, target: str, more: dict[str, Any], error: str
) -> None:
    """What it cost up to there is kept, and how it ended."""
    found = probed(isolation, target, **more)
    assert found.errors[0].startswith(error)
    assert [LINE] == [place[0] for place in waits(found)]


@pytest.mark.parametrize(
    ("target", "more", "reason"),
    [
        ("pkg.mod:yields", {"sweep": ["n=1"]}, "returned a generator"),
        ("pkg.mod:leaves", {"sweep": ["n=1"]}, "ended with exit code 4 before it had a result"),
        ("tests/test_it.py::test_skipped", {}, "no test ran: Skipped: not today"),
    ],
)
def test_a_target_that_cannot_be_measured(
    isolation: Isolation, target: str, more: dict[str, Any], reason: str
) -> None:
    """There is no probe, and the reason says why."""
    with pytest.raises(UnreachableError, match=re.escape(reason)):
        probed(isolation, target, **more)


def test_what_is_printed_is_counted(isolation: Isolation) -> None:
    """A million characters and a line end, in the warm-up and in the run, go to a file of the process."""
    assert 2 * 1_000_001 == probed(isolation, "pkg.mod:prints", sweep=["n=1"]).printed


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ("pkg.mod:norms", {}, "missing a required argument: 'n'; it takes --sweep n=1,2,5,9"),
        (
            "pkg.steps:Trainer.step",
            {},
            "is a method, and there is no object to call it on; probe a script or a test",
        ),
        ("pkg.mod:norms", {"sweep": ["n=1", "k=1"]}, "got an unexpected keyword argument 'k'"),
        ("pkg.mod:nothing", {}, "pkg.mod: has no function nothing"),
        ("nomod:f", {}, "there is no module nomod"),
        ("pkg.nomod", {}, "there is no module pkg.nomod"),
        ("none.py", {}, "there is no file none.py"),
        ("none.py:f", {}, "there is no file none.py"),
        ("../else.py:f", {}, "there is no file ../else.py"),
        ("a b", {}, "there is no file a b"),
        ("train.py", {"sweep": ["n=1"]}, "train.py is a script"),
        ("pkg.mod:once", {"arguments": ["1"]}, "a function takes no arguments"),
        (
            "pkg.mod:norms",
            {"sweep": ["n=1"], "verifier": Path("verifiers/v.py")},
            "give either --sweep or --verifier",
        ),
        ("train.py", {"within": f"{STEPS}:step"}, "has no function step (did you mean Trainer.step?)"),
        ("train.py", {"within": "none.py:step"}, "there is no file none.py"),
        ("train.py", {"within": "step"}, "--within step: not path.py:function or package.module:function"),
        ("train.py", {"after": 1}, "--after counts calls of a function"),
        ("pkg.mod:norms", {"verifier": Path("verifiers/w.py")}, "there is no file verifiers/w.py"),
        ("tests/test_it.py::test_none", {}, "pytest finds no test tests/test_it.py::test_none"),
    ],
)
def test_wrong_usage(isolation: Isolation, target: str, more: dict[str, Any], message: str) -> None:
    """What does not exist, or cannot be called like that, is the user's to correct."""
    with pytest.raises(UsageError) as error:
        probed(isolation, target, **more)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["n", "n=", "n=a", "n=1,", "=1", "1n=1", "n=1.5", "n=" + "9" * 30])
def test_a_sweep_that_is_none(text: str) -> None:
    """A sweep is a name and integers."""
    with pytest.raises(UsageError, match="not a name and integers"):
        points([text])


def test_the_points_of_a_sweep() -> None:
    """Values combine with one another, a repeated one counts once; too many, or a name twice, are refused."""
    assert [{"a": 1, "b": 5}, {"a": 1, "b": -6}] == points(["a=1,1", "b=5,-6"])
    assert [] == points([])
    with pytest.raises(UsageError, match="given twice"):
        points(["a=1", "a=2"])
    with pytest.raises(UsageError, match="1100 points"):
        points([f"a={','.join(map(str, range(1100)))}"])


CYCLE = """\
import gc, torch
import kept

gc.disable()  # else a garbage collection might come in time
garbage = [torch.ones(1000, device="cuda")]
garbage.append(garbage)
kept.tensors.append(torch.ones(10, device="cuda"))
"""


def test_what_a_program_leaves_behind_is_what_can_still_be_reached(isolation: Isolation, root: Path) -> None:
    """A cycle is garbage, whenever it is collected; what an imported module holds is retained."""
    (root / "kept.py").write_text("tensors = []\n")
    (root / "cycle.py").write_text(CYCLE)
    # 10 elements of 4 bytes.
    assert "40" == str(probed(isolation, "cycle.py").metrics["retained_bytes"])


def test_a_program_whose_library_replaces_functions_of_torch_is_counted(isolation: Isolation) -> None:
    """It is the only one that they are for; what counts is nobody's to replace."""
    # One read for each of two tensors.
    assert (2,) == probed(isolation, "wraps.py").metrics["syncs"].values
    with pytest.raises(UnreachableError, match=r"replaces simcuda\.ledger\.Ledger\.count"):
        probed(isolation, "cheats.py")
