"""Programs of several ranks, with the backend that needs no GPU."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed

import simcuda

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning"),
    pytest.mark.skipif(not torch.distributed.is_available(), reason="torch is built without distributed"),
]


@pytest.fixture(autouse=True)
def _group(tmp_path: Path) -> Iterator[None]:
    distributed: Any = torch.distributed
    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def weights_after_two_steps(device: str) -> list[torch.Tensor]:
    """What two steps of a small model leave, trained by DistributedDataParallel."""
    torch.manual_seed(0)
    parallel: Any = torch.nn.parallel.DistributedDataParallel
    model = parallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        model(torch.ones(2, 4, device=device)).square().mean().backward()
        optimizer.step()
    assert {device} == {each.grad.device.type for each in model.parameters()}
    return [each.detach().cpu() for each in model.parameters()]


def test_distributed_data_parallel_trains_on_the_device() -> None:
    """The weights are those of the host; what gloo costs there is unknown, and said so."""
    expected = weights_after_two_steps("cpu")
    with simcuda.device() as gpu, gpu.measure() as cost:
        found = weights_after_two_steps("cuda")
    torch.testing.assert_close(found, expected)
    # Each of four parameters moves to the device and is read back.
    assert (4, 4) == (cost.h2d, cost.d2h)
    assert "c10d.allreduce_.default" in cost.unknown


def test_a_sharded_model_trains_on_the_device() -> None:
    """By fully_shard, whose tensors ask for shapes without data; gradients are those of the model alone."""
    fsdp: Any = importlib.import_module("torch.distributed.fsdp")
    with simcuda.device():
        torch.manual_seed(0)
        model: Any = torch.nn.Linear(4, 1).to("cuda")
        x = torch.ones(2, 4, device="cuda")
        model(x).sum().backward()
        expected = [each.grad.cpu() for each in model.parameters()]
        model.zero_grad()
        fsdp.fully_shard(model)
        model(x).sum().backward()
        found = [each.grad.full_tensor() for each in model.parameters()]
        assert {"cuda"} == {each.device.type for each in found}
        torch.testing.assert_close([each.cpu() for each in found], expected)
