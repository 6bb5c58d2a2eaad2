"""The public API of simcuda and of a verifier, and what the simulation counts in a dozen workloads.

``tests/simcuda`` holds more of the library to its word: the table of facts (``test_facts.py``), PyTorch's own
warnings of synchronization (``test_sync_warning.py``) and the operators of ``op_db`` (``test_op_db.py``);
``tests/gpu`` holds it to a real GPU.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import torch

import simcuda
import simcuda.real
from finding_tickets import workload

if TYPE_CHECKING:
    from tests.contract.conftest import Frozen

CUDA = "cuda"


def parameters(function: Callable[..., Any]) -> list[str]:
    """The parameters of a callable with their kinds and defaults, without annotations."""
    found = inspect.signature(function).parameters.values()
    return [
        f"{each.kind.name.lower()} {each.name}"
        + ("" if each.default is each.empty else f" = {each.default!r}")
        for each in found
    ]


def public(thing: Any) -> Any:
    """What a user sees of a public name: its parameters, the fields and methods of a class, or its value."""
    if inspect.isclass(thing) and dataclasses.is_dataclass(thing):
        return sorted(
            each.name for each in dataclasses.fields(thing) if not each.name.startswith("_")
        ) + members(thing)
    if inspect.isclass(thing):
        return members(thing)
    if callable(thing):
        return parameters(thing)
    return sorted(thing) if isinstance(thing, dict) else list(thing)


def members(kind: type) -> list[str]:
    """The public methods and properties of a class, methods with their parameters."""
    return sorted(
        f"{name}({', '.join(parameters(value))})" if inspect.isfunction(value) else name
        for name, value in inspect.getmembers(kind)
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    )


def test_the_names_of_simcuda(frozen: Frozen) -> None:
    """Every public name with its parameters, and the fields of what is public."""
    frozen("simcuda", "names", {name: public(getattr(simcuda, name)) for name in sorted(simcuda.__all__)})
    documented = ("why_not", "real_device", "CannotCountError")
    frozen("simcuda", "names of real", {name: public(getattr(simcuda.real, name)) for name in documented})
    profiles = {name: dataclasses.asdict(profile) for name, profile in simcuda.PROFILES.items()}
    frozen("simcuda", "profiles", profiles)


def test_the_names_of_a_verifier(frozen: Frozen) -> None:
    """What a verifier imports, with the parameters of each."""
    names = ("Point", "Workload", "main", "stub_imports")
    shown = {name: public(getattr(workload, name)) for name in names}
    shown["Workload"] = [name for name in shown["Workload"] if "(" not in name]
    point = workload.Point(params=4, largest=1024)
    assert (4, 1024, {"params": 4, "largest": 1024}) == (point.params, point["largest"], dict(point))
    frozen("simcuda", "names of a verifier", shown)


def test_the_options_of_the_plugins(pytestconfig: pytest.Config, frozen: Frozen) -> None:
    """What pytest has installed with the package: options with their defaults, and the marker."""
    names = (
        "--simcuda-real",
        "--simcuda-profile",
        "--budget",
        "--tickets",
        "--tickets-root",
        "--tickets-meter",
    )
    defaults = {name: str(pytestconfig.getoption(name, default="there is no such option")) for name in names}
    markers = [
        line.partition(":")[0]
        for line in pytestconfig.getini("markers")
        if line.startswith(("simcuda", "gpu_budget"))
    ]
    frozen("simcuda", "plugins", {"defaults": defaults, "markers": markers})


def reads_a_loss() -> None:
    """The step of the first example in docs/simcuda.md."""
    model = torch.nn.Linear(8, 8, device=CUDA)
    loss = model(torch.ones(2, 8, device=CUDA)).square().mean()
    loss.backward()
    loss.item()


def three_steps() -> None:
    """The loop of the second example, with the model made outside of the docs' measured block inside."""
    model = torch.nn.Linear(8, 8).to(CUDA)
    losses = []
    for x in torch.ones(3, 2, 8):
        loss = model(x.to(CUDA)).square().mean()
        loss.backward()
        losses.append(loss.item())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def optimizer_steps() -> None:
    """Adam in both of its ways, and gradients set to none."""
    for foreach in (False, True):
        leaves = [torch.ones(64, device=CUDA, requires_grad=True) for _ in range(3)]
        optimizer = torch.optim.Adam(leaves, foreach=foreach)
        sum((leaf * leaf).sum() for leaf in leaves).backward()  # type: ignore[union-attr]
        optimizer.step()
        optimizer.zero_grad()


def checks_of_values() -> None:
    """Questions whose answer the host waits for."""
    values = torch.arange(12.0, device=CUDA)
    if torch.isnan(values).any() or bool((values > 3).all()):
        values = -values
    float(values.max())
    values.tolist()
    int(values.argmax())


def shapes_that_depend_on_data() -> None:
    """Operations that read how much there is."""
    values = torch.arange(12.0, device=CUDA)
    values[values > 3]
    torch.nonzero(values)
    torch.unique(values)
    torch.masked_select(values, values < 2)
    values.repeat_interleave(torch.ones(12, dtype=torch.int64, device=CUDA))


def copies() -> None:
    """Copies in every direction, pinned and pageable."""
    host, pinned = torch.ones(1000), torch.ones(1000).pin_memory()
    device = host.to(CUDA)
    pinned.to(CUDA, non_blocking=True)
    host.to(CUDA, non_blocking=True)
    device.cpu()
    device.to("cpu", non_blocking=True)
    device.clone()
    host.copy_(device)


def two_devices() -> None:
    """Copies between devices, and a wait for each of them."""
    one = torch.ones(256, device="cuda:0")
    other = one.to("cuda:1")
    (other + other).to("cuda:0").add_(one)
    for number in range(2):
        torch.cuda.synchronize(number)


def streams_and_events() -> None:
    """Ordered work on a side stream, then a wait for an event."""
    side, done = torch.cuda.Stream(), torch.cuda.Event()  # type: ignore[no-untyped-call]
    values = torch.ones(512, device=CUDA)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        values.mul_(2)
        done.record()
    done.synchronize()
    torch.cuda.current_stream().wait_event(done)
    values.add_(1)
    side.synchronize()


def a_race() -> None:
    """Work on two streams that nothing orders."""
    values = torch.ones(512, device=CUDA)
    with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        values.mul_(2)
    values.add_(1)


def peaks() -> None:
    """Temporaries on the device and on the host, and a result that is dropped."""
    values = torch.ones(1000, 100, device=CUDA)
    ((values * 2 + 1).square() - values).sum()
    torch.cat([values, values])
    torch.ones(5000).mul(2).add(1)


def mixed_precision() -> None:
    """A step with autocast and scaled gradients."""
    model = torch.nn.Linear(8, 8, device=CUDA)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler(CUDA)
    with torch.autocast(CUDA, dtype=torch.float16):
        loss = model(torch.ones(2, 8, device=CUDA)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def norms_together() -> None:
    """One norm of many tensors, by a multi-tensor kernel."""
    tensors = [torch.ones(size, device=CUDA) for size in (1, 7, 300, 70_000)]
    torch.stack(torch._foreach_norm(tensors)).norm().item()
    torch._foreach_add_(tensors, 1.0)


def a_network() -> None:
    """Convolutions, normalization, attention and a loss, forward and backward."""
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten()
    )
    net.to(CUDA)
    logits = net(torch.ones(2, 3, 6, 6, device=CUDA))
    torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1], device=CUDA)).backward()  # type: ignore[no-untyped-call]
    query = torch.ones(1, 2, 4, 8, device=CUDA)
    torch.nn.functional.scaled_dot_product_attention(query, query, query)


WORKLOADS: dict[Callable[[], None], dict[str, Any]] = {
    reads_a_loss: {},
    three_steps: {},
    optimizer_steps: {},
    checks_of_values: {},
    shapes_that_depend_on_data: {},
    copies: {},
    two_devices: {"count": 2},
    streams_and_events: {},
    a_race: {},
    peaks: {},
    mixed_precision: {},
    norms_together: {},
    a_network: {"profile": "h200-cuda13"},
}


@pytest.fixture
def _seeded() -> Iterator[None]:
    """Random weights are the same in every run."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.mark.usefixtures("torch_of_the_data", "_seeded")
@pytest.mark.parametrize(
    "work",
    # The first optimizer of a process loads torch's compiler.
    [pytest.param(work, marks=pytest.mark.slow) if work is optimizer_steps else work for work in WORKLOADS],
    ids=lambda work: work.__name__,
)
def test_counts(work: Callable[[], None], frozen: Frozen) -> None:
    """Every metric, the lines behind them, and what is not sure."""
    with simcuda.device(**WORKLOADS[work]) as gpu:
        work()
        with gpu.measure() as cost:
            work()
        counts = {metric: getattr(cost, metric) for metric in simcuda.METRICS}
    first = work.__code__.co_firstlineno
    sites = [[site.line - first, site.function, site.what, site.count] for site in cost.sites]
    found = {
        "counts": {metric: count for metric, count in counts.items() if count},
        "sites": sorted(sites),
        "unknown": sorted(cost.unknown),
        "approximate": sorted(cost.approximate),
    }
    assert {"tests/contract/test_simcuda.py"} >= {
        site.file[-len("tests/contract/test_simcuda.py") :] for site in cost.sites
    }
    frozen("simcuda", f"counts: {work.__name__}", found)


@pytest.mark.usefixtures("torch_of_the_data")
def test_refusals() -> None:
    """What CUDA refuses raises here too, and assertions fail with the line that costs too much."""
    with simcuda.device(capacity=4 << 20) as gpu:
        one = torch.ones(8, device=CUDA)
        with pytest.raises(torch.OutOfMemoryError):
            torch.ones(1 << 21, device=CUDA)
        with pytest.raises(RuntimeError):
            one + torch.ones(8)
        with pytest.raises(TypeError):
            one.numpy()
        with pytest.raises(RuntimeError):
            torch.ones(1, device="cuda:1")
        with pytest.raises(RuntimeError), simcuda.device():
            pass
        with (
            pytest.raises(AssertionError, match=r"test_simcuda.py:\d+ in test_refusals"),
            simcuda.assert_no_syncs(),
        ):
            one.sum().item()
        with simcuda.assert_at_most(syncs=1, d2h=1, d2h_bytes=4) as cost:
            one.sum().item()
        assert (1, 32) == (cost.syncs, gpu.live_bytes())
    assert not torch.cuda.is_available()
