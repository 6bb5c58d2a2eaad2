"""Print ``docs/simcuda-branches.md``: ``python -m docs.pages.branches > docs/simcuda-branches.md``.

PyTorch's samples of operators run three times on the host: with tensors that say they are of the CPU, with
tensors that say they are of CUDA, and on a simulated device. Code of C++ that asks for the device issues
other operations for the second than for the first; the third has to issue those too.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torchgen  # type: ignore[import-untyped]  # it has no annotations
from docs.pages.truth import TORCH, named, table
from tests.gpu.op_db import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

import simcuda
from simcuda.costs.traits import OWN_KERNELS, OperationTraits, traits_of
from simcuda.ledger import noting_operations, operations_of

Observed = Counter[str]
"""How often each operation was issued, by name with overload."""

MOST_SAMPLES = 5
OF_MAKING = re.compile(
    r"aten\.(_to_copy|copy_|empty|zeros|ones|full|scalar_tensor|lift_fresh|clone|detach|alias)"
)
"""Operations that bring samples to a device, or that a rule sees in place of these."""

_Mode: Any = TorchDispatchMode  # which has no annotations

INTRODUCTION = """\
# Where CUDA takes another way

For code of C++ every simulated tensor is one of the CPU. Two kinds of code go another way on CUDA, and each
has to be known by name. Both lists are made from PyTorch {version} itself, not from what we remember:
`python -m docs.pages.branches` prints this page, and a test fails where a version of PyTorch has a row that
nothing handles.

## Kernels that CUDA has beside a composite

By `native_functions.yaml`, which PyTorch installs with `torchgen`: the host would run the composite. Each
has a rule of its own, is one kernel by its tag, or is known never to wait. `_foreach_` functions, {lists} of
them, have [rules](truth.md#rules) too.

"""

QUESTIONS = """
## Functions that ask for the device

Found by running PyTorch's samples of {operators} operators forward, with tensors that say they are of the
CPU, and again with tensors that say they are of CUDA: these issue other operations then. *Handled*: on a
simulated device they issue what they issue on CUDA. What is *approximate* is named so in any run. A function
that asks and then issues the same operations, and formulas of gradients, do not show here.

"""

UNSEEN = """
The samples of {number} could not be compared: a build for the host ends there with an error of its own, most
of them because it has no guard for CUDA's devices. They are {names}.
"""


@dataclass(frozen=True)
class Kernel:
    """An operation with a kernel for CUDA and a composite.

    Attributes:
        name: Its name with overload, such as ``aten.all.dims``.
        composite: The key of the composite.
        handling: What its cost is known from; empty for nothing.
    """

    name: str
    composite: str
    handling: str


def kernels_beside_composites() -> Iterator[Kernel]:
    """Yield the operations for which PyTorch's own list has a kernel for CUDA beside a composite."""
    path = Path(torchgen.__path__[0]) / "packaged/ATen/native/native_functions.yaml"
    for entry in re.split(r"^- func: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        keys: set[str] = set()
        for line in re.findall(r"^    ([\w, ]+): \w+", entry.partition("  dispatch:\n")[2], re.MULTILINE):
            keys |= {key.strip() for key in line.split(",")}
        composites = [key for key in sorted(keys) if key.startswith("Composite")]
        if composites and ("CUDA" in keys or "structured_delegate" in entry):
            name, _, overload = entry.partition("(")[0].partition(".")
            operation = getattr(getattr(torch.ops.aten, name), overload or "default")
            traits = traits_of(operation)
            yield Kernel(traits.op.removesuffix(".default"), composites[0], handling_of(traits))


def handling_of(traits: OperationTraits) -> str:
    """Return what the cost of an operation that arrives whole is known from; empty for nothing."""
    packet = traits.op.rpartition(".")[0]
    if traits.composite is not None and packet not in OWN_KERNELS:
        return ""
    rules = ", ".join(dict.fromkeys(rule.id for rule in traits.rules))
    if rules:
        return rules
    if traits.is_one_kernel:
        return "its tag: one kernel"
    return "" if traits.is_unknown else "never waits"


class Claiming(torch.Tensor):
    """A tensor of the host that says it is on another device."""

    on_host: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor, device: str) -> Claiming:
        """Make one without memory of its own."""
        make: Any = torch.Tensor._make_wrapper_subclass  # noqa: SLF001 - as libraries make theirs
        how = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        made: Claiming = make(cls, inner.size(), **how, device=device)
        made.on_host = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, *_: Any, **__: Any) -> Any:
        """Run nothing by itself: a ``World`` comes first."""
        return NotImplemented


class World(_Mode):  # type: ignore[misc]
    """Runs operations on the host, whose results say that they are where their operands say they are."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device, self.issued = device, Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note an operation, and run it."""
        given = (args, kwargs or {})
        self.issued[str(func)] += 1
        is_asked = str(given[1].get("device", "")).startswith(self.device)
        positional, named_ = tree_map(self._on_host, given)
        result = func(*positional, **named_)
        if is_asked or any(isinstance(each, Claiming) for each in tree_leaves(given)):
            return tree_map(self.claim, result)
        return result

    def claim(self, value: Any) -> Any:
        """Let a tensor, or the name of a device, say that it is of this device."""
        if isinstance(value, torch.Tensor) and not isinstance(value, Claiming):
            return Claiming(value.detach(), self.device)
        return torch.device(self.device) if isinstance(value, torch.device) else value

    def _on_host(self, value: Any) -> Any:
        if isinstance(value, Claiming):
            return value.on_host
        return torch.device("cpu") if isinstance(value, torch.device) else value


@dataclass
class Branch:
    """What an operator issues on CUDA alone, and on the CPU alone, over its samples."""

    on_cuda: Observed = field(default_factory=Counter)
    on_cpu: Observed = field(default_factory=Counter)
    missing: Observed = field(default_factory=Counter)
    error: str = ""


def run_in_world(run: Callable[..., Any], sample: Any, device: str) -> Observed:
    """Return the operations of a sample whose tensors say that they are of a device."""
    world = World(device)
    torch.manual_seed(0)
    first, positional, named_ = tree_map(world.claim, (sample.input, sample.args, sample.kwargs))
    with torch.no_grad(), world, patch.object(torch.cuda, "_lazy_init"):
        run(first, *positional, **named_)
    return world.issued


def run_simulated(run: Callable[..., Any], sample: Any) -> Observed:
    """Return the operations of a sample that arrive at a simulated device."""

    def move(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cuda")
        return value.to("cuda") if isinstance(value, torch.Tensor) else value

    torch.manual_seed(0)
    with noting_operations(), simcuda.device() as gpu, torch.no_grad():
        first, positional, named_ = tree_map(move, (sample.input, sample.args, sample.kwargs))
        with gpu.measure() as cost:
            run(first, *positional, **named_)
    return Counter(dict.fromkeys(operations_of(cost), 1))


def branch_of(operator: Any) -> Branch:
    """Return where the samples of an operator go another way."""
    found = Branch()
    dtypes = sorted(operator.dtypes, key=lambda dtype: (dtype != torch.float32, str(dtype)))
    samples: list[Any] = []
    for dtype in dtypes[:1]:
        samples += list(operator.sample_inputs("cpu", dtype))[:MOST_SAMPLES]
    for sample in samples:
        try:
            on_cpu, on_cuda = (run_in_world(operator, sample, device) for device in ("cpu", "cuda"))
        except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError) as error:
            found.error = found.error or str(error).splitlines()[0]
            continue
        on_cpu, on_cuda = on_cpu - on_cuda, on_cuda - on_cpu
        found.on_cpu += on_cpu
        found.on_cuda += on_cuda
        if on_cpu or on_cuda:
            simulated = run_simulated(operator, sample)
            for name in on_cuda:
                if not simulated[name] and not OF_MAKING.match(name):
                    found.missing[name] += 1
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore what samples warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def kernel_lines() -> list[str]:
    """Return the first part of the page."""
    kernels = list(kernels_beside_composites())
    others = [each for each in kernels if "_foreach_" not in each.name]
    lines = INTRODUCTION.format(version=TORCH, lists=len(kernels) - len(others)).splitlines()
    rows = [(named([each.name]), each.composite, each.handling or "approximate") for each in others]
    return lines + table(("operation", "composite", "its cost is known from"), rows)


def name_of(operator: Any) -> str:
    """Return an operator's name, with that of its variant, as the page has it."""
    variant = f".{operator.variant_test_name}" if operator.variant_test_name else ""
    return f"`{operator.name}{variant}`"


def ask(operators: Iterable[Any]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the rows of the operators that ask for the device, and the names of those that nothing shows."""
    asking: list[tuple[str, ...]] = []
    unseen = []
    with quiet():
        for operator in operators:
            name, branch = name_of(operator), branch_of(operator)
            if branch.on_cpu or branch.on_cuda:
                left = f"approximate: {named(sorted(branch.missing))}" if branch.missing else "handled"
                asking.append((name, named(sorted(branch.on_cpu)), named(sorted(branch.on_cuda)), left))
            elif branch.error:
                unseen.append(name)
    return asking, unseen


def question_lines() -> list[str]:
    """Return the second part of the page."""
    operators = op_db()
    asking, unseen = ask(operators)
    lines = QUESTIONS.format(operators=len(operators)).splitlines()
    lines += table(("operator", "on the CPU alone", "on CUDA alone", "on a simulated device"), asking)
    return lines + UNSEEN.format(number=len(unseen), names=", ".join(unseen)).splitlines()


def page() -> str:
    """Return the page."""
    return "\n".join([*kernel_lines(), *question_lines()]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
