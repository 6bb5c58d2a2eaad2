"""A session of tests: what wakes its devices, and how a process ends that left them open."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import Ended

import simcuda
from simcuda import simulation
from simcuda.basis import operations
from simcuda.device import dispatch_key
from simcuda.session import Session, measuring_tests, refusal
from simcuda.torch_api import factories


@pytest.fixture
def session() -> Iterator[Session]:
    """Two devices, asleep."""
    folder = Path(__file__).parent
    with simulation.session(2, "h200-cuda13") as gpu, measuring_tests(gpu, folder) as made:
        assert not is_watched()
        yield made


def is_watched() -> bool:
    """Whether the operations of this thread arrive at the simulation."""
    return bool(torch._C._dispatch_tls_is_dispatch_key_included(dispatch_key._KEY))


def loaded() -> torch.Tensor:
    """A tensor that was saved on the host."""
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    return torch.load(file, map_location="cuda")  # type: ignore[no-any-return]  # has no annotation


def made_by_default() -> torch.Tensor:
    """A tensor for which the default device is asked."""
    torch.set_default_device("cuda")
    made = torch.ones(2)
    torch.set_default_device(None)
    return made


def made_in_context() -> torch.Tensor:
    """A tensor within a device's block."""
    with torch.device("cuda"):
        return torch.ones(2)


def made_by_a_thread() -> torch.Tensor:
    """A tensor of another thread, which this one then uses."""
    made: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: made.append(torch.ones(2, device="cuda")))
    thread.start()
    thread.join()
    return made[0] + 1


def made_in_backward() -> torch.Tensor:
    """A tensor that a hook makes, where C++ puts the state of the thread back afterwards."""
    x, made = torch.ones(2, requires_grad=True), []
    hook: Any = x.register_hook
    hook(lambda _: made.append(torch.ones(2, device="cuda")))
    torch.autograd.backward(x.sum())
    return made[0] + 1


OF_CUDA: Any = torch.cuda
SCRIPT: Any = torch.jit.CompilationUnit("def zeros() -> Tensor:\n  return torch.zeros([2], device='cuda')\n")

WAYS: dict[str, Callable[[], torch.Tensor]] = {
    "a factory": lambda: torch.ones(2, device="cuda"),
    "a number": lambda: torch.zeros(2, device=1),
    "a function of torch.fft": lambda: torch.fft.fftfreq(4, device="cuda"),
    "a window": lambda: torch.signal.windows.hann(4, device=torch.device("cuda")),
    "a method": lambda: torch.ones(2).new_zeros(2, device="cuda"),
    "data": lambda: torch.tensor([1.0], device="cuda"),
    "a legacy type": lambda: OF_CUDA.FloatTensor(3),
    "to": lambda: torch.ones(2).to("cuda"),
    "cuda": lambda: torch.ones(2).cuda(),
    "a module": lambda: torch.nn.Linear(2, 2).cuda().weight,
    "an operator": lambda: torch.ops.aten.zeros.default([2], device=torch.device("cuda")),
    "a packet of operators": lambda: torch.ops.aten.zeros([2], device="cuda"),
    "pinned memory": lambda: torch.ones(2).pin_memory().cuda(non_blocking=True),
    "a script": SCRIPT.zeros,
    "a saved tensor": loaded,
    "a default device": made_by_default,
    "the block of a device": made_in_context,
    "a thread": made_by_a_thread,
    "a hook of a backward pass": made_in_backward,
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_names_a_device_wakes_the_session(session: Session, way: str) -> None:
    """From then on operations are counted: an addition is one launch more."""
    made = WAYS[way]()
    assert "cuda" == made.device.type
    assert is_watched()
    assert session.take()["used"]
    with session.gpu.measure() as cost:
        made.add(1)
    assert 1 == cost.launches


def test_every_function_that_takes_a_device_wakes_the_session() -> None:
    """Of the operators with a device, each that Python can call by name is among those that wake."""
    known = {
        *operations("sparse factories"),
        *factories.METHODS,
        *(each.__name__ for each in (*factories.FACTORIES, *factories.MAKERS)),
    }
    known |= {name for _, name in factories.NAMED_ONLY} | {"Generator", "to", "pin_memory", "is_pinned"}
    schemas: list[Any] = torch._C._jit_get_all_schemas()
    taking = {
        schema.name.removeprefix("aten::").removeprefix("fft_")
        for schema in schemas
        if schema.name.startswith("aten::") and any(each.name == "device" for each in schema.arguments)
    }
    owners = (torch, torch.Tensor, torch.fft, torch.special, torch.linalg, torch.sparse, torch.nested)
    public = {name for name in taking if not name.startswith("_") and any(hasattr(o, name) for o in owners)}
    assert set() == public - known


def test_a_device_that_a_living_thread_uses_keeps_the_session_awake(session: Session) -> None:
    """It may hand out what it has there at any time; once it has ended, the session sleeps again."""
    go, gone = threading.Event(), threading.Event()

    def work() -> None:
        torch.ones(2, device="cuda")
        gone.set()
        go.wait()

    thread = threading.Thread(target=work)
    thread.start()
    gone.wait()
    session.begin()
    assert is_watched()
    go.set()
    thread.join()
    session.begin()
    assert not is_watched()


def test_a_measurement_of_a_fixture_keeps_the_session_awake(session: Session) -> None:
    """It counts what the host allocates too: 4 floats of 4 bytes."""
    with session.gpu.measure() as cost:
        session.begin()
        torch.ones(4)
    assert 16 == cost.host_peak_bytes


def test_waits_of_a_package_are_those_of_the_line_that_calls_it(session: Session, tmp_path: Path) -> None:
    """Of one line; where two lines lead to the same wait, nobody knows how many are whose."""
    code = compile("def read(x):\n    return x.item()", str(tmp_path / "package.py"), "exec")
    package: dict[str, Any] = {}
    exec(code, package)  # noqa: S102 - code whose file is not in the folder of the session
    x = torch.ones((), device="cuda")
    for _ in range(3):
        package["read"](x)
    sites = session.take()["sites"]
    name = "test_waits_of_a_package_are_those_of_the_line_that_calls_it"
    assert [("test_session.py", name, what, 3) for what in ("drains", "stream_syncs")] == [
        (file, function, what, count) for file, _, function, what, _, count in sites
    ]
    package["read"](x)
    package["read"](x)
    installed = ["installed packages", 0, ""]
    assert [[*installed, what, "", 2] for what in ("drains", "stream_syncs")] == session.take()["sites"]


def test_a_session_leaves_a_real_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a block of its own CUDA is started, for code that follows; after a session it is not."""
    started: list[None] = []
    monkeypatch.setattr(torch._C, "_has_cuda", True)
    monkeypatch.setattr(torch.cuda, "init", lambda: started.append(None))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with simulation.session(1, "h200-cuda13"):
        torch.ones(1, device="cuda")
    assert 0 == len(started)
    with simcuda.device():
        torch.ones(1, device="cuda")
    assert 1 == len(started)


@pytest.mark.parametrize(
    "message",
    [
        "The Triton kernel add does not run on a simulated CUDA device; call operations of PyTorch instead",
        "pytest --simcuda simulates 1 x h200-cuda13: 2 devices are needed, as by --simcuda=2",
    ],
)
def test_a_refusal_is_found_behind_other_errors(message: str) -> None:
    """As a cause, and as a line of the text by which another process told it."""
    error = ValueError("no")
    error.__cause__ = RuntimeError(f"in a worker:\n  Traceback\nRuntimeError: {message}\n")
    assert message == refusal(error)


def test_other_errors_are_no_refusal() -> None:
    """Nor are those that go round in a circle."""
    error = ValueError("no")
    error.__context__ = KeyError("x")
    error.__context__.__context__ = error
    assert refusal(error) is None
    assert refusal(None) is None


def test_a_process_without_devices_is_told() -> None:
    """Only another process than the session's can say that CUDA is missing."""
    assert "a process that the test starts has no simulated devices" == refusal(
        AssertionError("Torch not compiled with CUDA enabled")
    )


LEFT_OPEN = """
import os, simcuda, sys, torch
for kept in ("", "x = torch.ones(3, device='cuda'); x.sum().item()"):
    child = os.fork()
    if not child:
        opened = simcuda.device(2)
        opened.__enter__()
        exec(kept)
        sys.exit()
    assert 0 == os.waitpid(child, 0)[1]
"""


@pytest.mark.slow
def test_a_device_left_open_ends_with_its_process(torch_alone: Callable[[str], Ended]) -> None:
    """Without a word on stderr, used or not."""
    assert (0, "", "") == torch_alone(LEFT_OPEN)
