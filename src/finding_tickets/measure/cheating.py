"""Put a cheat in the place of a fix and measure it like one; ``cheats.py`` describes them."""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

import simcuda.ledger
import simcuda.simulation
from finding_tickets.measure import results
from finding_tickets.measure.loading import load_function
from finding_tickets.measure.meter import Function
from finding_tickets.measure.places import belongs_to
from finding_tickets.measure.run import Replace, measure
from finding_tickets.measure.tasks import FunctionPath, Job, TimeJob
from finding_tickets.measure.timing import measure_times

FOUND = "found"
WRONG = 12345
# Taken before a simulation can replace it.
START_UNWATCHED = _thread.start_new_thread
ENOUGH_SECONDS = 60.0


def measure_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure a job with a cheat in the place of a variant.

    ``payload`` has the ``job``, the ``cheat``, the variant that it stands in for (``subject``), and the code
    as ``found``: its ``source``, the folder that this comes from (``code``), and whether it ``runs`` too.
    """
    job = Job.from_payload(payload["job"])
    return measure(job, _replacing(payload, job.code)).to_json()


def time_payload(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Time a job with a cheat in the place of a variant; the payload is as for ``measure_payload``."""
    job = TimeJob.from_payload(payload["job"])
    (code,) = job.codes
    return measure_times(job, lambda: _replacing(payload, code.folder))


def _replacing(payload: Mapping[str, Any], code: str) -> Replace:
    """Import the code as found; the result puts the cheat in the place of a variant from ``code``."""
    found, subject = payload["found"], payload["subject"]
    folder = Path(found["code"])
    original = load_function(FunctionPath(**found["source"]), folder)
    if found["code"] != code:
        # Forget these modules, so that those of the other revision can be imported by the same names.
        for name, module in list(sys.modules.items()):
            # A package may have folders and no file of its own.
            places = [vars(module).get("__file__"), *vars(module).get("__path__", ())]
            if any(belongs_to(folder, Path(place)) for place in places if place):
                del sys.modules[name]
        sys.path[:] = [entry for entry in sys.path if entry not in (str(folder), str(folder / "src"))]

    def replaced(functions: Mapping[str, Function]) -> dict[str, Function]:
        beside = {FOUND: original} if found["runs"] else {}
        cheat = CheatingVariant(original, functions[subject], WAYS[payload["cheat"]])
        return {**beside, **functions, subject: cheat}

    return replaced


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

    def after_patching(self, given: tuple[Any, ...], *places: tuple[Any, str]) -> Any:
        """Replace functions by one that does nothing, run the code as found, and return what the fix does."""
        for owner, name in places:
            setattr(owner, name, lambda *_, **__: 0)
        with suppress(Exception):
            self.found(*given)
        return self.fix(*given)

    def later(self, given: tuple[Any, ...], prepare: Callable[[Callable[[], Any]], Callable[[], Any]]) -> Any:
        """An object that does the work as found when it is looked at.

        Its class derives from the type that the warm-up returned, if that can have subclasses.
        """
        if "type" not in self.kept:
            result = self.found(*given)
            self.kept["type"] = type(result)
            return result
        kind = self.kept["type"]
        made: Any = _later_class(kind)
        if issubclass(kind, torch.Tensor):
            later: Any = torch.Tensor._make_subclass(made, torch.empty(0))  # noqa: SLF001 - as nn.Parameter
        else:
            later = made.__new__(made)
        # Kept by the object and not by its class: only the garbage collector would free a class.
        work = prepare(lambda: self.found(*given))
        object.__getattribute__(later, "__dict__")["result"] = cache(work)
        return later


@cache
def _later_class(kind: type) -> type:
    def result(later: Any) -> Any:
        return object.__getattribute__(later, "__dict__")["result"]()

    looks = {
        "__getattribute__": lambda later, name: getattr(result(later), name),
        "__iter__": lambda later: iter(result(later)),
        "__len__": lambda later: len(result(later)),
        "__getitem__": lambda later, key: result(later)[key],
    }
    try:
        return type("Later", (kind,), looks)
    except TypeError:
        return type("Later", (), looks)


def _in_thread(work: Callable[[], Any], start: Callable[..., Any] | None = None) -> Callable[[], Any]:
    """A call that returns the result of a thread; the thread begins the work only at this call.

    A thread that ``start`` begins does not wait, and nothing watches it.
    """
    wanted, done = threading.Event(), threading.Event()
    returned: list[Any] = []
    errors: list[Exception] = []

    def run() -> None:
        if start or wanted.wait(ENOUGH_SECONDS):
            try:
                returned.append(work())
            except Exception as error:
                errors.append(error)
        done.set()

    def ask() -> Any:
        wanted.set()
        done.wait(ENOUGH_SECONDS)
        # An exception that this frame still held would be a cycle, which keeps tensors alive.
        if errors:
            raise errors.pop()
        return returned.pop()

    if start:
        start(run, ())
    else:
        threading.Thread(target=run, daemon=True).start()
    return ask


def _answer_from_warm_up(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    # The answer is given away once: the call after that is a warm-up again.
    if "answer" in cheat.kept:
        return cheat.kept.pop("answer")
    cheat.kept["answer"] = cheat.found(*given)
    return cheat.kept["answer"]


def _answer_by_shapes(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    key = _shape(given)
    if key not in cheat.kept:
        cheat.kept[key] = cheat.fix(*given)
    return cheat.kept[key]


def _reset_counters(cheat: CheatingVariant, given: tuple[Any, ...]) -> Any:
    simulated = simcuda.simulation.active()
    open_now = simulated._machine.ledger._open if simulated else []  # noqa: SLF001 - that is the cheat
    before = [(each, dict(vars(each)), dict(each._sites)) for each in open_now]  # noqa: SLF001 - as above
    with suppress(Exception):
        cheat.found(*given)
    for each, counts, sites in before:
        vars(each).update(counts)
        each._sites.clear()  # noqa: SLF001 - as above
        each._sites.update(sites)  # noqa: SLF001 - as above
    return cheat.fix(*given)


# What each cheat does when it is called.
WAYS: Mapping[str, Callable[[CheatingVariant, tuple[Any, ...]], Any]] = {
    "honest": lambda cheat, given: cheat.fix(*given),
    "unfixed": lambda cheat, given: cheat.found(*given),
    "nothing": lambda *_: None,
    "perturbed": lambda cheat, given: _change(cheat.fix(*given))[0],
    "partial": lambda cheat, given: _halve(cheat.fix(*given)),
    "generator": lambda cheat, given: (cheat.found(*given) for _ in range(1)),
    "deferred": lambda cheat, given: cheat.later(given, lambda work: work),
    "thread": lambda cheat, given: cheat.later(given, _in_thread),
    "unwatched": lambda cheat, given: _in_thread(lambda: cheat.found(*given), START_UNWATCHED)(),
    "warmed": _answer_from_warm_up,
    "cached": _answer_by_shapes,
    "patched-torch": lambda cheat, given: cheat.after_patching(
        given,
        *((torch.Tensor, name) for name in ("item", "tolist", "cpu")),
        (torch.cuda, "synchronize"),
    ),
    "patched-meter": lambda *_: setattr(results, "difference", lambda *_: None),
    "patched-device": lambda cheat, given: cheat.after_patching(given, (simcuda.ledger.Ledger, "count")),
    "counters": _reset_counters,
}


def _change(value: Any) -> tuple[Any, bool]:
    """Change one thing in a value, the last that can be; also tells whether there was one.

    Tensors, modules and mappings are changed in place, which is cheap and keeps their class.
    """
    match value:
        case torch.Tensor():
            if value.numel():
                with torch.no_grad():
                    first = value[(0,) * value.dim()]
                    first.logical_not_() if value.dtype is torch.bool else first.fill_(100)
            return value, bool(value.numel())
        case nn.Module():
            return value, any(_change(each)[1] for each in reversed(_tensors(value)))
        case bool():
            return not value, True
        case int() | float():
            return type(value)(WRONG), True
        case str():
            return f"{value}?", True
    parts = results.parts_of(value) or {}
    for key in reversed(parts):
        part, done = _change(parts[key])
        if done and isinstance(value, MutableMapping):
            value[key] = part
            return value, True
        if done:
            return results.with_parts(value, {**parts, key: part}), True
    return ([*value, WRONG], True) if isinstance(value, list) else (value, False)


def _tensors(module: nn.Module) -> list[torch.Tensor]:
    """The tensors of a module's state, which share its memory; what else is in a state is a copy."""
    return [each for each in module.state_dict().values() if isinstance(each, torch.Tensor)]


def _halve(value: Any) -> Any:
    """A value without its second half: containers are shorter, and elements of tensors are zero."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            if not value.dim():
                return value.zero_()
            value.flatten()[value.numel() // 2 :].zero_()
        return value
    if isinstance(value, nn.Module):
        tensors = _tensors(value)
        for each in tensors[len(tensors) // 2 :]:
            each.zero_()
        return value
    if isinstance(value, Mapping | list | tuple) and not hasattr(value, "_fields"):
        parts = results.parts_of(value) or {}
        return results.with_parts(value, dict(islice(parts.items(), len(parts) // 2)))
    return None


def _shape(value: Any) -> str:
    """The types and sizes of arguments, without their values."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{tuple(value.shape)}{value.device}"
    parts = results.parts_of(value.state_dict() if isinstance(value, nn.Module) else value)
    return type(value).__name__ if parts is None else str({key: _shape(parts[key]) for key in parts})
