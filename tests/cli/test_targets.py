"""What ``tickets probe`` says of targets as people have them: what happened comes first, then what to do."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
import torch
from tests.cli.conftest import Tickets
from tests.conftest import Git, Repository

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
# It sleeps most of the time: what is interrupted while it is counted cannot be measured.
ENDLESS = """\
import time, torch
x = torch.ones(2, device="cuda")
while True:
    x.sum().item()
    time.sleep(0.02)
"""
IN_A_FUNCTION = """\
import time, torch
def test_it(n=1):
    while True:
        torch.ones(2, device="cuda").sum().item()
        time.sleep(0.02)
"""
# 2 parameters: 2 reads in each of 4 steps after the step, and 2 in every second one before it.
TRAINING = """\
import torch
net = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(net.parameters())
for step in range(4):
    net(torch.ones(2, 4, device="cuda")).sum().backward()
    if step % 2: print([each.grad.sum().item() for each in net.parameters()])
    optimizer.step()
    [each.grad.sum().item() for each in net.parameters()]
"""
ENDED = "not run to its end: "
# The code of mod.py, or of what is named first, the command line, the exit code, and texts in their order.
TARGETS: dict[str, tuple[str, str, int, list[str]]] = {
    "a notebook": (
        "{}",
        "a.ipynb",
        2,
        ["error: a.ipynb is a notebook (jupyter nbconvert --to script a.ipynb "],
    ),
    "a module that uses the device when it is imported": (
        *(AT_THE_TOP, "mod:step --sweep n=1,2,3", 0),
        ["mod.py:5  waits n times, copies d2h"],
    ),
    "a module that asks for the device when it is imported": (
        *(WHERE_THERE_IS_ONE, "mod.py:step --sweep n=1,2,3", 0),
        ["mod.py:5  waits n times, copies d2h"],
    ),
    "a training loop": (
        *(TRAINING, "a.py", 0),
        ["a.py:8  waits 8x (2 per step), copies d2h", "a.py:6  waits 4x, copies d2h"],
    ),
    "a program that stays on the host": (
        *("import torch\nprint(torch.ones(2).sum().item())\n", "a.py", 3),
        ["nothing ran on the device: does the target use cuda?\n"],
    ),
    "a missing import": (
        *("import not_there\n", "a.py", 3),
        [f"{ENDED}a.py:1: ModuleNotFoundError: No module named 'not_there'\n", "until then"],
    ),
    "a library for CUDA alone": (
        *("import flash_attn\n", "a.py", 3),
        [f"{ENDED}a.py:1: ", "; flash_attn is built for real GPUs: import it only where"],
    ),
    "missing arguments": (
        *(ARGUMENTS, "a.py", 3),
        [f"{ENDED}a.py:4 called sys.exit(2): a.py: error: the following arguments", "until then"],
    ),
    "a loop without an end": (
        *(ENDLESS, "a.py --timeout 1", 3),
        [f"{ENDED}still running after ", "a.py:4  waits "],
    ),
    "a function without an end": (
        *(IN_A_FUNCTION, "mod:test_it --sweep n=1 --timeout 1", 3),
        [f"{ENDED}mod.py:", "TimeoutError: still running after ", "mod.py:4  waits "],
    ),
    "a test without an end": (
        *(IN_A_FUNCTION, "test_a.py::test_it --timeout 1", 3),
        [f"{ENDED}test_a.py:", "TimeoutError: still running after ", "test_a.py:4  waits "],
    ),
    # Of three calls the first is set apart.
    "compiled code within": (
        *(COMPILED, "a.py --within a.py:step", 0),
        ["per call, in 2 calls after the first\n", "a.py:4  waits 1x, copies d2h"],
    ),
    "a name that is not there": (AT_THE_TOP, "mod:stepp", 2, ["error: mod: has no function stepp (did you "]),
}


@pytest.mark.parametrize(
    "what",
    [pytest.param(each, marks=pytest.mark.slow) if "compiled" in each else each for each in TARGETS],
)
def test_a_target(
    repository: Repository, tickets: Tickets, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Its exit code, and what is said in which order; nothing is said to wait where nothing ran."""
    code, words, ending, texts = TARGETS[what]
    repository.write("mod.py" if words.startswith("mod") else words.split()[0].partition("::")[0], code)
    monkeypatch.chdir(repository.root)
    done = tickets("probe", *words.split())
    said = done.out + done.err
    assert ending == done.code, said
    places = [said.find(text) for text in texts]
    assert -1 not in places, said
    assert sorted(places) == places


READS_DATA = """\
import sys, torch
from pathlib import Path
batches = torch.load(Path(__file__).parent / "data" / "batches.pt"), torch.load(sys.argv[1])
for batch in batches:
    print(batch.to("cuda").sum().item())
"""


def test_data_that_git_ignores_is_named_by_a_draft_and_seen_at_a_commit(
    repository: Repository, git: Git, tickets: Tickets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the key a run at the commit fails; with data that is gone it says which."""
    monkeypatch.chdir(repository.root)
    repository.write("train.py", READS_DATA)
    repository.write(".gitignore", "data/\n*.bin\n")
    (repository.root / "data").mkdir()
    for file in ("data/batches.pt", "more.bin"):
        torch.save(torch.ones(3), repository.root / file)
    git("add", ".")
    git("commit", "-qm", "first")
    assert 0 == tickets("probe", "train.py", "--draft", "train.py:5", "--", "more.bin").code
    ticket = repository.root / "tickets/T-01.md"
    text = ticket.read_text()
    assert 'data: ["data/", "more.bin"]\n' in text
    assert 'found: "@worktree"' not in text
    repository.write("train.py", READS_DATA.replace("print(batch", "print(batch * 2"))
    done = tickets("verify", "T-01")
    assert (0, True) == (done.code, "reproduced" in done.out), done.out + done.err
    ticket.write_text(text.replace('data: ["data/", "more.bin"]', "data: [data]"))
    done = tickets("verify", "T-01")
    assert (3, True) == (done.code, "'more.bin', but in the work tree: " in done.out), done.out + done.err
    ticket.write_text(text)
    (repository.root / "more.bin").unlink()
    done = tickets("verify", "T-01")
    said = f"data: there is no {repository.root}/more.bin (tickets/T-01.md:"
    assert (3, True) == (done.code, said in " ".join(done.out.split())), done.out + done.err


def test_a_draft_after_a_probe_does_not_run_the_target_again(
    repository: Repository, tickets: Tickets, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Unless a file that it uses has changed, or what is kept of the probe is damaged."""
    monkeypatch.chdir(repository.root)
    ran = tmp_path.with_name(f"{tmp_path.name} ran")
    code = f"import torch\nopen({str(ran)!r}, 'a').write('.')\nopen('size').read()\n"
    repository.write("a.py", code + "torch.ones(2, device='cuda').sum().item()\n")
    repository.write("size", "1")
    said = "a.py was measured before, and its files are the same: it is not run again\n"
    draft = ("probe", "a.py", "--draft", "a.py:4")
    assert 0 == tickets("probe", "a.py").code
    done = tickets(*draft)
    assert (0, True, ".") == (done.code, said in done.err, ran.read_text()), done.err
    (kept,) = Path(os.environ["XDG_CACHE_HOME"]).glob("finding-tickets/probes/*")
    for changed, runs in ((repository.root / "size", ".."), (kept, "...")):
        (repository.root / "tickets/T-01.md").unlink()
        changed.write_text("22")
        done = tickets(*draft)
        assert (0, False, runs) == (done.code, said in done.err, ran.read_text()), done.err


@pytest.mark.slow
def test_an_interrupt_shows_the_costs_until_then(repository: Repository) -> None:
    """The program runs until somebody presses Ctrl-C."""
    begun = repository.root / "begun"
    repository.write("a.py", f"{ENDLESS}    open({str(begun)!r}, 'w').close()\n")
    command = [sys.executable, "-m", "finding_tickets", "probe", "a.py"]
    with Popen(command, cwd=repository.root, stdout=PIPE, stderr=PIPE, text=True) as process:
        while not begun.exists() and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (130, "interrupted\n") == (process.returncode, err), err
    assert f"{ENDED}still running after " in out
    assert "a.py:4  waits " in out
