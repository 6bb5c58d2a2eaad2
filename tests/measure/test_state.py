"""What measures is compared by content after a run, by a process that the run does not reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from finding_tickets.measure.processes.isolation import Isolation, Task
from finding_tickets.measure.state import changed_names, fresh_state, state, unpatched
from finding_tickets.measure.tasks import CannotMeasureError
from simcuda.ledger import Ledger

LEFT = {
    "from simcuda.ledger import Ledger; Ledger.count.__code__ = (lambda *_, **__: None).__code__": (
        "simcuda.ledger.Ledger.count"
    ),
    "from simcuda.ledger import Ledger; Ledger.count.__defaults__ = (0,)": "simcuda.ledger.Ledger.count",
    "from simcuda.ledger import Ledger; Ledger.usage_rose = print": "simcuda.ledger.Ledger.usage_rose",
    "from simcuda.costs.rules import RULES; object.__setattr__(RULES[0], 'counts', print)": (
        "simcuda.costs.rules.RULES"
    ),
    "from simcuda import profile; profile.PROFILES['h200-cuda13'] = profile.PROFILES['a100-cuda12']": (
        "simcuda.profile.PROFILES"
    ),
    "from finding_tickets.measure import results; results.SCALARS.clear()": (
        "finding_tickets.measure.results.SCALARS"
    ),
    # Then all of it is gone.
    "from finding_tickets.measure import state; state.fresh_state.__code__ = (lambda: {}).__code__": (
        "torch.typename"
    ),
    "from finding_tickets.measure import state; state.state.__code__ = (lambda: {}).__code__": (
        "finding_tickets.measure.state.state"
    ),
    "import torch; torch.cuda.synchronize.__code__ = (lambda device=None: None).__code__": (
        "torch.cuda.synchronize"
    ),
    # A function of torch, but another one.
    "import torch; torch.cuda.synchronize = torch.cuda.is_available": "torch.cuda.synchronize",
    "import torch; torch.Tensor.item = print": "torch.Tensor",
    "import __main__; __main__.json.dumps.__defaults__; __main__.work.__kwdefaults__ = {'order': 1}": (
        "__main__.work"
    ),
}
"""Code that replaces something and leaves it so, and the name of what it replaces."""


def test_what_a_run_leaves_replaced_is_named(isolation: Isolation) -> None:
    """Even where nothing looked on: the server compares contents with those from before the run."""
    tasks = {
        code: Task(target="builtins:exec", payload=code, root=Path(), timeout=60.0, memory=1 << 30)
        for code in (*LEFT, "import json")
    }
    wrong = {code: outcome.reason or "" for code, outcome in isolation.run(tasks)}
    assert "" == wrong.pop("import json")
    for code, name in LEFT.items():
        assert wrong[code].startswith("replaces "), (code, wrong[code])
        names = wrong[code].removeprefix("replaces ").partition(", which")[0].split(", ")
        assert name in names or " more" in names[-1], (code, wrong[code])


def test_a_worker_finds_the_tables_of_operators_prepared(isolation: Isolation) -> None:
    """To enter them in each worker would take longer than most measurements; so would looking at all modules.

    That CUDA is missing is said only where PyTorch was built without it.
    """
    code = """
import torch
from simcuda import simulation
from simcuda.device.dispatch_key import register
entered = [each.cache_info().currsize for each in (register, simulation._say_that_cuda_is_missing)]
assert entered == [1, int(torch.version.cuda is None)], (entered, torch.__version__, torch._C._has_cuda)
from finding_tickets.measure import state
from simcuda.torch_api import patches
assert state._functions
assert bool(patches._outside) != torch._C._has_cuda
"""
    task = Task(target="builtins:exec", payload=code, root=Path(), timeout=60.0, memory=1 << 30)
    assert [None] == [outcome.reason for _, outcome in isolation.run({0: task})]


def nothing(*_: Any, **__: Any) -> None:
    """What stands in for a function."""


def test_code_that_is_replaced_in_place_is_named_and_put_back() -> None:
    """As a name is that is replaced."""
    before = Ledger.count.__code__
    with pytest.raises(CannotMeasureError, match=r"^replaces simcuda\.ledger\.Ledger\.count, w"), unpatched():
        Ledger.count.__code__ = nothing.__code__
    assert before is Ledger.count.__code__


def test_a_run_changes_nothing_of_it() -> None:
    """Nor do imports, compiled code and what torch's compiler wraps for good."""
    before = state()
    import simcuda.real.device

    with simcuda.device() as gpu, gpu.measure():
        torch.nn.Linear(2, 2, device="cuda")(torch.ones(2, device="cuda")).sum().backward()
        assert [1.0] == torch.ones(1, device="cuda").tolist()
    checked = torch.distributions.Distribution._validate_args
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    # The compiler turns the checks off, which other tests count.
    torch.distributions.Distribution.set_default_validate_args(checked)
    assert [] == changed_names(before, fresh_state())
