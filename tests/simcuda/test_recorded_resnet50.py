"""The recording of a training step of ResNet50 beside the same step simulated, by operation."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import simcuda
from simcuda import Measurement
from simcuda.torch_api import dispatch, operands
from simcuda.torch_api.dispatch import Dispatcher
from simcuda.traces.kineto import read

TRACE = Path(__file__).resolve().parents[3] / "shared/traces/v100_resnet50_training.json.gz"
STEPS = 6

METRICS = ("launches", "copies", "waits", "allocations")

RECORDED_AS = {
    "_to_copy": "to",
    "_log_softmax": "cross_entropy_loss",
    "nll_loss_forward": "cross_entropy_loss",
    "max_pool2d_with_indices": "max_pool2d",
    "mean": "adaptive_avg_pool2d",
}
"""The function of Python in which the recording has an operation of the dispatcher."""

OF_LIBRARIES = {
    *("conv2d", "cudnn_convolution_backward", "batch_norm", "cudnn_batch_norm_backward", "linear", "mm"),
    *("convolution", "convolution_backward", "native_batch_norm", "native_batch_norm_backward", "addmm"),
}
"""cuDNN's operations and products of matrices, under both names."""

CHANGED: Mapping[tuple[str, str], tuple[int, int]] = {
    # Until June 2021 aten/src/THCUNN/generic/ClassNLLCriterion.cu cleared the gradient by THCTensor_(zero), a
    # memset. ATen/native/cuda/Loss.cu of 2.13 does it by grad_input.zero_(), whose fill is a kernel.
    ("nll_loss_backward", "launches"): (1, 2),
    # torch/nn/modules/batchnorm.py of 2021 counted batches by self.num_batches_tracked + 1, that of 2.13 by
    # self.num_batches_tracked.add_(1): 53 layers, beside the additions around 16 blocks.
    ("add", "launches"): (16 + 53, 16),
    ("add", "allocations"): (16 + 53, 16),
    # For each of 161 parameters, its gradient, its momentum and itself; a gradient for each of 16 blocks.
    ("add_", "launches"): (3 * 161 + 16, 3 * 161 + 16 + 53),
}
"""What an operation did in 2021, and what it does now, by metric."""


class Block(nn.Module):
    """Three convolutions around which the input goes, changed if its size changes."""

    def __init__(self, inner: int, given: int, stride: int) -> None:
        super().__init__()
        sizes = ((given, inner, 1, 1), (inner, inner, 3, stride), (inner, 4 * inner, 1, 1))
        self.convolutions = nn.ModuleList(convolution(*size) for size in sizes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(size[1]) for size in sizes)
        changes = stride > 1 or given != 4 * inner
        self.around = (
            nn.Sequential(convolution(given, 4 * inner, 1, stride), nn.BatchNorm2d(4 * inner))
            if changes
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        """Activations in place, the last of them after the sum."""
        result = x
        for place, (layer, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            result = norm(layer(result))
            result = functional.relu_(result if place < 2 else result + self.around(x))
        return result


def convolution(given: int, made: int, size: int, stride: int) -> nn.Conv2d:
    """Without a bias, as the normalisation that follows has one."""
    return nn.Conv2d(given, made, size, stride, padding=size // 2, bias=False)


def resnet50() -> nn.Module:
    """Deep Residual Learning for Image Recognition (He et al., 2015), table 1: 3, 4, 6 and 3 blocks."""
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    given = 64
    for inner, blocks, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for place in range(blocks):
            layers.append(Block(inner, given, 1 if place else first))
            given = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 1000))


def cost(measured: Measurement) -> Counter[str]:
    """The counts until now."""
    copies = measured.h2d + measured.d2h + measured.d2d + measured.p2p
    values = (measured.launches, copies, measured.syncs, measured.allocations)
    return Counter(dict(zip(METRICS, values, strict=True)))


@contextmanager
def by_operation(block: list[Measurement], counts: dict[str, Counter[str]]) -> Iterator[None]:
    """Add up what each operation costs that the dispatcher is told of, while ``block`` has a measurement.

    It is to begin before a device does, which may put a lock around what the dispatcher runs.
    """
    run, joins = Dispatcher.run, operands.joins_gradients
    seen: list[str] = []

    def spy(self: Any, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if not block:
            return run(self, func, args, kwargs)
        (measured,) = block
        before, place = cost(measured), len(seen)
        seen.append(func.name().partition("::")[2].partition(".")[0])
        result = run(self, func, args, kwargs)
        # An operation that is made of others is counted by these.
        if len(seen) == place + 1:
            counts[RECORDED_AS.get(seen[place], seen[place])] += cost(measured) - before
        return result

    def in_place(*how: Any) -> bool:
        if (joined := joins(*how)) and block:
            seen[-1] = "add_"
        return joined

    with patch.object(Dispatcher, "run", spy), patch.object(dispatch, "joins_gradients", in_place):
        yield


@pytest.mark.slow
@pytest.mark.skipif(not TRACE.exists(), reason="the recordings are not here")
def test_a_step_of_resnet50_is_as_recorded() -> None:
    """Each operation apart from cuDNN's and products, by launches, copies, waits and allocations."""
    recorded: dict[str, Counter[str]] = defaultdict(Counter)
    for call in read(TRACE).calls:
        of = call.cost
        known = len(of.allocations or ())
        values = (len(of.kernels), len(of.copies), of.stream_syncs, known)
        recorded[call.op.removeprefix("aten::")] += Counter(dict(zip(METRICS, values, strict=True)))
    simulated: dict[str, Counter[str]] = defaultdict(Counter)
    block: list[Measurement] = []
    with by_operation(block, simulated), simcuda.device(profile="a100-cuda12") as gpu:
        # What an operation costs does not depend on these sizes, as long as no result is empty.
        model = resnet50().to("cuda")
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, foreach=False)
        for _ in range(2):
            images, classes = torch.rand(2, 3, 64, 64), torch.zeros(2, dtype=torch.long)
            simulated.clear()
            with gpu.measure() as measured:
                block[:] = [measured]
                loss = functional.cross_entropy(model(images.to("cuda")), classes.to("cuda"))
                optimizer.zero_grad(set_to_none=False)
                torch.autograd.backward(loss)
                optimizer.step()
            block.clear()
    differences = {}
    for name in (recorded.keys() | simulated.keys()) - OF_LIBRARIES:
        for metric in METRICS:
            then, now = recorded[name][metric] / STEPS, simulated[name][metric]
            if then != now:
                differences[name, metric] = then, now
    assert CHANGED == differences
