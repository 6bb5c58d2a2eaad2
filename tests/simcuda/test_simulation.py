"""The simulation as a whole: entering, leaving, tensors, gradients, and what is counted where."""

from __future__ import annotations

import inspect
import runpy
from typing import Any

import pytest
import torch
from torch.torch_version import TorchVersion

import simcuda
from simcuda import SimulatedCuda, simulation
from simcuda.costs import charges
from simcuda.costs.rules import rule

DEVICES = 2


@pytest.mark.usefixtures("gpu")
def test_factories_know_their_device() -> None:
    """Tensors made on ``cuda`` say so, and views and results of theirs too."""
    x = torch.zeros(4, 5, device="cuda")
    made = [
        x,
        x.view(-1),
        x + 1,
        torch.zeros_like(x),
        x.new_empty(3),
        x.to("cuda"),
        torch.tensor([1], device="cuda"),
    ]
    assert [torch.device("cuda", 0)] * 7 == [tensor.device for tensor in made]
    assert all(tensor.is_cuda for tensor in made)
    assert torch.device("cpu") == torch.zeros_like(x, device="cpu").device


@pytest.mark.usefixtures("gpu")
def test_moving_to_where_it_is_changes_nothing() -> None:
    """``to``, ``cuda`` and ``cpu`` return the tensor itself where it is there already."""
    host, device = torch.zeros(3), torch.zeros(3, device="cuda:1")
    assert host is host.cpu()
    assert device is device.to("cuda:1")
    assert device is not device.cuda(0)


@pytest.mark.usefixtures("gpu")
def test_modules_and_gradients_live_on_the_device() -> None:
    """A module moved to the device keeps its parameters' type, and its gradients appear on the device."""
    layer = torch.nn.Linear(5, 3).to("cuda")
    seen: list[torch.device] = []
    watch: Any = layer.weight.register_hook
    watch(lambda gradient: seen.append(gradient.device))
    layer(torch.ones(2, 5, device="cuda")).sum().backward()
    assert isinstance(layer.weight, torch.nn.Parameter)
    assert layer.weight.grad is not None
    assert torch.device("cuda", 0) == layer.weight.grad.device
    assert [torch.device("cuda", 0)] == seen


@pytest.mark.usefixtures("gpu")
def test_a_gradient_returns_to_the_device_of_its_tensor() -> None:
    """Backward through a copy between devices copies the gradient back."""
    leaf = torch.ones(3, requires_grad=True)
    torch.autograd.backward((leaf.to("cuda") * 2).sum())
    assert leaf.grad is not None
    assert torch.device("cpu") == leaf.grad.device
    assert [2.0, 2.0, 2.0] == leaf.grad.tolist()


def test_a_read_value_is_one_wait_at_its_line(gpu: SimulatedCuda) -> None:
    """``item`` is one wait that drains the stream and one copy of the element, at the line that reads."""
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        x[0].item()
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    assert (1, 1, 4) == (cost.syncs, cost.d2h, cost.d2h_bytes)
    assert [(line, what, 1) for what in ("d2h", "drains", "stream_syncs")] == [
        (s.line, s.what, s.count) for s in cost.sites
    ]


@pytest.mark.usefixtures("gpu")
def test_entering_twice_is_refused() -> None:
    """A simulation within a simulation is an error that says so."""
    with pytest.raises(RuntimeError, match="active already"), simcuda.device():
        pass


def test_a_simulation_that_has_ended_measures_nothing() -> None:
    """To measure after the context is an error, where every count would be 0."""
    with simcuda.device() as gpu:
        pass
    with pytest.raises(RuntimeError, match=r"has ended: measure within its simcuda.device\(\) block"):
        gpu.measure().__enter__()
    with simcuda.device(), pytest.raises(RuntimeError, match="has ended"), gpu.measure():
        pass


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"profile": "h100"}, "there is no profile 'h100'; there are h200-cuda13, h200-cuda12, a100-cuda12"),
        ({"count": 0}, "at least one device, not 0"),
        ({"count": "2"}, "at least one device, not '2'"),
        ({"capacity": -1}, "a positive number of bytes is needed, not -1"),
        ({"capacity": 1e9}, "a positive number of bytes is needed, not 1000000000.0"),
        ({"capacity": "80GB"}, "a positive number of bytes is needed, not '80GB'"),
    ],
)
def test_devices_that_cannot_be_are_refused(wrong: Any, message: str) -> None:
    """An unknown profile, and numbers that are not positive integers, are errors that quote them."""
    with pytest.raises(ValueError, match=message), simcuda.device(**wrong):
        pass


def test_devices_say_what_they_are(gpu: SimulatedCuda) -> None:
    """A failing test shows how many devices of which profile its fixture had."""
    assert "<2 x h200-cuda13, simulated>" == repr(gpu)


def test_inference_mode_counts_like_any_other(gpu: SimulatedCuda) -> None:
    """Operations made of others are counted by their parts, with and without autograd."""
    costs = []
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:
            x = torch.ones(3, 3, device="cuda")
            with gpu.measure() as cost:
                torch.nn.functional.linear(torch.isfinite(x).to(x.dtype), x)
                bool((x > 0).all())
        # isfinite is 4 kernels (abs, ne, eq, mul), then a conversion, a product, a comparison and all.
        costs.append((cost.launches, cost.syncs, cost.unknown))
    assert [(8, 1, ())] * 2 == costs


@pytest.mark.parametrize("is_early", [True, False])
def test_custom_operations_are_counted_by_their_parts(gpu: SimulatedCuda, is_early: bool) -> None:
    """What a custom operation written in Python does is seen like any other code, wherever it is defined."""

    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum().item() > 0 else x.clone()

    custom: Any = torch.library.custom_op
    define = custom(f"simcuda_tests::twice_{is_early}", mutates_args=())
    operation = define(twice) if is_early else None
    x = torch.ones(3, device="cuda")
    with gpu.measure() as cost:
        # A script that imports a library defines its operations as it runs.
        result = (operation or define(twice))(x)
    assert (torch.device("cuda", 0), 2, 1, ()) == (result.device, cost.launches, cost.syncs, cost.unknown)


@pytest.mark.parametrize(
    ("version", "is_newer"),
    [("2.14.1+cu130", False), ("2.15.0a0+git1", True), ("2.15.0", True), ("3.0", True)],
)
def test_a_newer_torch_than_was_tried_is_known_by_its_version(
    monkeypatch: pytest.MonkeyPatch, version: str, is_newer: bool
) -> None:
    """The mark says which was tried last."""
    monkeypatch.setattr(torch, "__version__", TorchVersion(version))
    mark: str = runpy.run_path(str(rule.__file__))["UNTRIED"]
    assert (is_newer, is_newer) == ("torch 2.14, the last that was tried" in mark, version in mark)


def test_with_a_newer_torch_what_rests_on_rules_is_marked(
    gpu: SimulatedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison is one kernel by the tag that this torch has for it; a fill by a mask has a rule."""
    x = torch.ones(3, device="cuda")
    monkeypatch.setattr(charges, "UNTRIED", "rules of an older torch")
    with gpu.measure() as compared:
        mask = x > 0
    with gpu.measure() as filled:
        x.masked_fill_(mask, 1.0)
    assert ((), 1) == (compared.approximate, compared.launches)
    assert (("aten.masked_fill_.Scalar", "rules of an older torch"), 1) == (
        filled.approximate,
        filled.launches,
    )


def test_an_older_torch_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is simulated differs there. A real GPU is measured all the same."""
    monkeypatch.setattr(simulation, "OLDEST_TORCH", "99.1")
    with (
        pytest.raises(RuntimeError, match=r"PyTorch 99\.1 or later, and this is 2\..*: update it"),
        simcuda.device(),
    ):
        pass
    # A server that measures on a GPU prepares its workers too.
    simulation.prepare_forks()
