"""Cases of what PyTorch lists: operators with their samples, ``op_db``, and a step of every optimizer."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import inspect
import re
import sys
import unittest
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves, tree_map

from simcuda.recording.case import MEASURED, WARM_UP, Case, Groups, NotRunError, Work, digest, seed_all

DTYPES = (torch.float32, torch.float16, torch.float8_e4m3fn, torch.complex64, torch.int64, torch.bool)
"""The types of samples: the first of them that an operator takes on CUDA."""

ADDRESS = re.compile(r"0x[0-9a-f]+")


def groups(most: int) -> Groups:
    """A group for each operator with at most ``most`` of its samples, forward and backward.

    Raises:
        ImportError: ``op_db`` cannot be imported; it needs numpy.
    """
    return {f"op/{op.formatted_name}": partial(_cases, op, most) for op in op_db()}


def op_db() -> list[Any]:
    """PyTorch's own list of operators, each with samples of its arguments.

    Raises:
        ImportError: It cannot be imported; it needs numpy.
    """
    stands_in = "expecttest" not in sys.modules and find_spec("expecttest") is None
    if stands_in:
        # Torch's test helpers derive a class from it, and use no more of it than unittest has.
        module: Any = ModuleType("expecttest")
        module.TestCase = unittest.TestCase
        sys.modules["expecttest"] = module
    try:
        from torch.testing._internal.common_methods_invocations import op_db as operators
    finally:
        if stands_in:
            del sys.modules["expecttest"]
    return operators


def samples(op: Any, dtype: torch.dtype, *, requires_grad: bool) -> list[Any]:
    """An operator's samples of a type, made on the host."""
    # Torch reads the source of every frame to find the unittest that asks: a tenth of a second for each call.
    with patch("torch.testing._internal.common_utils.extract_test_fn", return_value=None):
        return list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad))


def spread(count: int, most: int) -> list[int]:
    """At most ``most`` of ``count`` indices, evenly spread: neighbours are alike, as loops made them."""
    return sorted({index * count // most for index in range(most)}) if count > most else list(range(count))


def _cases(op: Any, most: int) -> Iterator[Case]:
    dtypes = op.supported_dtypes("cuda")
    dtype = next((dtype for dtype in DTYPES if dtype in dtypes), None)
    if dtype is None:
        return
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cuda")
    seeded = {}
    for seed in (MEASURED, WARM_UP):
        # On other data before, and all made on the host: a device's generator draws other values.
        seed_all(seed)
        seeded[seed] = samples(op, dtype, requires_grad=differentiable)
    for index in spread(min(map(len, seeded.values())), most):
        id_ = f"op/{op.formatted_name}/{index}"
        chosen = {seed: of_seed[index] for seed, of_seed in seeded.items()}
        summary = digest(ADDRESS.sub("", chosen[MEASURED].summary()))
        yield Case(id_, partial(_prepare_sample, op, chosen, False), summary)
        if differentiable:
            yield Case(f"{id_}/backward", partial(_prepare_sample, op, chosen, True), summary)


def _prepare_sample(op: Any, samples: dict[int, Any], backward: bool, seed: int) -> Work:
    def to_cuda(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        moved = same_strides(leaf.detach())
        return moved.requires_grad_() if backward and leaf.requires_grad else moved

    sample = samples[seed]
    given, args, kwargs = tree_map(to_cuda, (sample.input, sample.args, sample.kwargs))
    if "device" in kwargs:
        kwargs["device"] = "cuda"
    if not backward:
        return lambda: op(given, *args, **kwargs)
    inputs = _that_require_grad((given, args, kwargs))
    outputs = _that_require_grad(sample.output_process_fn_grad(op(given, *args, **kwargs)))
    if not outputs:
        raise NotRunError("no output has a gradient")
    gradients = [torch.ones_like(output) for output in outputs]
    return lambda: torch.autograd.grad(outputs, inputs, gradients, allow_unused=True)


def _that_require_grad(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def same_strides(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the device with the strides of the original, also where elements overlap or lie apart."""
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        return tensor.to("cuda")
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    # All elements of the storage move, so that views of it are the same views.
    whole = tensor.as_strided((elements,), (1,), 0).to("cuda")
    return whole.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset()).detach()


WAYS: dict[str, dict[str, bool]] = {
    "default": {},
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "capturable": {"capturable": True},
}

SHAPES = ((4, 4), (8, 32), (16, 16), (1, 64), (64, 3), (100, 20))
"""Two dimensions each, which Muon asks for."""


def optimizer_cases() -> Iterator[Case]:
    """A case for every optimizer and every way that its constructor knows."""
    named = sorted(vars(torch.optim).items())
    kinds = {name: kind for name, kind in named if isinstance(kind, type) and issubclass(kind, Optimizer)}
    for name, kind in kinds.items():
        if kind is Optimizer:
            continue
        accepted = inspect.signature(kind).parameters
        for way, options in WAYS.items():
            if options.keys() <= accepted.keys():
                # Recordings know these cases by the text of the function: its name is part of it.
                digest_ = digest(repr(options), repr(SHAPES), inspect.getsource(_prepare))
                yield Case(f"optimizer/{name}/{way}", partial(_prepare, kind, options), digest_)


def _prepare(kind: Any, options: dict[str, bool], seed: int) -> Work:
    """The second step: the first one makes the optimizer's state."""
    generator = seed_all(seed)
    parameters = [nn.Parameter(torch.rand(shape, generator=generator).to("cuda")) for shape in SHAPES]
    if kind is torch.optim.LBFGS:
        # So few iterations that no rounding decides how many there are.
        optimizer = kind(parameters, max_iter=3)
        step = partial(optimizer.step, partial(_loss, optimizer, parameters))
    else:
        optimizer = kind(parameters, **options)
        step = optimizer.step
    _give_gradients(kind, parameters, generator)
    step()
    _give_gradients(kind, parameters, generator)
    return step


def _give_gradients(kind: Any, parameters: list[nn.Parameter], generator: torch.Generator) -> None:
    for parameter in parameters:
        gradient = torch.rand(parameter.shape, generator=generator).to("cuda")
        parameter.grad = gradient.to_sparse() if kind is torch.optim.SparseAdam else gradient


def _loss(optimizer: Optimizer, parameters: list[nn.Parameter]) -> torch.Tensor:
    optimizer.zero_grad()
    loss = torch.stack([(parameter**4).sum() for parameter in parameters]).sum()
    loss.backward()
    return loss
