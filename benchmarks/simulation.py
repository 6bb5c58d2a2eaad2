"""What counting costs: code on the simulated device against the same code on the plain CPU.

Three claims. A training step with everything counted, source lines included, takes at most 4 times as long;
the tools that people otherwise reach for are timed beside it. A loop of small operations takes at most 7
times as long. The cost of an operation does not grow with the number of live tensors.

In one thread. Every round sets each contender up anew, warms it up and times it, one after the other. The
garbage collector runs for all of them alike, over what they made themselves.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.profiler import ProfilerActivity, profile

import simcuda
from benchmarks.command import parser, show
from benchmarks.result import Bound, Number, Result, Size

WIDTH, BATCH = 64, 32
STEP_BOUND, SMALL_OPS_BOUND, LIVE_BOUND = Bound(4.0), Bound(7.0), Bound(1.3)


@dataclass(frozen=True)
class Amount:
    """How often each is compared, layers of a model, operations in a loop, repetitions, live tensors."""

    rounds: int
    layers: int
    loops: int
    times: int
    live: tuple[int, ...]


SIZES = {
    Size.FULL: Amount(rounds=11, layers=20, loops=1000, times=20, live=(1_000, 10_000, 100_000)),
    Size.QUICK: Amount(rounds=5, layers=20, loops=1000, times=10, live=(1_000, 100_000)),
    Size.LEAST: Amount(rounds=1, layers=1, loops=10, times=1, live=(10, 100)),
}

Work = Callable[[], None]
Build = Callable[[str], Work]
# Does the work so many times and returns how much the tool has found, which must be more than nothing.
Run = Callable[[int], int]
Tool = Callable[[Build], AbstractContextManager[Run]]
Contender = tuple[Tool, Build, int]


def training_step(device: str, layers: int) -> Work:
    """Forward, backward and an optimizer's step of a model of linear layers."""
    linear = [torch.nn.Linear(WIDTH, WIDTH, device=device) for _ in range(layers)]
    model = torch.nn.Sequential(*(layer for one in linear for layer in (one, torch.nn.ReLU())))
    optimizer = torch.optim.AdamW(model.parameters())
    x, target = (torch.randn(BATCH, WIDTH, device=device) for _ in range(2))

    def step() -> None:
        optimizer.zero_grad()
        loss: torch.Tensor = torch.nn.functional.mse_loss(model(x), target)
        torch.autograd.backward(loss)
        optimizer.step()

    return step


def in_place(device: str, loops: int) -> Work:
    """A loop of two small operations that write to their argument."""
    x = torch.ones(8, device=device)

    def loop() -> None:
        for _ in range(loops):
            x.mul_(1.0001).add_(0.1)

    return loop


def out_of_place(device: str, loops: int, live: int = 0) -> Work:
    """A loop of two small operations that each make a tensor, while so many others are live."""
    tensors = [torch.ones(8, device=device) for _ in range(1 + live)]

    def loop() -> None:
        x = tensors[0]
        for _ in range(loops):
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


@dataclass(frozen=True)
class Compared:
    """The median of a contender's times in milliseconds, and that of its ratios to the first one."""

    name: str
    milliseconds: float
    ratio: float


def compare(rounds: int, contenders: Mapping[str, Contender]) -> list[Compared]:
    """Interleave the contenders."""
    runs = [[seconds(*contender) for contender in contenders.values()] for _ in range(rounds)]
    # The ratio is that within a round: while the machine is slow, it is slow for all contenders.
    ratios = [median(times) for times in zip(*([one / run[0] for one in run] for run in runs), strict=True)]
    times = [median(taken) * 1e3 for taken in zip(*runs, strict=True)]
    return [Compared(*each) for each in zip(contenders, times, ratios, strict=True)]


def beside(compared: Sequence[Compared]) -> Iterator[Number]:
    """The times of all contenders, and the ratios of those that nothing is claimed of."""
    yield from (Number(each.name, each.milliseconds, "ms") for each in compared)
    yield from (Number(f"{each.name} / {compared[0].name}", each.ratio, "") for each in compared[2:])


def step(size: Amount) -> Iterator[Result]:
    """A training step, beside the tools that people otherwise use."""
    build, fewer = partial(training_step, layers=size.layers), max(1, size.times // 2)
    compared = compare(
        size.rounds,
        {
            "plain CPU": (plain, build, size.times),
            "simcuda": (simulated, build, size.times),
            "FakeTensorMode with MemTracker": (fake_tensors, build, min(3, size.times)),
            "torch.profiler with stacks": (profiled, build, fewer),
            "torch.profiler, recording alone": (recorded, build, fewer),
        },
    )
    yield Result(
        name="simulation-step",
        what="a training step, all of it counted / on the plain CPU",
        value=compared[1].ratio,
        bound=STEP_BOUND,
        beside=tuple(beside(compared)),
    )


def small_ops(size: Amount) -> Iterator[Result]:
    """Loops of small operations."""
    for how, build in (("in place", in_place), ("out of place", out_of_place)):
        work, times = partial(build, loops=size.loops), min(5, size.times)
        compared = compare(
            size.rounds, {"plain CPU": (plain, work, times), "simcuda": (simulated, work, times)}
        )
        yield Result(
            name=f"simulation-{how.replace(' ', '-')}",
            what=f"{2 * size.loops} small operations {how} / on the plain CPU",
            value=compared[1].ratio,
            bound=SMALL_OPS_BOUND,
            beside=tuple(beside(compared)),
        )


def live(size: Amount) -> Iterator[Result]:
    """The same operations beside more and more live tensors; on the plain CPU, for comparison, too."""
    numbers: list[Number] = []
    growth = {}
    for tool, where in ((plain, "plain CPU"), (simulated, "simcuda")):
        names = [f"{many:,} live, {where}" for many in size.live]
        works = [partial(out_of_place, loops=size.loops, live=many) for many in size.live]
        times = min(5, size.times)
        contenders = {name: (tool, work, times) for name, work in zip(names, works, strict=True)}
        compared = compare(size.rounds, contenders)
        numbers += (Number(each.name, each.milliseconds, "ms") for each in compared)
        growth[where] = compared[-1].ratio
    yield Result(
        name="simulation-live",
        what=f"an operation beside {size.live[-1]:,} live tensors / beside {size.live[0]:,}",
        value=growth["simcuda"],
        bound=LIVE_BOUND,
        beside=(*numbers, Number("growth, plain CPU", growth["plain CPU"], "")),
    )


CLAIMS = {"step": step, "small-ops": small_ops, "live": live}


def measure(size: Size, only: Sequence[str] = tuple(CLAIMS)) -> Iterator[Result]:
    """The claims asked for, in one thread."""
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # what was imported is nobody's garbage
    for name in only:
        yield from CLAIMS[name](SIZES[size])


def main() -> int:
    """Measure the claims asked for, all by default."""
    options = parser(__doc__)
    options.add_argument("--only", choices=CLAIMS, action="append", help="measure this claim; repeatable")
    given = options.parse_args()
    return show(measure(given.size, given.only or tuple(CLAIMS)), given)


if __name__ == "__main__":
    sys.exit(main())
