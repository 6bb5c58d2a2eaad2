"""What counting costs: code on the simulated device against the same code on the plain CPU.

Three claims. A training step with everything counted, source lines included, takes at most 4 times as long;
the tools that people otherwise reach for are timed beside it. A loop of small operations takes at most 7
times as long. The cost of an operation does not grow with the number of live tensors.

In one thread. Every round sets each contender up anew, warms it up and times it, one after the other. The
garbage collector runs for all of them alike, over what they made themselves.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from statistics import median

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import ProfilerActivity, profile

import simcuda

ROUNDS = 11
LAYERS, WIDTH, BATCH = 20, 64, 32
STEP_BOUND = 4.0
LOOPS = 1000
SMALL_OPS_BOUND = 7.0
LIVE = (1_000, 10_000, 100_000)
LIVE_BOUND = 1.3

Work = Callable[[], None]
Build = Callable[[str], Work]
# Does the work so many times and returns how much the tool has found, which must be more than nothing.
Run = Callable[[int], int]
Tool = Callable[[Build], AbstractContextManager[Run]]
Contender = tuple[Tool, Build, int]


def training_step(device: str) -> Work:
    """Forward, backward and an optimizer's step of a model of linear layers."""
    linear = [torch.nn.Linear(WIDTH, WIDTH, device=device) for _ in range(LAYERS)]
    model = torch.nn.Sequential(*(layer for one in linear for layer in (one, torch.nn.ReLU())))
    optimizer = torch.optim.AdamW(model.parameters())
    x, target = (torch.randn(BATCH, WIDTH, device=device) for _ in range(2))

    def step() -> None:
        optimizer.zero_grad()
        loss: torch.Tensor = torch.nn.functional.mse_loss(model(x), target)
        torch.autograd.backward(loss)
        optimizer.step()

    return step


def in_place(device: str) -> Work:
    """A loop of two small operations that write to their argument."""
    x = torch.ones(8, device=device)

    def loop() -> None:
        for _ in range(LOOPS):
            x.mul_(1.0001).add_(0.1)

    return loop


def out_of_place(device: str, live: int = 0) -> Work:
    """A loop of two small operations that each make a tensor, while so many others are live."""
    tensors = [torch.ones(8, device=device) for _ in range(1 + live)]

    def loop() -> None:
        x = tensors[0]
        for _ in range(LOOPS):
            x.mul(1.0001).add(0.1)

    return loop


@contextmanager
def plain(build: Build) -> Iterator[Run]:
    """The CPU, with nothing counted."""
    work = build("cpu")
    yield lambda times: repeat(work, times)


@contextmanager
def simulated(build: Build) -> Iterator[Run]:
    """The simulated device, with everything counted, and the lines behind it read."""
    with simcuda.device() as gpu:
        work = build("cuda")

        def run(times: int) -> int:
            with gpu.measure() as cost:
                repeat(work, times)
            return cost.launches + len(cost.sites)

        yield run


@contextmanager
def fake_tensors(build: Build) -> Iterator[Run]:
    """PyTorch's memory tracker, over tensors without data: bytes by module, no waits and no lines."""
    with FakeTensorMode(), MemTracker() as tracker:
        work = build("cpu")

        def step() -> None:
            tracker.reset_mod_stats()  # it refuses to track a second step otherwise
            work()

        def run(times: int) -> int:
            repeat(step, times)
            return len(tracker.get_tracker_snapshot("peak"))

        yield run


@contextmanager
def profiled(build: Build) -> Iterator[Run]:
    """PyTorch's profiler with stacks, until its events are summed up by line: operations, no waits."""
    work = build("cpu")

    def run(times: int) -> int:
        with profile(activities=[ProfilerActivity.CPU], with_stack=True) as profiler:
            repeat(work, times)
        return len(profiler.key_averages(group_by_stack_n=1))

    yield run


@contextmanager
def recorded(build: Build) -> Iterator[Run]:
    """The same profiler while it only records: making something of its events is left out."""
    work = build("cpu")
    with profile(activities=[ProfilerActivity.CPU], with_stack=True):
        yield lambda times: repeat(work, times)


def repeat(work: Work, times: int) -> int:
    """Do the work so many times."""
    for _ in range(times):
        work()
    return times


def seconds(tool: Tool, build: Build, times: int) -> float:
    """Mean time of the work under a tool, with what the tool takes to give its result.

    Raises:
        RuntimeError: The tool has found nothing, so that it cannot have been at work.
    """
    with tool(build) as run:
        run(2)
        gc.collect()
        start = time.perf_counter()
        found = run(times)
        taken = time.perf_counter() - start
    if not found:
        raise RuntimeError(f"{tool.__name__} found nothing")
    return taken / times


def compare(rounds: int, contenders: Mapping[str, Contender]) -> list[float]:
    """Interleave the contenders; print their median times, and print and return their ratios to the first."""
    runs = [[seconds(*contender) for contender in contenders.values()] for _ in range(rounds)]
    # The ratio is that within a round: while the machine is slow, it is slow for all contenders.
    ratios = [median(times) for times in zip(*([one / run[0] for one in run] for run in runs), strict=True)]
    for name, times, ratio in zip(contenders, zip(*runs, strict=True), ratios, strict=True):
        print(f"{name:48} {median(times) * 1e3:8.2f} ms {ratio:7.2f} x")
    return ratios


def holds(claim: str, ratio: float, bound: float) -> bool:
    """Print a claim's ratio beside its bound, and say whether it keeps to it."""
    verdict = "holds" if ratio <= bound else "EXCEEDED"
    print(f"{claim:48} {ratio:19.2f} x, at most {bound:g}: {verdict}\n", flush=True)
    return ratio <= bound


def step_claim(rounds: int) -> bool:
    """A training step, beside the tools that people otherwise use."""
    contenders = {
        "training step, plain CPU": (plain, training_step, 20),
        "training step, simcuda": (simulated, training_step, 20),
        "training step, FakeTensorMode + MemTracker": (fake_tensors, training_step, 3),
        "training step, torch.profiler with stacks": (profiled, training_step, 10),
        "training step, torch.profiler, recording alone": (recorded, training_step, 10),
    }
    return holds("a training step, all counted", compare(rounds, contenders)[1], STEP_BOUND)


def small_ops_claim(rounds: int) -> bool:
    """Loops of small operations."""
    kept = []
    for how, build in (("in place", in_place), ("out of place", out_of_place)):
        name = f"{2 * LOOPS} small operations {how}"
        contenders = {f"{name}, {tool.__name__}": (tool, build, 5) for tool in (plain, simulated)}
        kept.append(holds(name, compare(rounds, contenders)[1], SMALL_OPS_BOUND))
    return all(kept)


def live_claim(rounds: int) -> bool:
    """The same operations beside more and more live tensors; on the plain CPU, for comparison, too."""
    growth = 0.0
    for tool in (plain, simulated):
        names = [f"{2 * LOOPS} operations, {live} live, {tool.__name__}" for live in LIVE]
        builds = [partial(out_of_place, live=live) for live in LIVE]
        contenders = {name: (tool, build, 5) for name, build in zip(names, builds, strict=True)}
        growth = compare(rounds, contenders)[-1]
    return holds(f"growth from {LIVE[0]} to {LIVE[-1]} live tensors", growth, LIVE_BOUND)


CLAIMS = {"step": step_claim, "small-ops": small_ops_claim, "live": live_claim}


def main() -> int:
    """Measure the claims asked for; 1 where a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of every comparison (default {ROUNDS})")
    parser.add_argument("--only", choices=CLAIMS, action="append", help="measure this claim; repeatable")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # what was imported is nobody's garbage
    kept = [CLAIMS[name](options.rounds) for name in options.only or CLAIMS]
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
