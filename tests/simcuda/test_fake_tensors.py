"""Tensors without data: fake ones, with which planners and compilers compute, and those of ``meta``."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F  # noqa: N812 - as all call it
from torch.utils._python_dispatch import TorchDispatchMode

import simcuda
from simcuda import SimulatedCuda

_torch: Any = torch  # which has no annotations for some
_Mode: Any = TorchDispatchMode


def test_fake_tensors_move_between_devices_and_cost_nothing(gpu: SimulatedCuda) -> None:
    """By any way to name a device; results are where their operands are, as are fakes of real ones."""
    real = torch.ones(2, 3, device="cuda")
    with gpu.measure() as cost, FakeTensorMode() as mode:
        x: Any = torch.ones(2, 3)
        there = [
            *(x.to("cuda"), x.cuda(), x.to(0, torch.float16), x.to(torch.ones(1, device="cuda"))),
            *(x.type(_torch.cuda.HalfTensor), torch.ones(3, device="cuda"), mode.from_tensor(real)),
            *(x.cuda() @ x.cuda().t(), x.cuda().new_zeros(2), x.cuda().half().float()),
        ]
        assert {"cuda:0"} == {str(each.device) for each in there}
        assert all(each.is_cuda and each.get_device() == 0 for each in there)
        assert "cpu" == x.cuda().cpu().device.type == x.device.type
        with pytest.raises(RuntimeError, match=r"two d(evices|ifferent devices)"):
            x + x.cuda()
    assert (0, 0, 0, 0) == (cost.launches, cost.allocations, cost.h2d, cost.syncs)
    assert () == (*cost.unknown, *cost.approximate)


def test_a_fake_tensor_has_the_device_that_is_named() -> None:
    """One of several, which is not the current one."""
    with simcuda.device(2), FakeTensorMode():
        assert "cuda:1" == str(torch.ones(2).to("cuda:1").device)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["layers", "recurrent", "attention"])
def test_a_model_trains_on_fake_tensors(gpu: SimulatedCuda, kind: str) -> None:
    """Forward, backward, clipping and the optimiser; gradients lie where the parameters lie."""
    with FakeTensorMode(), torch.device("cuda"):
        kinds: dict[str, Any] = {
            "layers": lambda: torch.nn.Sequential(
                torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(3), torch.nn.GELU(), torch.nn.Dropout(0.1)
            ),
            # Its biases have one gradient, which the engine copies for each.
            "recurrent": lambda: torch.nn.LSTM(8, 8),
            "attention": lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        }
        module: Any = kinds[kind]()
        made = module(torch.randn(2, 3, 8))
        out = made[0] if kind == "recurrent" else made
        loss = F.cross_entropy(out.reshape(6, 8), torch.zeros(6, dtype=torch.long), label_smoothing=0.1)
        # Its formula makes a tensor of ones by itself.
        torch.autograd.backward(loss + torch.rand(3, requires_grad=True).prod())
        parameters = list(module.parameters())
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        torch.optim.AdamW(parameters).step()
        assert {"cuda:0"} == {str(each.device) for p in parameters for each in (p, p.grad, out, loss)}
    del module
    # Only a count of batches, which is a constant, was really made there.
    assert gpu.live_bytes() <= 8


def test_what_a_mode_runs_for_its_value_runs_on_the_device(gpu: SimulatedCuda) -> None:
    """A constant is real: it is copied to the device and added to, as on a GPU, and may be read."""
    with gpu.measure() as cost, FakeTensorMode():
        assert 3.0 == (torch.tensor(2.0, device="cuda") + 1).item()
    # One copy of 4 bytes; one addition; one read.
    assert (1, 4, 1, 1, 2) == (cost.h2d, cost.h2d_bytes, cost.launches, cost.d2h, cost.syncs)


@pytest.mark.usefixtures("gpu")
def test_a_copied_mode_frees_no_storage_twice() -> None:
    """As when a module with fake tensors is copied: PyTorch itself ends with a damaged heap."""
    with FakeTensorMode() as mode:
        constant = torch.tensor(2.0, device="cuda")
    converters = (mode.fake_tensor_converter, copy.deepcopy(mode).fake_tensor_converter)
    own, copied = ([*map(id, each.constant_storage_mapping)] for each in converters)
    assert own == copied != [], constant


def test_nothing_is_copied_out_of_a_meta_tensor(gpu: SimulatedCuda) -> None:
    """CUDA refuses it by these words, and says of modules what to do; storages stay without memory."""
    meta: Any = torch.ones(3, device="meta")
    for move in (lambda: meta.to("cuda"), meta.cuda, meta.cpu, lambda: meta.to("cpu")):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            move()
    with pytest.raises(NotImplementedError, match=r"Please use torch\.nn\.Module\.to_empty\(\)"):
        torch.nn.Linear(2, 2, device="meta").to("cuda")
    with pytest.raises(RuntimeError, match="cuda:0 and meta"):
        torch.ones(3, device="cuda") + meta
    assert "meta" == meta.half().device.type == meta.untyped_storage().clone().device.type
    layer = torch.nn.Linear(2, 2, device="meta").to_empty(device="cuda")
    # 4 weights and 2 biases of 4 bytes, of which each takes a block.
    assert ("cuda:0", 24) == (str(layer.weight.device), gpu.live_bytes())


class Copies(_Mode):  # type: ignore[misc]
    """Keeps the device that each copy asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Keep it, and copy."""
        if func is torch.ops.aten._to_copy.default:
            self.asked.append(str(kwargs["device"]))
        return func(*args, **(kwargs or {}))


def test_a_dispatch_mode_sees_where_copies_go() -> None:
    """To this device, to that, and back; each is made once."""
    with simcuda.device(2) as gpu, gpu.measure() as cost:
        x = torch.ones(3)
        with Copies() as copies:
            back = x.to("cuda").to("cuda:1").cpu()
    assert (["cuda:0", "cuda:1", "cpu"], [1.0] * 3) == (copies.asked, back.tolist())
    assert (1, 1, 1) == (cost.h2d, cost.p2p, cost.d2h)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_a_traced_function_names_the_devices(gpu: SimulatedCuda, mode: str) -> None:
    """A trace is a mode too; one of fake tensors costs nothing, and its graph computes."""
    trace: Any = make_fx
    with gpu.measure() as cost:
        graph = trace(lambda x: (x.to("cuda") * 2).cpu(), tracing_mode=mode)(torch.ones(3))
    assert ["cuda:0", "cpu"] == [str(n.kwargs["device"]) for n in graph.graph.nodes if "_to_copy" in n.name]
    # One copy there, one product, one copy back.
    assert (cost.h2d, cost.launches, cost.d2h) == ((1, 1, 1) if mode == "real" else (0, 0, 0))
    assert [2.0] * 3 == graph(torch.ones(3)).tolist()
