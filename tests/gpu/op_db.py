"""Patterns that nobody derived: samples of every operator that PyTorch lists, and the examples of rules."""

# Many of torch's methods have no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import random
import re
import sys
import unittest
import zlib
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from tests.gpu.pattern import NothingToRunError, Pattern
from torch.utils._pytree import tree_leaves, tree_map

from simcuda.costs.rules import RULES, CostRule, example_names, run_example

DTYPES = (torch.float32, torch.float16, torch.float8_e4m3fn, torch.complex64, torch.int64, torch.bool)
"""The types of samples: the first of them that an operator takes on CUDA."""
MOST_SAMPLES = 2
"""Of 27 on average: all of them would take a GPU an hour."""
ADDRESS = re.compile(r"0x[0-9a-f]+")


def load() -> dict[str, Pattern]:
    """Return a pattern for each sample, forward and backward, and for each rule.

    Raises:
        ImportError: ``op_db`` needs numpy.
    """
    return {pattern.name: pattern for pattern in (*sample_patterns(), *rule_patterns())}


def op_db() -> list[Any]:
    """Return PyTorch's own list of operators, each with samples of its arguments.

    Raises:
        ImportError: It needs numpy.
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
    """Return an operator's samples of a type, made on the host."""
    seed_host: Any = torch.default_generator.manual_seed
    with (
        # Torch reads the source of every frame to find the unittest that asks: a tenth of a second for each.
        patch("torch.testing._internal.common_utils.extract_test_fn", return_value=None),
        # Seeding other accelerators, too, takes longer than making the sample.
        patch("torch.manual_seed", seed_host),
        torch.random.fork_rng(devices=[]),
    ):
        return list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad))


def rule_patterns() -> Iterator[Pattern]:
    """Find the examples of rules."""
    for rule in RULES:
        yield Pattern(f"rule/{rule.id}", partial(build_rule, rule), rule.source, {}, runs=rule_text(rule))


def build_rule(rule: CostRule) -> Callable[[], object]:
    """Make the tensors that an example uses, and return the example."""
    names = example_names()
    return lambda: run_example(rule, names)


def rule_text(rule: CostRule) -> Callable[[], str]:
    """Return what tells which example it is."""
    return lambda: digest(rule.example)


def sample_patterns() -> Iterator[Pattern]:
    """Find the samples of operators; that there is no such sample is found out where it is built."""
    for op in op_db():
        types = op.supported_dtypes("cuda")
        dtype = next((dtype for dtype in DTYPES if dtype in types), None)
        if dtype is None:
            continue
        has_backward = op.supports_autograd and dtype in op.supported_backward_dtypes("cuda")
        for place in range(MOST_SAMPLES):
            chosen = partial(choose_sample, op.formatted_name, dtype, has_backward, place)
            name = f"op/{op.formatted_name}/{place}"
            yield Pattern(
                name, partial(build_forward, op, chosen), "op_db", {}, runs=partial(told_of, chosen)
            )
            if has_backward:
                backward = partial(build_backward, op, chosen)
                yield Pattern(f"{name}/backward", backward, "op_db", {}, runs=partial(told_of, chosen))


def choose_sample(name: str, dtype: torch.dtype, requires_grad: bool, place: int) -> Any:
    """Return the first sample of an operator, or one from the middle.

    Raises:
        NothingToRunError: There are too few samples.
    """
    found = seeded_samples(name, dtype, requires_grad, torch.initial_seed())
    places = spread(len(found), MOST_SAMPLES)
    if place >= len(places):
        raise NothingToRunError("too few samples")
    return found[places[place]]


def spread(count: int, most: int) -> list[int]:
    """Return at most ``most`` of ``count`` indices, evenly spread: neighbours are alike."""
    if count <= most:
        return list(range(count))
    return [index * count // most for index in range(most)]


@lru_cache(maxsize=4)
def seeded_samples(name: str, dtype: torch.dtype, requires_grad: bool, seed: int) -> list[Any]:
    """Return an operator's samples with the values of a seed, the host's: a device draws others."""
    import numpy as np

    seed_host: Any = torch.default_generator.manual_seed
    seed_host(seed)
    random.seed(seed)
    np.random.seed(seed)
    return samples(operators_by_name()[name], dtype, requires_grad=requires_grad)


@cache
def operators_by_name() -> dict[str, Any]:
    """Return the operators by their name with its variant."""
    return {op.formatted_name: op for op in op_db()}


def told_of(choose: Callable[[], Any]) -> str:
    """Return what tells which sample it is."""
    return digest(ADDRESS.sub("", choose().summary()))


def digest(text: str) -> str:
    """Return eight hexadecimal digits that differ where texts do."""
    return f"{zlib.crc32(text.encode()):08x}"


def build_forward(op: Any, choose: Callable[[], Any]) -> Callable[[], object]:
    """Move a sample to the device, and return the call of its operator."""
    given, args, kwargs = on_device(choose(), keeps_gradients=False)
    return lambda: op(given, *args, **kwargs)


def build_backward(op: Any, choose: Callable[[], Any]) -> Callable[[], object]:
    """Call an operator with a sample, and return the backward pass.

    Raises:
        NothingToRunError: No output has a gradient.
    """
    sample = choose()
    given, args, kwargs = on_device(sample, keeps_gradients=True)
    inputs = with_gradients((given, args, kwargs))
    outputs = with_gradients(sample.output_process_fn_grad(op(given, *args, **kwargs)))
    if not outputs:
        raise NothingToRunError("no output has a gradient")
    gradients = [torch.ones_like(output) for output in outputs]
    return lambda: torch.autograd.grad(outputs, inputs, gradients, allow_unused=True)


def on_device(sample: Any, *, keeps_gradients: bool) -> tuple[Any, Any, Any]:
    """Return the arguments of a sample on the device."""

    def move(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        moved = with_same_strides(leaf.detach())
        return moved.requires_grad_() if keeps_gradients and leaf.requires_grad else moved

    given, args, kwargs = tree_map(move, (sample.input, sample.args, sample.kwargs))
    if "device" in kwargs:
        kwargs["device"] = "cuda"
    return given, args, kwargs


def with_same_strides(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the device with the same strides, also where elements overlap or lie apart."""
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        return tensor.to("cuda")
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    # All elements of the storage move, so that views of it are the same views.
    whole = tensor.as_strided((elements,), (1,), 0).to("cuda")
    return whole.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset()).detach()


def with_gradients(tree: Any) -> list[torch.Tensor]:
    """Return the tensors that require a gradient."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
