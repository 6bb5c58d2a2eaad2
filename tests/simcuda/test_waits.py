"""How often common calls make the host wait on CUDA, by what PyTorch's sources say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import simcuda
from simcuda import Measurement
from simcuda.costs.rules import RULES
from simcuda.costs.rules.without_rule import HOST_ONLY, NEVER_WAITING, TAKEN_APART, never_waits

NAMES = """
x = torch.rand(8, device="cuda")
rows = torch.rand(4, 6, device="cuda")
value = torch.rand((), device="cuda")
one = torch.tensor(1, device="cuda")
index = torch.tensor([0, 2, 1], device="cuda")
many = torch.rand(100, device="cuda")
host = index.cpu()
classes = torch.zeros(4, dtype=torch.int64, device="cuda")
batch = torch.rand(5, 2, 4, device="cuda")
leaf = torch.rand(4, device="cuda", requires_grad=True)
image = torch.rand(1, 2, 4, 4, device="cuda")
F, nn, distributions = torch.nn.functional, torch.nn, torch.distributions
lengths = torch.tensor([3, 5])
"""

READS_OF_ONE_VALUE = {
    "float(value)": 1,
    "int(one)": 1,
    "complex(value)": 1,
    "range(one)": 1,
    "f'{value:.2f}'": 1,
    "math.isnan(value)": 1,
    "[0, 1, 2][one]": 1,
    "min([value, value, value])": 2,
    "max(value, value)": 1,
    "sum([value, value])": 0,
    "value in [value + 1, value + 1]": 2,
    "all([value, value])": 2,
    "x.tolist()": 1,
    "2 ** value": 0,
    "[element for element in x]": 0,
    "torch.full((2,), value)": 1,
    "torch.arange(one)": 1,
    "x.add(x, alpha=value)": 1,
    "torch.tensor([value, value, value])": 3,
    # Two reads, then the copy to the device.
    "torch.tensor([value, value], device='cuda')": 3,
    "torch.as_tensor(numpy.ones(3), device='cuda')": 1,
    "torch.linspace(value, value, 4, device='cuda')": 2,
    # The result is on the host, the ends are not.
    "torch.linspace(value, value, 4)": 2,
    "torch.logspace(value, 2.0, 4)": 1,
    "torch.zeros_like(x, device='cpu')": 0,
}
INDEXING = {
    "x[one]": 1,
    "x[one:]": 1,
    # The end is computed on the device and read there too.
    "x[one:one + 1]": 2,
    "x[x > 0.5]": 1,
    "x.masked_select(x > 0.5)": 1,
    "x[[0, 1]]": 1,
    "torch.where(x > 0.5)": 1,
    "x.nonzero()": 1,
    "torch.tensor_split(x, host)": 0,
    "torch.zeros(8, device='cuda').scatter_(0, index, x[:3])": 0,
    "x.index_add(0, index, x[:3])": 0,
    "leaf[leaf > -1].sum().backward()": 2,
    # The gradient of the source selects by the mask.
    "torch.zeros(4, device='cuda').masked_scatter(leaf > -1, leaf).sum().backward()": 1,
}
COUNTING_AND_SORTING = {
    "index.unique()": 1,
    "index.bincount()": 2,
    "x.histc(4)": 2,
    "x.histc(4, 0, 1)": 0,
    # 10 x 8^0.145 = 13.5 candidates or more are sorted, after what is unique in both was counted.
    "torch.isin(x, many[:12])": 0,
    "torch.isin(x, many[:13])": 2,
    "torch.isin(x, many, assume_unique=True)": 0,
    "torch.isin(0.5, many)": 2,
    "torch.allclose(x, x)": 1,
    "torch.equal(x, x.clone())": 1,
    "index.repeat_interleave(index)": 2,
    "F.one_hot(index)": 1,
    "F.one_hot(index, 4)": 0,
    "(x.topk(2), x.sort(), x.cumsum(0), x.median(), x.quantile(0.5))": 0,
}
SAMPLING = {
    "torch.multinomial(rows, 1)": 0,
    "torch.multinomial(rows, 3)": 0,
    "torch.multinomial(rows, 3, replacement=True)": 0,
    "torch.bernoulli(x)": 0,
    # The constraint on the parameter is read; the draw reads nothing; the value's constraint is read.
    "distributions.Categorical(probs=rows).sample()": 1,
    "distributions.Categorical(logits=rows, validate_args=False).sample()": 0,
    "distributions.Categorical(logits=rows).log_prob(classes)": 2,
    "distributions.Bernoulli(probs=x).sample()": 1,
    "distributions.Normal(x, x + 1)": 2,
    "F.gumbel_softmax(rows, hard=True)": 0,
    "F.dropout(x)": 0,
}
LAYERS = {
    "F.embedding(index, rows)": 0,
    "F.embedding(index, rows, max_norm=1.0)": 0,
    "F.embedding_bag(index, rows, classes[:1])": 0,
    "F.embedding_bag(index, rows, classes[:1], max_norm=1.0)": 0,
    "F.cross_entropy(rows, classes, ignore_index=1, label_smoothing=0.1)": 0,
    "F.multilabel_margin_loss(rows, torch.zeros(4, 6, dtype=torch.int64, device='cuda'))": 0,
    "nn.MultiheadAttention(4, 2, device='cuda')(batch, batch, batch)": 0,
    "nn.utils.rnn.pack_padded_sequence(batch, [5, 3])": 0,
    # The order of the lengths is copied to the device.
    "nn.utils.rnn.pack_padded_sequence(batch, lengths, enforce_sorted=False)": 1,
    "nn.LSTM(4, 3, device='cuda')(batch)": 0,
    "nn.GRU(4, 3, device='cuda')(batch)": 0,
    "F.grid_sample(image, torch.rand(1, 2, 2, 2, device='cuda'), align_corners=False)": 0,
    "F.interpolate(image, scale_factor=2, mode='bilinear')": 0,
    "torch.cholesky_solve(rows[:2, :2], torch.eye(2, device='cuda'))": 0,
}
GRADIENTS = {
    "torch.where(leaf > 0.5, leaf, leaf * 2).sum().backward()": 0,
    "leaf.max().backward()": 0,
}
CALLS = READS_OF_ONE_VALUE | INDEXING | COUNTING_AND_SORTING | SAMPLING | LAYERS | GRADIENTS

MARKED = {
    # Thrust sorts and searches more than 2048 values, with a wait after each step.
    "torch.rand(2049, device='cuda').mode()": "aten.mode.default",
    "torch.unique(rows, dim=0)": "aten.unique_dim.default",
    "torch.linalg.eig(rows[:2, :2])": "aten.linalg_eig.default",
    "F.ctc_loss(batch, torch.ones(2, dtype=torch.int32), (5, 5), (1, 1))": "aten._cudnn_ctc_loss.default",
}


def cost_of(code: str) -> Measurement:
    """What one line of code costs."""
    names: dict[str, Any] = {"torch": torch, "math": math, "numpy": np}
    with simcuda.device() as gpu:
        exec(NAMES, names)  # noqa: S102 - the code is ours
        with gpu.measure() as measured:
            exec(code, names)  # noqa: S102 - as above
        names.clear()
    return measured


@pytest.mark.parametrize(("code", "waits"), CALLS.items(), ids=CALLS)
def test_a_call_waits_as_often_as_on_cuda(code: str, waits: int) -> None:
    """Every wait is counted, each with its copy, and nothing is left unknown."""
    measured = cost_of(code)
    assert (waits, waits, ()) == (measured.syncs, measured.d2h + measured.h2d, measured.unknown)


@pytest.mark.parametrize(("code", "op"), MARKED.items(), ids=MARKED)
def test_what_might_wait_is_named(code: str, op: str) -> None:
    """An operation that waits in a way nobody has modelled is reported as unknown."""
    assert (op,) == cost_of(code).unknown


@pytest.mark.parametrize("code", ["torch.histogram(x, 4)", "torch.histogramdd(rows, [2] * 6)"])
def test_what_cuda_lacks_is_refused(code: str) -> None:
    """An operation without a CUDA kernel raises the error that PyTorch raises."""
    with pytest.raises(NotImplementedError, match="with arguments from the 'CUDA' backend"):
        cost_of(code)


def test_an_operation_that_nobody_looked_at_might_wait() -> None:
    """Unknown is what holds for everything in no table and under no rule."""
    assert not never_waits("aten._fake_quantize_learnable_per_tensor_affine")


def test_no_operation_is_in_two_tables() -> None:
    """What never waits or is taken apart has no rule for every call of it, is listed once, exists on CUDA."""
    names = [name for table in (NEVER_WAITING, TAKEN_APART) for group in table.values() for name in group]
    always = {op for rule in RULES for op in rule.ops}
    assert len(names) == len(set(names))
    assert set() == {f"aten.{name}" for name in names} & (always | HOST_ONLY)


def test_stacking_over_devices_is_refused_by_what_joins() -> None:
    """CUDA's message names the method that checks: ``stack`` joins by ``cat``."""
    with pytest.raises(RuntimeError, match=r"tensors is on cpu, .* wrapper_CUDA_cat\)"):
        cost_of("torch.stack([index, host])")
