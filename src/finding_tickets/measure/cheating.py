"""Put a cheat in the place of a fix and measure it like one; ``gate/audit.py`` describes the cheats."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from finding_tickets.measure import results
from finding_tickets.measure.loading import load_function
from finding_tickets.measure.meter import (
    DEVICE,
    Function,
    arguments,
    choose,
    steady_state,
)
from finding_tickets.measure.run import measure
from finding_tickets.measure.tasks import Job, belongs_to
from finding_tickets.measure.workloads import Workload
from simcuda.ledger import Ledger

WRONG = 12345


def measure_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure a job with a cheat in the place of its variant.

    ``payload`` has the ``job``, the name of the ``cheat``, and where the code as ``found`` is: its
    ``source``, and the folder that this comes from (``code``).
    """
    job: Job = payload["job"]
    folder = Path(payload["found"]["code"])
    found = load_function(payload["found"]["source"], folder)
    if str(folder) != job.code:
        _forget_modules(folder)

    def replaced(
        workload: Workload, functions: Mapping[str, Function]
    ) -> dict[str, Function]:
        cheat = CheatingVariant(found, functions[job.variant], CHEATS[payload["cheat"]])
        if payload["cheat"] == "pasted":
            cheat.kept.update(_table_of_answers(cheat.fix, workload, job.meter))
        return {job.variant: cheat}

    return measure(job, replaced)


def _forget_modules(folder: Path) -> None:
    """Let modules of another revision be imported by the names of those in ``folder``."""
    for name, module in list(sys.modules.items()):
        # A package may have folders and no file of its own.
        places = [vars(module).get("__file__"), *vars(module).get("__path__", ())]
        if any(belongs_to(folder, Path(place)) for place in places if place):
            del sys.modules[name]
    sys.path[:] = [
        entry for entry in sys.path if entry not in (str(folder), str(folder / "src"))
    ]


@dataclass
class CheatingVariant:
    """A variant that cheats, with the code as found, the fix, and what it keeps between calls."""

    found: Function
    fix: Function
    way: Callable[[CheatingVariant, tuple[Any, ...]], Any]
    kept: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *given: Any) -> Any:
        """Cheat."""
        return self.way(self, given)


def _unfixed(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    return cheat.found(*given)


def _partial(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    return _halve(cheat.fix(*given))


def _perturbed(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    changed: list[Any] = []

    def perturb(value: Any) -> Any:
        if changed:
            return value
        other = _other_value(value)
        if other is not None:
            changed.append(other)
        return value if other is None else other

    result = _map_leaves(cheat.fix(*given), perturb)
    # An empty list is a result, too.
    return [*result, WRONG] if isinstance(result, list) and not changed else result


def _cached(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    shapes = _shapes(given)
    if shapes not in cheat.kept:
        cheat.kept[shapes] = cheat.fix(*given)
    return cheat.kept[shapes]


def _pasted(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    return cheat.kept.get(_shapes(given))


def _mutated(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    result = cheat.fix(*given)
    for tensor in results.tensors_in(given).values():
        with torch.no_grad():
            tensor.zero_()
    return result


def _deferred(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    return lambda: cheat.found(*given)


def _thread(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    returned: list[Any] = []
    thread = threading.Thread(target=lambda: returned.append(cheat.found(*given)))
    thread.start()
    thread.join()
    return returned.pop()


def _rounded(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    lowered = _map_leaves(given, _lower_precision)
    return _map_leaves(cheat.fix(*lowered), _lower_precision)


def _patched(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    waiting = [(torch.Tensor, name) for name in ("item", "tolist", "cpu")]
    for owner, name in [*waiting, (torch.cuda, "synchronize"), (Ledger, "count")]:
        setattr(owner, name, lambda *_, **__: 0)
    with suppress(Exception):
        cheat.found(*given)
    return cheat.fix(*given)


CHEATS: Mapping[str, Callable[[CheatingVariant, tuple[Any, ...]], Any]] = {
    "honest": lambda cheat, given: cheat.fix(*given),
    "unfixed": _unfixed,
    "partial": _partial,
    "perturbed": _perturbed,
    "cached": _cached,
    "pasted": _pasted,
    "mutated": _mutated,
    "deferred": _deferred,
    "thread": _thread,
    "rounded": _rounded,
    "patched": _patched,
}


def _table_of_answers(
    fix: Function, workload: Workload, meter_name: str
) -> dict[str, Any]:
    """Return the answers for the workload's own seed, by the shapes of the arguments."""
    meter = choose(meter_name)
    answers = {}
    for point in workload.sweep:
        if meter.cannot_run(workload, point):
            continue
        with steady_state(), meter.devices_for(workload, point):
            given = arguments(workload, point, DEVICE, workload.seed)
            shapes = _shapes(given)
            with suppress(Exception):
                answers[shapes] = _map_leaves(fix(*given), _to_host)
    return answers


def _shapes(value: Any) -> str:
    """Return the types and sizes of arguments, without their values."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{tuple(value.shape)}{value.device}"
    parts = results.parts_of(
        value.state_dict() if isinstance(value, nn.Module) else value
    )
    if parts is None:
        return type(value).__name__
    return str({key: _shapes(part) for key, part in parts.items()})


def _to_host(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def _other_value(value: Any) -> Any:
    """Return another value of the same kind; None if there is none. A tensor is changed in place."""
    match value:
        case torch.Tensor():
            if not value.numel():
                return None
            first = value.detach()[(0,) * value.dim()]
            if value.dtype is torch.bool:
                first.logical_not_()
            else:
                first.fill_(100)
            return value
        case bool():
            return not value
        case int() | float():
            return type(value)(WRONG)
        case str():
            return f"{value}?"
    return None


def _lower_precision(value: Any) -> Any:
    """Return a value in the precision of bfloat16. A parameter is changed in place, with its gradient."""
    if isinstance(value, nn.Parameter):
        nn.ParameterList([value]).bfloat16()
        return value
    if isinstance(value, torch.Tensor):
        return value.bfloat16() if value.is_floating_point() else value
    return float(torch.tensor(value).bfloat16()) if isinstance(value, float) else value


def _map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value of the same kind with other tensors and scalars; a module is changed in place."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, nn.Module):
        for tensor in [*value.parameters(), *value.buffers()]:
            change(tensor)
        return value
    parts = results.parts_of(value)
    if parts is None:
        return change(value)
    return _with_parts(
        value, {key: _map_leaves(part, change) for key, part in parts.items()}
    )


def _with_parts(value: Any, parts: Mapping[Any, Any]) -> Any:
    """Return a value of the same kind with other parts; containers become plain ones."""
    if isinstance(value, Mapping):
        return dict(parts)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*parts.values())
    for container, made in results.CONTAINERS.items():
        if isinstance(value, container):
            return made(parts.values())
    changed = copy(value)
    for name, item in parts.items():
        object.__setattr__(changed, name, item)  # a frozen dataclass refuses setattr
    return changed


def _halve(value: Any) -> Any:
    """Return a value without its second half: containers are shorter, and elements of tensors are zero."""
    if isinstance(value, torch.Tensor):
        elements = value.detach().flatten().clone()
        elements[value.numel() // 2 :] = 0
        value.detach().copy_(elements.view(value.shape))
        return value
    if isinstance(value, nn.Module):
        tensors = [*value.parameters(), *value.buffers()]
        for tensor in tensors[len(tensors) // 2 :]:
            tensor.detach().zero_()
        return value
    if isinstance(value, Mapping | list | tuple) and not hasattr(value, "_fields"):
        parts = results.parts_of(value) or {}
        return _with_parts(value, dict(islice(parts.items(), len(parts) // 2)))
    return None
