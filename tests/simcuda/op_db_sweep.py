"""Runs PyTorch's samples of every operator on the CPU and on a simulated device, and says where they differ.

``python -m tests.simcuda.op_db_sweep 4 polar`` runs every fourth operator and ``polar``, and prints one JSON
object with an outcome for each. Importing torch's test helpers changes torch's settings for good, hence the
process. Without arguments it runs all, and prints the operations that they test: ``src/simcuda/tested.json``.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from tests.gpu import op_db as operators
from torch import Tensor
from torch.autograd.profiler import record_function
from torch.utils._pytree import tree_leaves, tree_map

import simcuda
from simcuda.costs.traits import traits_of
from simcuda.device import dispatch_key
from simcuda.torch_api import dispatch
from simcuda.torch_api.dispatch import Dispatcher
from simcuda.torch_api.operands import joins_gradients

MOST_SAMPLES = 10
BACKWARD = "backward of sample "
SEED = 0
CLOSE: Any = {"rtol": 1e-6, "atol": 1e-6, "check_stride": False}

Observed = Counter[str]
"""How often each operation was issued, by name with overload."""


@dataclass
class Outcome:
    """What became of one operator's samples.

    Attributes:
        samples: How many were run.
        differences: How a result differs from the CPU's.
        raised: The errors that both raise.
        gradients: How a gradient does.
        differentiated: How many samples had a backward pass.
        issued: How the operations of backward passes do: ``-name`` for one that only the CPU issues.
        unknown: Operations without a rule.
        leaked: Bytes left on the device once everything was dropped.
        operations: What the dispatcher ran, by name without overload.
    """

    samples: int = 0
    differences: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    gradients: list[str] = field(default_factory=list)
    differentiated: int = 0
    issued: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    leaked: int = 0
    operations: list[str] = field(default_factory=list)


@dataclass
class Run:
    """What one sample gave; each the text of an error where there was one."""

    results: Any = None
    gradients: Any = None


def sweep(every: int, further: Collection[str]) -> dict[str, Outcome]:
    """The outcome of every so many operators, and of further ones, by name, as far as they have samples."""
    outcomes = {}
    for place, op in enumerate(operators.op_db()):
        if place % every and name_of(op) not in further:
            continue
        # What nobody filled is filled alike then.
        torch.use_deterministic_algorithms("empty" in op.name)
        samples = _samples(op)
        if samples:
            outcomes[name_of(op)] = outcome_of(op, samples)
    return outcomes


def name_of(op: Any) -> str:
    """An operator's name, with that of its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def outcome_of(op: Any, samples: Sequence[Any]) -> Outcome:
    """Run an operator's samples on both devices."""
    outcome = Outcome(samples=len(samples))
    arguments = [_copies((sample.input, sample.args, sample.kwargs)) for sample in samples]
    runs, observed = _on_cpu(op, samples, arguments)
    ran = set[str]()
    with patch.object(dispatch_key, "VIEWS", ()), simcuda.device() as gpu, gpu.measure() as cost:
        for index, sample in enumerate(samples):
            live = gpu.live_bytes()
            seen: list[str] = []
            given = tree_map(_to_cuda, arguments[index])
            with _spied(seen, ran):
                run = _run(op, sample, given, seen)
            _compare(outcome, runs[index], run)
            if not isinstance(run.gradients, str | None):
                outcome.differentiated += 1
                missing, further = observed[index] - Counter(seen), Counter(seen) - observed[index]
                outcome.issued += [f"-{name}" for name in missing] + [f"+{name}" for name in further]
            del given, run
            outcome.leaked += _left(gpu, live)
    outcome.unknown, outcome.operations = sorted(cost.unknown), sorted(ran)
    for found in ("differences", "raised", "gradients", "issued"):
        setattr(outcome, found, sorted(set(getattr(outcome, found))))
    return outcome


def _samples(op: Any) -> list[Any]:
    dtypes = op.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in dtypes else min(dtypes, key=str, default=None)
    if dtype is None:
        return []
    torch.manual_seed(SEED)
    grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    samples = operators.samples(op, dtype, requires_grad=grad)
    return [samples[index] for index in operators.spread(len(samples), MOST_SAMPLES)]


def _on_cpu(op: Any, samples: Sequence[Any], arguments: Sequence[Any]) -> tuple[list[Run], list[Observed]]:
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    with torch.autograd.profiler.profile(use_kineto=True, experimental_config=config) as profile:
        runs = [
            _run(op, sample, _copies(given), [], f"{BACKWARD}{index}")
            for index, (sample, given) in enumerate(zip(samples, arguments, strict=True))
        ]
    results = profile.kineto_results
    overloads = {(event.start_ns(), event.name()): event.overload_name() for event in results.events()}
    observed = [Counter[str]() for _ in samples]
    for event in _all(results.experimental_event_tree()):
        if event.name.startswith(BACKWARD):
            observed[int(event.name.removeprefix(BACKWARD))].update(_issued(event.children, overloads))
    return runs, observed


def _run(op: Any, sample: Any, given: Any, seen: list[str], label: str = "") -> Run:
    run = Run()
    function = _function(op)
    torch.manual_seed(SEED)
    try:
        result = function(given[0], *given[1], **given[2])
        run.results = result
    except Exception as error:
        run.results = _text(error)
        return run
    inputs = _that_require_grad(given)
    try:
        outputs = _that_require_grad(sample.output_process_fn_grad(result))
        if inputs and outputs:
            ones = [torch.ones_like(output) for output in outputs]
            seen.clear()
            with record_function(label) if label else nullcontext():
                run.gradients = torch.autograd.grad(outputs, inputs, ones, allow_unused=True)
    except Exception as error:
        run.gradients = _text(error)
    return run


def _function(op: Any) -> Any:
    """What a caller gets by name: the simulation replaces some of the functions that the operator holds."""
    owner, name = _places().get(id(op.op), (None, ""))
    return op if owner is None else getattr(owner, name)


@cache
def _places() -> dict[int, tuple[Any, str]]:
    owners = (torch, torch.linalg, torch.special, torch.fft, torch.nn.functional, torch.Tensor)
    return {id(function): (owner, name) for owner in owners for name, function in vars(owner).items()}


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _that_require_grad(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor) and leaf.requires_grad]


def _all(events: Sequence[Any]) -> Iterator[Any]:
    for event in events:
        yield event
        yield from _all(event.children)


def _issued(events: Sequence[Any], overloads: Mapping[tuple[int, str], str]) -> Iterator[str]:
    """The operations that a dispatcher below autograd is told of."""
    for event in events:
        name = event.name
        if "::" not in name or name.startswith(("autograd::", "torch::")) or " " in name:
            yield from _issued(event.children, overloads)
            continue
        operation = _overload(name, overloads[event.start_time_ns, name])
        if operation is None or _is_taken_apart(operation):
            yield from _issued(event.children, overloads)
        else:
            yield operation


@cache
def _overload(name: str, overload: str) -> str | None:
    full = f"{name}.{overload}" if overload else name
    return full if torch._C._dispatch_has_kernel(full) else None


@cache
def _is_taken_apart(name: str) -> bool:
    namespace, _, full = name.partition("::")
    packet, _, overload = full.partition(".")
    operation = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    return traits_of(operation).composite is not None


@contextmanager
def _spied(seen: list[str], ran: set[str]) -> Iterator[None]:
    """Note what the dispatcher runs, and the names without overloads in another set."""
    run, joins = Dispatcher.run, joins_gradients

    def spy(self: Any, func: Any, args: Any, kwargs: Any) -> Any:
        ran.add(f"{func.namespace}.{func.name().partition('::')[2].partition('.')[0]}")
        if not _is_taken_apart(func.name()):
            seen.append(func.name())
        return run(self, func, args, kwargs)

    def in_place(*how: Any) -> bool:
        does = joins(*how)
        if does:
            seen[-1] = "aten::add_.Tensor"
        return does

    with patch.object(Dispatcher, "run", spy), patch.object(dispatch, "joins_gradients", in_place):
        yield


def _copies(tree: Any) -> Any:
    return tree_map(_copy, tree)


def _copy(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    copy = leaf.detach().clone()
    if leaf.layout is torch.strided and not (leaf.is_conj() or leaf.is_neg()):
        elements = leaf.untyped_storage().nbytes() // leaf.element_size()
        whole = leaf.detach().as_strided((elements,), (1,), 0).clone()
        copy = whole.as_strided(leaf.size(), leaf.stride(), leaf.storage_offset()).detach()
    return copy.requires_grad_(leaf.requires_grad)


def _to_cuda(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return "cuda" if isinstance(leaf, torch.device) or leaf == "cpu" else leaf
    return operators.with_same_strides(leaf.detach()).requires_grad_(leaf.requires_grad)


def _compare(outcome: Outcome, expected: Run, actual: Run) -> None:
    outcome.differences += _differences(expected.results, actual.results)
    if isinstance(expected.results, str) and expected.results == actual.results:
        outcome.raised.append(expected.results)
    if not isinstance(actual.results, str):
        outcome.gradients += _differences(expected.gradients, actual.gradients)


def _differences(expected: Any, actual: Any) -> Iterator[str]:
    if isinstance(actual, str) and not isinstance(expected, str):
        yield actual
        return
    ours, theirs = tree_leaves(expected), tree_leaves(actual)
    if len(ours) != len(theirs) or isinstance(expected, str) != isinstance(actual, str):
        yield f"{_short(actual)} instead of {_short(expected)}"
        return
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            yield from _difference(one, other)
        elif one != other and not (one != one and other != other):
            yield f"{_short(other)} instead of {_short(one)}"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"a {type(value).__name__}"


def _difference(expected: Tensor, actual: Tensor) -> Iterator[str]:
    if actual.device.type != "cuda":
        yield f"on {actual.device.type}"
    if expected.layout is torch.strided and expected.stride() != actual.stride():
        yield "other strides"
    ours, theirs = _comparable(actual.cpu()), _comparable(expected)
    if _are_same(ours, theirs):
        return
    try:
        torch.testing.assert_close(ours, theirs, equal_nan=True, **CLOSE)
    except AssertionError:
        yield "other values"


def _are_same(one: Tensor, other: Tensor) -> bool:
    """Whether there is nothing to tolerate: most results are equal, which is found out sooner."""
    # Torch asks that of no complex halves.
    is_usual = one.layout is other.layout is torch.strided and not one.is_complex()
    return is_usual and one.dtype == other.dtype and torch.equal(one, other)


def _comparable(tensor: Tensor) -> Tensor:
    # Torch compares no floats of 8 bits.
    tensor = tensor.detach()
    return tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor


def _left(gpu: simcuda.SimulatedCuda, before: int) -> int:
    torch._C._cuda_clearCublasWorkspaces()
    if gpu.live_bytes() != before:
        # What is left may be a cycle, which CUDA's memory would wait for as well.
        gc.collect()
    return gpu.live_bytes() - before


def operations_that_agree(outcomes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The operations of ATen that operators run which give results and gradients, and those of the CPU."""
    agree = [
        each for each in outcomes.values() if not (each["differences"] or each["gradients"] or each["raised"])
    ]
    names = {name for each in agree for name in each["operations"] if name.startswith("aten.")}
    return {
        "torch": torch.__version__.split("+")[0],
        "operations": sorted(name.removeprefix("aten.") for name in names),
    }


def main() -> None:
    """Print the outcomes of some operators, or what all of them test."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    every, *further = sys.argv[1:] or ("1",)
    # Each collection would go through all that torch's helpers have loaded.
    operators.op_db()
    gc.freeze()
    # A seed for devices that are not there is kept with the traceback of whoever set it.
    for device in (torch.xpu, torch.mtia):
        patch.object(device, "manual_seed_all", lambda _: None).start()
    cuda: Any = torch.cuda
    seed_all = cuda.manual_seed_all

    def seed_if_there(seed: int) -> None:
        if cuda.is_initialized():
            seed_all(seed)

    patch.object(cuda, "manual_seed_all", seed_if_there).start()
    outcomes = {name: asdict(outcome) for name, outcome in sweep(int(every), further).items()}
    if sys.argv[1:]:
        json.dump(outcomes, sys.stdout)
    else:
        print(json.dumps(operations_that_agree(outcomes), indent=1))


if __name__ == "__main__":
    main()
