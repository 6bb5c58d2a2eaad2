"""What ``pytest --simcuda`` costs the tests of a suite that use no device.

200 ordinary tests, four kinds by turns, and 30 that need a GPU, among them. The claim is about the processor
time of the ordinary ones, with all that pytest does for them, with the option and without: at most 1.3 times.

With ``--budget``, which follows 80 lines that may wait, a suite that trains on the devices takes at most
1.2 times what it takes with ``--simcuda`` alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.command import main
from benchmarks.result import Bound, Number, Result, Size

BOUND, BOUND_OF_BUDGET = Bound(1.3), Bound(1.2)
ROUNDS = {Size.FULL: 7, Size.QUICK: 3, Size.LEAST: 1}
FILES = {Size.FULL: 10, Size.QUICK: 10, Size.LEAST: 1}
ORDINARY, NEED_A_GPU = 20, 3
"""Tests of one file."""

CONFTEST = """
import json, os, time
import pytest

spent = {"ordinary": 0.0, "gpu": 0.0}
ran = {"ordinary": 0, "gpu": 0}

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    start = time.process_time()
    result = yield
    spent["gpu" if "gpu" in item.name else "ordinary"] += time.process_time() - start
    return result

def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        ran["gpu" if "gpu" in report.nodeid else "ordinary"] += 1

def pytest_sessionfinish():
    with open(os.environ["SPENT"], "w") as file:
        json.dump({"spent": spent, "ran": ran}, file)
"""

TESTS = """
import pytest
import torch

torch.set_num_threads(1)

def train(device, steps):
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 32, device=device)
    target = torch.randint(0, 8, (16,), device=device)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
    # As hooks and schedulers do: only the garbage collector frees it.
    model.itself = [model]
    return loss.item()

@pytest.mark.parametrize("number", range({each_kind}))
def test_trains(number):
    assert train("cpu", 5) > 0

@pytest.mark.parametrize("number", range({each_kind}))
def test_computes(number):
    x = torch.arange(64.0).view(8, 8)
    for _ in range(20):
        x = (x @ x.T).softmax(dim=-1) + 1
    assert x.to(torch.float64).sum().item() > 0

@pytest.mark.parametrize("number", range({each_kind}))
def test_attends(number):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    layer(torch.randn(2, 8, 32)).square().mean().backward()
    assert all(p.grad is not None for p in layer.parameters())

@pytest.mark.parametrize("number", range({each_kind}))
def test_uses_no_tensor(number):
    assert sorted(str(n) for n in range(200))[0] == "0"

@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("number", range({need_a_gpu}))
def test_trains_on_a_gpu(number):
    assert train("cuda", 5) > 0
"""

WATCHED = {Size.FULL: 80, Size.QUICK: 80, Size.LEAST: 8}
"""Functions of the code that is followed, each with a line that may wait."""
STEP = """
def step{number}(model, x, log):
    loss = model(x).square().mean()
    loss.backward()
    for row in range(20):
        if row > log:
            break
    if log:
        return loss.item()
    return sum(number % 3 for number in range(30))
"""
TESTS_OF_STEPS = """
import pytest
import torch
import steps

torch.set_num_threads(1)

@pytest.mark.parametrize("number", range({watched}))
def test_ordinary_step_on_a_device(number):
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to("cuda")
    x = torch.randn(16, 32, device="cuda")
    step = getattr(steps, f"step{number}")
    for _ in range(5):
        step(model, x, number % 2)
"""


def run(folder: Path, *options: str) -> tuple[dict[str, float], dict[str, int]]:
    """Seconds of processor time, and how many tests passed, by kind."""
    spent = folder / "spent.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "."]
    env = {**os.environ, "SPENT": str(spent)}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=env)
    said = json.loads(spent.read_text("utf-8"))
    return said["spent"], said["ran"]


def measure(size: Size) -> Iterator[Result]:
    """The suite without and with the option, by turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        tests = TESTS.replace("{each_kind}", str(ORDINARY // 4)).replace("{need_a_gpu}", str(NEED_A_GPU))
        for number in range(FILES[size]):
            (folder / f"test_{number}.py").write_text(tests, encoding="utf-8")
        expected = FILES[size] * ORDINARY
        ratios, plain, simulated, ran = [], [], [], 0
        for _ in range(ROUNDS[size]):
            without, passed = run(folder)
            within, also_passed = run(folder, "--simcuda")
            if {passed["ordinary"], also_passed["ordinary"]} != {expected}:
                raise RuntimeError("not all ordinary tests have passed")
            ran = also_passed["gpu"]
            ratios.append(within["ordinary"] / without["ordinary"])
            plain.append(without["ordinary"])
            simulated.append(within["ordinary"])
    yield Result(
        name="gpu-tests",
        what="the ordinary tests of a suite, with pytest --simcuda / without",
        value=median(ratios),
        bound=BOUND,
        beside=(
            Number("with", median(simulated) * 1e3, "ms"),
            Number("without", median(plain) * 1e3, "ms"),
            Number(f"tests that need a GPU and ran, of {FILES[size] * NEED_A_GPU}", ran, ""),
        ),
    )


if __name__ == "__main__":
    sys.exit(main(measure, __doc__))
